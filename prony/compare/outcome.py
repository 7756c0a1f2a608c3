"""What one trial at a given rate says about an objective, and the search that its answers lead. Pure."""

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
"""Codes of `client` under which arrivals that found no place are the load generator's."""
MEAN = 50.0
"""A mean needs as many requests as a median."""


def lowest_rate(wanted: Sequence[Objective], window_s: float) -> float:
    """Requests per second below which a window has too few requests for the objectives' percentiles, by what
    its seconds can show of their independence.
    """
    needed = max(planned_samples(NAMED.get(one.figure, MEAN), int(window_s)) for one in wanted)
    return rounded_up(max(1.0, needed / window_s))


def rounded_up(rate_per_s: float) -> float:
    """Three significant digits, upwards: rates that people can repeat."""
    unit = 10.0 ** (math.floor(math.log10(rate_per_s)) - 2)
    return math.ceil(rate_per_s / unit - 1e-9) * unit


def search_of(asked: Search, window_s: float, first_per_s: float | None = None) -> CapacitySearch:
    """The search as it stands before its first trial; without a first rate it begins at the lowest."""
    lowest = lowest_rate(objectives(asked.objectives), window_s)
    first = lowest if first_per_s is None else first_per_s
    return CapacitySearch(
        first, min(lowest, first), max(asked.highest_per_s, first), asked.resolution, asked.most_trials
    )


def outcome_of(
    record: TrialRecord, judgement: Judgement, figures: Mapping[str, float], wanted: Sequence[Objective]
) -> tuple[Outcome, float | None]:
    """What a trial says about its rate, and its pressure: measured ÷ allowed of the tightest objective; None
    where that is not known.

    The client's weakness is never held against the server: an objective that was missed while the client was
    late or saturated is the client's.
    """
    if record.failure is not None:
        return Outcome.MISSED, None  # it ended under this load
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
    """Whether a missed objective stays missed without what the load generator may have added to the times."""
    late = (finding for name in ("client", "schedule") if (finding := judgement.finding(name)) is not None)
    down = sum(max(finding.of(one.figure).down for one in wanted) for finding in late)
    return share is None or share * math.exp(-down) >= 1


def held_against(
    wanted: Sequence[Objective], record: TrialRecord, figures: Mapping[str, float]
) -> tuple[Outcome, float | None]:
    """Met when the interval of every objective's figure lies below its limit, missed when one lies above it,
    else undecided; and the pressure of the values, None where that is not known. Failed requests are longer
    than any limit. Unusable without times.
    """
    times = headline_times(record.evidence)
    found = [None if times is None else measured(one.figure, times, figures) for one in wanted]
    known = [one for one in found if one is not None]
    if not known or len(known) < len(found):
        return Outcome.UNUSABLE, None

    def tightest(end: Callable[[Measured], float]) -> float:
        return max(end(one) / asked.below_ms for one, asked in zip(known, wanted, strict=True))

    share = tightest(lambda one: one.value_ms)
    low, high = tightest(lambda one: one.low_ms), tightest(lambda one: one.high_ms)
    outcome = Outcome.MISSED if low >= 1 else Outcome.MET if high < 1 else Outcome.UNDECIDED
    return outcome, share if math.isfinite(share) else None


class Measured(NamedTuple):
    """A figure of an objective in ms, with its interval."""

    value_ms: float
    low_ms: float
    high_ms: float


def measured(figure: str, times: Times, figures: Mapping[str, float]) -> Measured | None:
    """A figure with its interval. A maximum has no upper end: one request above the limit misses it, and no
    number of requests below shows that the next one will be. None where it was not measured.
    """
    if figure in NAMED:
        found = times.percentile(NAMED[figure]) if times.supports(NAMED[figure]) else None
        return None if found is None else Measured(found.value_ms, found.low_ms, found.high_ms)
    value_ms = figures.get(figure)
    if value_ms is None:
        return None
    if figure == "mean_ms":
        return Measured(value_ms, *times.mean_interval())
    failed_or_longest_ms = math.inf if times.failed else value_ms
    return Measured(failed_or_longest_ms, failed_or_longest_ms, math.inf)
