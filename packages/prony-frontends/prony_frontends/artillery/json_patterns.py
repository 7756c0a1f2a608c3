"""Regexes on JSON values as the engine presents them: a text as it is, other values as JSON.

Such a regex cannot tell a text that looks like a number, `null`, `true`, `false`, or like [ or { at its
start, from that value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

MOST_DIGITS, MOST_PLACES = 15, 5
"""Bound on numbers in comparisons: below it the engine writes no exponents."""
_SCALAR = r'(?:"(?:[^"\\]|\\.)*"|[^"\[\]{},]+)'
"""An element of a flat list."""
_MIRRORED: Mapping[str, str] = {">": "<", "<": ">", ">=": "<=", "<=": ">="}


def none_of(words: Iterable[str]) -> str:
    """Any text except these words."""
    excluded = set(words)
    branches = []
    for start in sorted({word[:length] for word in excluded for length in range(len(word) + 1)}):
        following = {word[len(start)] for word in excluded if word.startswith(start) and word != start}
        other = f"[^{''.join(map(re.escape, sorted(following)))}]" if following else "."
        branches.append(f"{re.escape(start)}{other}.*")
        if start not in excluded:
            branches.append(re.escape(start))
    return rf"(?s)^(?:{'|'.join(branches)})$"


NOT_NULL = none_of(["null"])
TRUE = none_of(["", "null", "false", "0", "-0", "0.0", "-0.0"])
"""Truthy values in JavaScript."""
LIST = r"^\["
STRUCTURE = r"^[\[{]"
"""A list or an object."""
EMPTY = r"^(?:\[\]|\{\})?$"
"""An empty list, object or text."""
NOT_EMPTY = none_of(["", "null", "true", "false", "[]", "{}"])


def begins(text: str) -> str:
    """A text with this beginning."""
    return f"^{re.escape(text)}"


def ends(text: str) -> str:
    """A text with this end."""
    return f"{re.escape(text)}$"


def holds(part: str) -> str:
    """A text that contains this part, or a list with it as an element."""
    within = rf"(?:[^\[{{](?s:.)*)?{re.escape(part)}"
    return rf"^(?:{within}|{_listed(re.escape(json.dumps(part, ensure_ascii=False)))})"


def holds_value(value: str) -> str:
    """A list with this number, true, false or null as JSON."""
    return f"^{_listed(re.escape(value))}"


def _listed(element: str) -> str:
    return rf"\[(?:{_SCALAR},)*{element}(?:,{_SCALAR})*\]$"


def number(op: str, literal: str) -> str:
    """A number in relation (>, >=, <, <=) to `literal`: up to 15 digits before the point, 5 after."""
    whole, _, places = literal.removeprefix("-").partition(".")
    whole, places = whole.lstrip("0") or "0", places.rstrip("0")
    above = op in (">", ">=")
    if (whole, places) == ("0", ""):
        branches = [_sizes(op, "0", "") if above else f"-(?:{_sizes('>', '0', '')})"]
        branches += [r"-?0(?:\.0+)?"] if op in (">=", "<=") else []
    elif literal.startswith("-"):
        branches = [f"-(?:{_sizes(_MIRRORED[op], whole, places)})", *([_ANY_SIZE] if above else [])]
    else:
        branches = [_sizes(op, whole, places), *([] if above else [f"-{_ANY_SIZE}"])]
    return f"^(?:{'|'.join(branches)})$"


_ANY_SIZE = r"\d+(?:\.\d+)?(?:e[-+]?\d+)?"
"""A number without a sign."""


def _sizes(op: str, whole: str, places: str) -> str:
    """Unsigned numbers in this relation to an unsigned number, which is above 0 unless `op` is above."""
    branches: list[str] = []
    if op in (">", ">="):
        branches += [rf"(?:{'|'.join(_more(whole))})(?:\.\d+)?", r"\d(?:\.\d+)?e\+?\d+"]
        branches.append(rf"{whole}\.(?:{'|'.join(_more_places(places))})")
        if (whole, places) == ("0", ""):
            branches.append(r"[1-9](?:\.\d+)?e-\d+")
    else:
        if fewer := _fewer(whole):
            branches.append(rf"(?:{'|'.join(fewer)})(?:\.\d+)?")
        if places:
            branches.append(rf"{whole}(?:\.(?:{'|'.join(_fewer_places(places))}))?")
        branches.append(r"\d(?:\.\d+)?e-\d+")
    if op in (">=", "<="):
        branches.append(rf"{whole}\.{places}0*" if places else rf"{whole}(?:\.0+)?")
    return "|".join(branches)


def _more(whole: str) -> list[str]:
    """Whole numbers above this one."""
    return [rf"[1-9]\d{{{len(whole)},}}", *_digits(whole, above=True)]


def _fewer(whole: str) -> list[str]:
    """Whole numbers below this one."""
    shorter = ["0", rf"[1-9]\d{{0,{len(whole) - 2}}}"] if len(whole) > 1 else []
    return shorter + _digits(whole, above=False)


def _digits(whole: str, *, above: bool) -> list[str]:
    """Numbers with the same number of digits that differ from some digit on."""
    branches = []
    for place, digit in enumerate(whole):
        least = 1 if place == 0 and len(whole) > 1 else 0
        low, high = (int(digit) + 1, 9) if above else (least, int(digit) - 1)
        if low <= high:
            branches.append(rf"{whole[:place]}[{low}-{high}]\d{{{len(whole) - place - 1}}}")
    return branches


def _more_places(places: str) -> list[str]:
    """Decimals above these."""
    at = [rf"{places[:i]}[{int(digit) + 1}-9]\d*" for i, digit in enumerate(places) if digit != "9"]
    return [*at, rf"{places}\d*[1-9]\d*"]


def _fewer_places(places: str) -> list[str]:
    """Decimals below these."""
    at = [rf"{places[:i]}[0-{int(digit) - 1}]\d*" for i, digit in enumerate(places) if digit != "0"]
    return [*at, *(f"{places[:length]}0*" for length in range(1, len(places)))]
