"""What a trial tells while it runs."""

from __future__ import annotations

from typing import Protocol

from prony.evidence.engine import IntervalRow


class TrialObserver(Protocol):
    """Receives the progress of one trial. No method may raise or take long."""

    def phase(self, name: str, expected_s: float | None) -> None:
        """The trial enters a phase that will take about so long."""

    def row(self, row: IntervalRow) -> None:
        """One second of load has passed."""

    def note(self, text: str) -> None:
        """Something worth a line."""
