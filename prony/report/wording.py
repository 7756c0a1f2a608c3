"""Numbers, durations and counts as a reader sees them."""

from __future__ import annotations

import math
from collections.abc import Sequence

ABSENT = "–"
"""Stands where a figure could not be read. Never a zero."""


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
    """A ratio: three decimals around one, fewer when it is large (8.2×)."""
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
    """a, b and c."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1] if words else ""


def within(where: str, text: str) -> str:
    """The text with its place before it, where it has one."""
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
