"""Values in a plain expression of a plan (numbers, texts, draws), methods of texts, and arithmetic."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass

from prony_frontends.jmeter.functions import Text, TextPart


@dataclass(frozen=True, slots=True)
class Named:
    """A class, an object or a method, by name."""

    name: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """A random number: whole in `low` to `high`, or (`real`) from `low` to below `high`."""

    low: int
    high: int
    real: bool = False


@dataclass(frozen=True, slots=True)
class Bytes:
    """UTF-8 bytes of a text."""

    text: Text


@dataclass(frozen=True, slots=True)
class Moment:
    """The current time, or (with a pattern) a formatter of it."""

    pattern: str = ""
    shift_s: int = 0
    day: bool = False
    """Without the time of day."""


@dataclass(frozen=True, slots=True)
class Changing:
    """A whole number known during the run: an engine's placeholder plus a constant."""

    part: TextPart
    plus: int = 0


@dataclass(frozen=True, slots=True)
class Json:
    """A place in the response's JSON: an RFC 6901 pointer."""

    pointer: str


Value = int | str | bool | None | Text | Named | Drawn | Bytes | Moment | Changing | Json | tuple[str, ...]


class Unsupported(Exception):
    """An unsupported part of an expression, in the plan's words."""


def _substring(text: str, begin: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if not 0 <= begin <= stop <= len(text):
        raise ValueError(f"{begin} to {stop} of {len(text)} characters")
    return text[begin:stop]


METHODS: dict[tuple[str, int], Callable[..., Value]] = {
    ("trim", 0): str.strip, ("length", 0): len, ("size", 0): len, ("isEmpty", 0): lambda text: not text,
    ("reverse", 0): lambda text: text[::-1], ("capitalize", 0): lambda text: text[:1].upper() + text[1:],
    ("substring", 1): _substring, ("substring", 2): _substring,
    ("replace", 2): lambda text, old, new: text.replace(old, new),
    ("contains", 1): lambda text, part: part in text,
    ("startsWith", 1): lambda text, part: text.startswith(part),
    ("endsWith", 1): lambda text, part: text.endswith(part),
    ("indexOf", 1): lambda text, part: text.find(part), ("equals", 1): lambda text, other: text == other,
    ("equalsIgnoreCase", 1): lambda text, other: text.lower() == other.lower(),
    ("charAt", 1): lambda text, place: text[place], ("take", 1): lambda text, count: text[:count],
    ("drop", 1): lambda text, count: text[count:],
    ("padLeft", 2): lambda text, length, fill: text.rjust(length, fill),
    ("padRight", 2): lambda text, length, fill: text.ljust(length, fill),
    ("toInteger", 0): lambda text: as_number(text), ("toLong", 0): lambda text: as_number(text),
    ("md5", 0): lambda text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
}  # fmt: skip
"""Methods of constant texts, by name and number of arguments."""


def truth(value: Value) -> bool:
    """Booleans only: the truth of texts differs between languages."""
    if isinstance(value, bool | int) or value is None:
        return bool(value)
    raise Unsupported("a changing condition")


def whole_number(value: Value) -> int:
    """Raises NotPlain for other values."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise Unsupported("arithmetic with a non-number or a changing value")


def as_number(value: Value) -> Value:
    """The value of a cast to int."""
    if isinstance(value, Drawn):
        return Drawn(value.low, value.high - 1) if value.real else value
    if isinstance(value, Changing):
        return value
    if isinstance(value, Text) and len(value.parts) == 1 and value.parts[0].dynamic:
        return Changing(value.parts[0])
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d{1,18}\s*", value):
        return int(value)
    return whole_number(value)


def same(sign: str, one: Value, other: Value) -> bool:
    """`==`, or `!=`."""
    if not all(isinstance(side, bool | int | str) or side is None for side in (one, other)):
        raise Unsupported("a comparison with a changing value")
    if type(one) is not type(other) and None not in (one, other):
        raise Unsupported("a comparison of a text with a number")
    return (one == other) == (sign in ("==", "===", "eq"))


def ordered(sign: str, one: Value, other: Value) -> bool:
    """`<` and similar, for numbers."""
    left, right = whole_number(one), whole_number(other)
    return {"<": left < right, "lt": left < right, ">": left > right, "gt": left > right, "<=": left <= right,
            "le": left <= right, ">=": left >= right, "ge": left >= right}[sign]  # fmt: skip


def product(sign: str, one: Value, other: Value) -> Value:
    """`*`, and `/` and `%` where all languages agree."""
    for first, second in ((one, other), (other, one)):
        if sign == "*" and isinstance(first, Drawn) and first.real and isinstance(second, int) and second > 0:
            return Drawn(first.low * second, first.high * second, real=True)
    left, right = whole_number(one), whole_number(other)
    if sign == "*":
        return left * right
    if right == 0 or left < 0 or right < 0 or (sign == "/" and left % right):
        raise Unsupported(f"{left} {sign} {right}")
    return left // right if sign == "/" else left % right
