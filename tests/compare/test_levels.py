"""Variance within and between processes comes back; the cheapest mix is the cheapest."""

from __future__ import annotations

import numpy as np
import pytest

from prony.compare.levels import MOST_WINDOWS, Levels, levels


def drawn(within: float, between: float, processes: int = 200, windows: int = 3) -> list[list[list[float]]]:
    """Two servers, one twice as fast."""
    rng = np.random.default_rng(1)
    return [
        [
            [float(v) for v in speed * np.exp(rng.normal(0, between) + rng.normal(0, within, windows))]
            for _ in range(processes)
        ]
        for speed in (1000.0, 2000.0)
    ]


@pytest.mark.parametrize(("within", "between"), [(0.01, 0.03), (0.03, 0.01), (0.02, 0.0)])
def test_both_levels_come_back(within: float, between: float) -> None:
    found = levels(drawn(within, between), window_s=10, process_s=90)
    assert found is not None
    assert found.within == pytest.approx(within, rel=0.1)
    assert found.between == pytest.approx(between, rel=0.15, abs=0.005)
    assert (found.processes, found.windows) == (400, 3)


def made(within: float, between: float) -> Levels:
    return Levels(within, between, 3, 10, window_s=10, process_s=90)


def test_the_cheapest_mix_takes_the_least_time() -> None:
    found = made(0.02, 0.02)
    assert found.cheapest_windows == 3
    assert all(found.relative_time(windows) >= 1 for windows in range(1, 30))
    assert made(0.001, 0.02).cheapest_windows == 1
    assert made(0.02, 0.0).cheapest_windows == MOST_WINDOWS


@pytest.mark.parametrize("best", [1.45, 1.55, 2.45, 3.3, 7.5])
def test_of_the_whole_numbers_beside_the_best_the_cheaper_one_is_named(best: float) -> None:
    found = made(best / 3 * 0.02, 0.02)  # a process costs as much as nine windows
    assert all(found.relative_time(windows) >= 1 for windows in range(1, 30))


@pytest.mark.parametrize(
    "servers",
    [[], [[[1.0, 1.0]] * 2], [[[1.0]] * 5], [[[1.0, 1.0], [1.0], [1.0, 1.0]]]],
    ids=["nothing", "two processes", "one window", "unlike"],
)
def test_too_little_is_nothing(servers: list[list[list[float]]]) -> None:
    assert levels(servers, window_s=10, process_s=90) is None


def test_the_lower_end_is_zero_where_processes_do_not_differ_and_bounds_what_does() -> None:
    same = [levels(_few(seed, between=0.0), window_s=10, process_s=90) for seed in range(200)]
    zero = sum(one is not None and one.between_low == 0 for one in same)
    assert 0.94 <= zero / 200 <= 1.0
    apart = [levels(_few(seed, between=0.03), window_s=10, process_s=90) for seed in range(200)]
    below = sum(one is not None and one.between_low <= 0.03 for one in apart)
    assert 0.94 <= below / 200 <= 1.0


def _few(seed: int, between: float) -> list[list[list[float]]]:
    rng = np.random.default_rng(seed)
    return [
        [[float(v) for v in np.exp(rng.normal(0, between) + rng.normal(0, 0.02, 3))] for _ in range(6)]
        for _ in range(2)
    ]
