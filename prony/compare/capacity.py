"""Search for the highest rate that meets an objective."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from prony.evidence.trial import TrialRecord
from prony.judge.finding import Judgement
from prony.judge.percentiles import Times, planned_samples
from prony.judge.times import NAMED, headline_times
from prony.plan.objective import Objective, objectives
from prony.plan.part import Search

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
    MET = "met"
    MISSED = "missed"
    UNDECIDED = "undecided"
    """The limit lies within the interval of the figure: the rate is measured again."""
    CLIENT = "client"
    """The load generator could not offer this rate: no statement about the server."""
    UNUSABLE = "unusable"
    """The trial does not conform for another reason, or lacks the figure."""


class End(StrEnum):
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
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    clear: Outcome | None = None
    """Set by a trial far from the limit."""

    @property
    def decided(self) -> Outcome | None:
        """The decision for this rate; None while it needs another trial."""
        for outcome in (Outcome.CLIENT, Outcome.UNUSABLE):
            if self.outcomes[outcome] >= AGREEING:
                return outcome
        for outcome, other in ((Outcome.MET, Outcome.MISSED), (Outcome.MISSED, Outcome.MET)):
            if self.clear is outcome and not self.outcomes[other]:
                return outcome
        for outcome in (Outcome.MET, Outcome.MISSED):
            if self.outcomes[outcome] >= AGREEING:
                return outcome
        return Outcome.UNDECIDED if self.outcomes[Outcome.UNDECIDED] >= MOST_UNDECIDED else None


@dataclass(frozen=True, slots=True)
class SearchResult:
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
        tally.outcomes[outcome] += 1
        well_met = outcome is Outcome.MET and pressure is not None and pressure <= 1 / CLEAR
        far_missed = outcome is Outcome.MISSED and (pressure is None or pressure >= CLEAR)
        if well_met or far_missed:
            tally.clear = tally.clear or outcome

    @property
    def result(self) -> SearchResult:
        bracket = self._bracket()
        return SearchResult(
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
        limit = self._bracket().limit
        return limit is not None and limit < rate


CLIENT_BUSY = frozenset({"saturated", "kept_from_cpu", "throttled"})
"""Codes of `client` under which blocked arrivals are the load generator's."""
SLEPT = 0.15
"""Share of a window in which every thread of the load generator idled, so that the server is the limit."""
LONGEST_S = 120.0
"""Of a window that is lengthened for a percentile at a low rate."""
MEAN = 50.0
"""A mean needs as many requests as a median."""


def lowest_rate(wanted: Sequence[Objective], window_s: float) -> float:
    """Lowest rate (requests/s) at which a window has enough requests for the objectives' percentiles."""
    needed = max(planned_samples(NAMED.get(objective.figure, MEAN), int(window_s)) for objective in wanted)
    return rounded_up(max(1.0, needed / window_s))


def window_for(wanted: Sequence[Objective], rate_per_s: float, window_s: float) -> float:
    """At least `window_s`, and up to LONGEST_S as long as the objectives' percentiles need at this rate."""
    while window_s < LONGEST_S and lowest_rate(wanted, window_s) > rate_per_s:
        window_s = min(LONGEST_S, float(math.ceil(window_s * 1.25)))
    return window_s


def rounded_up(rate_per_s: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(rate_per_s)) - 2)
    return math.ceil(rate_per_s / unit - 1e-9) * unit


def search_of(search: Search, window_s: float, first_per_s: float | None = None) -> CapacitySearch:
    wanted = objectives(search.objectives)
    first = lowest_rate(wanted, window_s) if first_per_s is None else first_per_s
    lowest = min(lowest_rate(wanted, max(window_s, LONGEST_S)), first)
    return CapacitySearch(
        first, lowest, max(search.highest_per_s, first), search.resolution, search.most_trials
    )


def outcome_of(
    record: TrialRecord, judgement: Judgement, figures: Mapping[str, float], wanted: Sequence[Objective]
) -> tuple[Outcome, float | None]:
    """And the pressure: measured ÷ allowed of the tightest objective; None if not known."""
    if record.failure is not None:
        return Outcome.MISSED, None  # the server ended under this load
    engine = record.evidence.engine
    blocked = engine.window.blocked if engine is not None and engine.window is not None else None
    outcome, share = objectives_met(wanted, record, figures)
    client, schedule, errors = (judgement.finding(name) for name in ("client", "schedule", "errors"))
    busy = client is not None and client.code in CLIENT_BUSY and not _slept(record)
    if blocked:
        return (Outcome.CLIENT if busy else Outcome.MISSED), None
    if errors is not None and not errors.conforms and not busy:
        return Outcome.MISSED, None
    if schedule is not None and not schedule.conforms:
        return Outcome.CLIENT, share
    if errors is not None and not errors.conforms:
        return Outcome.MISSED, None
    if outcome is Outcome.MISSED and not _is_servers(judgement, wanted, share):
        return Outcome.CLIENT, share
    return (outcome if judgement.conforms else Outcome.UNUSABLE), share


def _slept(record: TrialRecord) -> bool:
    """Whether the load generator was neither running nor waiting for a CPU for SLEPT of its window."""
    engine = record.evidence.engine
    threads = engine.window.threads if engine is not None and engine.window is not None else ()
    awake = [
        (thread.cpu_s + thread.run_delay_s) / thread.wall_s
        for thread in threads
        if thread.wall_s and thread.cpu_s is not None and thread.run_delay_s is not None
    ]
    return 0 < len(awake) == len(threads) and max(awake) <= 1 - SLEPT


def _is_servers(judgement: Judgement, wanted: Sequence[Objective], share: float | None) -> bool:
    late = (finding for name in ("client", "schedule") if (finding := judgement.finding(name)) is not None)
    down = sum(max(finding.of(objective.figure).down for objective in wanted) for finding in late)
    return share is None or share * math.exp(-down) >= 1


def objectives_met(
    wanted: Sequence[Objective], record: TrialRecord, figures: Mapping[str, float]
) -> tuple[Outcome, float | None]:
    """Met when every interval is below its limit, missed when any is above; and the pressure."""
    times = headline_times(record.evidence)
    readings = [None if times is None else measured(reading.figure, times, figures) for reading in wanted]
    complete = [reading for reading in readings if reading is not None]
    if not complete or len(complete) < len(readings):
        return Outcome.UNUSABLE, None

    def tightest(end: Callable[[Measured], float]) -> float:
        return max(
            end(reading) / objective.below_ms for reading, objective in zip(complete, wanted, strict=True)
        )

    share = tightest(lambda reading: reading.value_ms)
    low, high = tightest(lambda reading: reading.low_ms), tightest(lambda reading: reading.high_ms)
    outcome = Outcome.MISSED if low >= 1 else Outcome.MET if high < 1 else Outcome.UNDECIDED
    return outcome, share if math.isfinite(share) else None


class Measured(NamedTuple):
    value_ms: float
    low_ms: float
    high_ms: float


def measured(figure: str, times: Times, figures: Mapping[str, float]) -> Measured | None:
    """None where not measured; a maximum has no upper end."""
    if figure in NAMED:
        percentile = times.percentile(NAMED[figure]) if times.supports(NAMED[figure]) else None
        return (
            None
            if percentile is None
            else Measured(percentile.value_ms, percentile.low_ms, percentile.high_ms)
        )
    value_ms = figures.get(figure)
    if value_ms is None:
        return None
    if figure == "mean_ms":
        return Measured(value_ms, *times.mean_interval())
    failed_or_longest_ms = math.inf if times.failed else value_ms
    return Measured(failed_or_longest_ms, failed_or_longest_ms, math.inf)
