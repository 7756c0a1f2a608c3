"""Outcome of a trial at a rate for an objective, and the search that outcomes lead."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from prony.compare.capacity import CapacitySearch, Outcome
from prony.evidence.trial import TrialRecord
from prony.judge.finding import Judgement
from prony.judge.percentiles import Times, planned_samples
from prony.judge.times import NAMED, headline_times
from prony.plan.objective import Objective, objectives
from prony.plan.part import Search

CLIENT_BUSY = frozenset({"saturated", "kept_from_cpu"})
"""Codes of `client` under which blocked arrivals are the load generator's."""
MEAN = 50.0
"""A mean needs as many requests as a median."""


def lowest_rate(wanted: Sequence[Objective], window_s: float) -> float:
    """Lowest rate (requests/s) at which a window has enough requests for the objectives' percentiles."""
    needed = max(planned_samples(NAMED.get(objective.figure, MEAN), int(window_s)) for objective in wanted)
    return rounded_up(max(1.0, needed / window_s))


def rounded_up(rate_per_s: float) -> float:
    """Rounded up to three significant digits."""
    unit = 10.0 ** (math.floor(math.log10(rate_per_s)) - 2)
    return math.ceil(rate_per_s / unit - 1e-9) * unit


def search_of(asked: Search, window_s: float, first_per_s: float | None = None) -> CapacitySearch:
    """A new search, from the first rate or else the lowest."""
    lowest = lowest_rate(objectives(asked.objectives), window_s)
    first = lowest if first_per_s is None else first_per_s
    return CapacitySearch(
        first, min(lowest, first), max(asked.highest_per_s, first), asked.resolution, asked.most_trials
    )


def outcome_of(
    record: TrialRecord, judgement: Judgement, figures: Mapping[str, float], wanted: Sequence[Objective]
) -> tuple[Outcome, float | None]:
    """Outcome of a trial, and its pressure: measured ÷ allowed of the tightest objective; None if not known.

    An objective missed while the client was late or saturated is the client's miss, not the server's.
    """
    if record.failure is not None:
        return Outcome.MISSED, None  # the server ended under this load
    engine = record.evidence.engine
    blocked = engine.window.blocked if engine is not None and engine.window is not None else None
    outcome, share = held_against(wanted, record, figures)
    client, schedule, errors = (judgement.finding(name) for name in ("client", "schedule", "errors"))
    busy = client is not None and client.code in CLIENT_BUSY
    if blocked:
        return (Outcome.CLIENT if busy else Outcome.MISSED), None
    if schedule is not None and not schedule.conforms:
        return Outcome.CLIENT, share
    if errors is not None and not errors.conforms:
        return Outcome.MISSED, None
    if outcome is Outcome.MISSED and not _is_servers(judgement, wanted, share):
        return Outcome.CLIENT, share
    return (outcome if judgement.conforms else Outcome.UNUSABLE), share


def _is_servers(judgement: Judgement, wanted: Sequence[Objective], share: float | None) -> bool:
    """Whether a missed objective stays missed without the load generator's delay."""
    late = (finding for name in ("client", "schedule") if (finding := judgement.finding(name)) is not None)
    down = sum(max(finding.of(objective.figure).down for objective in wanted) for finding in late)
    return share is None or share * math.exp(-down) >= 1


def held_against(
    wanted: Sequence[Objective], record: TrialRecord, figures: Mapping[str, float]
) -> tuple[Outcome, float | None]:
    """Met when every figure's interval lies below its limit, missed when any lies above, else undecided;
    unusable without times. And the pressure; None if not known. Failed requests exceed any limit.
    """
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
    """A figure of an objective in ms, with its interval."""

    value_ms: float
    low_ms: float
    high_ms: float


def measured(figure: str, times: Times, figures: Mapping[str, float]) -> Measured | None:
    """A figure with its interval; None where it was not measured. A maximum has no upper end: a request above
    the limit misses it, and requests below do not bound the next.
    """
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
