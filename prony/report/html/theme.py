"""Colours in light and dark.

A chart is drawn once, in the light colours. In the dark a rule per colour (`[fill="#…"]`) replaces them: an
author's rule outranks a presentation attribute, so one SVG serves both and stays right without style sheets.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Colour:
    """One role of colour: its light and its dark value."""

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
"""Of findings, by their kinds; a chart takes the first and the last one for what is better and worse."""
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
"""One per source of a budget, the largest first; the last one for all others together. None is a server's."""

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
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "triangle-down",
    "cross",
    "triangle-right",
    "triangle-left",
)
"""A mark per server beside its colour, for readers and printers that see no colour."""


def accent(index: int) -> Colour:
    """The colour of the server at this place of the plan."""
    return ACCENTS[index % len(ACCENTS)]


def shape(index: int) -> str:
    """The mark of the server at this place of the plan; another one when the colours begin again."""
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
    """A rule per colour of the charts."""
    rules = "".join(
        f'svg [fill="{c.light}"]{{fill:{c.dark}}}svg [stroke="{c.light}"]{{stroke:{c.dark}}}' for c in _ALL
    )
    return f"@media screen and (prefers-color-scheme:dark){{{rules}}}"
