"""The check `turns`: what a duet adds to the budget."""

from __future__ import annotations

import math

import pytest

from prony.judge.checks.turns import turns
from prony.judge.finding import Finding
from prony.judge.limits import CheckLimits
from tests.judge import factory as f
from tests.judge.test_every_check import in_turns


def found(**changes: object) -> Finding:
    finding = turns(in_turns(**changes), CheckLimits())
    assert finding is not None
    return finding


def test_a_window_in_one_stretch_has_none() -> None:
    assert turns(f.healthy(), CheckLimits()) is None


def test_others_that_are_busy_took_cpu_from_this_one() -> None:
    busy = found(others_cpu_s=0.5)
    assert busy.code == "busy"
    assert busy.of("requests_per_s").up > 0
    assert busy.of("requests_per_s").down == 0


def test_cpu_time_at_rest_is_work_that_was_put_off() -> None:
    server = f.healthy().server_window
    assert server is not None
    assert server.cpu_s is not None
    late = found(resting_cpu_s=0.05 * server.cpu_s)
    assert late.code == "put_off"
    assert late.of("requests_per_s").down == pytest.approx(math.log1p(0.05 * 1.2))
    assert late.of("server_cpu_us_per_request").up == pytest.approx(math.log1p(0.05 * 1.2))


def test_a_slow_beginning_leaves_a_part_of_itself_in_the_turn() -> None:
    slow = found(left_out_per_s=0.8 * f.RATE)
    assert slow.code == "settling"
    share = 0.2 * math.exp(-1) * (1 - math.exp(-5)) / (1 - math.exp(-1))
    assert slow.of("requests_per_s").up == pytest.approx(share * -math.log(0.8))
    assert slow.of("p99_ms").down == pytest.approx(share * -math.log(0.8))
    assert found(left_out_per_s=None).code == "ok"


def test_what_was_not_read_is_a_condition() -> None:
    assert found(others_cpu_s=None).provided
