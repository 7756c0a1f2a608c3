"""What a profiler cost the server that it watched: the explained trial against the measured ones. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

MOST = 0.10
"""A profiler that changes throughput or CPU time per request by more than this makes an
explanation suspect.
"""


@dataclass(frozen=True, slots=True)
class ProfilerCost:
    """Changes as shares: 0.03 is 3 % more than the mean of the measured trials; None: not known."""

    rate_change: float | None
    cpu_change: float | None
    suspect: bool
    sentence: str


def profiler_cost(
    rates: Sequence[float],
    profiled_rate: float | None,
    cpu_us: Sequence[float],
    profiled_cpu_us: float | None,
) -> ProfilerCost:
    """Requests per second and CPU time per request (us) of the measured trials, and of the explained one."""
    rate = _change(rates, profiled_rate)
    cpu = _change(cpu_us, profiled_cpu_us)
    known = [abs(one) for one in (rate, cpu) if one is not None]
    suspect = not known or max(known) > MOST
    said = [
        f"{name} {change:+.1%}".replace("%", " %")
        for name, change in (("throughput", rate), ("CPU time per request", cpu))
        if change is not None
    ]
    if not said:
        return ProfilerCost(
            None, None, True, "what the profiler cost is not known: there is nothing measured to compare with"
        )
    words = f"with the profiler: {', '.join(said)}"
    if suspect:
        words += f"; above {MOST:.0%}: the explanation is suspect".replace("%", " %")
    return ProfilerCost(rate, cpu, suspect, words)


def _change(measured: Sequence[float], profiled: float | None) -> float | None:
    if not measured or profiled is None or mean(measured) <= 0:
        return None
    return profiled / mean(measured) - 1
