"""The promises of docs/truth.md about gates in small: seeded, and wide enough not to flake."""

from __future__ import annotations

import pytest

from prony.compare.noninferiority import Change
from prony_selftest.gate_rule import (
    IN_A_GATE,
    MARGIN,
    SLOWER,
    Draw,
    gate_tables,
    gates,
    of_violation,
    of_world,
    share,
    single_runs,
)
from prony_selftest.gate_runs import RealGate, gates_table
from prony_selftest.violations import VIOLATIONS
from prony_selftest.worlds import WORLDS, log_normal

EVERY = [
    *(pytest.param(of_world(one), id=one.name) for one in WORLDS),
    *(pytest.param(of_violation(one), id=one.name) for one in VIOLATIONS if one.name in IN_A_GATE),
]


@pytest.mark.parametrize("draw", EVERY)
@pytest.mark.rarely
def test_a_gate_errs_rarely_where_the_loss_is_the_margin(draw: Draw) -> None:
    edge = gates(draw, (MARGIN, MARGIN), 60)
    assert share(edge, Change.WORSE).could_be(0, 0.05)
    errors_of = gates(draw, (MARGIN, 0.0), 60)
    assert share(errors_of, Change.NO_WORSE).could_be(0, 0.05)


@pytest.mark.rarely
def test_a_threshold_on_single_runs_cries_wolf() -> None:
    """So this simulation can tell."""
    draw = of_world(log_normal())
    assert not single_runs(draw, 2000).could_be(0, 0.08)
    assert share(gates(draw, (0.0, 0.0, 0.0), 60), Change.WORSE).hits == 0


def test_a_slow_down_is_found_and_an_unchanged_build_passes() -> None:
    draw = of_world(log_normal(0.005))
    assert share(gates(draw, (SLOWER,) * 3, 60), Change.WORSE).could_be(0.97, 1)
    assert share(gates(draw, (0.0,) * 3, 60), Change.NO_WORSE).could_be(0.97, 1)


def test_the_tables_have_a_row_for_each_world() -> None:
    text = gate_tables(2)
    assert text.count("\n| ") >= len(EVERY) + 4
    assert "cannot tell" in text


def test_real_gates_are_counted_with_their_bounds() -> None:
    same = [RealGate(Change.NO_WORSE, "", 5, 30.0, 1.0)] * 59 + [RealGate(Change.WORSE, "", 5, 31.0, 0.9)]
    slow = [RealGate(Change.WORSE, "", 6, 33.0, 0.95)] * 39 + [RealGate(None, "exit code 4", 0, 1.0, None)]
    text = gates_table(same, slow)
    assert "False alarms: 1 of 60, which is at most 7.7 %" in text
    assert "Slow-downs detected: 39 of 40, which is at least 88.7 %" in " ".join(text.split())
    assert "| the same build | 60 | 59 | 1 | 0 | 0 | 0 |" in text
