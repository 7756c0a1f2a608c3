"""Numbers as JavaScript reads and writes them."""

from __future__ import annotations

import math
import re
from decimal import Decimal

BLANKS = " \t\n\v\f\r\u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""JavaScript's white space."""
DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
RADIX = re.compile(r"0(?:[xX][0-9a-fA-F]+|[bB][01]+|[oO][0-7]+)", re.ASCII)


def cast(text: str) -> float | None:
    """The number that csv-parse, Artillery's reader of CSV, makes of a value; None: it stays a text.

    csv-parse takes what `Number(text) - parseFloat(text) + 1 >= 0` holds for, and keeps
    `parseFloat(text)`: 007 is 7, and 0x1F is 0.
    """
    plain = text.strip(BLANKS)
    if RADIX.fullmatch(plain):
        return 0.0
    if not DECIMAL.fullmatch(plain):
        return None
    value = float(plain)
    return value if math.isfinite(value) else None


def number_text(value: float) -> str:
    """As `String(value)` (ECMAScript, Number::toString)."""
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(float(value))).normalize().as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    point = len(text) + exponent
    if len(text) <= point <= 21:
        written = text + "0" * (point - len(text))
    elif 0 < point <= 21:
        written = f"{text[:point]}.{text[point:]}"
    elif -6 < point <= 0:
        written = "0." + "0" * -point + text
    else:
        fraction = f".{text[1:]}" if len(text) > 1 else ""
        written = f"{text[0]}{fraction}e{point - 1:+d}"
    return ("-" if sign else "") + written
