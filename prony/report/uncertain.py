"""How far a figure may be off, in words: relative bounds as per cent, and a figure of which only one end is
known. Pure.

Bounds are rounded outwards, so what is printed still holds. None: not bounded on that side.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from prony.report.wording import number

MINUS = "\N{MINUS SIGN}"
FINEST = 0.001
"""Nothing is said to be known better than to 0.1 %."""
UNBOUNDED = "not bounded"
SAFE_DIGITS = 3
"""Of a figure that is only known to be at least or at most so much."""
EXACT = 1e-9
"""Of a digit: rounding of floating point, which moves no bound up to the next one."""


def good_to(low: float | None, high: float | None) -> str:
    """Both bounds of a figure: `−0.3 / +2.1 %`, `± 0.3 %`, `−0.3 % / not bounded`, `not bounded`."""
    if low is None and high is None:
        return UNBOUNDED
    down = None if low is None else per_cent(max(FINEST, -low))
    up = None if high is None else per_cent(max(FINEST, high))
    if down is None:
        return f"{UNBOUNDED} / +{up} %"
    if up is None:
        return f"{MINUS}{down} % / {UNBOUNDED}"
    return f"± {up} %" if down == up else f"{MINUS}{down} / +{up} %"


def bends(low: float | None, high: float | None) -> str:
    """What one source may do: as `good_to`, but only the side that it bends: `+2.1 %`; `< 0.1 %`."""
    down, up = _size(low), _size(high)
    if max(down, up) < FINEST:
        return f"< {per_cent(FINEST)} %"
    if down < FINEST:
        return f"+{per_cent(up)} %" if high is not None else f"{UNBOUNDED} above"
    if up < FINEST:
        return f"{MINUS}{per_cent(down)} %" if low is not None else f"{UNBOUNDED} below"
    return good_to(low, high)


def bounded(value: float, low: float | None, high: float | None, written: Callable[[float], str]) -> str:
    """A figure as far as it is known, `written` with its unit: `13,835 requests/s`, but `at least 192,000
    requests/s` where nothing bounds it above, `at most …` where nothing does below.
    """
    if low is not None and high is None:
        return f"at least {written(_safe(value * (1 + low), math.floor))}"
    if high is not None and low is None:
        return f"at most {written(_safe(value * (1 + high), math.ceil))}"
    return written(value)


def figure_good_to(
    value: float, low: float | None, high: float | None, written: Callable[[float], str], gap: str = "  "
) -> str:
    """The figure and how good it is: `13,835 requests/s  −0.3 / +2.1 %`, `at least 192,000 requests/s`."""
    said = bounded(value, low, high, written)
    return said if (low is None) is not (high is None) else f"{said}{gap}{good_to(low, high)}"


def per_cent(share: float) -> str:
    """A bound, rounded away from zero: two digits, at most one of them a decimal."""
    value = 100 * abs(share)
    step = 10.0 ** max(-1, math.floor(math.log10(value) + EXACT) - 1) if value > 0 else 1.0
    return number(math.ceil(value / step - EXACT) * step, 1).removesuffix(".0")


def _size(bound: float | None) -> float:
    return math.inf if bound is None else abs(bound)


def _safe(value: float, direction: Callable[[float], int]) -> float:
    """Rounded to a few digits, in the direction in which the bound still holds."""
    if value <= 0:
        return value
    unit = 10.0 ** (math.floor(math.log10(value)) - SAFE_DIGITS + 1)
    nearest = round(value / unit)
    return (nearest if abs(value / unit - nearest) < EXACT else direction(value / unit)) * unit
