"""The time that trials may take: is there room for these? No clock is read here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from prony.evidence.trial import TrialRecord
from prony.plan.plan import ScheduledTrial


def kind_of_cell(trial: ScheduledTrial | TrialRecord) -> str:
    """Trials of a cell take about as long as each other; an explained one takes a time of its own."""
    return trial.cell if trial.kind == "trial" else f"{trial.cell} ({trial.kind})"


def own_s(every: Sequence[TrialRecord]) -> list[float]:
    """How long each took, in seconds, without those that ran within it (a duet's)."""

    def own(one: TrialRecord) -> float:
        within = (it for it in every if one.started_at < it.started_at and it.ended_at < one.ended_at)
        others = max((it.ended_at - it.started_at for it in within), default=timedelta())
        return max(0.0, (one.ended_at - one.started_at - others).total_seconds())

    return [own(one) for one in every]


@dataclass(slots=True)
class Budget:
    """`whole_s` in all, from the first trial on."""

    whole_s: float
    spent_s: float = 0.0
    """In earlier runs of the experiment."""
    longest_s: dict[str, float] = field(default_factory=dict)
    """`kind_of_cell` -> the longest of its trials that ended."""
    _begun: float | None = field(default=None)
    _took_s: float = 0.0
    _planned_s: float = 0.0

    @classmethod
    def of(cls, whole_s: float, earlier: Iterable[TrialRecord]) -> Budget:
        """With what the trials of earlier runs took."""
        made, every = cls(whole_s), list(earlier)
        for one, took_s in zip(every, own_s(every), strict=True):
            made.spent_s += took_s
            made.took(kind_of_cell(one), took_s)
        return made

    def begin(self, now_s: float) -> None:
        """The first trial of this run begins, by any clock that does not go back; once is enough."""
        if self._begun is None:
            self._begun = now_s

    def took(self, cell: str, seconds: float, planned_s: float | None = None) -> None:
        """A trial of this cell and kind has ended, for which so much was planned."""
        self.longest_s[cell] = max(seconds, self.longest_s.get(cell, 0.0))
        if planned_s is not None:
            self._took_s, self._planned_s = self._took_s + seconds, self._planned_s + planned_s

    def has_room(self, now_s: float, planned_s: Mapping[str, float]) -> bool:
        """Whether a trial of each of these cells ends in time, if none takes longer than the longest of its
        cell so far; where none has ended, than planned, as far as trials have kept to their plans. Before
        anything was run there is room.
        """
        if not self.longest_s:
            return True
        used_s = self.spent_s + (0.0 if self._begun is None else now_s - self._begun)
        pace = self._took_s / self._planned_s if self._planned_s else 1.0
        needed_s = sum(self.longest_s.get(cell, pace * seconds) for cell, seconds in planned_s.items())
        return used_s + needed_s <= self.whole_s
