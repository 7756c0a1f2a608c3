"""Adding trials until it is clear: when it stops, what it does not look at."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pydantic import ValidationError

from prony.analysis import questions
from prony.cli.common import Common
from prony.compare import Claim, Looks, Margins, compare
from prony.errors import UsageError
from prony.experiment.blocks import UntilClear
from prony.judge.finding import Judgement
from prony.plan import workload
from prony.plan.cell import cell_of
from prony.plan.part import Part
from prony.plan.plan import MAIN, Plan
from prony.plan.target import Launch
from prony.plan.trial import quick_trial
from prony.report.pairs import figure_pairs
from tests.judge.factory import healthy
from tests.report import factory
from tests.report.factory import record

LEVEL_ROWS = healthy()
"""Rows so quiet that the bound on residual drift is within the band."""
LEVEL = {"a": 1000.0, "b": 1000.0, "c": 1200.0}


def feed(watch: UntilClear, blocks: range, spread: float, failing: frozenset[int] = frozenset()) -> None:
    rng = np.random.default_rng(11)
    for block in blocks:
        for server in watch.servers:
            value = LEVEL[server] * math.exp(rng.normal(0, spread))
            conforms = not (block in failing and server == "a")
            watch.add(
                record(server, block).model_copy(update={"evidence": LEVEL_ROWS}),
                Judgement(conforms=conforms, findings=()),
                {"requests_per_s": value},
            )


def test_nothing_is_over_before_the_first_look() -> None:
    watch = UntilClear(("a", "c"), Looks(5, 20))
    assert watch.need() > 0
    feed(watch, range(4), 0.001)
    assert watch.need() > 0


def test_a_clear_difference_ends_it() -> None:
    watch = UntilClear(("a", "c"), Looks(5, 20))
    feed(watch, range(5), 0.005)
    assert watch.need() == 0


def test_equivalence_ends_it_and_one_unclear_pair_does_not() -> None:
    equal = UntilClear(("a", "b"), Looks(5, 20))
    feed(equal, range(5), 0.002)
    assert equal.need() == 0
    three = UntilClear(("a", "b", "c"), Looks(5, 20))
    feed(three, range(5), 0.03)
    assert three.need() > 0


def test_what_is_too_small_to_matter_is_the_plans_to_say() -> None:
    cells = factory.full().cells
    wide = figure_pairs(cells, "requests_per_s", margins=Margins(0.9))
    assert {pair.claim for pair in wide} == {Claim.EQUIVALENT}
    assert Claim.EQUIVALENT not in {pair.claim for pair in figure_pairs(cells, "requests_per_s")}
    for band, over in ((0.9, True), (0.02, False)):
        watch = UntilClear(("a", "b"), Looks(5, 20), margins=Margins(band))
        feed(watch, range(5), 0.05)
        assert (watch.need() == 0) is over


def test_the_pair_that_needs_the_fewest_blocks_comes_first() -> None:
    far, near = UntilClear(("a", "b"), Looks(5, 20)), UntilClear(("a", "b"), Looks(5, 20))
    assert far.need() == math.inf
    feed(far, range(5), 0.02)
    feed(near, range(5), 0.015)
    (pair,) = compare(near.samples[near.figure], looks=near.looks).pairs
    assert pair.settles is not None
    assert pair.settles.blocks is not None
    assert near.need() == 1 / pair.settles.blocks
    assert 0 < far.need() < near.need() < math.inf


def test_of_a_single_server_its_figure_is_asked() -> None:
    one = UntilClear(("a",), Looks(3, 20))
    assert one.need() == math.inf
    feed(one, range(3), 0.05)
    assert 0 < one.need() < 1
    known = UntilClear(("a",), Looks(3, 20))
    feed(known, range(10), 0.005)
    assert known.need() == 0


def test_what_no_further_trial_may_cure_comes_last() -> None:
    hopeless = UntilClear(("a", "c"), Looks(5, 20))
    feed(hopeless, range(5), 0.005, failing=frozenset(range(5)))
    assert 0 < hopeless.need() < 0.01


def test_trials_that_do_not_conform_and_controls_do_not_count() -> None:
    watch = UntilClear(("a", "c"), Looks(5, 20))
    feed(watch, range(5), 0.005, failing=frozenset({2}))
    assert watch.need() > 0
    held = len(watch.samples[watch.figure])
    control = record("a", 9).model_copy(update={"kind": "control"})
    watch.add(control, Judgement(conforms=True, findings=()), {"requests_per_s": 1.0})
    assert len(watch.samples[watch.figure]) == held


def plan(until_clear: int | None = None, trials: int = 5) -> Plan:
    part = Part(name=MAIN, title="t", shape="comparison", until_clear=until_clear)
    trial = quick_trial(workload.load("hello"), 10, None)
    cells = tuple(cell_of(MAIN, server, Launch(address=server), trial, trials) for server in "ab")
    return Plan(name="t", command="compare", title="t", parts=(part,), cells=cells, seed=1)


def test_the_order_reaches_to_the_last_look_and_begins_as_without() -> None:
    added, plain = plan(until_clear=12), plan()
    assert len(added.order()) == 24
    assert added.order()[:10] == plain.order()
    assert added.estimate_s > plain.estimate_s


@pytest.mark.parametrize("more", [{"until_clear": 4}, {"until_clear": 2, "trials": 2}])
def test_a_last_look_before_the_first_is_refused(more: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match="first look"):
        plan(**more)


def test_the_command_refuses_what_makes_no_plan() -> None:
    assert Common().last_look(5) is None
    assert Common(until_clear=True).last_look(5) == 20
    assert Common(until_clear=True, max_trials=8).last_look(3) == 8
    for until_clear, most, first in ((False, 9, 5), (True, 4, 5), (True, 20, 2), (True, 5000, 5)):
        with pytest.raises(UsageError, match="--max-trials"):
            Common(until_clear=until_clear, max_trials=most).last_look(first)


def test_a_part_without_cells_asks_nothing() -> None:
    part = Part(name="latency", title="a second pass that was skipped", shape="comparison")
    assert questions(part, ()) == {}
