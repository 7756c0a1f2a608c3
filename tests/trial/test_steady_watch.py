"""The moment a warm-up in two phases became steady: read from the rows, never from where a phase was cut."""

from __future__ import annotations

from prony.trial.warming import SteadyWatch, steady_since_ms
from tests.judge import factory as f

RISING = [1000.0 * 1.2**second for second in range(12)]
COLD = [500.0] * 12


def watched(rates: list[float], *, first_s: int, cap_s: float, min_s: float = 5) -> SteadyWatch:
    watch = SteadyWatch(min_s=min_s, cap_s=cap_s, start_ms=first_s * 1000.0, hold_rows=5)
    for row in f.rows(rates, first_s=first_s):
        if watch.row(row, None):
            break
    return watch


def test_a_first_phase_that_became_level_says_when() -> None:
    first = watched([*COLD, *[9000.0] * 10], first_s=0, cap_s=30, min_s=15)
    last = watched([5000.0] * 8, first_s=22, cap_s=8)
    assert first.steady
    since_ms = steady_since_ms(first, last, same_cpus=False)
    assert since_ms is not None
    assert 5_000 <= since_ms <= 13_000  # a few rows of tolerance: shorter levels are no change points


def test_a_first_phase_cut_at_its_cap_leaves_the_moment_unknown() -> None:
    """The level after the move to other CPUs begins at the cap, which would be printed as a measurement."""
    first = watched(RISING, first_s=0, cap_s=12)
    last = watched([5000.0] * 8, first_s=12, cap_s=8)
    assert last.steady
    assert not first.steady
    assert steady_since_ms(first, last, same_cpus=False) is None


def test_on_the_same_cpus_both_phases_are_one_stretch() -> None:
    first = watched([*COLD, *[9000.0] * 3], first_s=0, cap_s=15, min_s=15)
    last = watched([9000.0] * 8, first_s=15, cap_s=8)
    assert not first.steady
    since_ms = steady_since_ms(first, last, same_cpus=True)
    assert since_ms is not None
    assert 5_000 <= since_ms <= 13_000  # a few rows of tolerance: shorter levels are no change points


def test_never_steady_has_no_moment() -> None:
    first = watched(RISING, first_s=0, cap_s=12)
    last = watched([r * 10 for r in RISING], first_s=12, cap_s=12)
    assert steady_since_ms(first, last, same_cpus=True) is None
