"""Marks as tiny drawings, for legends, tables and headings."""

from __future__ import annotations

from markupsafe import Markup

from prony.report.html.theme import Colour, accent, shape

_PATHS = {
    "circle": "M6 1.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9z",
    "square": "M2 2h8v8H2z",
    "triangle-up": "M6 1.2 11 10.4H1z",
    "diamond": "M6 .6 11.4 6 6 11.4.6 6z",
    "triangle-down": "M6 10.8 1 1.6h10z",
    "cross": "M4.2 1h3.6v3.2H11v3.6H7.8V11H4.2V7.8H1V4.2h3.2z",
    "triangle-right": "M1.6 1 10.8 6 1.6 11z",
    "triangle-left": "M10.4 1v10L1.2 6z",
}
DASH = Markup('<span class="dash"></span>')


def mark_of(place: int) -> Markup:
    """The mark of the server at this place."""
    return of_shape(shape(place), accent(place).light)


def square(colour: Colour) -> Markup:
    """A field of this colour, for legends."""
    return of_shape("square", colour.light)


def of_shape(name: str, fill: str) -> Markup:
    """One of the marks that a chart draws."""
    return drawn(_PATHS[name], fill)


def drawn(path: str, fill: str) -> Markup:
    """A path in a box of twelve."""
    return Markup(
        '<svg class="mark" width="11" height="11" viewBox="0 0 12 12" aria-hidden="true">'
        f'<path d="{path}" fill="{fill}"/></svg>'
    )


def swatch(name: str) -> Markup:
    """A field of one of the page's colours."""
    return Markup(f'<span class="swatch {name}"></span>')


TRIANGLE = drawn(_PATHS["triangle-down"], "var(--budget)")
