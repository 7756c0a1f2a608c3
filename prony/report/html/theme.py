"""Colours for light and dark: charts use the light ones, which CSS rules replace in dark mode."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Colour:
    """A colour role: its light and dark value."""

    name: str
    light: str
    dark: str


PAPER = Colour("paper", "#fdfdfc", "#14161a")
INK = Colour("ink", "#1c1f24", "#e8eaed")
MUTED = Colour("muted", "#5a616b", "#a4abb5")
RULE = Colour("rule", "#dfe1e5", "#33383f")
WASH = Colour("wash", "#f3f4f6", "#1d2025")
BAND = Colour("band", "#e9ebef", "#2a2f37")
SETTLE = Colour("settle", "#f6f1e4", "#26241d")
WINDOW = Colour("window", "#e6f0ee", "#1a2927")
FINE = Colour("fine", "#1b7a43", "#63c98c")
BUDGET = Colour("budget", "#8d5a00", "#e6b450")
PROVIDED = Colour("provided", "#4c5f8a", "#9db3e6")
NOT_CONFORMING = Colour("not_conforming", "#b3261e", "#ff8a80")
"""Colours by kind of finding; charts use the first for better and the last for worse."""
LINK = Colour("link", "#22559c", "#8ab8f5")
AT_WORST = Colour("at-worst", "#8a919d", "#7d8590")
"""Of what an interval is widened by where every source of the budget is at its worst."""

ROLES = (
    *(PAPER, INK, MUTED, RULE, WASH, BAND, SETTLE, WINDOW),
    *(FINE, BUDGET, PROVIDED, NOT_CONFORMING, LINK, AT_WORST),
)

SOURCES = (
    Colour("source-0", "#c98500", "#d99a1c"),
    Colour("source-1", "#5a6fa8", "#8298d4"),
    Colour("source-2", "#4f9a94", "#5fb3ac"),
    Colour("source-3", "#a5688f", "#c489ae"),
    Colour("source-4", "#7f8f3f", "#a3b35a"),
    Colour("source-5", "#a08b76", "#8f7d6b"),
)
"""Colours of budget sources, largest first; the last is for the remainder. None is a server's colour."""

ACCENTS = (
    Colour("accent-0", "#1d6fb8", "#6bb3f2"),
    Colour("accent-1", "#c4510c", "#f79a5e"),
    Colour("accent-2", "#08805f", "#4bcaa4"),
    Colour("accent-3", "#9c4594", "#e19ad8"),
    Colour("accent-4", "#8a6a00", "#dfc04f"),
    Colour("accent-5", "#3f4fa8", "#a3b0ff"),
    Colour("accent-6", "#6b5b53", "#c9b8ae"),
    Colour("accent-7", "#a83253", "#ff9fb6"),
)
"""One per server, in Okabe and Ito's order of distinguishable hues, each at least 4.5 : 1 on the paper."""
_ALL = (*ROLES, *SOURCES, *ACCENTS)

SHAPES = (
    "circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right", "triangle-left",
)  # fmt: skip
"""A mark per server in addition to its colour, for readers and printers without colour."""


def accent(index: int) -> Colour:
    return ACCENTS[index % len(ACCENTS)]


def shape(index: int) -> str:
    """The mark of the server at this position of the plan; different where colours repeat."""
    return SHAPES[(index + index // len(ACCENTS)) % len(SHAPES)]


def stylesheet() -> str:
    """Variables for the page and, for the dark, a rule per colour of the charts."""
    light = "".join(f"--{c.name}:{c.light};" for c in _ALL)
    dark = "".join(f"--{c.name}:{c.dark};" for c in _ALL)
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n{dark_charts()}\n"
    )


def dark_charts() -> str:
    rules = "".join(
        f'svg [fill="{c.light}"]{{fill:{c.dark}}}svg [stroke="{c.light}"]{{stroke:{c.dark}}}' for c in _ALL
    )
    return f"@media screen and (prefers-color-scheme:dark){{{rules}}}"


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
    return of_shape(shape(place), accent(place).light)


def square(colour: Colour) -> Markup:
    return of_shape("square", colour.light)


def of_shape(name: str, fill: str) -> Markup:
    return drawn(PATHS[name], fill)


def drawn(path: str, fill: str) -> Markup:
    """A path in a box of twelve, its middle at 0 0."""
    return Markup(
        '<svg class="mark" width="11" height="11" viewBox="-6 -6 12 12" aria-hidden="true">'
        f'<path d="{path}" fill="{fill}"/></svg>'
    )


def swatch(name: str) -> Markup:
    return Markup(f'<span class="swatch {name}"></span>')


TRIANGLE = drawn(PATHS["triangle-down"], "var(--budget)")
