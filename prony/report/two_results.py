"""Comparison of two stored results: ratios within each host, never across hosts (the host is confounded)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from prony.compare.claim import Claim
from prony.evidence.host import Fingerprint
from prony.report.blocks import Block, Column, Lines, Row, Section, Table, words
from prony.report.cell_view import CellView, Spread
from prony.report.intervals import between, over_trials
from prony.report.labels import named
from prony.report.pairs import CLAIM_WORDS, FEWEST, figure_pairs
from prony.report.result import PairView, ResultView
from prony.report.schema import SideOut, TwoFiguresOut, TwoRatiosOut, TwoResultsOut
from prony.report.wording import ratio, signed


@dataclass(frozen=True, slots=True)
class TwoResults:
    sides: tuple[ResultView, ResultView]
    figures: list[TwoFiguresOut]
    ratios: list[TwoRatiosOut]
    differing: tuple[tuple[str, str, str], ...]
    """(what, first, second) of the fingerprints where they differ."""

    @property
    def confounded(self) -> bool:
        """Whether the hosts differ in anything that can change a figure."""
        return _confounded(*self.sides)

    @property
    def words(self) -> str:
        """The conclusion, in a sentence."""
        if self.confounded:
            return (
                "The host is confounded with everything else that differs between the two results: no "
                "ratio and no p-value is given across them; compare the ratios within each."
            )
        return (
            "Both results are of one host at different times. Changes between them are indicative: their "
            "trials are not interleaved, so they include other changes in between."
        )


def compared(first: ResultView, second: ResultView) -> TwoResults:
    """Both results, group by group (part, workload, load), as far as either has a figure."""
    several = any(len(side.parts) > 1 for side in (first, second))
    groups = (_groups(first, several), _groups(second, several))
    names = list(dict.fromkeys([*groups[0], *groups[1]]))
    figures: list[TwoFiguresOut] = []
    ratios: list[TwoRatiosOut] = []
    confounded = _confounded(first, second)
    for where in names:
        cells = (groups[0].get(where, []), groups[1].get(where, []))
        figure = (*cells[0], *cells[1])[0].headline_figure
        servers = list(dict.fromkeys(cell.cell.server for side in cells for cell in side))
        for server in servers:
            spreads = [_spread(side, server, figure) for side in cells]
            if any(spreads):
                change = None if confounded or not _same_trial(cells, server) else _change(spreads)
                figures.append(
                    TwoFiguresOut(where=where, server=server, figure=figure, sides=spreads, change=change)
                )
        pairs = [_pairs(side, figure) for side in cells]
        for pair in combinations(servers, 2):
            sides = [side.get(pair) for side in pairs]
            if any(sides):
                a, b = pair
                words = _agreement(*sides)
                ratios.append(TwoRatiosOut(where=where, a=a, b=b, figure=figure, words=words, sides=sides))
    differing = _differing(first.fingerprint, second.fingerprint)
    return TwoResults((first, second), figures, ratios, tuple(differing))


def _confounded(first: ResultView, second: ResultView) -> bool:
    keys = [None if side.fingerprint is None else side.fingerprint.key for side in (first, second)]
    return keys[0] is None or keys[0] != keys[1]


def _same_trial(sides: Sequence[Sequence[CellView]], server: str) -> bool:
    """Whether both measured this server by the same protocol."""
    plans = [next((c.cell.trial for c in cells if c.cell.server == server), None) for cells in sides]
    return plans[0] is not None and plans[0] == plans[1]


def _change(sides: Sequence[Spread | None]) -> float | None:
    """Second ÷ first, less 1."""
    first, second = sides
    return None if first is None or second is None or not first.median else second.median / first.median - 1


def _agreement(left: PairView | None, right: PairView | None) -> str:
    if left is None or right is None:
        return "only on one host"
    if Claim.OPEN in (left.claim, right.claim):
        return "undecided"
    return "the same order" if left.better == right.better else "another order"


def _groups(result: ResultView, several: bool) -> dict[str, list[CellView]]:
    """By part (where a result has several), workload and load."""
    groups: dict[str, list[CellView]] = {}
    for part in result.parts:
        own = part.part.name if several else ""
        follows = part.part.follows is not None
        for view in part.cells:
            trial = view.cell.trial
            names = (own, trial.workload.name, "" if follows else trial.load_name)
            groups.setdefault(", ".join(filter(None, names)), []).append(view)
    return groups


def _spread(cells: Sequence[CellView], server: str, figure: str) -> Spread | None:
    return next((spread for c in cells if c.cell.server == server and (spread := c.figure(figure))), None)


def _pairs(cells: Sequence[CellView], figure: str) -> dict[tuple[str, str], PairView]:
    ran = [cell for cell in cells if cell.trials]
    if len(ran) < 2 or max(len(cell.trials) for cell in ran) < FEWEST:
        return {}
    return {(pair.a, pair.b): pair for pair in figure_pairs(ran, figure)}


def _differing(first: Fingerprint | None, second: Fingerprint | None) -> list[tuple[str, str, str]]:
    differences: list[tuple[str, str, str]] = []
    if first is None or second is None:
        return differences
    for name in type(first).model_fields:
        mine, theirs = getattr(first, name), getattr(second, name)
        if isinstance(mine, dict) and isinstance(theirs, dict):
            for key in sorted({*mine, *theirs}):
                if mine.get(key) != theirs.get(key):
                    differences.append((f"{name}: {key}", _text(mine.get(key)), _text(theirs.get(key))))
        elif mine != theirs:
            differences.append((name.replace("_", " "), _text(mine), _text(theirs)))
    return differences


def _text(value: object) -> str:
    return "–" if value is None else str(value)


def blocks(two: TwoResults) -> list[Block]:
    sides = tuple(Column(_head(side), number=False) for side in two.sides)
    ratios = tuple(
        Row(f"{ratio.a} ÷ {ratio.b}", words(ratio.where, *map(_ratio, ratio.sides), ratio.words))
        for ratio in two.ratios
    )
    figures = []
    for figure in two.figures:
        change = () if two.confounded else ("–" if figure.change is None else signed(1 + figure.change),)
        shown = words(figure.where, *(_range(side, figure.figure) for side in figure.sides), *change)
        figures.append(Row(figure.server, shown, named(figure.figure)))
    where = Column("where", number=False)
    made: list[Block] = []
    if ratios:
        columns = (where, *sides, Column("", number=False))
        made.append(Table(columns, (Section(ratios),), title="Ratios", note="each within its own result"))
    elif two.confounded:
        made.append(Lines("Ratios", ("none: no pair of servers has three trials in a result",)))
    divided = "never divided by each other" if two.confounded else "change: second ÷ first, indicative"
    changes = () if two.confounded else (Column("change"),)
    table = Table((where, *sides, *changes), (Section(tuple(figures)),), title="Figures")
    made.append(replace(table, note=f"median over trials (min–max); {divided}"))
    if two.differing:
        rows = tuple(Row(what, words(left, right)) for what, left, right in two.differing)
        made.append(Table(sides, (Section(rows),), title="What differs between the hosts"))
    return made


def _head(side: ResultView) -> str:
    host = side.fingerprint
    return side.id if host is None else f"{side.id} {host.hostname} ({host.architecture})"


def _ratio(pair: PairView | None) -> str:
    if pair is None:
        return "–"
    if pair.ratio is None:
        return "no figure"
    interval = "" if pair.low is None else f" [{ratio(pair.low)}, {ratio(pair.high)}]"
    return f"{ratio(pair.ratio)}{interval} {CLAIM_WORDS[pair.claim]}"


def _range(spread: Spread | None, figure: str) -> str:
    if spread is None:
        return "no figure"
    ends = between(figure, spread)
    if spread.median_low is None and ends:
        ends = f"({ends})"
    return f"{over_trials(figure, spread, spread.median)} {ends}".rstrip()


def to_json(two: TwoResults) -> TwoResultsOut:
    return TwoResultsOut.filled(two, results=list(map(SideOut.filled, two.sides)))
