"""Numbers and times as a reader sees them."""

from __future__ import annotations

import math

import pytest

from prony.report.labels import label_of, named, rounded, unit_of
from prony.report.wording import (
    bytes_in_words,
    clock,
    counted,
    duration,
    number,
    ranges,
    ratio,
    significant,
)


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (8153.4, 0, "8,153"),
        (0.0, 0, "0"),
        (-0.0001, 2, "0.00"),
        (-12.5, 1, "−12.5"),
        (None, 1, "–"),
        (math.nan, 1, "–"),
        (math.inf, 1, "–"),
    ],
)
def test_number(value: float | None, decimals: int, text: str) -> None:
    assert number(value, decimals) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.41234, "0.412"), (12.345, "12.3"), (1234.5, "1,230"), (0.0, "0"), (9.999, "10.00"), (None, "–")],
)
def test_three_significant_digits(value: float | None, text: str) -> None:
    assert significant(value, 3) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1.1, "1.100"), (0.9666, "0.967"), (8.24, "8.24"), (12.4, "12"), (None, "–")]
)
def test_ratio(value: float | None, text: str) -> None:
    assert ratio(value) == text


def test_times() -> None:
    assert [clock(s) for s in (0, 61.9, 3723, -4)] == ["0:00", "1:01", "1:02:03", "0:00"]
    assert [duration(s) for s in (4.4, 89, 360, 4800, 7200)] == ["4 s", "89 s", "6 min", "80 min", "2 h"]
    assert duration(5430) == "1 h 30 min"
    assert duration(math.nan) == "an unknown time"


def test_sizes_counts_and_cpus() -> None:
    assert [bytes_in_words(n) for n in (0, 1023, 2048, 24 * 2**30)] == [
        "0 B",
        "1,023 B",
        "2.0 KiB",
        "24.0 GiB",
    ]
    assert [counted(n, "trial") for n in (1, 9)] == ["1 trial", "9 trials"]
    assert ranges((0, 1, 2, 5, 8, 9)) == "0–2, 5, 8–9"
    assert ranges(()) == "none"


def test_labels_are_short_where_a_column_needs_it_and_fall_back_to_the_judges() -> None:
    assert named("mean_ms") == "mean time, ms"
    assert named("gc_share") == "garbage collection, %"
    assert rounded("server_cpu_share", 0.974) == "97"
    assert rounded("steady_over_published", 5.52) == "5.5×"
    assert rounded("steady_over_published", None) == "–"
    assert (label_of("heap_used_mib"), unit_of("heap_used_mib")) == ("heap used at the end", "MiB")
    assert (label_of("nobody_knows"), rounded("nobody_knows", 1.234)) == ("nobody_knows", "1.23")
