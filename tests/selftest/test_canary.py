"""The table of the section `canary`: what a covariate leaves of a block's ratio."""

from __future__ import annotations

import math
import random
from statistics import correlation

import pytest
from scipy import stats

from prony_selftest.canary_runs import CLIENT, FIGURES, Block, CanaryTrial, canary_table, corrected


def blocks(count: int, shared: float, own: float) -> list[Block]:
    """The speed of the host moves a trial's figures by `shared`, and its canary with it; `own` is theirs."""
    source = random.Random(count)

    def trial() -> CanaryTrial:
        speed = source.gauss(0, shared)
        logs = {name: speed + source.gauss(0, own) for name in (*FIGURES, CLIENT)}
        return CanaryTrial(speed, logs)

    return [(trial(), trial()) for _ in range(count)]


def test_a_canary_that_tells_leaves_little_and_one_that_does_not_leaves_all() -> None:
    made = {"told": blocks(20, 0.1, 0.02), "not told": blocks(20, 0.001, 0.1), "few": blocks(3, 0.1, 0.1)}
    rows = [line.split(" | ") for line in canary_table(made).splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 2 * len(FIGURES), "none of three blocks"
    for row in rows:
        plain, left = float(row[6].split(" ")[0]), float(row[7])
        if row[0] == "| told":
            assert float(row[4]) > 0.95
            assert left < plain / 3
            assert int(row[9].strip(" |")) < int(row[8])
        else:
            assert 0.8 * plain < left < 1.1 * plain


def test_what_is_left_is_the_residual_of_a_regression() -> None:
    source = random.Random(2)
    covariates = [source.gauss(0, 1) for _ in range(12)]
    logs = [0.5 * covariate + source.gauss(0, 1) for covariate in covariates]
    line = stats.linregress(covariates, logs)
    squares = sum((y - line.intercept - line.slope * x) ** 2 for x, y in zip(covariates, logs, strict=True))
    assert corrected(logs, correlation(covariates, logs)) == pytest.approx(math.sqrt(squares / 10))
