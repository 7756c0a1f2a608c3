"""Search for the highest rate that meets an objective."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

RESOLUTION = 0.05
"""The search ends when the lowest failed rate is within this share of the highest one that held."""
CLEAR = 1.5
"""Factor between a value and its limit beyond which a rate needs no second trial."""
AGREEING = 2
"""Nearer to the limit: trials with the same outcome that decide a rate."""
MOST_UNDECIDED = 3
"""Undecided trials after which a rate counts as not shown to hold."""
STEP = 2.0
"""Factor between rates until both outcomes have occurred."""


class Outcome(StrEnum):
    """Outcome of a trial at a rate."""

    MET = "met"
    MISSED = "missed"
    UNDECIDED = "undecided"
    """The limit lies within the interval of the figure: the rate is measured again."""
    CLIENT = "client"
    """The load generator could not offer this rate: no statement about the server."""
    UNUSABLE = "unusable"
    """The trial does not conform for another reason, or lacks the figure."""


class End(StrEnum):
    """Why the search ended."""

    FOUND = "found"
    """The highest rate that held and the lowest that failed are within the resolution."""
    UNDECIDED = "undecided"
    """The highest rate that held and the lowest undecided one are within the resolution."""
    CLIENT = "client"
    """The load generator is the limit: the server sustains at least the highest rate that held."""
    NEVER = "never"
    """Not even the lowest rate of the search range held."""
    HIGHEST = "highest"
    """The highest rate of the search range held: the server sustains at least that."""
    UNUSABLE = "unusable"
    """Trials at a rate repeatedly did not conform."""
    TRIALS = "trials"
    """The limit on trials was reached; the bracket is the result."""


@dataclass(slots=True)
class Tally:
    """Outcomes of the trials at a rate."""

    met: int = 0
    missed: int = 0
    undecided: int = 0
    client: int = 0
    unusable: int = 0
    clear: Outcome | None = None
    """Set by a trial far from the limit."""

    @property
    def decided(self) -> Outcome | None:
        """The decision for this rate; None while it needs another trial."""
        if self.client >= AGREEING:
            return Outcome.CLIENT
        if self.unusable >= AGREEING:
            return Outcome.UNUSABLE
        if self.clear is Outcome.MET and not self.missed:
            return Outcome.MET
        if self.clear is Outcome.MISSED and not self.met:
            return Outcome.MISSED
        if self.met >= AGREEING:
            return Outcome.MET
        if self.missed >= AGREEING:
            return Outcome.MISSED
        if self.undecided >= MOST_UNDECIDED:
            return Outcome.UNDECIDED
        return None


@dataclass(frozen=True, slots=True)
class Found:
    """State of the search. The capacity lies in [held, failed), or in [held, undecided] where nothing failed
    below it.
    """

    held_per_s: float | None
    """The highest rate tried that met the objective, below every rate that missed it."""
    failed_per_s: float | None
    """The lowest rate tried that missed it."""
    client_per_s: float | None
    """The lowest rate that the load generator could not offer."""
    end: End | None
    trials: int
    undecided_per_s: float | None = None
    """The lowest rate that three trials left undecided."""


ABOVE = {Outcome.UNDECIDED: End.UNDECIDED, Outcome.CLIENT: End.CLIENT, Outcome.MISSED: End.FOUND}
"""Outcome at the upper end of the bracket -> end of the search."""


@dataclass(frozen=True, slots=True)
class _Bracket:
    held: float | None
    limit: float | None
    """The lowest rate that was not shown to hold ..."""
    end: End | None
    """... and the end of the search there."""
    lowest: dict[Outcome, float | None]


@dataclass(slots=True)
class CapacitySearch:
    """Doubling, then bisection on the log scale. `ask()` gives the next rate, `tell()` takes its outcome.

    Outcomes are noisy near the limit, so a rate there takes two agreeing trials; a rate that three trials
    leave undecided bounds the search like a failed one. When a rate fails, higher ones that held are ignored.
    The result is a rate that was offered and held.
    """

    start_per_s: float
    lowest_per_s: float
    highest_per_s: float
    resolution: float = RESOLUTION
    most_trials: int = 40
    tallies: dict[float, Tally] = field(default_factory=dict)
    _trials: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.lowest_per_s <= self.start_per_s <= self.highest_per_s or self.resolution <= 0:
            raise ValueError(
                f"search from {self.start_per_s:g}/s in {self.lowest_per_s:g} to "
                f"{self.highest_per_s:g}/s: expected 0 < lowest <= start <= highest and a resolution above 0"
            )

    def ask(self) -> float | None:
        """The next rate to try, in requests per second; None when the search is over."""
        return self._next()[0]

    def tell(self, rate_per_s: float, outcome: Outcome, pressure: float | None = None) -> None:
        """Records the outcome of a trial; `pressure` is measured ÷ allowed, if known."""
        self._trials += 1
        tally = self.tallies.setdefault(rate_per_s, Tally())
        if outcome is Outcome.MET:
            tally.met += 1
            if pressure is not None and pressure <= 1 / CLEAR:
                tally.clear = tally.clear or Outcome.MET
        elif outcome is Outcome.MISSED:
            tally.missed += 1
            if pressure is None or pressure >= CLEAR:
                tally.clear = tally.clear or Outcome.MISSED
        elif outcome is Outcome.UNDECIDED:
            tally.undecided += 1
        elif outcome is Outcome.CLIENT:
            tally.client += 1
        else:
            tally.unusable += 1

    @property
    def found(self) -> Found:
        """The result so far."""
        bracket = self._bracket()
        return Found(
            bracket.held,
            bracket.lowest[Outcome.MISSED],
            bracket.lowest[Outcome.CLIENT],
            self._next()[1],
            self._trials,
            bracket.lowest[Outcome.UNDECIDED],
        )

    def _bracket(self) -> _Bracket:
        decided = {rate: tally.decided for rate, tally in self.tallies.items()}
        lowest = {end: min((r for r, d in decided.items() if d is end), default=None) for end in ABOVE}
        ends = {rate: end for end, rate in lowest.items() if rate is not None}
        limit = min(ends, default=None)
        below = math.inf if limit is None else limit
        held = max((r for r, d in decided.items() if d is Outcome.MET and r < below), default=None)
        return _Bracket(held, limit, None if limit is None else ABOVE[ends[limit]], lowest)

    def _next(self) -> tuple[float | None, End | None]:
        """(next rate, None), or (None, reason for the end)."""
        for rate, tally in sorted(self.tallies.items()):
            if tally.decided is Outcome.UNUSABLE:
                return None, End.UNUSABLE
            if tally.decided is None and not self._settled_otherwise(rate):
                return (rate, None) if self._trials < self.most_trials else (None, End.TRIALS)
        bracket = self._bracket()
        held, limit = bracket.held, bracket.limit
        if held is None and limit is None:
            nxt: float | None = self.start_per_s
        elif held is None:
            assert limit is not None
            if limit <= self.lowest_per_s:
                return None, End.NEVER if bracket.end is End.FOUND else bracket.end
            nxt = max(self.lowest_per_s, limit / STEP)
        elif limit is None:
            if held >= self.highest_per_s:
                return None, End.HIGHEST
            nxt = min(self.highest_per_s, held * STEP)
        elif limit / held <= 1 + self.resolution:
            return None, bracket.end
        else:
            nxt = math.sqrt(held * limit)
        return (nxt, None) if self._trials < self.most_trials else (None, End.TRIALS)

    def _settled_otherwise(self, rate: float) -> bool:
        """Whether a rate needs no further trial because a lower one failed."""
        limit = self._bracket().limit
        return limit is not None and limit < rate
