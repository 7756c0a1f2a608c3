"""Where a budget goes: to the cells whose intervals are widest, until it is used up."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from prony.experiment.stored import timed
from prony.plan.budget import within
from prony.plan.cell import Cell
from prony.plan.load import ClosedLoad
from prony.plan.part import Part, Search
from prony.plan.plan import MAIN, Plan
from tests.experiment.conftest import Answer, Bench, cell, plan, users_of

SECONDS = 10.0
"""What a trial takes, by the clock of these tests."""


@pytest.fixture(autouse=True)
def clock(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each trial that was run has taken SECONDS."""
    monkeypatch.setattr("prony.experiment.experiment.time.monotonic", lambda: SECONDS * len(bench.ran))


def two_loads(budget_s: float, parts: tuple[str, ...] = (MAIN,), **more: object) -> Plan:
    made = tuple(Part.model_validate({"name": name, "title": name, **more}) for name in parts)
    cells = [
        cell(server, 3, ClosedLoad(users=users), part.name)
        for part in made
        for users in (1, 8)
        for server in "ab"
    ]
    asked = plan(*cells, parts=made, command="run", goes_on=True)
    return asked.model_copy(
        update={
            "parts": tuple(
                part.model_copy(update={"budget_s": budget_s, "until_clear": 30}) for part in asked.parts
            )
        }
    )


def noisy(spread: dict[int, float]) -> object:
    """Users -> by how much trials under this load differ."""

    def answer(of: Cell, number: int) -> Answer:
        source = random.Random(f"{of.id}{number}")
        return {"requests_per_s": 1000 * math.exp(source.gauss(0, spread[users_of(of)]))}, ()

    return answer


def test_the_time_goes_where_the_intervals_are_widest(bench: Bench) -> None:
    bench.answer = noisy({1: 0.0001, 8: 0.1})  # type: ignore[assignment]
    bench.run(two_loads(500.0))
    trials = Counter(map(users_of, bench.ran))
    assert trials[1] == 2 * 3, "clear after the planned ones"
    assert sum(trials.values()) * SECONDS <= 500
    assert (sum(trials.values()) + 2) * SECONDS > 500, "all of it is used"
    assert any("500 s" in said for said in bench.progress.said)
    assert any("3 blocks" in said for said in bench.progress.said)


def test_every_part_has_its_planned_trials_before_any_has_more(bench: Bench) -> None:
    bench.answer = noisy({1: 0.05, 8: 0.05})  # type: ignore[assignment]
    bench.run(two_loads(400.0, ("first", "second")))
    planned = bench.ran[: 2 * 4 * 3]
    assert Counter(one.part for one in planned) == {"first": 12, "second": 12}
    assert Counter(Counter(one.id for one in planned).values()) == {3: 8}
    assert 24 < len(bench.ran) <= 40


def test_it_ends_when_everything_is_clear(bench: Bench) -> None:
    bench.answer = noisy({1: 0.0001, 8: 0.0001})  # type: ignore[assignment]
    bench.run(two_loads(10_000.0))
    assert len(bench.ran) == 12


def test_loads_that_share_a_process_get_their_blocks_together(bench: Bench) -> None:
    bench.answer = noisy({1: 0.0001, 8: 0.05})  # type: ignore[assignment]
    bench.run(two_loads(300.0, share_process="loads"))
    trials = Counter(map(users_of, bench.ran))
    assert trials[1] == trials[8] > 6
    assert all(len(set(one.cells)) == 2 for one in bench.processes)


def test_planned_trials_stop_in_time_too(bench: Bench) -> None:
    bench.answer = noisy({1: 0.05, 8: 0.05})  # type: ignore[assignment]
    bench.run(two_loads(85.0))
    assert len(bench.ran) == 8
    assert any("block 2" in said and "85 s" in said for said in bench.progress.said)


def test_a_search_stops_in_time(bench: Bench) -> None:
    def answer(of: Cell, number: int) -> Answer:
        del number
        load = of.trial.load
        rate = 2400.0 if isinstance(load, ClosedLoad) else load.rate_per_s or 0.0
        return {"requests_per_s": rate, "p99_ms": 50 * (rate / 2000) ** 4}, ()

    bench.answer = answer
    search = Search(objectives="p99<50ms", highest_per_s=1e7, resolution=0.001, most_trials=24)
    part = Part(name=MAIN, title="c", shape="capacity", search=search)
    asked = plan(cell("a", load=ClosedLoad(users=64)), parts=(part,), command="capacity")
    assert within(asked, 30 * 60.0).budget_s == 30 * 60.0
    bench.run(asked.model_copy(update={"parts": (part.model_copy(update={"budget_s": 45.0}),)}))
    assert len(bench.ran) == 4
    assert any("45 s" in said for said in bench.progress.said)


def test_what_was_interrupted_goes_on_within_what_is_left(bench: Bench) -> None:
    bench.answer = noisy({1: 0.0001, 8: 0.05})  # type: ignore[assignment]
    bench.interrupt_at = 14
    experiment = bench.experiment(two_loads(500.0))
    with pytest.raises(KeyboardInterrupt):
        experiment.run()
    bench.interrupt_at = None
    stored, _ = bench.stored(experiment.identifier)
    bench.experiment(stored).resume(experiment.identifier)
    _, found = bench.stored(experiment.identifier)
    blocks = Counter((one.record.cell, one.record.block) for one in found if not one.record.notes)
    assert set(blocks.values()) == {1}
    per_cell = Counter(cell for cell, _ in blocks)
    assert len({per_cell[one.id] for one in stored.cells if users_of(one) == 8}) == 1, "blocks are whole"


def test_within_a_budget_that_is_too_short_those_trials_run_that_fit(bench: Bench) -> None:
    _, found = bench.run(within(plan(cell("a", 5), cell("b", 5)), 10.0))
    assert Counter(one.record.block for one in found) == {0: 2}


def test_an_end_that_is_later_than_printed_is_printed_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = within(plan(cell("a", 5), cell("b", 5)), 10.0)

    def ends(seconds: float) -> int:
        monkeypatch.setattr("prony.experiment.experiment.time.monotonic", lambda: seconds * len(bench.ran))
        bench.progress.said.clear()
        bench.run(asked)
        return sum("ends at about" in said for said in bench.progress.said)

    bench.ran.clear()
    assert ends(1.0) == 1
    bench.ran.clear()
    assert ends(10 * asked.estimate_s) == 2, "after the first trial of the block"


def test_how_long_trials_took_is_read_from_the_store(bench: Bench) -> None:
    asked = plan(cell("a", 2), cell("b", 2))
    assert {one.took_s for one in timed(asked, bench.store).cells} == {None}
    _, found = bench.run(asked)
    again = timed(plan(cell("a", 2), cell("b", 2), cell("c", 2)), bench.store)
    took = [(one.record.ended_at - one.record.started_at).total_seconds() for one in found]
    for one in again.cells:
        assert one.took_s is None if one.server == "c" else min(took) <= (one.took_s or 0.0) <= max(took)
