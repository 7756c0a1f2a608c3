"""Cost of a profiler: explained trial compared with the measured ones, window with the time before. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from prony.numbers import rounded_percent
from prony.steady.precision import t_quantile
from prony_explain.before import AgainstBefore

MOST = 0.10
"""Limit on the change of throughput or CPU per request; above it the profile is of another load."""
RATE, CPU = "throughput", "CPU time per request"


@dataclass(frozen=True, slots=True)
class WithinChange:
    """Window ÷ the seconds before it, relative to the measured trials' mean of that ratio; shares."""

    change: float
    low: float | None
    """95 %, from the spread of the measured trials; None with a single trial."""
    high: float | None

    @property
    def error(self) -> float:
        """Half width of the interval."""
        return math.inf if self.low is None else self.change - self.low

    @property
    def judges(self) -> bool:
        """Whether the measured trials agree well enough to judge by the limit."""
        return self.error <= MOST


@dataclass(frozen=True, slots=True)
class ProfilerCost:
    """Changes as shares of the measured trials' mean: 0.03 is 3 % more; None: unknown. The changes within the
    explained process exclude differences between processes of one server.
    """

    rate_change: float | None
    cpu_change: float | None
    costly: bool
    """Whether a change is above MOST, or may be."""
    sentence: str
    rate_within: WithinChange | None = None
    cpu_within: WithinChange | None = None


@dataclass(frozen=True, slots=True)
class TrialCost:
    """Requests per second, CPU time per request (µs) and window ÷ the seconds before, of one trial."""

    rate: float | None
    cpu_us: float | None
    against_before: AgainstBefore | None = None


def profiler_cost(measured: Sequence[TrialCost], profiled: TrialCost) -> ProfilerCost:
    """From the measured trials that count, and the explained one."""
    rate = _change([trial.rate for trial in measured], profiled.rate)
    cpu = _change([trial.cpu_us for trial in measured], profiled.cpu_us)
    if rate is None and cpu is None:
        return ProfilerCost(
            None, None, True, "the cost of the profiler is unknown: no measured trial to compare with"
        )
    before, own = [trial.against_before for trial in measured], profiled.against_before
    rate_within = _within([ratio.rate for ratio in before if ratio], own.rate if own else None)
    cpu_within = _within([ratio.cpu_us for ratio in before if ratio], own.cpu_us if own else None)
    both = {RATE: (rate, rate_within), CPU: (cpu, cpu_within)}
    judged = [
        within.change if within is not None and within.judges else change for change, within in both.values()
    ]
    costly = max(abs(change) for change in judged if change is not None) > MOST
    return ProfilerCost(rate, cpu, costly, _sentence(both, costly), rate_within, cpu_within)


def _change(measured: Sequence[float | None], profiled: float | None) -> float | None:
    known = [value for value in measured if value is not None]
    if not known or profiled is None or mean(known) <= 0:
        return None
    return profiled / mean(known) - 1


def _within(measured: Sequence[float | None], profiled: float | None) -> WithinChange | None:
    """With the prediction interval of one further trial: t × s × sqrt(1 + 1/n)."""
    known = [value for value in measured if value is not None]
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
    inside = ", ".join(f"{name} {_percent(w.change)}{_interval(w)}" for name, w in withins.items())
    outside = ", ".join(f"{name} {_percent(w)}" for name, (w, _) in both.items() if w is not None)
    clauses = [f"{inside} against the seconds before in the same process"] if inside else []
    clauses.append(f"{outside} against the other processes")
    unsure = max((w.error for w in withins.values() if not w.judges), default=0.0)
    if math.isinf(unsure):
        clauses.append("with one measured trial the variation of the former is unknown")
    elif unsure:
        clauses.append(
            f"the former varies by {rounded_percent(unsure)} without it (95 %), too much to judge by"
        )
    if costly:
        clauses.append(f"above {rounded_percent(MOST)}: read its parts as shares")
    return f"with the profiler: {'; '.join(clauses)}"


def _percent(share: float) -> str:
    return f"{share * 100:+.1f} %"


def _interval(within: WithinChange) -> str:
    if within.low is None or within.high is None:
        return ""
    return f" [{within.low * 100:+.1f}, {within.high * 100:+.1f}]"
