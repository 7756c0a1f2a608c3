"""Exclusions that depend on the value make no difference between equal servers; others unmake none."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from prony.compare import Sample, Verdict, compare

DIFFERENT = {Verdict.FASTER, Verdict.SLOWER}


def equal_but_for_slow_starts(rng: np.random.Generator, blocks: int, share: float) -> list[Sample]:
    """Two servers with the same slow starts, of which one's are judged invalid."""
    samples = []
    for server in ("a", "b"):
        for block in range(blocks):
            slow = rng.random() < share
            value = 1000 * math.exp(rng.normal(0, 0.02) - (0.2 if slow else 0.0))
            samples.append(Sample(server, block, value, valid=not (slow and server == "a"), why="steady"))
    return samples


@pytest.mark.parametrize("share", [0.15, 0.5])
def test_equal_servers_of_which_one_has_its_slow_starts_excluded(share: float) -> None:
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(150):
        (pair,) = compare(equal_but_for_slow_starts(rng, 20, share)).pairs
        wrong += pair.verdict in DIFFERENT
    assert wrong <= 15


def samples(a: list[float | None], b: list[float | None], **more: Any) -> list[Sample]:
    """None: an excluded trial."""
    return [
        Sample(name, block, value, valid=value is not None, why="errors", **(more if value is None else {}))
        for name, values in (("a", a), ("b", b))
        for block, value in enumerate(values)
    ]


TEN = [1000.0 + 3 * at for at in range(10)]


def test_a_large_difference_survives_one_excluded_trial_in_ten() -> None:
    (pair,) = compare(samples([None, *(2 * v for v in TEN[1:])], list(TEN))).pairs
    assert pair.verdict is Verdict.FASTER


def test_more_than_a_fifth_excluded_is_no_verdict_and_says_so() -> None:
    (pair,) = compare(samples([None, None, None, *(2 * v for v in TEN[3:])], list(TEN))).pairs
    assert pair.verdict is Verdict.INCONCLUSIVE
    assert "3 of 10 trials of a and 0 of 10 trials of b were excluded" in pair.sentence
    assert "more trials per server" not in pair.sentence


def test_a_small_difference_falls_with_one_excluded_trial() -> None:
    close = [v * 1.03 for v in TEN]
    (whole,) = compare(samples(list(close), list(TEN))).pairs
    assert whole.verdict is Verdict.FASTER
    wide: list[float | None] = [None, *close[1:]]
    (pair,) = compare(samples(wide, [700.0, *TEN[1:]])).pairs
    assert pair.verdict is Verdict.INCONCLUSIVE


def test_a_neighbour_is_no_reason_that_depends_on_the_server() -> None:
    a: list[float | None] = [None, None, None, *(2 * v for v in TEN[3:])]
    (pair,) = compare(samples(a, list(TEN), disturbed=True)).pairs
    assert pair.verdict is Verdict.FASTER


def test_the_ratio_without_suspects_is_given_where_it_differs() -> None:
    plain = samples(list(TEN), list(TEN))
    marked = [s._replace(value=1300.0, suspect=True) if s.server == "a" and s.block < 3 else s for s in plain]
    (pair,) = compare(marked).pairs
    assert "without suspect trials 1.00x" in pair.sentence
    same = [s._replace(suspect=True) if s.block < 3 else s for s in plain]
    (pair,) = compare(same).pairs
    assert "without suspect" not in pair.sentence
