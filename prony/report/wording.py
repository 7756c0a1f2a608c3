"""Numbers, durations and counts as a reader sees them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from prony.numbers import IN_TIMES

ABSENT = "–"
"""Printed where a figure could not be read; never zero."""


def number(value: float | None, decimals: int = 0) -> str:
    """A number with thousands separated and this many decimals; a dash when it is absent or not finite."""
    if value is None or not math.isfinite(value):
        return ABSENT
    text = f"{value:,.{decimals}f}"
    return text.replace("-", "\N{MINUS SIGN}") if value < 0 and text.strip("-0.,") else text.lstrip("-")


def significant(value: float | None, digits: int = 4) -> str:
    """A number with this many significant digits, thousands separated, never in scientific notation."""
    if value is None or not math.isfinite(value):
        return ABSENT
    if value == 0:
        return "0"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return number(round(value, decimals), max(0, decimals))


def ratio(value: float | None) -> str:
    """A ratio: three decimals near 1, fewer when large (8.2×)."""
    if value is None or not math.isfinite(value):
        return ABSENT
    return f"{value:.3f}" if value < 2 else f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def clock(seconds: float) -> str:
    """Elapsed time as m:ss, or h:mm:ss from an hour on."""
    whole = max(0, int(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, secs = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{secs:02}" if hours else f"{minutes}:{secs:02}"


def duration(seconds: float) -> str:
    """A length of time in words: 45 s, 6 min, 1 h 20 min."""
    if not math.isfinite(seconds):
        return "an unknown time"
    if seconds < 90:
        return f"{max(0, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def bytes_in_words(value: float | None) -> str:
    """Bytes in binary units: 15.6 GiB."""
    if value is None or not math.isfinite(value):
        return ABSENT
    size = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{number(size, 0 if unit == 'B' or size >= 100 else 1)} {unit}"
        size /= 1024
    return f"{number(size, 1)} TiB"


def counted(n: int, singular: str, plural: str | None = None) -> str:
    """1 trial, 3 trials."""
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


def join(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1] if words else ""


MOST_NAMED = 4


def join_few(words: Sequence[str]) -> str:
    """As `join`; of more than four the first three, and how many more."""
    more = len(words) - MOST_NAMED + 1
    return join(words if more <= 1 else [*words[: MOST_NAMED - 1], f"{more} more"])


def within(where: str, text: str) -> str:
    return f"{where}: {text}" if where else text


def ranges(numbers: tuple[int, ...]) -> str:
    """CPU numbers as people write them: 0–3, 8."""
    if not numbers:
        return "none"
    runs: list[list[int]] = []
    for n in sorted(set(numbers)):
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in runs)


_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Without what a terminal or a page obeys (C0, C1, direction of text); lines and tabs stay."""
    return text if text.isprintable() else _OBEYED.sub("\N{REPLACEMENT CHARACTER}", text)


def escaped(text: str, more: str = "") -> str:
    """On a single line, escaped for Markdown and HTML. `more`: further characters to escape."""
    plain = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    marks = rf"[\\`*|{re.escape(more)}]|(?<!\w)_|_(?!\w)"  # within a word _ has no meaning
    return re.sub(marks, r"\\\g<0>", " ".join(plain.split())).replace("](", "]\\(")


MINUS = "\N{MINUS SIGN}"
FINEST = 0.001
"""Finest printed uncertainty: 0.1 %."""
UNBOUNDED = "not bounded"
SAFE_DIGITS = 3
"""Of a figure that is only known to be at least or at most so much."""
LOOSE = 1.0
"""A figure that may be more than this share higher is only known to be at least so much, ..."""
SLACK = 0.5
"""... if it is not this share lower: *at least 0* says nothing."""
EXACT = 1e-9
"""Share of a digit lost to floating point, which must not round a bound up."""


def good_to(low: float | None, high: float | None) -> str:
    """Both bounds of a figure: `−0.3 / +2.1 %`, `± 0.3 %`, `−0.3 % / not bounded`, `−3 % / up to 12x`."""
    if low is None and high is None:
        return UNBOUNDED
    below = UNBOUNDED if low is None else f"{MINUS}{per_cent(max(FINEST, -low))} %"
    above = UNBOUNDED if high is None else _above(max(FINEST, high))
    if low is None or not above.startswith("+"):
        return f"{below} / {above}"
    return f"± {above[1:]}" if below[1:] == above[1:] else f"{below.removesuffix(' %')} / {above}"


def bends(low: float | None, high: float | None) -> str:
    """A source's bound: as `good_to`, on the affected side only: `+2.1 %`; `< 0.1 %`."""
    down, up = _size(low), _size(high)
    if max(down, up) < FINEST:
        return f"< {per_cent(FINEST)} %"
    if down < FINEST:
        return _above(up) if high is not None else f"{UNBOUNDED} above"
    if up < FINEST:
        return f"{MINUS}{per_cent(down)} %" if low is not None else f"{UNBOUNDED} below"
    return good_to(low, high)


def bounded(value: float, low: float | None, high: float | None, written: Callable[[float], str]) -> str:
    """`13,835 requests/s`, but `at least 192,000 requests/s` where nothing near bounds it above."""
    if low is not None and low > -SLACK and _is_far(high):
        return f"at least {written(_safe(value * (1 + low), math.floor))}"
    if high is not None and low is None:
        return f"at most {written(_safe(value * (1 + high), math.ceil))}"
    return written(value)


def figure_good_to(
    value: float, low: float | None, high: float | None, written: Callable[[float], str], gap: str = "  "
) -> str:
    """The figure and how good it is: `13,835 requests/s  −0.3 / +2.1 %`, `at least 192,000 requests/s`."""
    range_words = bounded(value, low, high, written)
    return f"{range_words}{gap}{good_to(low, high)}" if range_words == written(value) else range_words


def _is_far(high: float | None) -> bool:
    return high is None or high > LOOSE


def signed(ratio: float, digits: int = 1) -> str:
    """A ratio as a change in per cent: 0.988 is −1.2 %."""
    text = f"{100 * (ratio - 1):+.{digits}f} %"
    return text.replace("-", MINUS)


def per_cent(share: float) -> str:
    """A bound, rounded away from zero: two digits, at most one decimal."""
    value = 100 * abs(share)
    step = 10.0 ** max(-1, math.floor(math.log10(value) + EXACT) - 1) if value > 0 else 1.0
    return number(math.ceil(value / step - EXACT) * step, 1).removesuffix(".0")


def _above(high: float) -> str:
    """`+2.1 %`; from ten times the figure on `up to 12x`."""
    if 1 + high < IN_TIMES:
        return f"+{per_cent(high)} %"
    return f"up to {per_cent((1 + high) / 100)}x"


def _size(bound: float | None) -> float:
    return math.inf if bound is None else abs(bound)


def _safe(value: float, direction: Callable[[float], int]) -> float:
    """Rounded to a few digits, in the direction in which the bound still holds."""
    if value <= 0:
        return value
    unit = 10.0 ** (math.floor(math.log10(value)) - SAFE_DIGITS + 1)
    nearest = round(value / unit)
    return (nearest if abs(value / unit - nearest) < EXACT else direction(value / unit)) * unit
