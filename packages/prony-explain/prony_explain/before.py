"""A trial's window ÷ the seconds before it, in the same process on the same CPUs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from prony.evidence.host import HostRow
from prony.evidence.trial import Evidence, Phase
from prony.steady.detector import HOLD_ROWS, full_rows

LEAST_ROWS = 4
"""Minimum full rows on either side."""
MOST_ROWS = HOLD_ROWS
"""Newest rows before the window; earlier ones may not be level yet."""


@dataclass(frozen=True, slots=True)
class AgainstBefore:
    """Window ÷ the seconds before; 1.02: 2 % more in the window."""

    rate: float
    cpu_us: float | None
    """CPU time per request; None without CPU time per second."""


def against_before(evidence: Evidence) -> AgainstBefore | None:
    """None unless the server was steady for `LEAST_ROWS` full seconds on the CPUs of the window."""
    window = next((phase for phase in evidence.phases if phase.name == "window"), None)
    settle = next((phase for phase in reversed(evidence.phases) if phase.name == "settle"), None)
    if window is None or settle is None or evidence.engine is None:
        return None
    restless = evidence.warm_up is not None and evidence.warm_up.steady is False
    if restless or settle.server_cpus != window.server_cpus:
        return None
    rates = [
        [row.completed_per_s for row in full_rows(evidence.engine.rows, phase.start_ms, phase.end_ms)]
        for phase in (settle, window)
    ]
    rate = _ratio(*rates)
    if rate is None:
        return None
    cpus = [_cpu(evidence.host_rows, phase) for phase in (settle, window)]
    cpu = _ratio(*cpus)
    return AgainstBefore(rate, None if cpu is None else cpu / rate)


def _cpu(rows: Sequence[HostRow], phase: Phase) -> list[float]:
    """The server's CPU seconds per second, of the rows within the phase."""
    return [
        row.server_cpu
        for row in rows
        if row.server_cpu is not None
        and row.t_ms - row.duration_ms >= phase.start_ms
        and row.t_ms <= phase.end_ms
    ]


def _ratio(before: Sequence[float], within: Sequence[float]) -> float | None:
    if min(len(before), len(within)) < LEAST_ROWS:
        return None
    usual, within_mean = mean(before[-MOST_ROWS:]), mean(within)
    return within_mean / usual if usual > 0 and within_mean > 0 else None
