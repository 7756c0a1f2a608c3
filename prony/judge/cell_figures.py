"""Figures that only a plan's tables show: per user, per request, by session."""

from __future__ import annotations

from prony.evidence.trial import Evidence
from prony.judge.window import measured


def cell_figures(evidence: Evidence) -> dict[str, float]:
    """Figures by name; one whose counters are missing is absent."""
    window = measured(evidence)
    figures: dict[str, float] = {}
    if window is None:
        return figures
    ended = window.completed + window.failed
    if evidence.load.users and window.duration_s > 0:
        figures["per_user_per_s"] = window.completed / window.duration_s / evidence.load.users
        if window.user_time_s is not None:
            figures["users_simulated"] = window.user_time_s / window.duration_s
    if window.completed and window.connections_opened is not None:
        figures["connections_per_request"] = window.connections_opened / window.completed
    if ended:
        figures["failed_share"] = window.failed / ended
    figures["completed"] = float(window.completed)
    if evidence.load.model == "open" and window.offered is not None:
        figures["offered_requests"] = float(window.offered)
        figures["blocked"] = float(window.blocked or 0)
        figures["due_unsent"] = float(window.due_unsent or 0)
    if window.think_count and window.think_drawn_sum_s and window.think_actual_sum_s is not None:
        figures["think_actual_share"] = window.think_actual_sum_s / window.think_drawn_sum_s
    return figures
