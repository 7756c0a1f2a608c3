"""Marks on a horizontal scale, a drawing per row of a table; positions are per cent of its width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from prony.report.html.theme import AT_WORST, BAND, INK, MUTED, PAPER, Colour

HEIGHT = 20
MIDDLE = HEIGHT / 2
HALF = 5
"""Half the height of a bar."""
FINEST = 1e-12
WIDE = 18.0
"""Of a name on an axis, in per cent of the width of the narrowest row."""


@dataclass(frozen=True, slots=True)
class Scale:
    """From `low` to `high`, both finite; on a log scale both above zero."""

    low: float
    high: float
    log: bool = False

    def at(self, value: float) -> float:
        """Position in per cent, clipped to the scale."""
        low, high, x = (math.log(max(v, FINEST)) if self.log else v for v in (self.low, self.high, value))
        return min(100.0, max(0.0, 100 * (x - low) / ((high - low) or 1.0)))

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Interval:
    """Both ends; None: not bounded on that side."""

    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a stacked bar. `words`: its tooltip."""

    low: float
    high: float
    colour: Colour
    words: str


def bar(scale: Scale, value: float, within: Interval | None, at_worst: Interval, colour: Colour) -> Markup:
    """A bar from zero; on it the interval (None: not known), and beyond that what it is at worst."""
    made = [
        _rect(scale.at(0), scale.at(value), MIDDLE - HALF, 2 * HALF, colour, opacity=0.3),
        _line(scale, at_worst, AT_WORST, 5),
    ]
    if within is not None:
        made.append(_line(scale, within, INK, 5))
    return _row([*made, _upright(scale.at(value), INK, 2)])


def stacked(scale: Scale, segments: Sequence[Segment], bounded: Interval) -> Markup:
    """Segments to both sides of zero; an arrow where nothing bounds a side."""
    made = [_upright(scale.at(0), MUTED, 1, whole=True)]
    made += [
        _rect(scale.at(s.low), scale.at(s.high), MIDDLE - HALF, 2 * HALF, s.colour, words=s.words)
        for s in segments
    ]
    for end, side in ((bounded.low, -1), (bounded.high, 1)):
        if end is None:
            reached = [s.low if side < 0 else s.high for s in segments]
            start = scale.at((min if side < 0 else max)([0.0, *reached]))
            made.append(_arrow(start, side, MUTED))
    return _row(made)


def ratio(
    scale: Scale,
    value: float,
    within: Interval,
    at_worst: Interval,
    later: Interval | None,
    band: tuple[float, float],
    *,
    solid: bool,
) -> Markup:
    """A ratio with its interval, at worst, and (thin, below) later. `band`: where it makes no difference."""
    made = [
        _rect(scale.at(band[0]), scale.at(band[1]), 0, HEIGHT, BAND),
        _upright(scale.at(1), MUTED, 1, whole=True),
    ]
    if later is not None:
        made.append(_line(scale, later, MUTED, 1, y=HEIGHT - 2.5))
    made += [_line(scale, at_worst, AT_WORST, 5), _line(scale, within, INK, 5)]
    inside = INK if solid else PAPER
    made.append(
        f'<circle cx="{scale.at(value):.2f}%" cy="{MIDDLE:g}" r="5" fill="{inside.light}" '
        f'stroke="{INK.light}" stroke-width="2"/>'
    )
    return _row(made)


def axis(scale: Scale, ticks: Sequence[tuple[float, str]]) -> Markup:
    """Tick labels below the rows. Of labels that would overlap, the nearer to no difference stays."""
    made: list[str] = []
    taken: list[float] = []
    for value, name in sorted(ticks, key=lambda tick: abs(math.log(tick[0]) if scale.log else tick[0])):
        at = scale.at(value)
        anchor, middle = "middle", at
        if at < WIDE / 2:
            anchor, middle = "start", at + WIDE / 2
        elif at > 100 - WIDE / 2:
            anchor, middle = "end", at - WIDE / 2
        if all(abs(middle - other) >= WIDE for other in taken):
            taken.append(middle)
            made.append(
                f'<text x="{at:.2f}%" y="12" text-anchor="{anchor}" font-size="11" fill="{MUTED.light}">'
                f"{escape(name)}</text>"
            )
    return _row(made, height=16)


MOST_TICKS = 4
MOST_RATIO_TICKS = 5


