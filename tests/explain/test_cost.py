"""What a profiler cost, from made-up seconds: a slow process is no dear profiler."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from prony.evidence.host import HostRow
from prony.evidence.trial import Evidence, Phase, WarmUp
from prony_explain.before import LEAST_ROWS, MOST_ROWS, AgainstBefore, against_before
from prony_explain.cost import ProfilerCost, TrialCost, profiler_cost
from tests.judge import factory as f

WINDOW = 10


def seconds(
    before: list[float], within: float, *, cpu: tuple[float, float] = (1.0, 1.0), steady: bool = True
) -> Evidence:
    """A server at these rates while it settled, and at another in the window; CPU seconds per second."""
    rates = [*before, *[within] * WINDOW]
    split = len(before) * 1000.0
    whole = f.healthy()
    assert whole.engine is not None
    return whole.model_copy(
        update={
            "engine": whole.engine.model_copy(update={"rows": f.rows(rates)}),
            "host_rows": tuple(
                HostRow(t_ms=(at + 1) * 1000.0, duration_ms=1000.0, server_cpu=cpu[at >= len(before)])
                for at in range(len(rates))
            ),
            "phases": (
                Phase(name="settle", start_ms=0.0, end_ms=split, server_cpus=(0,)),
                Phase(name="window", start_ms=split, end_ms=len(rates) * 1000.0, server_cpus=(0,)),
            ),
            "warm_up": WarmUp(method="all-cpus", cap_s=30, steady=steady),
        }
    )


def trial(rate: float, against: float | None = 1.0) -> TrialCost:
    """Of a server that has one CPU: what a request costs is its throughput's inverse."""
    before = None if against is None else AgainstBefore(against, 1 / against)
    return TrialCost(rate, 1e6 / rate, before)


def cost(profiled: TrialCost, *measured: TrialCost) -> ProfilerCost:
    return profiler_cost(measured, profiled)


QUIET = (trial(1000, 1.00), trial(1040, 1.01), trial(960, 0.99))


def test_the_window_is_held_against_the_newest_seconds_before_it() -> None:
    found = against_before(seconds([300.0] * 3 + [1000.0] * MOST_ROWS, 900.0, cpu=(0.8, 0.9)))
    assert found is not None
    assert found.rate == pytest.approx(0.9)
    assert found.cpu_us == pytest.approx(0.9 / 0.8 / 0.9)


def test_without_seconds_before_on_the_same_cpus_there_is_nothing_to_compare() -> None:
    enough = seconds([1000.0] * LEAST_ROWS, 900.0)
    assert against_before(enough) is not None
    assert against_before(seconds([1000.0] * (LEAST_ROWS - 1), 900.0)) is None
    assert against_before(seconds([1000.0] * LEAST_ROWS, 900.0, steady=False)) is None
    settle, window = enough.phases
    elsewhere = settle.model_copy(update={"server_cpus": (0, 1)})
    for phases in ((window,), (settle,), (elsewhere, window)):
        assert against_before(enough.model_copy(update={"phases": phases})) is None
    unread = tuple(row.model_copy(update={"server_cpu": None}) for row in enough.host_rows)
    assert against_before(enough.model_copy(update={"host_rows": unread})) == AgainstBefore(0.9, None)


def test_a_process_that_is_slow_by_itself_is_no_cost_of_the_profiler() -> None:
    found = cost(trial(840, 0.97), *QUIET)
    assert found.rate_change == pytest.approx(-0.16)
    assert found.rate_within is not None
    assert found.rate_within.change == pytest.approx(-0.03)
    assert not found.costly
    # s = 0.01 of three trials: 4.303 x 0.01 x sqrt(4/3) = 0.0497
    changes = ["-3.0", "-8.0", "+2.0", "+3.1", "-1.9", "+8.1", "-16.0", "+18.9"]
    assert re.findall(r"[-+][\d.]+", found.sentence) == changes


def test_a_profiler_that_costs_much_is_found_in_a_process_that_is_fast_by_itself() -> None:
    found = cost(trial(1000, 0.85), *QUIET)
    assert found.rate_change == pytest.approx(0)
    assert found.costly


def test_the_other_processes_judge_where_the_seconds_before_say_too_little() -> None:
    noisy = (trial(1000, 0.9), trial(1000, 1.0), trial(1000, 1.1))
    found = cost(trial(1000, 0.8), *noisy)
    assert found.rate_within is not None
    assert not found.rate_within.judges
    assert not found.costly
    assert cost(trial(840, 1.0), *noisy).costly


@pytest.mark.parametrize(
    ("profiled", "measured"),
    [(trial(840, None), QUIET), (trial(840, 0.97), tuple(trial(one.rate or 0, None) for one in QUIET))],
)
def test_without_them_only_the_other_processes_are_told(
    profiled: TrialCost, measured: tuple[TrialCost, ...]
) -> None:
    found = cost(profiled, *measured)
    assert found.costly
    assert (found.rate_within, found.cpu_within) == (None, None)
    assert re.findall(r"[-+]?[\d.]+", found.sentence) == ["-16.0", "+18.9", "10"]


def test_one_measured_trial_has_no_spread() -> None:
    found = cost(trial(840, 0.97), trial(1000))
    assert found.rate_within is not None
    assert (found.rate_within.low, found.rate_within.judges) == (None, False)
    assert "-3.0 %" in found.sentence
    assert found.costly


def test_nothing_measured_is_said() -> None:
    found = cost(trial(840))
    assert (found.rate_change, found.costly) == (None, True)
    only_rate = cost(replace(trial(990), cpu_us=None), *QUIET)
    assert (only_rate.cpu_change, only_rate.costly) == (None, False)
