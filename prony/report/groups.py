"""The groups of users of a load, and what was offered before and after it, as lines of text. Must not know
how they are drawn.
"""

from __future__ import annotations

from prony.evidence.trial import Evidence, PopulationFacts
from prony.report.wording import number

WHEN = {"before": "before the load", "after": "after the load"}


def group_lines(evidence: Evidence) -> list[str]:
    """A line per group, where there are several, and one per load that came before or after."""
    groups = [_group(one) for one in evidence.load.populations]
    stages = [
        f"{WHEN[stage.name]}: {number(totals.completed)} requests completed, {number(totals.failed)} failed "
        "(not in the figures)"
        for stage in evidence.stages
        if (totals := stage.report.totals)
    ]
    return groups + stages


def _group(one: PopulationFacts) -> str:
    words = [f"{one.name}: {number(one.users)} user{'s' if one.users != 1 else ''}"]
    if one.start_s:
        words.append(f"from {one.start_s:g} s")
    if one.ramp_up_s:
        words.append(f"over {one.ramp_up_s:g} s")
    if one.end_s is not None:
        words.append(f"until {one.end_s:g} s")
    if one.iterations_per_user is not None:
        words.append(
            f"{number(one.iterations_per_user)} iteration{'s' if one.iterations_per_user != 1 else ''} each"
        )
    return ", ".join(words)
