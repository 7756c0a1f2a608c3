"""A second opinion on a terminal and as JSON. Must not measure."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from prony.experiment.second_opinion import PRONY, Opinion, SecondOpinion


def as_json(found: SecondOpinion) -> dict[str, Any]:
    """Everything, also each run."""
    return asdict(found)


def lines(found: SecondOpinion) -> list[str]:
    """A table, then a sentence for each difference and each tool that is missing."""
    asked = found.asked
    how = f"{asked.connections} connections" if asked.rate_per_s is None else f"{asked.rate_per_s} requests/s"
    said = [
        f"Second opinion on {found.url}: {how}, {asked.seconds} s each, {found.rounds} "
        f"round{'s' * (found.rounds != 1)} in shuffled order, "
        f"client CPUs {','.join(map(str, found.client_cpus))}, seed {found.seed}",
        "",
        f"{'tool':<11}{'version':<19}{'requests/s':>12}{'beside prony':>14}{'client CPU':>12}"
        f"{'counted by':>12}{'errors':>8}",
    ]
    said += [_row(one, len(found.client_cpus)) for one in found.opinions]
    said.append("")
    for one in found.opinions:
        if one.tool != PRONY and one.agrees is False:
            explained = f"{one.check}: {one.why}" if one.check else one.why
            said.append(f"{one.tool} disagrees with prony by {(one.ratio or 0) - 1:+.1%}. {explained}")
        elif one.check is not None:
            said.append(f"{one.tool}: {one.check}: {one.why}")
    agreed = [one.tool for one in found.opinions if one.tool != PRONY and one.agrees]
    if agreed:
        names = " and ".join([", ".join(agreed[:-1]), agreed[-1]] if agreed[1:] else agreed)
        said.append(f"{names}: within 5 % of prony")
    said += [f"{tool} was left out: {why}" for tool, why in found.left_out.items()]
    verdicts = [turn for one in found.opinions if one.tool == PRONY for turn in one.turns]
    for turn in verdicts:
        said.append(f"prony's round {turn.round} is {turn.verdict} ({turn.identifier}){_why(turn.finding)}")
    return said


def _why(finding: str | None) -> str:
    return "" if finding is None else f": {finding}"


def _row(one: Opinion, cpus: int) -> str:
    rate = "-" if one.per_s is None else f"{one.per_s:,.0f}"
    ratio = "-" if one.ratio is None else f"{one.ratio:.2f}"
    busy = [share for share in (turn.busy(cpus) for turn in one.turns) if share is not None]
    used = f"{max(busy):.0%}" if busy else "-"
    counted = bool(one.turns) and all(turn.counted is not None for turn in one.turns)
    errors = sum(turn.errors for turn in one.turns)
    by = "the server" if counted else "itself"
    return f"{one.tool:<11}{one.version[:18]:<19}{rate:>12}{ratio:>14}{used:>12}{by:>12}{errors:>8}"
