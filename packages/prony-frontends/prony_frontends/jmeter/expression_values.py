"""What a plain expression of a plan may hold: numbers, texts, what is drawn; methods of texts and
arithmetic.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass

from prony_frontends.jmeter.functions import Text, TextPart


@dataclass(frozen=True, slots=True)
class Named:
    """A class, an object or one of its methods, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """A random number: whole from `low` to `high`, or (`real`) from `low` up to `high`."""

    low: int
    high: int
    real: bool = False


@dataclass(frozen=True, slots=True)
class Bytes:
    """Of a text, in UTF-8."""

    text: Text


@dataclass(frozen=True, slots=True)
class Moment:
    """The present time, or (with a pattern) what writes a time."""

    pattern: str = ""
    shift_s: int = 0
    day: bool = False
    """Without the time of the day."""


@dataclass(frozen=True, slots=True)
class Changing:
    """A whole number that the run knows: what the engine's placeholder stands for, and so much more."""

    part: TextPart
    plus: int = 0


@dataclass(frozen=True, slots=True)
class Json:
    """A place in the body of the response: a pointer of RFC 6901."""

    pointer: str


Value = int | str | bool | None | Text | Named | Drawn | Bytes | Moment | Changing | Json | tuple[str, ...]


class NotPlain(Exception):
    """Something that is not worked out here; what, in the plan's words."""


def _substring(text: str, begin: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if not 0 <= begin <= stop <= len(text):
        raise ValueError(f"{begin} to {stop} of {len(text)} characters")
    return text[begin:stop]


METHODS: dict[tuple[str, int], Callable[..., Value]] = {
    ("trim", 0): str.strip,
    ("length", 0): len,
    ("size", 0): len,
    ("isEmpty", 0): lambda text: not text,
    ("reverse", 0): lambda text: text[::-1],
    ("capitalize", 0): lambda text: text[:1].upper() + text[1:],
    ("substring", 1): _substring,
    ("substring", 2): _substring,
    ("replace", 2): lambda text, old, new: text.replace(old, new),
    ("contains", 1): lambda text, part: part in text,
    ("startsWith", 1): lambda text, part: text.startswith(part),
    ("endsWith", 1): lambda text, part: text.endswith(part),
    ("indexOf", 1): lambda text, part: text.find(part),
    ("equals", 1): lambda text, other: text == other,
    ("equalsIgnoreCase", 1): lambda text, other: text.lower() == other.lower(),
    ("charAt", 1): lambda text, place: text[place],
    ("take", 1): lambda text, count: text[:count],
    ("drop", 1): lambda text, count: text[count:],
    ("padLeft", 2): lambda text, length, fill: text.rjust(length, fill),
    ("padRight", 2): lambda text, length, fill: text.ljust(length, fill),
    ("toInteger", 0): lambda text: as_number(text),
    ("toLong", 0): lambda text: as_number(text),
    ("md5", 0): lambda text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
}
"""Of a text that is known: by name and number of arguments."""


def truth(value: Value) -> bool:
    """Texts are true in one language and not in another."""
    if isinstance(value, bool | int) or value is None:
        return bool(value)
    raise NotPlain("a condition that changes")


def whole_number(value: Value) -> int:
    """Raises NotPlain for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise NotPlain("arithmetic with what is no number, or changes")


def as_number(value: Value) -> Value:
    """As a cast to int."""
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
        raise NotPlain("a comparison with what changes")
    if type(one) is not type(other) and None not in (one, other):
        raise NotPlain("a comparison of a text with a number")
    return (one == other) == (sign in ("==", "===", "eq"))


def ordered(sign: str, one: Value, other: Value) -> bool:
    """`<` and so on, of numbers."""
    left, right = whole_number(one), whole_number(other)
    return {"<": left < right, "lt": left < right, ">": left > right, "gt": left > right, "<=": left <= right,
            "le": left <= right, ">=": left >= right, "ge": left >= right}[sign]  # fmt: skip


def product(sign: str, one: Value, other: Value) -> Value:
    """`*`, and `/` and `%` where every language says the same."""
    for first, second in ((one, other), (other, one)):
        if sign == "*" and isinstance(first, Drawn) and first.real and isinstance(second, int) and second > 0:
            return Drawn(first.low * second, first.high * second, real=True)
    left, right = whole_number(one), whole_number(other)
    if sign == "*":
        return left * right
    if right == 0 or left < 0 or right < 0 or (sign == "/" and left % right):
        raise NotPlain(f"{left} {sign} {right}")
    return left // right if sign == "/" else left % right
