"""Two results beside each other: ratios within each of them, fingerprints side by side, and the word
*confounded* where it applies.

Pure. Never divides a figure of one machine by one of the other: the machine is confounded with everything
else that differs between them, so such a ratio or p-value would answer no question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from prony.evidence.host import Fingerprint
from prony.report.model import PairView, Spread, TrialView, spread
from prony.report.pairs import figure_pairs

FEWEST = 3
"""Trials per server from which a ratio is worth an interval."""


@dataclass(frozen=True, slots=True)
class Result:
    """One stored experiment as this comparison reads it."""

    id: str
    title: str
    created: datetime
    fingerprint: Fingerprint
    trials: tuple[TrialView, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """One server's figure on each machine: median and range, never divided by each other."""

    where: str
    server: str
    figure: str
    sides: tuple[Spread | None, Spread | None]


@dataclass(frozen=True, slots=True)
class Ratio:
    """One pair of servers on each machine: the ratio within it."""

    where: str
    a: str
    b: str
    figure: str
    sides: tuple[PairView | None, PairView | None]

    @property
    def words(self) -> str:
        """Whether both machines say the same of this pair."""
        left, right = self.sides
        if left is None or right is None:
            return "only on one machine"
        unclear = {"inconclusive", "unknown"}
        if left.verdict in unclear or right.verdict in unclear:
            return "undecided"
        return "the same order" if left.verdict == right.verdict else "another order"


@dataclass(frozen=True, slots=True)
class TwoResults:
    """All that is shown."""

    sides: tuple[Result, Result]
    figures: tuple[Figure, ...]
    ratios: tuple[Ratio, ...]
    differing: tuple[tuple[str, str, str], ...]
    """(what, first, second) of the fingerprints where they differ."""

    @property
    def confounded(self) -> bool:
        """Whether the machines differ in anything that can change a figure."""
        return self.sides[0].fingerprint.key != self.sides[1].fingerprint.key

    @property
    def words(self) -> str:
        """What may be concluded, in one sentence."""
        if self.confounded:
            return (
                "The machine is confounded with everything else that differs between the two results: no "
                "ratio and no p-value is given across them; compare the ratios within each."
            )
        return (
            "Both results come from machines of the same fingerprint, at different times: ratios are given "
            "within each result only, because trials of one are not interleaved with those of the other."
        )


def beside(first: Result, second: Result) -> TwoResults:
    """Both results, group by group (part, workload, load), as far as either has a figure."""
    groups = (_groups(first), _groups(second))
    names = list(dict.fromkeys([*groups[0], *groups[1]]))
    figures: list[Figure] = []
    ratios: list[Ratio] = []
    for where in names:
        trials = (groups[0].get(where, []), groups[1].get(where, []))
        figure = _figure([*trials[0], *trials[1]])
        servers = list(dict.fromkeys(t.record.server for side in trials for t in side))
        for server in servers:
            both = (_spread(trials[0], server, figure), _spread(trials[1], server, figure))
            if any(both):
                figures.append(Figure(where, server, figure, both))
        found = (_pairs(trials[0], servers, figure), _pairs(trials[1], servers, figure))
        for at, a in enumerate(servers):
            for b in servers[at + 1 :]:
                sides = (found[0].get((a, b)), found[1].get((a, b)))
                if any(sides):
                    ratios.append(Ratio(where, a, b, figure, sides))
    return TwoResults(
        (first, second),
        tuple(figures),
        tuple(ratios),
        tuple(_differing(first.fingerprint, second.fingerprint)),
    )


def _groups(result: Result) -> dict[str, list[TrialView]]:
    """Trials that answer the same question: the cell without its server."""
    found: dict[str, list[TrialView]] = {}
    for trial in result.trials:
        record = trial.record
        if record.kind != "trial":
            continue
        part = record.cell.partition("/")[0]
        where = ", ".join(filter(None, (part, record.workload, record.load_name)))
        found.setdefault(where, []).append(trial)
    return found


def _figure(trials: Sequence[TrialView]) -> str:
    """What the question is about: how much, or, where the load is given, how fast."""
    return "p99_ms" if any(t.record.evidence.load.claim == "latency" for t in trials) else "requests_per_s"


def _spread(trials: Sequence[TrialView], server: str, figure: str) -> Spread | None:
    mine = [t for t in trials if t.record.server == server and t.counts]
    return spread(value for t in mine if (value := t.figures.get(figure)) is not None)


def _pairs(
    trials: Sequence[TrialView], servers: Sequence[str], figure: str
) -> dict[tuple[str, str], PairView]:
    present = [server for server in servers if any(t.record.server == server for t in trials)]
    most = max((sum(t.record.server == server for t in trials) for server in present), default=0)
    if len(present) < 2 or most < FEWEST:
        return {}
    return {(pair.a, pair.b): pair for pair in figure_pairs(trials, figure, present)}


def _differing(first: Fingerprint, second: Fingerprint) -> list[tuple[str, str, str]]:
    """Field by field, mappings entry by entry."""
    found: list[tuple[str, str, str]] = []
    for name in type(first).model_fields:
        mine, theirs = getattr(first, name), getattr(second, name)
        if isinstance(mine, dict) and isinstance(theirs, dict):
            for key in sorted({*mine, *theirs}):
                if mine.get(key) != theirs.get(key):
                    found.append((f"{name}: {key}", _text(mine.get(key)), _text(theirs.get(key))))
        elif mine != theirs:
            found.append((name.replace("_", " "), _text(mine), _text(theirs)))
    return found


def _text(value: object) -> str:
    return "–" if value is None else str(value)
