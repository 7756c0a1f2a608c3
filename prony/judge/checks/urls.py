"""urls: did the requests have as many different paths as the workload's feeder promises."""

from __future__ import annotations

import math

from prony.evidence.counts import UrlCount
from prony.evidence.engine import Window
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, check
from prony.judge.finding import Finding
from prony.judge.window import measured
from prony.numbers import number, percent

FEW = 0.1
"""Distinct paths ÷ those expected, below which they are few: logs of real users repeat some paths."""


@check(DeclaredLimits, order=185)
def urls(evidence: Evidence, limits: DeclaredLimits) -> Finding | None:
    """None where no path takes values of a feeder."""
    del limits
    window = measured(evidence)
    if window is None or not window.urls:
        return None
    shares = [(_share(window, one), one) for one in window.urls]
    share, fewest = min(shares, key=lambda found: found[0])
    few = share < FEW
    distinct = "at least 1,024" if fewest.distinct is None else number(fewest.distinct)
    return Finding(
        check="urls",
        code="few" if few else "ok",
        provided="repeated paths cost the server as much as new ones" if few else "",
        value=share,
        limit=f"at least {percent(FEW)} of the distinct paths of random rows",
        reason=f"{distinct} distinct paths of {fewest.step} in {number(_requests(window, fewest))} requests; "
        f"rows of its feeder: {number(fewest.rows)}",
        advice="remove repeated rows from the feeder, or measure for longer" if few else "",
        source="a cache serves few paths faster than many",
    )


def _share(window: Window, counted: UrlCount) -> float:
    """Distinct paths ÷ those of as many random rows; 1 where there were too many to count."""
    expected = -counted.rows * math.expm1(-_requests(window, counted) / counted.rows)
    return 1.0 if counted.distinct is None or not expected else min(1.0, counted.distinct / expected)


def _requests(window: Window, counted: UrlCount) -> int:
    steps = {(step.scenario, step.name): step.completed for step in window.steps}
    return steps.get((counted.scenario, counted.step), window.completed)
