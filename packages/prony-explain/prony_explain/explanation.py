"""One server's explanation as a value: the profile of its explained trial and the cost of its measured ones,
put together. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from prony.evidence.profile import Profile
from prony.numbers import rounded_percent
from prony_explain.budget import Budget, Shares, budget, shares
from prony_explain.cost import ProfilerCost, TrialCost, profiler_cost
from prony_explain.difference import Difference, Side, difference
from prony_explain.kernel import cpu_samples
from prony_explain.per_request import per_request
from prony_explain.rules import Frame, Rules
from prony_explain.slow import Requests, SlowRequests, slow_requests

LEAST_SEEN = 0.8
"""A profiler that saw less of the CPU time than this is named beside the budget."""
MOST_CLASSES = 10
SLACK_S = 1.0
"""A slice may end so much after its time: what it has is written then."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What the trials that count said, and the explained one."""

    trials: Sequence[TrialCost]
    profiled: TrialCost
    counted: Mapping[str, float] = field(default_factory=dict)
    """What the engine counted per request in the explained one, by the names in `WITNESSES`."""

    @property
    def cpu_us(self) -> tuple[float, ...]:
        """CPU time per request, us, of each trial that counts and was read."""
        return tuple(one.cpu_us for one in self.trials if one.cpu_us is not None)


@dataclass(frozen=True, slots=True)
class Allocated:
    """A class of objects and its share of the bytes allocated."""

    name: str
    share: float


@dataclass(frozen=True)
class Explanation:
    """What a request cost one server, and where."""

    server: str
    where: str
    """What tells its cell from the others of its part: workload and load; empty where there is one."""
    profiler: str
    """Its name and version; empty where there was none."""
    event: str
    cost: ProfilerCost
    budget: Budget | None
    """None where there is no profile, or no measured cost."""
    per_request: Mapping[str, float]
    """Counters of the explained trial per request, by their names in `WITNESSES`."""
    allocated: tuple[Allocated, ...]
    """The classes of which most bytes were allocated."""
    missing: tuple[str, ...]
    """What could not be said, and what it would take."""
    slow: SlowRequests | None = None
    """What ran beside the slowest requests; None: they are not known."""
    shares: Shares | None = field(default=None, repr=False)
    values_us: tuple[float, ...] = ()

    @property
    def named(self) -> str:
        """The server, with its workload and load where a part explains several."""
        return f"{self.server}, {self.where}" if self.where else self.server


@dataclass(frozen=True)
class ExplanationView:
    """What the explained trials of one part of a plan came to."""

    servers: tuple[Explanation, ...]
    differences: tuple[Difference, ...] = ()


def explain(
    server: str,
    profile: Profile | None,
    rules: Rules,
    measured: Measured,
    *,
    where: str = "",
    fault: str = "",
    requests: Requests | None = None,
) -> Explanation:
    """`fault`: why there is no profile, in one sentence. `requests`: the slowest of the explained trial."""
    cost = profiler_cost(measured.trials, measured.profiled)
    missing = [*([fault] if fault else []), *(profile.missing if profile is not None else ())]
    found: Shares | None = None
    made: Budget | None = None
    samples = cpu_samples(profile, rules) if profile is not None else None
    if profile is not None and samples is not None and samples.total:
        try:
            found = shares(samples, rules, seen_share=seen_share(profile))
        except ValueError as empty:
            missing.append(f"no budget: {empty}")
    if found is not None and not measured.cpu_us:
        missing.append("no budget: no measured trial counts, or the server's CPU time could not be read")
    elif found is not None:
        made = budget(measured.cpu_us, found)
        if made.seen_share is not None and made.seen_share < LEAST_SEEN:
            missing.append(
                f"the profiler saw {rounded_percent(made.seen_share)} of the server's CPU time; the rest "
                "is not attributed"
            )
    elif profile is None and not missing:
        missing.append("no explained trial has ended")
    slow = slow_requests(requests, profile) if requests is not None and profile is not None else None
    if slow is not None and slow.unread:
        missing.append(f"not held against slow requests: {'; '.join(slow.unread)}")
    return Explanation(
        server,
        where,
        profile.profiler if profile is not None else "",
        profile.event if profile is not None else "",
        cost,
        made,
        {**per_request(profile, measured.profiled.rate), **(measured.counted if profile is not None else {})},
        _allocated(profile) if profile is not None else (),
        tuple(dict.fromkeys(missing)),
        slow,
        found,
        measured.cpu_us,
    )


def seen_share(profile: Profile) -> float | None:
    """The CPU time that the samples stand for ÷ what the kernel accounted to the process; None: not known."""
    sampling = profile.cpu
    if sampling is None or not (profile.sampled_cpu_s and profile.sampled_s and profile.interval_s):
        return None
    within = [one for one in sampling.slices if one.end_s <= profile.sampled_s + SLACK_S]
    profiled_s = sum(one.end_s - one.start_s for one in within)
    if profiled_s <= 0:
        return None
    sampled_s = sum(one.total for one in within) * profile.interval_s
    return sampled_s / (profile.sampled_cpu_s * profiled_s / profile.sampled_s)


def _allocated(profile: Profile) -> tuple[Allocated, ...]:
    """By the last frame of the allocation samples."""
    sampling = profile.allocation
    if sampling is None or not sampling.total:
        return ()
    bytes_of: dict[str, int] = {}
    for part in sampling.slices:
        for node, weight in part.weights.items():
            name = Frame.of(sampling.frames[sampling.names[node]]).dotted
            bytes_of[name] = bytes_of.get(name, 0) + weight
    most = sorted(bytes_of.items(), key=lambda one: -one[1])[:MOST_CLASSES]
    return tuple(Allocated(name, weight / sampling.total) for name, weight in most)


def differences(explained: Sequence[Explanation]) -> tuple[Difference, ...]:
    """Of every pair under the same load, in the order of the servers."""
    found = []
    for at, one in enumerate(explained):
        for other in explained[at + 1 :]:
            if one.where == other.where and one.shares and other.shares and one.budget and other.budget:
                sides = [
                    Side(side.server, side.values_us, found_shares, side.per_request)
                    for side, found_shares in ((one, one.shares), (other, other.shares))
                ]
                found.append(difference(*sides, where=one.where))
    return tuple(found)
