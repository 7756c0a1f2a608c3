"""CPU profiles as collapsed stacks: outermost frame first, then the number of samples. Pure."""

from __future__ import annotations

from prony.report.exports import Exported, Format
from prony.report.result import ResultView
from prony_explain.report.profiles import cpu_profiles, rooted


def write(view: ResultView) -> Exported:
    """Every stack of every server, descending by samples. Raises UsageError without profiles."""
    rows = sorted(rooted(cpu_profiles(view)), key=lambda row: (-row[1], row[0]))
    return Exported("".join(f"{';'.join(stack)} {weight}\n" for stack, weight in rows))


FORMAT = Format("CPU profiles of explained trials, a stack per line", write, ".collapsed")
