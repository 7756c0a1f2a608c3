"""Figures that only a plan's tables show: per user, per request, by session.

Derived from the evidence when shown; a figure whose counters are missing is absent.
"""

from __future__ import annotations

from prony.evidence.trial import Evidence
from prony.judge.window import measured


def cell_figures(evidence: Evidence) -> dict[str, float]:
    """Figures by name, those that the evidence supports."""
    window = measured(evidence)
    found: dict[str, float] = {}
    if window is None:
        return found
    ended = window.completed + window.failed
    if evidence.load.users and window.duration_s > 0:
        found["per_user_per_s"] = window.completed / window.duration_s / evidence.load.users
        if window.user_time_s is not None:
            found["users_simulated"] = window.user_time_s / window.duration_s
    if window.completed and window.connections_opened is not None:
        found["connections_per_request"] = window.connections_opened / window.completed
    if ended:
        found["failed_share"] = window.failed / ended
    found["completed"] = float(window.completed)
    if evidence.load.model == "open" and window.offered is not None:
        found["offered_requests"] = float(window.offered)
        found["blocked"] = float(window.blocked or 0)
        found["due_unsent"] = float(window.due_unsent or 0)
    if window.think_count and window.think_drawn_sum_s and window.think_actual_sum_s is not None:
        found["think_actual_share"] = window.think_actual_sum_s / window.think_drawn_sum_s
    return found
