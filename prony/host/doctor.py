"""Is this host fit to measure on? Reads once, then runs every check."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from prony.host import checks_cpu, checks_system
from prony.host.check import HostCheck
from prony.host.proc import ROOT
from prony.host.readings import Readings, gather

__all__ = ["HostCheck", "examine", "judge_readings"]


def examine(
    *, extra: Sequence[HostCheck] = (), sample_s: float = 3.0, results: Path | None = None, root: Path = ROOT
) -> list[HostCheck]:
    """All checks of this host, then `extra` (JDKs, build tools). Takes a little more than `sample_s`.

    `results`: the directory that will hold the results, for its free space (default: the user's data
    directory).
    """
    return [*judge_readings(gather(sample_s=sample_s, results=results, root=root)), *extra]


def judge_readings(readings: Readings) -> list[HostCheck]:
    """Every check that applies to these readings."""
    found = [check(readings) for check in (*checks_cpu.ALL, *checks_system.ALL)]
    return [check for check in found if check is not None]
