"""How far a figure may be off, in words."""

from __future__ import annotations

import pytest

from prony.report.wording import bends, bounded, figure_good_to, good_to, per_cent


def per_s(value: float) -> str:
    return f"{value:,.0f} requests/s"


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (-0.003, 0.021, "−0.3 / +2.1 %"),
        (-0.0031, 0.0211, "−0.4 / +2.2 %"),  # outwards
        (-0.04, 0.02, "−4 / +2 %"),
        (-0.003, 0.003, "± 0.3 %"),
        (0.0, 0.021, "−0.1 / +2.1 %"),
        (-0.0004, 0.0002, "± 0.1 %"),
        (0.0, 0.0, "± 0.1 %"),
        (-0.123, 1.301, "−13 / +140 %"),
        (-0.123, 8.9, "−13 / +890 %"),
        (-0.056, 500.2, "−5.6 % / up to 510x"),
        (-0.003, None, "−0.3 % / not bounded"),
        (None, 0.021, "not bounded / +2.1 %"),
        (None, None, "not bounded"),
    ],
)
def test_both_bounds_of_a_figure(low: float | None, high: float | None, text: str) -> None:
    assert good_to(low, high) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.0, 0.021, "+2.1 %"),
        (-0.021, 0.0, "−2.1 %"),
        (-0.003, 0.021, "−0.3 / +2.1 %"),
        (-0.0002, 0.0004, "< 0.1 %"),
        (0.0, 11.2, "up to 13x"),
        (0.0, None, "not bounded above"),
        (None, 0.0, "not bounded below"),
        (-0.003, None, "−0.3 % / not bounded"),
        (None, None, "not bounded"),
    ],
)
def test_one_source_names_the_side_that_it_bends(low: float | None, high: float | None, text: str) -> None:
    assert bends(low, high) == text


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (13_835.0, -0.003, 0.021, "13,835 requests/s"),
        (193_421.0, 0.0, None, "at least 193,000 requests/s"),
        (193_421.0, -0.01, None, "at least 191,000 requests/s"),
        (193_421.0, None, 0.0, "at most 194,000 requests/s"),
        (193_421.0, None, 0.01, "at most 196,000 requests/s"),
        (193_000.0, 0.0, None, "at least 193,000 requests/s"),
        (193_421.0, None, None, "193,421 requests/s"),
        (0.0, 0.0, None, "at least 0 requests/s"),
        (193_421.0, -1.0, 5.6, "193,421 requests/s"),
    ],
)
def test_of_what_is_bounded_on_one_side_that_end_is_reported(
    value: float, low: float | None, high: float | None, text: str
) -> None:
    assert bounded(value, low, high, per_s) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (-0.003, 0.021, "13,835 requests/s  −0.3 / +2.1 %"),
        (-0.003, None, "at least 13,700 requests/s"),
        (None, 0.021, "at most 14,200 requests/s"),
        (None, None, "13,835 requests/s  not bounded"),
        (-1.0, 5.6, "13,835 requests/s  −100 / +560 %"),
    ],
)
def test_a_figure_and_how_good_it_is(low: float | None, high: float | None, text: str) -> None:
    assert figure_good_to(13_835.0, low, high, per_s) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.003, "0.3"),
        (0.0995, "10"),
        (0.1, "10"),
        (0.101, "11"),
        (1, "100"),
        (1.01, "110"),
        (147.2, "15,000"),
    ],
)
def test_bounds_are_rounded_outwards(share: float, text: str) -> None:
    assert per_cent(share) == text
