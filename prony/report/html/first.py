"""The first screen of a page: the answer of each part, a row per server with its bar and its budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from markupsafe import Markup

from prony.report.answer import AnswerPart, Bar
from prony.report.blocks import Column, Row, Section, Table, TableCell
from prony.report.html.scale import Interval, Scale, Segment, axis, bar, round_ticks, stacked
from prony.report.html.theme import AT_WORST, INK, SOURCES, Colour, accent, square
from prony.report.labels import named, rounded
from prony.report.wording import MINUS, bends, good_to, join_few

MOST_BARS = 24
"""Of more cells a table of the details shows the figures."""
FAR = 1.6
"""An error bar longer than this many times the highest bar ends in an arrow: it would flatten all others."""
ROOM = 0.05
"""Of a scale, beyond the last mark."""
Key = tuple[Markup, str]


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """A row of the table, its bar and its budget; neither where it has no figure."""

    row: Row
    bar: Markup | None = None
    budget: Markup | None = None


@dataclass(frozen=True, slots=True)
class AnswerTable:
    """A row per server: figure, bar, how far the figure may be off and by what."""

    columns: tuple[Column, ...]
    rows: tuple[AnswerRow, ...]
    bars: bool
    axis: Markup
    keys: tuple[Key, ...]
    unbounded: tuple[str, ...]


def answer_table(part: AnswerPart, places: Callable[[str], int]) -> AnswerTable | None:
    """None where no cell has a figure, or more have than a screen holds."""
    table = part.rows
    if table is None and 0 < len(part.bars) <= MOST_BARS:
        table = _plain(part)
    if table is None or not part.bars:
        return None
    by_label = {bar.label: bar for bar in part.bars}
    heights, widths = _heights(part.bars), _widths(part.bars)
    sources = _sources(part.bars)
    rows = []
    for row in table.sections[0].rows:
        of_row = by_label.get(row.label)
        if of_row is None:
            rows.append(AnswerRow(row))
            continue
        at_worst = _interval(of_row, *of_row.off.worst)
        drawn = bar(heights, of_row.value, _within(of_row), at_worst, accent(places(of_row.server)))
        rows.append(AnswerRow(row, drawn, _budget(widths, of_row, sources)))
    interval = any(_within(bar) for bar in part.bars)
    keys = [(square(INK), "95 % interval")] if interval else []
    several = len(part.bars) > 1
    if several and sources:
        keys.append((square(AT_WORST), "at worst, with all of its budget"))
    keys += [(square(colour), name) for name, colour in _legend(sources)]
    ticks = [(tick, _per_cent(tick)) for tick in round_ticks(widths)]
    return AnswerTable(
        table.columns, tuple(rows), several, axis(widths, ticks), tuple(keys), _unbounded(part.bars)
    )


def _plain(part: AnswerPart) -> Table:
    rows = tuple(
        Row(
            bar.label,
            (TableCell(rounded(part.figure, bar.value)), TableCell(good_to(*bar.off.worst))),
            server=bar.server,
        )
        for bar in part.bars
    )
    return Table((Column(named(part.figure)), Column("good to", number=False)), (Section(rows),))


def _within(bar: Bar) -> Interval | None:
    return None if bar.off.low is None and bar.off.high is None else _interval(bar, bar.off.low, bar.off.high)


def _interval(bar: Bar, low: float | None, high: float | None) -> Interval:
    return Interval(*(None if end is None else bar.value * (1 + end) for end in (low, high)))


def _heights(bars: Sequence[Bar]) -> Scale:
    """From zero to beyond the longest bar, error bars as far as they leave the others legible."""
    most = max(bar.value for bar in bars)
    highs = [(bar.value, end) for bar in bars for end in (0.0, bar.off.high, bar.off.worst[1])]
    ends = [value * (1 + end) for value, end in highs if end is not None]
    return Scale(0.0, (min(max(ends), FAR * most) or 1.0) * (1 + ROOM))


def _widths(bars: Sequence[Bar]) -> Scale:
    """Relative, with zero; wider where a side is not bounded, for the arrow."""
    ends = [bar.off.worst for bar in bars]
    reached = [_reached(bar) for bar in bars]
    low = min([-0.001, *(side[0] for side in reached)])
    high = max([0.001, *(side[1] for side in reached)])
    span = high - low
    below, above = (any(end[side] is None for end in ends) for side in (0, 1))
    return Scale(low - span * (0.15 if below else ROOM), high + span * (0.15 if above else ROOM))


def _reached(bar: Bar) -> tuple[float, float]:
    made = segments(bar, {})
    return min([0.0, *(s.low for s in made)]), max([0.0, *(s.high for s in made)])


def segments(bar: Bar, colours: dict[str, Colour]) -> list[Segment]:
    """The interval, then each source stacked on it, up to the bounds of `good to`."""
    low, high = bar.off.low, bar.off.high
    place = {source: at for at, source in enumerate(colours)}
    lines = sorted(bar.budget, key=lambda line: place.get(line.name, len(place)))
    made = []
    if low is not None or high is not None:
        made.append(Segment(low or 0.0, high or 0.0, INK, f"95 % interval: {good_to(low, high)}"))
    for side in (-1, 1):
        start = 1 + ((low if side < 0 else high) or 0.0)
        factors = [1 + ((line.low if side < 0 else line.high) or 0.0) for line in lines]
        ends = list(accumulate(factors, lambda a, b: a * b, initial=start))
        for line, begin, end in zip(lines, ends, ends[1:], strict=False):
            if begin != end:
                words = f"{line.name}: {bends(line.low, line.high)}"
                first, last = sorted((begin - 1, end - 1))
                made.append(Segment(first, last, colours.get(line.name, SOURCES[-1]), words))
    return made


def _budget(widths: Scale, bar: Bar, colours: dict[str, Colour]) -> Markup:
    return stacked(widths, segments(bar, colours), Interval(*bar.off.worst))


def _sources(bars: Sequence[Bar]) -> dict[str, Colour]:
    sizes: dict[str, float] = {}
    for row in bars:
        for line in row.budget:
            if line.bias.counts:
                sizes[line.name] = max(sizes.get(line.name, 0.0), line.bias.size)
    order = sorted(sizes, key=lambda source: -sizes[source])
    own = order if len(order) <= len(SOURCES) else order[: len(SOURCES) - 1]
    return {source: SOURCES[min(at, len(own))] for at, source in enumerate(order)}


def _legend(sources: dict[str, Colour]) -> list[tuple[str, Colour]]:
    names: dict[Colour, list[str]] = {}
    for source, colour in sources.items():
        names.setdefault(colour, []).append(source)
    return [(labels[0] if len(labels) == 1 else "other sources", colour) for colour, labels in names.items()]


def _unbounded(bars: Sequence[Bar]) -> tuple[str, ...]:
    """What nothing bounds, and in which rows; these need no naming where it is all of them."""
    by_source: dict[tuple[str, str], list[str]] = {}
    for row in bars:
        for line in row.budget:
            for end, side in ((line.low, "below"), (line.high, "above")):
                if end is None:
                    by_source.setdefault((line.name, side), []).append(row.label)
    return tuple(
        f"Not bounded {side}: {name}" + ("" if len(labels) == len(bars) else f", for {join_few(labels)}")
        for (name, side), labels in by_source.items()
    )


def _per_cent(share: float) -> str:
    value = round(100 * share, 6)
    sign = MINUS if value < 0 else "+" if value > 0 else ""
    return f"{sign}{abs(value):g} %"
