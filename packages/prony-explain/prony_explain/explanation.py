"""A server's explanation: the profile of its explained trial and the cost of its measured ones. Pure."""

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
"""Minimum share of the CPU time that a profiler must see without a caveat."""
MOST_CLASSES = 10
SLACK_S = 1.0
"""Tolerance for a slice to end late, as it is written then."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Costs of the trials that count, and of the explained one."""

    trials: Sequence[TrialCost]
    profiled: TrialCost
    counted: Mapping[str, float] = field(default_factory=dict)
    """Engine counters per request of the explained trial, by the keys of `WITNESSES`."""

    @property
    def cpu_us(self) -> tuple[float, ...]:
        """CPU time per request of each trial that counts, µs; unread ones are left out."""
        return tuple(trial.cpu_us for trial in self.trials if trial.cpu_us is not None)


@dataclass(frozen=True, slots=True)
class Allocated:
    """A class of objects and its share of the bytes allocated."""

    name: str
    share: float


@dataclass(frozen=True)
class Explanation:
    """CPU time per request of one server, by part, with its evidence."""

    server: str
    where: str
    """Workload and load; empty if the part has a single one."""
    profiler: str
    """Name and version; empty without a profiler."""
    event: str
    cost: ProfilerCost
    budget: Budget | None
    """None without a profile or a measured cost."""
    per_request: Mapping[str, float]
    """Counters of the explained trial per request, by the keys of `WITNESSES`."""
    allocated: tuple[Allocated, ...]
    """Classes with the most allocated bytes."""
    missing: tuple[str, ...]
    """Caveats: what is missing, and how to get it."""
    slow: SlowRequests | None = None
    """Events during the slowest requests; None: unknown."""
    shares: Shares | None = field(default=None, repr=False)
    values_us: tuple[float, ...] = ()

    @property
    def named(self) -> str:
        """The server, with workload and load if the part has several."""
        return f"{self.server}, {self.where}" if self.where else self.server


@dataclass(frozen=True)
class ExplanationView:
    """Explanations of one part of a plan."""

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
    """`fault`: why there is no profile. `requests`: the slowest of the explained trial."""
    cost = profiler_cost(measured.trials, measured.profiled)
    missing = [*([fault] if fault else []), *(profile.missing if profile is not None else ())]
    parts: Shares | None = None
    total: Budget | None = None
    samples = cpu_samples(profile, rules) if profile is not None else None
    if profile is not None and samples is not None and samples.total:
        try:
            parts = shares(samples, rules, seen_share=seen_share(profile))
        except ValueError as empty:
            missing.append(f"no budget: {empty}")
    if parts is not None and not measured.cpu_us:
        missing.append("no budget: no measured trial counts, or the server's CPU time was not readable")
    elif parts is not None:
        total = budget(measured.cpu_us, parts)
        if total.seen_share is not None and total.seen_share < LEAST_SEEN:
            missing.append(
                f"the profiler saw {rounded_percent(total.seen_share)} of the server's CPU time; the rest "
                "is not attributed"
            )
    elif profile is None and not missing:
        missing.append("no explained trial has ended")
    slow = slow_requests(requests, profile) if requests is not None and profile is not None else None
    if slow is not None and slow.unread:
        missing.append(f"not compared with slow requests: {'; '.join(slow.unread)}")
    return Explanation(
        server,
        where,
        profile.profiler if profile is not None else "",
        profile.event if profile is not None else "",
        cost,
        total,
        {**per_request(profile, measured.profiled.rate), **(measured.counted if profile is not None else {})},
        _allocated(profile) if profile is not None else (),
        tuple(dict.fromkeys(missing)),
        slow,
        parts,
        measured.cpu_us,
    )


def seen_share(profile: Profile) -> float | None:
    """Sampled CPU time ÷ the kernel's account of the process; None: unknown."""
    sampling = profile.cpu
    if sampling is None or not (profile.sampled_cpu_s and profile.sampled_s and profile.interval_s):
        return None
    within = [piece for piece in sampling.slices if piece.end_s <= profile.sampled_s + SLACK_S]
    profiled_s = sum(piece.end_s - piece.start_s for piece in within)
    if profiled_s <= 0:
        return None
    sampled_s = sum(piece.total for piece in within) * profile.interval_s
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
    most = sorted(bytes_of.items(), key=lambda item: -item[1])[:MOST_CLASSES]
    return tuple(Allocated(name, weight / sampling.total) for name, weight in most)


def differences(explained: Sequence[Explanation]) -> tuple[Difference, ...]:
    """Of every pair under the same load, in the order of the servers."""
    pairs = []
    for at, first in enumerate(explained):
        for second in explained[at + 1 :]:
            if (
                first.where == second.where
                and first.shares
                and second.shares
                and first.budget
                and second.budget
            ):
                sides = [
                    Side(side.server, side.values_us, parts, side.per_request)
                    for side, parts in ((first, first.shares), (second, second.shares))
                ]
                pairs.append(difference(*sides, where=first.where))
    return tuple(pairs)
