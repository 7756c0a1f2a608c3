"""What a paired interval assumes of its blocks: each violation is a source of bias of the pair, by value."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import islice, pairwise

import numpy as np
import pytest

from prony.compare import Looks, Sample, compare
from prony.compare.bias import CORRELATION, ORDER, TREND, Source
from prony.compare.noninferiority import MarginTest, changes
from prony.plan.balanced import drawn_orders

NOISE = 0.005
STRETCH = 4
"""Blocks in one state of the host."""
Effect = Callable[[str, int, str], float]
"""(server, block, server of the trial before) -> of the logarithm."""


def trials(effect: Effect, blocks: int = 16, noise: float = NOISE) -> list[Sample]:
    """Two equal servers in Prony's orders, blocks 3 % apart."""
    rng, made, before = np.random.default_rng(7), [], ""
    for block, order in enumerate(islice(drawn_orders(2, random.Random(3)), blocks)):
        level = rng.normal(0, 0.03)
        for position, number in enumerate(order):
            server = "ab"[number]
            log = level + rng.normal(0, noise) + effect(server, block, before)
            made.append(Sample(server, block, 1000 * math.exp(log), position=position))
            before = server
    return made


def found(effect: Effect, **more: float) -> dict[str, Source]:
    (pair,) = compare(trials(effect, **more)).pairs  # type: ignore[arg-type]
    return {source.name: source for source in pair.sources}


def grows(server: str, block: int, _before: str) -> float:
    return -0.01 * block if server == "a" else 0.0


def two_states(server: str, block: int, _before: str) -> float:
    return 0.03 * (-1) ** (block // STRETCH) if server == "a" else 0.0


def carries_over(_server: str, _block: int, before: str) -> float:
    return -0.1 if before == "a" else 0.0


def nothing(_server: str, _block: int, _before: str) -> float:
    return 0.0


def test_blocks_that_are_what_an_interval_assumes_bound_nothing() -> None:
    assert found(nothing) == {}
    assert found(nothing, noise=0.0) == {}


def test_data_that_grows_bounds_the_ratio_from_the_first_to_the_last_block() -> None:
    source = found(grows)[TREND]
    assert source.down == source.up == pytest.approx(0.01 * 7.5, rel=0.2)
    assert source.up > 0.01 * 7.5 * 0.95
    assert found(grows).keys() == {TREND}, "what the trend explains is no correlation"


def test_blocks_that_resemble_their_neighbours_count_as_fewer() -> None:
    (pair,) = compare(trials(two_states)).pairs
    (source,) = pair.sources
    assert source.name == CORRELATION
    assert pair.low is not None
    assert pair.ratio is not None
    assert pair.high is not None
    # As many blocks as stretches: twice the width, and fewer degrees of freedom.
    half = math.log(pair.high / pair.low) / 2
    assert source.down == pytest.approx(source.up, rel=0.2)
    assert half < source.up < 4 * half


def test_a_trial_that_acts_on_the_next_bounds_the_server_that_follows_it() -> None:
    """Of two servers the one that follows itself less often gains by a carry-over of the other."""
    samples = trials(carries_over)
    order = [one.server for one in samples]
    after_a = {s: [x == "a" for x, y in pairwise(order) if y == s] for s in "ab"}
    moved = -0.1 * (sum(after_a["a"]) / len(after_a["a"]) - sum(after_a["b"]) / len(after_a["b"]))
    assert abs(moved) > 0.005, "these orders differ"
    source = found(carries_over)[ORDER]
    near, far = (source.down, source.up) if moved > 0 else (source.up, source.down)
    assert near == pytest.approx(abs(moved), abs=0.01)
    assert far == 0


@pytest.mark.parametrize("effect", [grows, two_states])
def test_what_is_found_keeps_a_false_difference_open(effect: Effect) -> None:
    samples = trials(effect, blocks=19)
    (pair,) = compare(samples).pairs
    assert not pair.differs
    assert pair.worst_low is not None
    assert pair.worst_high is not None
    assert pair.worst_low < 1 < pair.worst_high


def test_a_gate_has_them_too() -> None:
    test = MarginTest("b", "a", {"p50_ms": False}, 0.03)
    (made,) = changes({"p50_ms": trials(grows)}, test, Looks(5, 20)).figures
    assert TREND in {source.name for source in made.sources}


def test_what_is_not_paired_has_no_blocks_to_test() -> None:
    apart = [one for one in trials(grows) if (one.server == "a") == (one.block < 8)]
    (pair,) = compare(apart).pairs
    assert not pair.paired
    assert pair.sources == ()
