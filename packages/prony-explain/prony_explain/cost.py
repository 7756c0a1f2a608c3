"""What a profiler cost the server that it watched: the explained trial against the measured ones, and its
window against the seconds before it in the same process. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from prony.numbers import rounded_percent
from prony.steady.quantile import t_quantile
from prony_explain.before import AgainstBefore

MOST = 0.10
"""A profiler that changes throughput or CPU time per request by more than this makes an
explanation one of other proportions.
"""
RATE, CPU = "throughput", "CPU time per request"


@dataclass(frozen=True, slots=True)
class WithinChange:
    """Window ÷ the seconds before it in the explained process, against the mean of the same in the measured
    trials; as shares.
    """

    change: float
    low: float | None
    """95 %, by how much the measured trials differ in it; None: there is one."""
    high: float | None

    @property
    def error(self) -> float:
        """Half of the interval."""
        return math.inf if self.low is None else self.change - self.low

    @property
    def judges(self) -> bool:
        """Whether the measured trials agree well enough in it for the limit to be held against it."""
        return self.error <= MOST


@dataclass(frozen=True, slots=True)
class ProfilerCost:
    """Changes as shares: 0.03 is 3 % more than the mean of the measured trials; None: not known. Processes of
    one server differ by themselves: the changes within the explained process leave that out.
    """

    rate_change: float | None
    cpu_change: float | None
    costly: bool
    """Whether it changed more than MOST, or may have."""
    sentence: str
    rate_within: WithinChange | None = None
    cpu_within: WithinChange | None = None


@dataclass(frozen=True, slots=True)
class TrialCost:
    """What one trial says of it: requests per second, CPU time per request (us), and its window against the
    seconds before it.
    """

    rate: float | None
    cpu_us: float | None
    against_before: AgainstBefore | None = None


def profiler_cost(measured: Sequence[TrialCost], profiled: TrialCost) -> ProfilerCost:
    """The measured trials that count, and the explained one."""
    rate = _change([one.rate for one in measured], profiled.rate)
    cpu = _change([one.cpu_us for one in measured], profiled.cpu_us)
    if rate is None and cpu is None:
        return ProfilerCost(
            None, None, True, "what the profiler cost is not known: there is nothing measured to compare with"
        )
    before, own = [one.against_before for one in measured], profiled.against_before
    rate_within = _within([one.rate for one in before if one], own.rate if own else None)
    cpu_within = _within([one.cpu_us for one in before if one], own.cpu_us if own else None)
    both = {RATE: (rate, rate_within), CPU: (cpu, cpu_within)}
    judged = [
        within.change if within is not None and within.judges else change for change, within in both.values()
    ]
    costly = max(abs(one) for one in judged if one is not None) > MOST
    return ProfilerCost(rate, cpu, costly, _sentence(both, costly), rate_within, cpu_within)


def _change(measured: Sequence[float | None], profiled: float | None) -> float | None:
    known = [one for one in measured if one is not None]
    if not known or profiled is None or mean(known) <= 0:
        return None
    return profiled / mean(known) - 1


def _within(measured: Sequence[float | None], profiled: float | None) -> WithinChange | None:
    """The interval is that of one more trial beside these: t × s × sqrt(1 + 1/n)."""
    known = [one for one in measured if one is not None]
    change = _change(known, profiled)
    if change is None:
        return None
    if len(known) == 1:
        return WithinChange(change, None, None)
    t = t_quantile(len(known) - 1, 0.975)
    half = t * stdev(known) * math.sqrt(1 + 1 / len(known)) / mean(known)
    return WithinChange(change, change - half, change + half)


def _sentence(both: dict[str, tuple[float | None, WithinChange | None]], costly: bool) -> str:
    withins = {name: within for name, (_, within) in both.items() if within is not None}
    inside = ", ".join(f"{name} {_percent(one.change)}{_interval(one)}" for name, one in withins.items())
    outside = ", ".join(f"{name} {_percent(one)}" for name, (one, _) in both.items() if one is not None)
    said = [f"{inside} against the seconds before in the same process"] if inside else []
    said.append(f"{outside} against the other processes")
    unsure = max((one.error for one in withins.values() if not one.judges), default=0.0)
    if math.isinf(unsure):
        said.append("one measured trial does not say how much the former varies without it")
    elif unsure:
        said.append(f"the former varies by {rounded_percent(unsure)} without it (95 %), too much to judge by")
    if costly:
        said.append(f"above {rounded_percent(MOST)}: read its parts as shares")
    return f"with the profiler: {'; '.join(said)}"


def _percent(share: float) -> str:
    return f"{share * 100:+.1f} %"


def _interval(within: WithinChange) -> str:
    if within.low is None or within.high is None:
        return ""
    return f" [{within.low * 100:+.1f}, {within.high * 100:+.1f}]"
