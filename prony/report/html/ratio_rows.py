"""Ratios as rows of a table, with intervals drawn on a common log scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from prony.compare.claim import Claim
from prony.compare.noninferiority import Change
from prony.report.html.scale import Interval, Scale, axis, ratio, ratio_ticks
from prony.report.html.theme import AT_WORST, INK, MUTED, drawn, square
from prony.report.labels import label_of
from prony.report.pairs import CLAIM_WORDS, better_first, drawn_pairs, headline_figures
from prony.report.result import GateView, PairView, PartView
from prony.report.wording import ABSENT, signed, within
from prony.report.wording import ratio as written

FAR = 1.5
"""An end further than this factor beyond all ratios and their 95 % intervals is an arrow."""
ROOM = 1.02
Key = tuple[Markup, str]


@dataclass(frozen=True, slots=True)
class RatioRow:
    """A ratio: its label, its intervals, and the cells next to its drawing."""

    label: str
    value: float
    within: Interval
    at_worst: Interval
    later: Interval | None
    band: tuple[float, float]
    solid: bool
    cells: tuple[str, ...]
    drawing: str = ""


@dataclass(frozen=True, slots=True)
class RatioTable:
    """Rows on a common scale."""

    caption: str
    heading: str
    columns: tuple[str, ...]
    rows: tuple[RatioRow, ...]
    axis: Markup
    keys: tuple[Key, ...]


def pairs(part: PartView, *, headline: bool) -> RatioTable | None:
    """Pairs in the headline figures, or in all others; None if no pair has an interval."""
    figures = headline_figures(part)
    shown = [better_first(pair) for pair in drawn_pairs(part) if (pair.figure in figures) is headline]
    band = (1 / (1 + part.part.band), 1 + part.part.band)
    later_s = next((pair.horizon_s for pair in shown if pair.horizon_s is not None), None)
    rows = (_pair(pair, band, plain=headline, later=later_s is not None) for pair in shown)
    drawn = [row for row in rows if row is not None]
    names = ", ".join(map(label_of, figures)) if headline else "other figures"
    later = [] if later_s is None else [f"up to {later_s:g} s later"]
    columns = ("ratio", "95 % interval", "at worst", *later, "claim")
    return _table(f"Ratios, {names}", "first ÷ second", columns, drawn)


def _pair(pair: PairView, band: tuple[float, float], *, plain: bool, later: bool) -> RatioRow | None:
    if pair.ratio is None or pair.low is None or pair.high is None or pair.low <= 0:
        return None
    label = f"{pair.a} ÷ {pair.b}" if plain else f"{label_of(pair.figure)}: {pair.a} ÷ {pair.b}"
    ends = Interval(pair.low, pair.high), Interval(pair.worst_low, pair.worst_high)
    to_come = None if pair.horizon_s is None else Interval(pair.later_low, pair.later_high)
    shown = (*ends, to_come) if later else ends
    cells = (written(pair.ratio), *map(_ends, shown), CLAIM_WORDS[pair.claim])
    return RatioRow(
        within(pair.where, label), pair.ratio, *ends, to_come, band, pair.claim is not Claim.OPEN, cells
    )


def changes(view: GateView) -> RatioTable | None:
    """Each figure of a candidate ÷ that of its base, the margin shaded; None without an interval."""
    rows = []
    for figure in view.figures:
        if figure.ratio is None or figure.low is None or figure.high is None or figure.low <= 0:
            continue
        ends = Interval(figure.low, figure.high), Interval(figure.worst_low, figure.worst_high)
        band = (min(figure.limit, 1 / figure.limit), max(figure.limit, 1 / figure.limit))
        intervals = (_ends(each, signed) for each in ends)
        cells = (signed(figure.ratio), *intervals, signed(figure.limit), figure.change.value)
        solid = figure.change in (Change.NO_WORSE, Change.WORSE)
        rows.append(RatioRow(label_of(figure.figure), figure.ratio, *ends, None, band, solid, cells))
    columns = ("change", "95 % interval", "at worst", "margin", "")
    return _table("Changes", f"{view.candidate} ÷ {view.base}", columns, rows)


def _table(caption: str, heading: str, columns: Sequence[str], bare: Sequence[RatioRow]) -> RatioTable | None:
    if not bare:
        return None
    scale = _scale(bare)
    rows = []
    for row in bare:
        drawing = ratio(scale, row.value, row.within, row.at_worst, row.later, row.band, solid=row.solid)
        rows.append(replace(row, drawing=drawing))
    later = any(row.later is not None for row in bare)
    keys = [
        (square(INK), "95 % interval"),
        (square(AT_WORST), "at worst, with every source of the budget"),
        *([(drawn("M-6-.8H6V.8H-6z", MUTED.light), "later")] if later else []),
    ]
    ticks = axis(scale, [(tick, f"{tick:g}×") for tick in ratio_ticks(scale)])
    return RatioTable(caption, heading, tuple(columns), tuple(rows), ticks, tuple(keys))


def _scale(rows: Sequence[RatioRow]) -> Scale:
    """All ratios, their intervals and bands; what reaches beyond as far as it leaves these legible."""
    near = [end for row in rows for end in (*row.band, row.value, row.within.low, row.within.high) if end]
    low, high = min(near), max(near)
    far = [
        end
        for row in rows
        for ends in (row.at_worst, row.later)
        if ends is not None
        for end in (ends.low, ends.high)
        if end is not None and end > 0
    ]
    low = min([low, *(end for end in far if end >= low / FAR)])
    high = max([high, *(end for end in far if end <= high * FAR)])
    return Scale(low / ROOM, high * ROOM, log=True)


def _ends(ends: Interval | None, text: Callable[[float], str] = written) -> str:
    """1.02 to 1.10; where one side is not bounded: above 1.02, below 1.10."""
    if ends is None or (ends.low is None and ends.high is None):
        return ABSENT if ends is None else "not bounded"
    if ends.high is None:
        return f"above {text(ends.low or 0.0)}"
    if ends.low is None:
        return f"below {text(ends.high)}"
    return f"{text(ends.low)} to {text(ends.high)}"
