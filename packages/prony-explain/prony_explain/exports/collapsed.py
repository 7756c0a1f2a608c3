"""CPU profiles of explained trials as collapsed stacks: a line each, frames from the outermost on, then how
often it was seen, as programs for flame graphs read them. Pure.
"""

from __future__ import annotations

from prony.report.exports import Exported, Format
from prony.report.result import ResultView
from prony_explain.report.profiles import cpu_profiles, rooted


def write(view: ResultView) -> Exported:
    """Every stack of every server, most samples first. Raises UsageError for a result without profiles."""
    rows = sorted(rooted(cpu_profiles(view)), key=lambda row: (-row[1], row[0]))
    return Exported("".join(f"{';'.join(stack)} {weight}\n" for stack, weight in rows))


FORMAT = Format("CPU profiles of explained trials, a stack per line", write, ".collapsed")
