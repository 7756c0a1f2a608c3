"""Intervals of the scalability law in small; docs/truth.md has the table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from prony.cli.sweep import usual_trials
from prony_selftest import laws
from prony_selftest.laws import LAWS, coverage


@pytest.mark.rarely
def test_the_intervals_of_three_trials_per_number_cover() -> None:
    covered = coverage(LAWS[0], 3, 0.04, 20)
    assert all(rate.could_be(0.93, 1.0) for rate in covered.values())


@pytest.mark.rarely
def test_an_interval_at_another_truth_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """So this simulation can tell."""
    drawn = laws.draw
    monkeypatch.setattr(laws, "draw", lambda _law, *rest: drawn(LAWS[0], *rest))
    assert not coverage(replace(LAWS[0], alpha=0.07), 3, 0.04, 12)["α"].could_be(0.5, 1.0)


def test_a_sweep_that_fits_the_law_measures_three_trials_per_number() -> None:
    assert usual_trials((1, 2, 4, 8), quick=False) == 3
    assert usual_trials((1, 2, 4), quick=False) == usual_trials((1, 2, 4, 8), quick=True) == 1
