"""What one trial at a given rate says about an objective, and the search that its answers lead. Pure.

Must not know how a rate is offered.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from prony.compare.capacity import CapacitySearch, Outcome
from prony.evidence.trial import TrialRecord
from prony.judge.finding import Judgement, Status
from prony.judge.histogram import needed_samples
from prony.plan.objective import Objective, objectives, pressure
from prony.plan.plan import Search

MARGIN = 1.2
"""So many more requests than the percentile needs, as a window may end a little early."""
PERCENTILE = {"p50_ms": 50.0, "p90_ms": 90.0, "p95_ms": 95.0, "p99_ms": 99.0, "p999_ms": 99.9}


def lowest_rate(wanted: Sequence[Objective], window_s: float) -> float:
    """Requests per second below which a window has too few requests for the objectives' percentiles."""
    needed = max(needed_samples(PERCENTILE.get(o.figure, 50.0), 0.99) for o in wanted)
    return rounded_up(max(1.0, MARGIN * needed / window_s))


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
    """What a trial says about its rate, and its pressure: measured ÷ allowed of the tightest objective.

    The client's weakness is never held against the server: an objective that was missed while the client was
    late or saturated is the client's.
    """
    if record.failure is not None:
        return Outcome.MISSED, None  # it ended under this load
    engine = record.evidence.engine
    blocked = engine.window.blocked if engine is not None and engine.window is not None else None
    statuses = {finding.check: finding.status for finding in judgement.findings}
    share = pressure(wanted, figures)
    client, schedule = statuses.get("client"), statuses.get("schedule")
    if client is Status.INVALID:
        return Outcome.CLIENT, share
    if blocked:
        return (Outcome.MISSED if client in {Status.VALID, None} else Outcome.CLIENT), None
    if schedule is Status.INVALID:
        return Outcome.CLIENT, share
    if statuses.get("errors") is Status.INVALID:
        return Outcome.MISSED, None
    if share is not None and share >= 1:
        doubtful = {client, schedule} & {Status.SUSPECT, Status.UNKNOWN}
        return (Outcome.CLIENT if doubtful else Outcome.MISSED), share
    if share is None or judgement.verdict is Status.INVALID:
        return Outcome.UNUSABLE, share
    return Outcome.MET, share
