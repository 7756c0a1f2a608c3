"""The highest rate that still meets an objective: an open-loop trial at every rate that the search asks for.

Must not print.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from prony.compare.capacity import CapacitySearch, Found, Outcome
from prony.experiment.points import Note, Points, PointTrial
from prony.judge.finding import Status
from prony.judge.histogram import needed_samples
from prony.plan.load import ClosedLoad, OpenLoad
from prony.plan.objective import Objective, pressure

FIRST_SHARE = 0.5
"""The search begins at this share of what a closed loop carried."""
MARGIN = 1.2
"""So many more requests than the percentile needs, as a window may end a little early."""
PERCENTILE = {"p50_ms": 50.0, "p90_ms": 90.0, "p95_ms": 95.0, "p99_ms": 99.0, "p999_ms": 99.9}


@dataclass(frozen=True, slots=True)
class Tried:
    """One trial of the search."""

    rate_per_s: float
    outcome: Outcome
    pressure: float | None
    """Measured ÷ allowed of the tightest objective; None when it could not be printed."""
    trial: PointTrial


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the search came to."""

    target: str
    objectives: tuple[Objective, ...]
    found: Found
    tried: tuple[Tried, ...]
    closed: PointTrial | None
    """The closed-loop trial that gave the first rate."""


def capacity(
    points: Points,
    wanted: Sequence[Objective],
    *,
    note: Note,
    arrivals_poisson: bool = False,
    start_per_s: float | None = None,
    highest_per_s: float = 10_000_000.0,
    users: int = 64,
    resolution: float = 0.05,
    most_trials: int = 24,
) -> Capacity:
    """Search; without `start_per_s` a closed loop of `users` says where to begin."""
    lowest = lowest_rate(wanted, points.window_s)
    closed: PointTrial | None = None
    if start_per_s is None:
        note(f"first a closed loop of {users} users: where to begin")
        closed = points.measure(ClosedLoad(users=users))
        start_per_s = FIRST_SHARE * closed.figures.get("requests_per_s", 2 * lowest)
    start_per_s = _rounded(min(max(start_per_s, lowest), highest_per_s))
    search = CapacitySearch(
        start_per_s, min(lowest, start_per_s), max(highest_per_s, start_per_s), resolution, most_trials
    )
    tried: list[Tried] = []
    while (rate := search.ask()) is not None:
        note(f"trial {len(tried) + 1}: {rate:,.0f} requests/s")
        trial = points.measure(_load(rate, wanted, arrivals_poisson))
        outcome, share = outcome_of(trial, wanted)
        search.tell(rate, outcome, share)
        tried.append(Tried(rate, outcome, share, trial))
        said = f", {share:.0%} of what is allowed" if share is not None else ""
        note(f"{rate:,.0f} requests/s: {outcome.value}{said}")
    return Capacity(points.name, tuple(wanted), search.found, tuple(tried), closed)


def lowest_rate(wanted: Sequence[Objective], window_s: float) -> float:
    """Below this a window has too few requests for the percentiles of the objectives."""
    needed = max(needed_samples(PERCENTILE.get(o.figure, 50.0), 0.99) for o in wanted)
    return _rounded(max(1.0, MARGIN * needed / window_s))


def _rounded(rate: float) -> float:
    """Three significant digits, upwards: rates that people can repeat."""
    unit = 10.0 ** (math.floor(math.log10(rate)) - 2)
    return math.ceil(rate / unit - 1e-9) * unit


def _load(rate: float, wanted: Sequence[Objective], poisson: bool) -> OpenLoad:
    """Room for twice as many under way as the slowest allowed answers would need, so that a full house is a
    missed objective and not a small house.
    """
    slowest_s = max(o.below_ms for o in wanted) / 1000
    room = math.ceil(max(100.0, rate * max(1.0, 2 * slowest_s)))
    return OpenLoad(
        rate_per_s=rate, arrivals="poisson" if poisson else "constant", max_users=min(room, 1_000_000)
    )


def outcome_of(trial: PointTrial, wanted: Sequence[Objective]) -> tuple[Outcome, float | None]:
    """What a trial says about its rate, and its pressure.

    The client's weakness is never held against the server: an objective that was missed while the client was
    late or saturated is the client's.
    """
    if trial.failure is not None:
        return Outcome.MISSED, None  # it ended under this load
    share = pressure(wanted, trial.figures)
    client = trial.status("client")
    schedule = trial.status("schedule")
    if client is Status.INVALID:
        return Outcome.CLIENT, share
    if trial.blocked:
        return (Outcome.MISSED if client in {Status.VALID, None} else Outcome.CLIENT), None
    if schedule is Status.INVALID:
        return Outcome.CLIENT, share
    if trial.status("errors") is Status.INVALID:
        return Outcome.MISSED, None
    if share is not None and share >= 1:
        doubtful = {client, schedule} & {Status.SUSPECT, Status.UNKNOWN}
        return (Outcome.CLIENT if doubtful else Outcome.MISSED), share
    if share is None or not trial.counts:
        return Outcome.UNUSABLE, share
    return Outcome.MET, share
