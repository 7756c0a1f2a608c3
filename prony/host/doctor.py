"""Fitness of this host for measurements: reads once, then runs every check."""

from __future__ import annotations

from collections.abc import Sequence

from prony.host import checks_cpu, checks_system
from prony.host.check import DoctorCheck, HostCheck
from prony.host.readings import Readings, gather

__all__ = ["CHECKS", "HostCheck", "examine", "judge_readings"]

SAMPLE_S = 3.0
CHECKS = [
    check
    for module in (checks_cpu, checks_system)
    for check in vars(module).values()
    if isinstance(check, DoctorCheck)
]


def examine(*, extra: Sequence[HostCheck] = ()) -> list[HostCheck]:
    """All checks of this host, then `extra` (JDKs, build tools), in a little more than SAMPLE_S."""
    return [*judge_readings(gather(sample_s=SAMPLE_S)), *extra]


def judge_readings(readings: Readings) -> list[HostCheck]:
    results = [check(readings) for check in CHECKS]
    return [check for check in results if check is not None]
