"""The tables of the section `duet`: spread of a block's ratio in two designs."""

from __future__ import annotations

import random

import pytest

from prony_selftest.duet_runs import FIGURES, Block, blocks_to_decide, duet_table, spread_interval, variance_p


def blocks(candidate: str, design: str, spread: float, shift: float, count: int) -> list[Block]:
    source = random.Random(f"{candidate}/{design}")
    return [
        Block(candidate, design, {name: source.gauss(shift, spread) for name in FIGURES})  # type: ignore[arg-type]
        for _ in range(count)
    ]


def test_both_designs_are_compared_by_figure_and_candidate() -> None:
    made = [
        *blocks("again", "duet", 0.02, 0.0, 20),
        *blocks("again", "sequential", 0.08, 0.0, 20),
        *blocks("slower", "duet", 0.02, -0.05, 20),
        *blocks("slower", "sequential", 0.08, -0.05, 20),
        Block("slower", "sequential", {}),
    ]
    table = duet_table(made)
    rows = [line for line in table.splitlines() if line.startswith("| ") and "standard deviation" not in line]
    assert len(rows) == 2 * 2 * 2
    assert "Failed blocks: 1" in table.replace("\n", " ")


def test_blocks_to_decide_grow_with_the_square_of_the_spread() -> None:
    few, many = blocks_to_decide(0.02), blocks_to_decide(0.08)
    assert 3 <= few <= 5
    assert many / few == pytest.approx(16 * 0.02**2 / 0.02**2 / 3, rel=0.6)
    low, high = spread_interval([0.01 * (-1) ** at for at in range(20)])
    assert low < 0.0103 < high


def test_equal_spreads_are_not_told_apart_and_different_ones_are() -> None:
    first = [block.logs["requests_per_s"] for block in blocks("again", "duet", 0.02, 0.0, 20)]
    assert variance_p(first, first) == pytest.approx(1.0, abs=0.05)
    assert variance_p(first, [4 * log for log in first]) < 0.001
