"""The true percentiles of the delays, held against samples, and the table that is made of differences."""

from __future__ import annotations

from math import exp
from random import Random

import pytest

from bench.accuracy import DELAYS, bimodal, exponential, fixed, half_width_ms, lognormal, plan, sheet
from prony.judge.histogram import decode
from tests.judge.factory import of_values

SIZE = 20_000


def drawn(name: str, random: Random) -> float:
    if name.startswith("exponential"):
        return random.expovariate(1 / 10)
    if name.startswith("lognormal"):
        return 10 * exp(random.gauss(0, 0.5))
    return 50.0 if random.random() < 0.15 else 5.0


@pytest.mark.parametrize(
    "delay", [exponential(10), lognormal(10, 0.5), bimodal(5, 50, 0.15)], ids=lambda delay: delay.name
)
def test_quantiles_are_those_of_the_distribution(delay) -> None:  # type: ignore[no-untyped-def]
    random = Random(1)
    values = sorted(drawn(delay.name, random) for _ in range(SIZE))
    for p in (0.5, 0.75, 0.9, 0.99, 0.999):
        off = abs(values[round(p * SIZE) - 1] - delay.quantile_ms(p))
        assert off <= 2 * half_width_ms(delay, p, SIZE), p


def test_a_point_has_no_chance() -> None:
    assert half_width_ms(fixed(10), 0.5, 100) == 0
    assert fixed(10).quantile_ms(0.99) == 10


def test_the_option_says_what_the_formula_says() -> None:
    assert [delay.option for delay in DELAYS] == [
        "fixed:10ms",
        "exp:10ms",
        "lognormal:10ms,0.5",
        "bimodal:5ms,50ms,0.15",
    ]


def test_a_line_is_the_difference() -> None:
    recorded = decode(of_values([10_050_000], 100))
    (first, *_) = sheet(fixed(10), {"epoll": recorded}).lines
    assert first[:2] == ("p50", "10.000")
    assert 48 <= float(first[2]) <= 64  # a histogram of three digits: up to 0.1 % of 10 ms


def test_the_window_lies_in_the_run() -> None:
    made = plan("http://127.0.0.1:1", "epoll", 0, 3)
    window = made["window"]
    assert window["warmup_ms"] + window["duration_ms"] == made["stop"]["after_ms"]
