"""Marks as tiny drawings, for legends, tables and headings."""

from __future__ import annotations

from markupsafe import Markup

from prony.report.html.theme import Colour, accent, shape

PATHS = {
    "circle": "M0-4.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9z",
    "square": "M-4-4h8v8h-8z",
    "triangle-up": "M0-4.8 5 4.4H-5z",
    "diamond": "M0-5.4 5.4 0 0 5.4-5.4 0z",
    "triangle-down": "M0 4.8-5-4.4H5z",
    "cross": "M-1.8-5h3.6v3.2H5v3.6H1.8V5h-3.6V1.8H-5v-3.6h3.2z",
    "triangle-right": "M-4.4-5 4.8 0-4.4 5z",
    "triangle-left": "M4.4-5V5L-4.8 0z",
}
"""Around their middle, 9 to 11 px wide."""
DASH = Markup('<span class="dash"></span>')


def mark_of(place: int) -> Markup:
    """The mark of the server at this place."""
    return of_shape(shape(place), accent(place).light)


def square(colour: Colour) -> Markup:
    """A field of this colour, for legends."""
    return of_shape("square", colour.light)


def of_shape(name: str, fill: str) -> Markup:
    """One of the marks that a chart draws."""
    return drawn(PATHS[name], fill)


def drawn(path: str, fill: str) -> Markup:
    """A path in a box of twelve, its middle at 0 0."""
    return Markup(
        '<svg class="mark" width="11" height="11" viewBox="-6 -6 12 12" aria-hidden="true">'
        f'<path d="{path}" fill="{fill}"/></svg>'
    )


def swatch(name: str) -> Markup:
    """A field of one of the page's colours."""
    return Markup(f'<span class="swatch {name}"></span>')


TRIANGLE = drawn(PATHS["triangle-down"], "var(--budget)")
