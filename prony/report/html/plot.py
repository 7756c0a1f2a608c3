"""Charts as SVG: axes with round ticks, text, and marks at the place of their values. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from prony.report.html.scale import Scale, round_step, round_ticks
from prony.report.html.theme import INK, MUTED, PATHS, RULE, Colour, dark_charts

TEXT = 12
"""Font size in px."""
GAP = 8
"""Between two labels, and between labels and the plot."""
PAD = 6
"""Room for half a mark at an edge without labels."""
TIME_UNITS = (("h", 3600), ("min", 60), ("s", 1))
MOST_OF_A_UNIT = 3
"""An axis of at least this many minutes (hours) counts in minutes (hours)."""


@dataclass(frozen=True, slots=True)
class Series:
    """A server's mark: accent and shape."""

    label: str
    colour: Colour
    shape: str


@dataclass(frozen=True, slots=True)
class Axis:
    """`ticks`: (value, label), ascending. `even`: all at one distance, so that every n-th will do."""

    scale: Scale
    ticks: Sequence[tuple[float, str]] = ()
    title: str = ""
    grid: bool = False
    even: bool = True


def text_width(words: str, size: float = TEXT) -> float:
    """In px, in the widest of the common sans-serif fonts: letters in four widths."""
    return size * sum(
        0.3 if c in "fijltrI.,:;'|!()[]/- " else 0.7 if c.isupper() else 0.9 if c in "mw%@…" else 0.64
        for c in words
    )


class Plot:
    """A drawing `width` px wide, its plot area `height` px high. Marks go where their values are; without `y`
    a value upwards is px below the upper edge of the plot area, and `left` are kept free for text. `right`:
    likewise at that side.
    """

    def __init__(
        self, x: Axis, y: Axis | None, *, width: float, height: float, left: float = PAD, right: float = PAD
    ) -> None:
        self._x, self._y = x, y or Axis(Scale(height, 0))
        self._left = max((text_width(label) + GAP for _, label in self._y.ticks), default=left)
        self._width, self._right = width, width - right
        self._top = 2 * TEXT if self._y.title else TEXT / 2 if self._y.ticks else 0
        self._bottom = self._top + height
        below = TEXT + GAP if x.ticks else 0
        self._height = self._bottom + below + (TEXT + GAP if x.title else 0)
        self._made: list[str] = []
        self._axes()

    def x(self, value: float) -> float:
        """Position of a value, px from the left, clipped to the scale."""
        return self._left + (self._right - self._left) * self._x.scale.at(value) / 100

    def y(self, value: float) -> float:
        """Likewise from above."""
        return self._bottom + (self._top - self._bottom) * self._y.scale.at(value) / 100

    def line(
        self,
        points: Iterable[tuple[float, float]],
        colour: Colour,
        width: float = 1,
        *,
        dash: str = "",
        opacity: float = 1,
    ) -> None:
        places = " ".join(f"{_px(self.x(x))},{_px(self.y(y))}" for x, y in points)
        look = f' stroke-dasharray="{dash}"' * bool(dash) + f' opacity="{opacity:g}"' * (opacity != 1)
        self._made.append(
            f'<polyline points="{places}" fill="none" stroke="{colour.light}" stroke-width="{width:g}" '
            f'stroke-linejoin="round"{look}/>'
        )

    def upright(self, value: float, colour: Colour, width: float = 1, *, dash: str = "") -> None:
        scale = self._y.scale
        self.line([(value, scale.low), (value, scale.high)], colour, width, dash=dash)

    def rect(
        self, x: tuple[float, float], y: tuple[float, float], colour: Colour, opacity: float = 1
    ) -> None:
        left, right = sorted(map(self.x, x))
        top, bottom = sorted(map(self.y, y))
        look = f' opacity="{opacity:g}"' * (opacity != 1)
        self._made.append(
            f'<rect x="{_px(left)}" y="{_px(top)}" width="{_px(right - left)}" height="{_px(bottom - top)}" '
            f'fill="{colour.light}"{look}/>'
        )

    def mark(
        self,
        x: float,
        y: float,
        shape: str,
        fill: Colour | None,
        stroke: Colour | None = None,
        *,
        size: float = 0.9,
        above: float = 0,
        row: int | None = None,
    ) -> None:
        """A shape of `size` times that in a legend, `above` px higher. `row`: its place in a table."""
        place = f"translate({_px(self.x(x))} {_px(self.y(y) - above)})scale({size:g})"
        edge = f' stroke="{stroke.light}" stroke-width="1.75"' if stroke is not None else ""
        self._made.append(
            "<path"
            + (f' data-row="{row}"' if row is not None else "")
            + f' d="{PATHS[shape]}" transform="{place}" fill="{fill.light if fill else "none"}"{edge}/>'
        )

    def text(
        self,
        x: float,
        y: float,
        words: str,
        colour: Colour = INK,
        *,
        size: int = 13,
        end: bool = False,
        tip: str = "",
    ) -> None:
        """From or (`end`) to `x` px from the left. `tip`: for who points at it."""
        anchor = ' text-anchor="end"' * end
        tooltip = f"<title>{escape(tip)}</title>" * bool(tip)
        self._made.append(
            f'<text x="{_px(x)}" y="{_px(self.y(y) + size * 0.35)}" font-size="{size}" '
            f'fill="{colour.light}"{anchor}>{escape(words)}{tooltip}</text>'
        )

    def svg(self, *, key: str, title: str) -> str:
        """For a page. `key` is unique on it; `title` says in words what the chart shows."""
        # Inside HTML an <svg> needs no namespace, and the page then holds no address at all.
        return self._svg("", key, title)

    def file(self, *, title: str) -> str:
        size = f'xmlns="http://www.w3.org/2000/svg" width="{_px(self._width)}" height="{_px(self._height)}" '
        self._made.insert(0, f"<style>text{{font-family:system-ui,sans-serif}}{dark_charts()}</style>")
        return self._svg(size, "chart", title) + "\n"

    def _svg(self, more: str, key: str, title: str) -> str:
        return (
            f'<svg {more}viewBox="0 0 {_px(self._width)} {_px(self._height)}" role="img" '
            f'aria-labelledby="{key}-title">'
            f'<title id="{key}-title">{escape(title)}</title>{"".join(self._made)}</svg>'
        )

    def _axes(self) -> None:
        rules: list[str] = []
        labels: list[str] = []

        def label(x: float, y: float, words: str, anchor: str) -> None:
            labels.append(f'<text x="{_px(x)}" y="{_px(y)}" text-anchor="{anchor}">{escape(words)}</text>')

        def within(middle: float, words: str) -> float:
            half = text_width(words) / 2
            return max(half, min(middle, self._width - half))

        across = [(self.x(value), words) for value, words in self._x.ticks]
        boxes = [(within(place, words), text_width(words) + GAP) for place, words in across]
        for k in _legible(boxes, even=self._x.even):
            label(boxes[k][0], self._bottom + TEXT + 4, across[k][1], "middle")
        up = [(self.y(value), words) for value, words in self._y.ticks]
        for k in _legible([(place, TEXT + 2) for place, _ in up], even=self._y.even):
            label(self._left - GAP, up[k][0] + TEXT * 0.35, up[k][1], "end")
        if self._x.title:
            middle = within((self._left + self._right) / 2, self._x.title)
            label(middle, self._height - 4, self._x.title, "middle")
        if self._y.title:
            label(0, TEXT - 2, self._y.title, "start")
        if self._x.grid:
            rules += [f"M{_px(place)} {_px(self._top)}V{_px(self._bottom)}" for place, _ in across]
        if self._y.grid:
            rules += [f"M{_px(self._left)} {_px(place)}H{_px(self._right)}" for place, _ in up]
        if rules:
            self._made.append(f'<path d="{"".join(rules)}" stroke="{RULE.light}"/>')
        if labels:
            self._made.append(f'<g fill="{MUTED.light}" font-size="{TEXT}">{"".join(labels)}</g>')


