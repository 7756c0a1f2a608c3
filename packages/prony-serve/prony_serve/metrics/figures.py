"""A figure's name and value in Prometheus's base units: p99_ms -> p99_seconds. Pure."""

from __future__ import annotations

MIB = 2**20
GIB = 2**30
_ENDS: tuple[tuple[str, str, float], ...] = (
    ("_per_s_per_gib", "_per_second_per_byte", 1 / GIB),
    ("_us_per_request", "_per_request_seconds", 1e-6),
    ("_per_s", "_per_second", 1.0),
    ("_ms", "_seconds", 1e-3),
    ("_s", "_seconds", 1.0),
    ("_mib", "_bytes", MIB),
    ("_mb", "_bytes", 1e6),
    ("_share", "_ratio", 1.0),
)
"""Suffix of a figure -> suffix of the metric, factor of the value."""


def in_base_units(figure: str) -> tuple[str, float]:
    """The metric's name, and the factor from the figure's unit to the base unit."""
    for end, new, factor in _ENDS:
        if figure.endswith(end):
            return figure.removesuffix(end) + new, factor
    return figure, 1.0
