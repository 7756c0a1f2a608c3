"""Entry 23 bounds the rate of false differences: a method that errs in 40 % fails it."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from prony.compare import Sample, comparison, ratio
from prony.compare.false_differences import FalseDifferences, false_differences
from prony_selftest.faults.several_trials import self_failures


def made() -> FalseDifferences:
    source = random.Random(3)
    trials = [Sample("a", block, 1000 * math.exp(source.gauss(0, 0.02))) for block in range(20)]
    found = false_differences(trials, each=5, experiments=400, seed=20)
    assert found is not None
    return found


def test_the_method_as_it_is_passes() -> None:
    assert self_failures(made()) == ()


def test_one_that_errs_in_a_quarter_of_the_experiments_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def narrow(*args: object, **more: object) -> object:
        found = ratio(*args, **more)  # type: ignore[arg-type]
        assert found.error is not None
        return replace(
            found,
            low=found.ratio * math.exp(-0.95 * found.error),
            high=found.ratio * math.exp(0.95 * found.error),
        )

    monkeypatch.setattr(comparison, "ratio", narrow)
    found = made()
    assert found.share == pytest.approx(0.25, abs=0.1)
    (failure,) = self_failures(found)
    assert failure.startswith("the same server was called different in up to")


def test_without_trials_that_count_there_is_no_bound() -> None:
    assert self_failures(None) == ("fewer than 10 of 20 trials of one server count",)
