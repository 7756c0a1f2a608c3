"""The difference in CPU time per request between two servers, by part. Pure.

A pair's intervals are simultaneous (Bonferroni), so a sentence may name any clear part. Parts whose interval
contains zero stay in the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from prony_explain.budget import CONFIDENCE, MIN_TRIALS, Estimate, Shares, cost
from prony_explain.rules import Part

LEAST_US = 0.05
"""Smaller differences round to zero."""


@dataclass(frozen=True, slots=True)
class PartDifference:
    """A part's contribution. `low_us`, `high_us`: 95 %, simultaneous over the pair's parts."""

    part: Part
    us: float
    low_us: float | None
    high_us: float | None

    @property
    def shown(self) -> bool:
        """Whether its interval excludes zero."""
        return (
            self.low_us is not None
            and self.high_us is not None
            and (self.low_us > 0 or self.high_us < 0)
            and abs(self.us) >= LEAST_US
        )


@dataclass(frozen=True, slots=True)
class Witness:
    """A count per request of both servers that may explain a difference."""

    name: str
    more: float
    """Of the server with more CPU time."""
    less: float
    decimals: int = 1


@dataclass(frozen=True, slots=True)
class Difference:
    """`more` − `less`, in µs of CPU time per request; the parts add up to `us`."""

    more: str
    """The server with the higher mean."""
    less: str
    us: float
    low_us: float | None
    high_us: float | None
    more_us: float
    less_us: float
    parts: tuple[PartDifference, ...]
    """Descending by size."""
    witnesses: tuple[Witness, ...]
    sentence: str
    where: str = ""
    """Workload and load; empty if the part has a single one."""

    @property
    def clear(self) -> bool:
        """Whether the total's interval excludes zero."""
        return self.low_us is not None and self.low_us > 0


@dataclass(frozen=True, slots=True)
class Side:
    """A server of a pair."""

    server: str
    values_us: Sequence[float]
    """CPU time per request of its measured trials, µs."""
    shares: Shares
    per_request: Mapping[str, float]
    """Counters, by the keys of `WITNESSES`."""


WITNESSES: Mapping[str, tuple[str, int]] = {
    "switches_voluntary": ("voluntary context switches per request", 2),
    "switches_involuntary": ("involuntary context switches per request", 2),
    "system_calls": ("system calls per request", 1),
    "lock_waits_us": ("µs waiting for contended locks per request", 2),
    "cpu_waits_us": ("µs waiting for a CPU per request", 1),
    "throttled_us": ("µs throttled by the CPU quota per request", 2),
    "allocated_bytes": ("bytes allocated per request", 0),
    "collections_per_1000": ("collections per 1,000 requests", 3),
    "collection_pauses_us": ("µs of pauses for collections per request", 2),
    "faults": ("page faults per request", 3),
    "request_bytes": ("bytes of the request", 0),
    "response_bytes": ("bytes of the response", 0),
    "tcp_segments": ("TCP segments per request", 2),
    "tcp_opened": ("TCP connections opened per request", 3),
}
"""Counter -> its name in print, decimals."""
FAR_APART = 1.25
"""A witness is printed when one count is more than this many times the other."""


def difference(a: Side, b: Side, *, where: str = "") -> Difference:
    """Costlier server minus the other, under the same load. Raises ValueError without a measured trial."""
    cost_a, cost_b = cost(a.values_us), cost(b.values_us)
    if cost_b.value > cost_a.value:
        a, b, cost_a, cost_b = b, a, cost_b, cost_a
    whole = cost_a.minus(cost_b)
    ends = whole.interval()
    named = [part for part in Part if part in a.shares.parts or part in b.shares.parts]
    confidence = 1 - (1 - CONFIDENCE) / max(1, len(named))
    parts = []
    for part in named:
        ours = cost_a.times(a.shares.parts.get(part, _none(a.shares)))
        theirs = cost_b.times(b.shares.parts.get(part, _none(b.shares)))
        apart = ours.minus(theirs)
        low, high = apart.interval(confidence) or (None, None)
        parts.append(PartDifference(part, apart.value, low, high))
    parts.sort(key=lambda part: -abs(part.us))
    result = Difference(
        a.server,
        b.server,
        whole.value,
        ends[0] if ends is not None else None,
        ends[1] if ends is not None else None,
        cost_a.value,
        cost_b.value,
        tuple(parts),
        witnesses(a.per_request, b.per_request),
        "",
        where,
    )
    return replace(result, sentence=sentence(result))