def _px(value: float) -> str:
    return f"{round(value, 1) + 0.0:.10g}"


def _legible(boxes: Sequence[tuple[float, float]], *, even: bool) -> list[int]:
    """Of labels, (middle, length), those that do not touch: every n-th, or the ends and what fits between."""

    def apart(first: int, other: int) -> bool:
        return abs(boxes[first][0] - boxes[other][0]) >= (boxes[first][1] + boxes[other][1]) / 2

    every = range(len(boxes))
    if even:
        steps = (list(every[::step]) for step in range(1, len(boxes) + 1))
        return next((kept for kept in steps if all(apart(a, b) for a, b in pairwise(kept))), [])
    kept: list[int] = []
    for k in dict.fromkeys([*every[:1], *every[-1:], *every]):
        if all(apart(k, other) for other in kept):
            kept.append(k)
    return kept


def plain(value: float) -> str:
    """A tick's number without trailing zeros, thousands separated."""
    return f"{value:,.9f}".rstrip("0").rstrip(".")


def log_x(title: str, values: Sequence[float], ticks: Sequence[float] | None = None) -> Axis:
    """A log axis with room at both ends, so that no mark is cut; ticks at 1, 2, 5 per decade if not given."""
    scale = Scale(min(values) / 1.15, max(values) * 1.15, log=True)
    chosen = decades([scale.low, scale.high]) if ticks is None else ticks
    return Axis(scale, [(t, plain(t)) for t in chosen if scale.holds(t)], title, even=False)


def log_y(title: str, values: Sequence[float]) -> Axis:
    levels = decades(values)
    scale = Scale(levels[0], levels[-1], log=True)
    return Axis(scale, [(level, plain(level)) for level in levels], title, grid=True, even=False)


def linear_y(title: str, values: Sequence[float], ticks: int = 5) -> Axis:
    """From zero to the tick above the highest value; about this many ticks."""
    most = max([0.0, *values])
    step = round_step(most / ticks)
    scale = Scale(0, max(1, math.ceil(most / step - 1e-9)) * step)
    return Axis(scale, [(t, plain(t)) for t in round_ticks(scale, ticks)], title, grid=True)


def seconds_axis(until_s: float) -> Axis:
    """Elapsed time in s, min or h: about five ticks."""
    unit, unit_s = next((u, s) for u, s in TIME_UNITS if until_s >= MOST_OF_A_UNIT * s or s == 1)
    scale = Scale(0, until_s / unit_s)
    return Axis(Scale(0, until_s), [(t * unit_s, f"{plain(t)} {unit}") for t in round_ticks(scale, 5)])


def count_axis(most: float) -> Axis:
    """From zero to `most` in about five round steps, thousands as k."""
    scale = Scale(0, most)
    names = [(t, f"{plain(t / 1000)}k" if t >= 1000 else plain(t)) for t in round_ticks(scale, 5)]
    return Axis(scale, names, grid=True)


def decades(values: Sequence[float]) -> list[float]:
    """Steps 1, 2, 5 per decade that hold all values; at least two."""
    least, most = min(values), max(values)
    first, last = math.floor(math.log10(least)), math.ceil(math.log10(most))
    steps = [m * 10.0**e for e in range(first - 1, last + 1) for m in (1, 2, 5)]
    below = max(t for t in steps if t <= least)
    above = min(t for t in steps if t >= most and t > below)
    return [t for t in steps if below <= t <= above]
