"""Regexes for values of JSON as the engine shows them to one: a text as it is, any other value as JSON. Must
not know who asks.

What such a regex cannot tell apart: a text that reads like a number, `null`, `true` or `false`, or that
begins with [ or {, and that value itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

MOST_DIGITS, MOST_PLACES = 15, 5
"""Of a number that others are compared with: within these the engine writes numbers without an exponent."""
_SCALAR = r'(?:"(?:[^"\\]|\\.)*"|[^"\[\]{},]+)'
"""An element of a list that holds no other."""
_MIRRORED: Mapping[str, str] = {">": "<", "<": ">", ">=": "<=", "<=": ">="}


def none_of(words: Iterable[str]) -> str:
    """Any text but these words."""
    known = set(words)
    found = []
    for start in sorted({word[:length] for word in known for length in range(len(word) + 1)}):
        following = {word[len(start)] for word in known if word.startswith(start) and word != start}
        other = f"[^{''.join(map(re.escape, sorted(following)))}]" if following else "."
        found.append(f"{re.escape(start)}{other}.*")
        if start not in known:
            found.append(re.escape(start))
    return rf"(?s)^(?:{'|'.join(found)})$"


NOT_NULL = none_of(["null"])
TRUE = none_of(["", "null", "false", "0", "-0", "0.0", "-0.0"])
"""What JavaScript takes for true."""
LIST = r"^\["
STRUCTURE = r"^[\[{]"
"""A list or an object."""
EMPTY = r"^(?:\[\]|\{\})?$"
"""A list, an object or a text of the length 0."""
NOT_EMPTY = none_of(["", "null", "true", "false", "[]", "{}"])


def begins(text: str) -> str:
    """A text that begins so."""
    return f"^{re.escape(text)}"


def ends(text: str) -> str:
    """A text that ends so."""
    return f"{re.escape(text)}$"


def holds(part: str) -> str:
    """A text with this part, or a list of which it is an element."""
    within = rf"(?:[^\[{{](?s:.)*)?{re.escape(part)}"
    return rf"^(?:{within}|{_listed(re.escape(json.dumps(part, ensure_ascii=False)))})"


def holds_value(value: str) -> str:
    """A list with this number, or true, false or null: as JSON."""
    return f"^{_listed(re.escape(value))}"


def _listed(element: str) -> str:
    return rf"\[(?:{_SCALAR},)*{element}(?:,{_SCALAR})*\]$"


def number(op: str, literal: str) -> str:
    """A number that is >, >=, < or <= this one, which is written with at most 15 digits before the point and
    5 behind it.
    """
    whole, _, places = literal.removeprefix("-").partition(".")
    whole, places = whole.lstrip("0") or "0", places.rstrip("0")
    above = op in (">", ">=")
    if (whole, places) == ("0", ""):
        found = [_sizes(op, "0", "") if above else f"-(?:{_sizes('>', '0', '')})"]
        found += [r"-?0(?:\.0+)?"] if op in (">=", "<=") else []
    elif literal.startswith("-"):
        found = [f"-(?:{_sizes(_MIRRORED[op], whole, places)})", *([_ANY_SIZE] if above else [])]
    else:
        found = [_sizes(op, whole, places), *([] if above else [f"-{_ANY_SIZE}"])]
    return f"^(?:{'|'.join(found)})$"


_ANY_SIZE = r"\d+(?:\.\d+)?(?:e[-+]?\d+)?"
"""A number without a sign."""


def _sizes(op: str, whole: str, places: str) -> str:
    """Numbers without a sign against such a one, which is above 0 unless they are to be above it."""
    found: list[str] = []
    if op in (">", ">="):
        found += [rf"(?:{'|'.join(_more(whole))})(?:\.\d+)?", r"\d(?:\.\d+)?e\+?\d+"]
        found.append(rf"{whole}\.(?:{'|'.join(_more_places(places))})")
        if (whole, places) == ("0", ""):
            found.append(r"[1-9](?:\.\d+)?e-\d+")
    else:
        if fewer := _fewer(whole):
            found.append(rf"(?:{'|'.join(fewer)})(?:\.\d+)?")
        if places:
            found.append(rf"{whole}(?:\.(?:{'|'.join(_fewer_places(places))}))?")
        found.append(r"\d(?:\.\d+)?e-\d+")
    if op in (">=", "<="):
        found.append(rf"{whole}\.{places}0*" if places else rf"{whole}(?:\.0+)?")
    return "|".join(found)


def _more(whole: str) -> list[str]:
    """Whole numbers above this one."""
    return [rf"[1-9]\d{{{len(whole)},}}", *_digits(whole, above=True)]


def _fewer(whole: str) -> list[str]:
    """Whole numbers below this one."""
    shorter = ["0", rf"[1-9]\d{{0,{len(whole) - 2}}}"] if len(whole) > 1 else []
    return shorter + _digits(whole, above=False)


def _digits(whole: str, *, above: bool) -> list[str]:
    """Numbers of as many digits: the same up to a digit that is another."""
    found = []
    for place, digit in enumerate(whole):
        least = 1 if place == 0 and len(whole) > 1 else 0
        low, high = (int(digit) + 1, 9) if above else (least, int(digit) - 1)
        if low <= high:
            found.append(rf"{whole[:place]}[{low}-{high}]\d{{{len(whole) - place - 1}}}")
    return found


def _more_places(places: str) -> list[str]:
    """Digits behind the point of what is above this."""
    at = [rf"{places[:i]}[{int(digit) + 1}-9]\d*" for i, digit in enumerate(places) if digit != "9"]
    return [*at, rf"{places}\d*[1-9]\d*"]


def _fewer_places(places: str) -> list[str]:
    """Digits behind the point of what is below this, which does not end with a 0."""
    at = [rf"{places[:i]}[0-{int(digit) - 1}]\d*" for i, digit in enumerate(places) if digit != "0"]
    return [*at, *(f"{places[:length]}0*" for length in range(1, len(places)))]
