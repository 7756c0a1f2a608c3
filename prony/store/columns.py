"""Values of text columns: times, figures, JSON. The same rules for imported and for stored rows."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

MOST_VALUES = 1_000_000
"""Most lists, objects and commas in a JSON text, 100 bytes each. The largest published trial has 22,000."""
LARGEST_FIGURE = 1e18
YEARS = range(1970, 9000)
MOST_SHOWN = 60
A_TIME = "expected a time in ISO 8601 with its zone, such as 2026-11-21T12:00:00+00:00"
A_FIGURE = f"expected a finite number of at most {LARGEST_FIGURE:g}"
_FIGURE_NAME = re.compile(r"[\w.%/ ()-]{1,100}")
_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


def time_of(text: object) -> datetime:
    """A stored time. Raises ValueError with the expectation."""
    if not isinstance(text, str) or len(text) > 40 or text.isdecimal():
        raise ValueError(A_TIME)
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None and moment.year in YEARS:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ValueError(A_TIME)


def is_time(text: object) -> bool:
    try:
        time_of(text)
    except ValueError:
        return False
    return True


def column_time(name: str, text: object) -> datetime:
    try:
        return time_of(text)
    except ValueError as fault:
        raise ValueError(f"{name} is {shown(text)}; {fault}") from None


def parsed(text: str | bytes) -> Any:
    """Parses JSON of bounded size, in which no object has a key twice. Raises ValueError."""
    raw = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    values = raw.count(b"[") + raw.count(b"{") + raw.count(b",")
    if values > MOST_VALUES:
        raise ValueError(f"expected at most {MOST_VALUES:,} values, found {values:,}")
    return json.loads(text, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuses a key given twice: readers differ in which they take, and the other may hide a credential."""
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"expected each key once, found {shown(twice)} twice")
    return value


def figures_of(text: str) -> tuple[dict[str, float], tuple[str, ...]]:
    """(name -> number, a sentence per invalid figure). Raises ValueError unless an object."""
    document = parsed(text)
    if not isinstance(document, dict):
        raise ValueError("expected a JSON object with figures by their names")
    wrong = {name: sentence for name, value in document.items() if (sentence := not_a_figure(name, value))}
    return {name: value for name, value in document.items() if name not in wrong}, tuple(wrong.values())


def stored_figures(text: str) -> tuple[dict[str, float], tuple[str, ...]]:
    """Like `figures_of` for a stored row; without figures if the column is unreadable."""
    try:
        return figures_of(text)
    except (ValueError, RecursionError) as fault:
        return {}, (f"its figures cannot be read: {fault}",)


def not_a_figure(name: str, value: object) -> str | None:
    """A sentence about an invalid figure; else None."""
    if not _FIGURE_NAME.fullmatch(name):
        return f"a figure is named {shown(name)}; expected a name of at most 100 letters"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and -LARGEST_FIGURE <= value <= LARGEST_FIGURE:  # type: ignore[operator]  # NaN is not
        return None
    return f"figure {name} is {shown(value)}; {A_FIGURE}"


def finite(figures: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value for name, value in figures.items() if not isinstance(value, float) or math.isfinite(value)
    }


def storable(text: str) -> str:
    """Text for every database: without NUL and surrogates."""
    return _NOT_STORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def shown(value: object) -> str:
    try:
        text = json.dumps(value, default=str)
    except (ValueError, RecursionError):  # a number of more than 4,300 digits, or nested too deeply
        return f"a {type(value).__name__}"
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
