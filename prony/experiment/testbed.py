"""The host on which an experiment runs, as it is before the first trial, and whom it tells: `Progress`.

Must not know what is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from prony.evidence.engine import IntervalRow
from prony.evidence.host import CpuPartition, Fingerprint, Limits
from prony.judge.finding import Status


class Progress(Protocol):
    """What an experiment tells while it works (prony.report.progress has the ones that people see)."""

    def experiment_started(self, total_trials: int, estimate_s: float) -> None:
        """This many trials are ahead, and about this many seconds."""

    def build(self, server: str, line: str) -> None:
        """A line from the build of a server."""

    def trial_started(self, index: int, server: str, block: int) -> None:
        """Trial number `index` (from 1) begins."""

    def phase(self, name: str, expected_s: float | None) -> None:
        """The trial enters a phase."""

    def row(self, row: IntervalRow) -> None:
        """One second of load has passed."""

    def trial_ended(
        self, verdict: Status, requests_per_s: float | None, seconds: float, why: str = ""
    ) -> None:
        """The trial is over; no rate when none may be printed; `why`: what made it other than valid."""

    def note(self, text: str) -> None:
        """Something worth a line."""


@dataclass(frozen=True, slots=True)
class Testbed:
    """Everything about the host that is fixed before the first trial."""

    partition: CpuPartition
    limits: Limits
    fingerprint: Fingerprint