def _none(shares: Shares) -> Estimate:
    """The share of a part without a sample: 0, with the error of three samples (rule of three)."""
    error = 3 / max(3, shares.samples) / 2
    return Estimate(0.0, error, shares.slices - 1) if shares.slices > 1 else Estimate(0.0)


def witnesses(more: Mapping[str, float], less: Mapping[str, float]) -> tuple[Witness, ...]:
    """Counters that both servers have."""
    return tuple(
        Witness(words, more[name], less[name], decimals)
        for name, (words, decimals) in WITNESSES.items()
        if name in more and name in less
    )


def sentence(difference: Difference) -> str:
    """The conclusion that the intervals allow. `not attributed` explains nothing and comes last."""
    pair = f"{difference.more} and {difference.less}"
    if difference.low_us is None or difference.high_us is None:
        return (
            f"{pair}: CPU time per request differs by {difference.us:.1f} µs; no interval with fewer than "
            f"{MIN_TRIALS} trials each"
        )
    size = f"{difference.us:.1f} µs [{difference.low_us:.1f}, {difference.high_us:.1f}]"
    shown = [part for part in difference.parts if part.shown]
    shown.sort(key=lambda part: part.part is Part.UNATTRIBUTED)
    explains = any(part.part is not Part.UNATTRIBUTED for part in shown)
    if not difference.clear and not explains:
        return (
            f"{pair}: no difference in CPU time per request is shown ({difference.more_us:.1f} and "
            f"{difference.less_us:.1f} µs; {size})"
        )
    head = (
        f"{difference.more} needs {size} more CPU time per request than {difference.less}"
        if difference.clear
        else f"{pair}: no difference in CPU time per request is shown ({size}), but in parts of it"
    )
    if not explains:
        return f"{head}; no single part is significant{_unattributed(shown)}"
    clauses = [
        f"{part.us:+.1f} {part.part.value} [{part.low_us:.1f}, {part.high_us:.1f}]"
        f"{_beside(part.part, difference)}"
        for part in shown
    ]
    rest = difference.us - sum(part.us for part in shown)
    if len(shown) < len(difference.parts) and abs(rest) >= LEAST_US:
        clauses.append(f"{rest:+.1f} in parts that are not significant")
    return f"{head}: {', '.join(clauses)}"


def _unattributed(shown: Sequence[PartDifference]) -> str:
    """The unattributed part, where no other is significant."""
    return "".join(
        f", but {part.us:+.1f} is not attributed [{part.low_us:.1f}, {part.high_us:.1f}]" for part in shown
    )


_BESIDE: Mapping[Part, tuple[str, ...]] = {
    Part.SCHEDULING: ("switches_voluntary", "lock_waits_us", "cpu_waits_us"),
    Part.NETWORK: ("system_calls", "tcp_segments"),
    Part.RUNTIME: ("allocated_bytes", "collection_pauses_us"),
}


def _beside(part: Part, difference: Difference) -> str:
    """A part's witnesses: counts known of both servers, and far apart in the direction of the difference."""
    wanted = {WITNESSES[name][0] for name in _BESIDE.get(part, ())}
    us = next((p.us for p in difference.parts if p.part is part), 0.0)
    counts = []
    for w in difference.witnesses:
        high, low = (w.more, w.less) if us > 0 else (w.less, w.more)
        if w.name in wanted and high > FAR_APART * low and high >= 0.1:
            counts.append(f"{w.name} {w.more:,.{w.decimals}f} against {w.less:,.{w.decimals}f}")
    return f" ({', '.join(counts)})" if counts else ""