def round_ticks(scale: Scale, most: int = MOST_TICKS) -> list[float]:
    """Round values on a linear scale, zero among them where it has it: at most about this many."""
    step = round_step((scale.high - scale.low) / most)
    first = math.ceil(scale.low / step - 1e-9)
    return [k * step for k in range(first, math.floor(scale.high / step + 1e-9) + 1)]


LADDERS: tuple[tuple[float, ...], ...] = (
    tuple(round(0.9 + 0.01 * k, 2) for k in range(21)),
    tuple(round(0.8 + 0.02 * k, 2) for k in range(21)),
    tuple(round(0.75 + 0.05 * k, 2) for k in range(16)),
    tuple(round(0.5 + 0.1 * k, 1) for k in range(16)),
    tuple(round(0.2 + 0.2 * k, 1) for k in range(15)),
    (0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4),
    (0.1, 0.2, 0.5, 1, 2, 5, 10),
    tuple(10.0**k for k in range(-9, 10)),
)


def ratio_ticks(scale: Scale) -> list[float]:
    """Round ratios, at most this many; fine steps near 1."""
    for ladder in LADDERS:
        inside = [tick for tick in ladder if scale.holds(tick)]
        if ladder[0] <= scale.low and ladder[-1] >= scale.high and len(inside) <= MOST_RATIO_TICKS:
            return inside
    return [1.0]


def round_step(step: float) -> float:
    """The next 1, 2 or 5 times a power of ten that is not smaller."""
    if step <= 0 or not math.isfinite(step):
        return 1.0
    power = 10.0 ** math.floor(math.log10(step))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= step * 0.999)


def _row(made: Sequence[str], height: float = HEIGHT) -> Markup:
    inside = "".join(made)
    return Markup(f'<svg class="row" width="100%" height="{height:g}" aria-hidden="true">{inside}</svg>')


def _rect(
    low: float, high: float, y: float, height: float, colour: Colour, *, opacity: float = 1.0, words: str = ""
) -> str:
    seen = "" if opacity == 1 else f' opacity="{opacity:g}"'
    tooltip = f"<title>{escape(words)}</title>" if words else ""
    return (
        f'<rect x="{low:.2f}%" y="{y:g}" width="{max(0.0, high - low):.2f}%" height="{height:g}" '
        f'fill="{colour.light}"{seen}>{tooltip}</rect>'
    )


def _upright(at: float, colour: Colour, width: float, *, whole: bool = False) -> str:
    top = 0 if whole else MIDDLE - HALF - 1
    return (
        f'<line x1="{at:.2f}%" x2="{at:.2f}%" y1="{top:g}" y2="{HEIGHT - top:g}" '
        f'stroke="{colour.light}" stroke-width="{width:g}"/>'
    )


def _line(scale: Scale, ends: Interval, colour: Colour, width: float, y: float = MIDDLE) -> str:
    """A line between both ends; an arrow to the border if an end is unbounded or beyond the scale."""
    low = scale.low if ends.low is None else ends.low
    high = scale.high if ends.high is None else ends.high
    size = 6 if width > 1 else 3
    made = (
        f'<line x1="{scale.at(low):.2f}%" x2="{scale.at(high):.2f}%" y1="{y:g}" y2="{y:g}" '
        f'stroke="{colour.light}" stroke-width="{width:g}"/>'
    )
    if ends.low is None or ends.low < scale.low:
        made += _head(0, -1, colour, y, size)
    if ends.high is None or ends.high > scale.high:
        made += _head(100, 1, colour, y, size)
    return made


def _arrow(start: float, side: int, colour: Colour) -> str:
    end = 100 if side > 0 else 0
    return (
        f'<line x1="{start:.2f}%" x2="{end}%" y1="{MIDDLE:g}" y2="{MIDDLE:g}" stroke="{colour.light}" '
        f'stroke-width="1.5" stroke-dasharray="3 3"/>{_head(end, side, colour, MIDDLE, 6)}'
    )


def _head(at: float, side: int, colour: Colour, y: float, size: float) -> str:
    back = -size * side
    return (
        f'<svg x="{at:g}%" y="{y:g}" overflow="visible"><path d="M{back:g} {-size:g}L0 0L{back:g} {size:g}" '
        f'fill="none" stroke="{colour.light}" stroke-width="{size / 2.4:.2g}"/></svg>'
    )
