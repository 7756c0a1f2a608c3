"""What the text of a column says: a moment, figures, JSON. Rows that are imported and rows that are read keep
to the same rules.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

MOST_CONTAINERS = 1_000_000
"""Lists and objects in one piece of JSON, each of which takes some hundred bytes of memory. The largest
published trial has 4,000.
"""
LARGEST_FIGURE = 1e18
YEARS = range(1970, 9000)
MOST_SHOWN = 60
A_TIME = "expected a time in ISO 8601 with its zone, such as 2026-11-21T12:00:00+00:00"
A_FIGURE = f"expected a finite number of at most {LARGEST_FIGURE:g}"
_FIGURE_NAME = re.compile(r"[\w.%/ ()-]{1,100}")
_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


def time_of(text: object) -> datetime:
    """The moment that a time says. Raises ValueError with what was expected."""
    if not isinstance(text, str) or len(text) > 40 or text.isdecimal():
        raise ValueError(A_TIME)
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is not None and found.year in YEARS:
            return found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ValueError(A_TIME)


def is_time(text: object) -> bool:
    """Whether it says a moment."""
    try:
        time_of(text)
    except ValueError:
        return False
    return True


def column_time(name: str, text: object) -> datetime:
    """The same of a column. Raises ValueError: which one, what was found, what was expected."""
    try:
        return time_of(text)
    except ValueError as fault:
        raise ValueError(f"{name} is {shown(text)}; {fault}") from None


def parsed(text: str | bytes) -> Any:
    """A piece of JSON, of which no more is read than memory holds. Raises ValueError."""
    lists, objects = (
        (text.count("["), text.count("{"))
        if isinstance(text, str)
        else (
            text.count(b"["),
            text.count(b"{"),
        )
    )
    if lists + objects > MOST_CONTAINERS:
        raise ValueError(f"expected at most {MOST_CONTAINERS:,} lists and objects, found {lists + objects:,}")
    return json.loads(text)


def figures_of(text: str) -> tuple[dict[str, float], tuple[str, ...]]:
    """Name -> number, and of each figure that is none a sentence. Raises ValueError for what is no object."""
    found = parsed(text)
    if not isinstance(found, dict):
        raise ValueError("expected a JSON object with figures by their names")
    wrong = {name: sentence for name, value in found.items() if (sentence := not_a_figure(name, value))}
    return {name: value for name, value in found.items() if name not in wrong}, tuple(wrong.values())


def stored_figures(text: str) -> tuple[dict[str, float], tuple[str, ...]]:
    """The same of a row that is there: without any where the column cannot be read."""
    try:
        return figures_of(text)
    except (ValueError, RecursionError) as fault:
        return {}, (f"its figures cannot be read: {fault}",)


def not_a_figure(name: str, value: object) -> str | None:
    """What is wrong with a figure; None for a number that can be drawn and compared."""
    if not _FIGURE_NAME.fullmatch(name):
        return f"a figure is called {shown(name)}; expected a name of at most 100 letters"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and -LARGEST_FIGURE <= value <= LARGEST_FIGURE:  # type: ignore[operator]  # NaN is not
        return None
    return f"figure {name} is {shown(value)}; {A_FIGURE}"


def finite(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Those that are known: a figure that came to no number has none."""
    return {
        name: value for name, value in figures.items() if not isinstance(value, float) or math.isfinite(value)
    }


def storable(text: str) -> str:
    """Text that every database takes: without the character 0 and halves of characters."""
    return _NOT_STORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def shown(value: object) -> str:
    """A value in a sentence, as JSON has it and not longer than a line."""
    try:
        text = json.dumps(value, default=str)
    except (ValueError, RecursionError):  # a number of more than 4,300 digits, or nested too deeply
        return f"a {type(value).__name__}"
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
