"""The servers of a comparison from the best to the worst, in the figure that it asks for, each beside the
first: which, by how much, and what the pairs show of it. Pure. Must not know how it is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from prony.compare.sentence import numbers
from prony.report.blocks import Column, Row, Section, Table, TableCell
from prony.report.comparison import (
    asked_figures,
    best,
    cells_by_server,
    figure_cell,
    lower_is_better,
    spread_of,
    turned,
    verdict_cell,
    verdict_word,
)
from prony.report.labels import label_of, named
from prony.report.result import CellView, PairView, PartView, Spread
from prony.report.words import join

FEWEST_SERVERS = 2
MOST_DRAWN = 8
"""Servers of which every pair is drawn or said; of more only those that `telling` leaves."""
MOST_NAMED = 3
"""Servers that a sentence names."""


@dataclass(frozen=True, slots=True)
class Place:
    """A server in the order of medians. Two places are a difference only where `word` says so."""

    server: str
    value: TableCell
    """Median and range, or why there is none."""
    length: float
    """Of its bar: the median as a share of the largest one, 0 without a figure."""
    of_first: str
    """This server ÷ the first, with the interval; empty for the first and where there is none."""
    word: str
    """What follows from that: slower, equivalent, inconclusive …"""
    verdict: TableCell


@dataclass(frozen=True, slots=True)
class Ranking:
    """All servers of a part, best median first, those without a figure last."""

    figure: str
    """Its name with the unit."""
    sentence: str
    places: tuple[Place, ...]


def ranking(part: PartView) -> Ranking | None:
    """None where a part is no comparison of servers under one load, or no trial has the figure."""
    if part.failure or part.layout != "comparison" or part.part.follows is not None:
        return None
    figure = asked_figures(part)[0]
    spreads = {cell.cell.server: spread_of(cell, figure) for cell in cells_by_server(part)}
    known = {server: found for server, found in spreads.items() if found is not None}
    if len(spreads) < FEWEST_SERVERS or not known:
        return None
    down = lower_is_better(figure)
    order = sorted(known, key=lambda server: known[server].median, reverse=not down)
    cells = {cell.cell.server: cell for cell in part.cells}
    longest = max(found.median for found in known.values())
    winner = best(part, figure)
    places = [
        _place(part, figure, cells[server], spreads[server], order[0], longest, winner)
        for server in (*order, *(server for server in spreads if server not in known))
    ]
    return Ranking(named(figure), _sentence(part, figure, order, winner), tuple(places))


def telling(part: PartView) -> tuple[PairView, ...]:
    """The pairs that are drawn or said: of many servers each beside the first and beside the next one."""
    found = ranking(part) if len(part.servers) > MOST_DRAWN else None
    if found is None:
        return part.pairs
    order = [place.server for place in found.places]
    wanted = {frozenset((order[0], server)) for server in order} | set(map(frozenset, pairwise(order)))
    return tuple(pair for pair in part.pairs if frozenset((pair.a, pair.b)) in wanted)


def table(found: Ranking) -> Table:
    """As rows, for a terminal."""
    rows = tuple(
        Row(
            place.server,
            (place.value, TableCell(place.of_first), TableCell(place.word), place.verdict),
            server=place.server,
        )
        for place in found.places
    )
    columns = (
        Column(found.figure),
        Column("÷ first [95 %]"),
        Column("difference", number=False),
        Column("trials"),
    )
    return Table(columns, (Section(rows),), title="Ranking", note=found.sentence, heading="best median first")


def _place(
    part: PartView,
    figure: str,
    cell: CellView,
    found: Spread | None,
    first: str,
    longest: float,
    winner: str | None,
) -> Place:
    server = cell.cell.server
    pair = _beside(part, figure, server, first)
    return Place(
        server=server,
        value=figure_cell(figure, found, cell, best=server == winner),
        length=found.median / longest if found is not None and longest > 0 else 0.0,
        of_first=_numbers(part, pair),
        word="" if server == first or found is None else _word(pair),
        verdict=verdict_cell(cell),
    )


def _beside(part: PartView, figure: str, a: str, b: str) -> PairView | None:
    """Of the comparison of these two, a ÷ b."""
    for pair in part.pairs:
        if pair.figure == figure and {pair.a, pair.b} == {a, b} and a != b:
            return pair if pair.a == a else turned(pair)
    return None


def _numbers(part: PartView, pair: PairView | None) -> str:
    if pair is None or pair.ratio is None or pair.low is None or pair.high is None:
        return ""
    return numbers(pair.ratio, pair.low, pair.high, part.part.band)


def _word(pair: PairView | None) -> str:
    return "no interval" if pair is None or pair.low is None else verdict_word(pair)


def _sentence(part: PartView, figure: str, order: list[str], winner: str | None) -> str:
    """Which is best, and by how much; or that this is not shown, and of whom."""
    extreme = "lowest" if lower_is_better(figure) else "highest"
    label, first = label_of(figure), order[0]
    if len(order) == 1:
        return f"Only {first} has a figure."
    if winner == first:
        next_one = _numbers(part, _beside(part, figure, first, order[1]))
        than = f"{next_one} that of the next, {order[1]}" if next_one else f"the next is {order[1]}"
        return f"{first} has the {extreme} {label}: {than}."
    pairs = {server: _beside(part, figure, server, first) for server in order[1:]}
    near = [
        server for server, pair in pairs.items() if pair is None or pair.verdict not in ("faster", "slower")
    ]
    if not near:  # of a figure without a direction, or where a server without a figure is a rival
        return f"{first} has the {extreme} median {label}."
    named_near = near[:MOST_NAMED] + ([f"{len(near) - MOST_NAMED} more"] if len(near) > MOST_NAMED else [])
    are = "is" if len(near) == 1 else "are"
    return (
        f"Which server has the {extreme} {label} is not shown: {first} has the {extreme} median, and "
        f"{join(named_near)} {are} not shown to differ from it."
    )
