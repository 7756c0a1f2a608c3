"""The time budget of an experiment: is there room for these trials? Reads no clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from prony.evidence.trial import TrialRecord
from prony.plan.plan import ScheduledTrial


def kind_of_cell(trial: ScheduledTrial | TrialRecord) -> str:
    """Key of trials with similar durations: cell, and kind where it is not a plain trial."""
    return trial.cell if trial.kind == "trial" else f"{trial.cell} ({trial.kind})"


def own_s(every: Sequence[TrialRecord]) -> list[float]:
    """Duration of each trial, s, without trials nested in it (a duet's)."""

    def own(trial: TrialRecord) -> float:
        within = (it for it in every if trial.started_at < it.started_at and it.ended_at < trial.ended_at)
        others = max((it.ended_at - it.started_at for it in within), default=timedelta())
        return max(0.0, (trial.ended_at - trial.started_at - others).total_seconds())

    return [own(trial) for trial in every]


@dataclass(slots=True)
class Budget:
    """`whole_s`: total, from the first trial on."""

    whole_s: float
    spent_s: float = 0.0
    """In earlier runs of the experiment."""
    longest_s: dict[str, float] = field(default_factory=dict)
    """`kind_of_cell` -> its longest ended trial."""
    _begun: float | None = field(default=None)
    _took_s: float = 0.0
    _planned_s: float = 0.0

    @classmethod
    def of(cls, whole_s: float, earlier: Iterable[TrialRecord]) -> Budget:
        """With the time spent by trials of earlier runs."""
        made, every = cls(whole_s), list(earlier)
        for trial, took_s in zip(every, own_s(every), strict=True):
            made.spent_s += took_s
            made.took(kind_of_cell(trial), took_s)
        return made

    def begin(self, now_s: float) -> None:
        """Start the budget by a monotonic clock; later calls have no effect."""
        if self._begun is None:
            self._begun = now_s

    def took(self, cell: str, seconds: float, planned_s: float | None = None) -> None:
        """Record the duration of a trial of this cell and kind, and its planned duration."""
        self.longest_s[cell] = max(seconds, self.longest_s.get(cell, 0.0))
        if planned_s is not None:
            self._took_s, self._planned_s = self._took_s + seconds, self._planned_s + planned_s

    def has_room(self, now_s: float, planned_s: Mapping[str, float]) -> bool:
        """Whether these fit."""
        if not self.longest_s:
            return True
        used_s = self.spent_s + (0.0 if self._begun is None else now_s - self._begun)
        return used_s + self.needed_s(planned_s) <= self.whole_s

    def needed_s(self, planned_s: Mapping[str, float]) -> float:
        """Each cell's longest trial, else the planned time × actual ÷ planned so far."""
        pace = self._took_s / self._planned_s if self._planned_s else 1.0
        return sum(self.longest_s.get(cell, pace * seconds) for cell, seconds in planned_s.items())
