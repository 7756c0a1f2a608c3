"""Number formats for sentences."""

from __future__ import annotations

import math

IN_TIMES = 10.0
"""Multiple of a figure from which a bound is a factor, not per cent."""


def percent(share: float) -> str:
    """Three significant digits: 0.01234 -> '1.23 %'."""
    value = share * 100
    return f"{value:,.0f} %" if abs(value) >= 1000 else f"{value:.3g} %"


def rounded_percent(share: float, decimals: int = 0) -> str:
    """0.05 -> '5 %'."""
    return f"{share * 100:.{decimals}f} %"


def number(value: float) -> str:
    """Thousands separated, about four significant digits."""
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    magnitude = abs(value)
    if magnitude >= 1000:
        return f"{value:,.0f}"
    if magnitude >= 1:
        return f"{value:.4g}"
    return f"{value:.3g}"


def milliseconds(value_ms: float) -> str:
    """In µs, ms or s."""
    if value_ms >= 1000:
        return f"{value_ms / 1000:.3g} s"
    if value_ms >= 1:
        return f"{value_ms:.3g} ms"
    return f"{value_ms * 1000:.3g} µs"
