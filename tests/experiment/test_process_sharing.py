"""Loads that share a process: one start for each, what is on record, and what a process that ended costs."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from typing import Any

import pytest

from prony.errors import UsageError
from prony.experiment.blocks import groups, watches
from prony.experiment.experiment import remaining
from prony.experiment.stored import stored_base
from prony.plan import workload
from prony.plan.cell import Cell, cell_of
from prony.plan.load import ClosedLoad
from prony.plan.part import Part, Search
from prony.plan.plan import MAIN, Plan
from prony.plan.target import Launch
from prony.store import StoredTrial
from prony.store.summaries import plan_keys
from tests.experiment.conftest import Answer, Bench, cell, others, plan, trial_plan, users_of
from tests.store.store_samples import FINGERPRINT

USERS = (1, 8, 64)


def shared(trials: int = 2, servers: str = "ab", **part: object) -> Plan:
    cells = [cell(server, trials, ClosedLoad(users=users)) for users in USERS for server in servers]
    made = Part.model_validate({"name": MAIN, "title": "made up", "share_process": "loads", **part})
    return plan(*cells, parts=(made,), command="run", goes_on=True)


def by_process(found: list[StoredTrial]) -> dict[str, list[StoredTrial]]:
    made: dict[str, list[StoredTrial]] = {}
    for one in found:
        assert one.record.process is not None
        made.setdefault(one.record.process.id, []).append(one)
    return made


def test_the_loads_of_a_server_are_measured_in_one_process(bench: Bench) -> None:
    _, found = bench.run(shared())
    assert len(bench.processes) == 2 * 2
    assert all(len(set(one.cells)) == len(USERS) for one in bench.processes)
    assert all(one.stops == 1 for one in bench.processes)
    records = by_process(found)
    assert len(records) == 4
    for identifier, trials in records.items():
        assert identifier == trials[0].record.id
        facts = [one.record.process for one in trials]
        assert [one.place for one in facts if one is not None] == [0, 1, 2]
        loads = [one.record.load_name for one in trials]
        assert [one.after for one in facts if one is not None] == ["", *loads[:-1]]
        assert len({one.record.server for one in trials}) == 1


def test_a_trial_of_its_own_process_says_so(bench: Bench) -> None:
    _, found = bench.run(shared(share_process=None))
    assert bench.processes == []
    assert {one.record.process for one in found} == {None}


def test_only_the_last_load_of_a_process_stops_it(bench: Bench) -> None:
    bench.run(shared(trials=1, servers="a"))
    (process,) = bench.processes
    assert process.kept == [True, True, False]


def test_a_server_that_dies_in_the_second_load_costs_the_rest_a_new_process(bench: Bench) -> None:
    def answer(cell: Cell, number: int) -> Answer:
        del cell, number
        bench.faults = {"a": "the server ended under load"} if len(bench.ran) == 1 else {}
        return {"requests_per_s": 1000.0}, ()

    bench.answer = answer
    _, found = bench.run(shared(trials=1, servers="a"))
    assert [one.record.failure is None for one in found] == [True, False, True]
    assert [len(one.cells) for one in bench.processes] == [2, 1]
    assert all(one.stops == 1 for one in bench.processes)
    places = [one.record.process for one in found]
    assert [one.place for one in places if one is not None] == [0, 1, 0]
    assert found[2].record.process is not None
    assert found[2].record.process.id == found[2].record.id
    assert not found[1].judgement.conforms


def test_a_process_that_ended_between_two_loads_is_started_again(bench: Bench) -> None:
    def answer(cell: Cell, number: int) -> Answer:
        del cell, number
        if len(bench.ran) == 1:
            bench.processes[0].ended = "killed by SIGKILL"
        return {"requests_per_s": 1000.0}, ()

    bench.answer = answer
    _, found = bench.run(shared(trials=1, servers="a"))
    assert [one.record.failure for one in found] == [None] * 3
    assert [len(one.cells) for one in bench.processes] == [1, 2]


def test_an_experiment_that_was_interrupted_goes_on_with_a_new_process(bench: Bench) -> None:
    bench.interrupt_at = 2
    experiment = bench.experiment(shared(trials=1))
    with pytest.raises(KeyboardInterrupt):
        experiment.run()
    bench.interrupt_at = None
    assert [one.stops for one in bench.processes] == [1], "nothing is left behind"
    stored, _ = bench.stored(experiment.identifier)
    bench.experiment(stored).resume(experiment.identifier)
    again, found = bench.stored(experiment.identifier)
    assert remaining(again, found) == ()
    assert [len(one.cells) for one in bench.processes] == [2, 2, 3]
    assert len(by_process(found)) == 3
    ids = [one.record.id for one in found]
    assert len(ids) == len(set(ids)) == 7


def test_a_disturbed_trial_is_repeated_in_its_process(bench: Bench) -> None:
    def answer(cell: Cell, number: int) -> Answer:
        troubled = users_of(cell) == 8 and number == 0
        return {"requests_per_s": 1000.0}, (others(),) if troubled else ()

    bench.answer = answer
    asked = shared(trials=1, servers="a").model_copy(update={"repeat_disturbed": 1})
    _, found = bench.run(asked)
    assert len(found) == 4
    facts = [one.record.process for one in found]
    repeated = [one.record.load_name for one in found].index("closed-8")
    # Where it is the last load, its process has been stopped, and the repeat has one of its own.
    expected = [0, 1, 2, 0] if repeated == 2 else [0, 1, 2, 3]
    assert [one.place for one in facts if one is not None] == expected


def test_blocks_are_added_in_processes_of_their_own_until_it_is_clear(bench: Bench) -> None:
    speed = {"a": 1000.0, "b": 1500.0}
    bench.answer = lambda cell, number: ({"requests_per_s": speed[cell.server] * (1 + 0.001 * number)}, ())
    _, found = bench.run(shared(trials=3, until_clear=20))
    blocks = {one.record.block for one in found}
    assert 3 <= len(blocks) < 20
    assert len(bench.processes) == 2 * len(blocks)


def test_a_search_measures_its_rates_in_one_process(bench: Bench) -> None:
    def answer(cell: Cell, number: int) -> Answer:
        del number
        load = cell.trial.load
        if isinstance(load, ClosedLoad):
            return {"requests_per_s": 2400.0}, ()
        rate = load.rate_per_s or 0.0
        return {"requests_per_s": rate, "p99_ms": 50 * (rate / 2000) ** 4}, ()

    bench.answer = answer
    search = Search(objectives="p99<50ms", highest_per_s=1e7, resolution=0.05, most_trials=24)
    part = Part(name=MAIN, title="c", shape="capacity", search=search, share_process="loads")
    stored, found = bench.run(plan(cell("a", load=ClosedLoad(users=64)), parts=(part,), command="capacity"))
    assert len(found) > 3
    again = sum(one.trials - 1 for one in stored.cells)
    assert len(bench.processes) <= 1 + 2 * again
    assert all(one.stops == 1 for one in bench.processes)


def test_trials_of_shared_processes_are_a_series_of_their_own() -> None:
    """What is warmed up under another load is not comparable as it stands."""
    stored = [json.dumps(shared(share_process=share).as_stored()) for share in ("loads", None)]
    apart, alone = (plan_keys(text) for text in stored)
    assert apart.keys() == alone.keys()
    assert all(apart[cell] != alone[cell] for cell in apart)


def test_a_gate_is_not_compared_with_trials_of_shared_processes(bench: Bench) -> None:
    bench.store.tag(bench.experiment(shared(servers="a")).run(), "main")
    wanted = cell("a", 5, ClosedLoad(users=8))
    with pytest.raises(UsageError, match="'main'"):
        stored_base(bench.store, "main", FINGERPRINT, wanted, ("requests_per_s",))


VERBS = ("hello", "ping", "json")


def shared_workloads(trials: int = 2, servers: str = "ab", **part: object) -> Plan:
    cells = [
        cell_of(
            MAIN,
            server,
            Launch(address=server),
            trial_plan(ClosedLoad(users=users)).model_copy(update={"workload": workload.load(name)}),
            trials,
        )
        for name in VERBS
        for users in (1, 8)
        for server in servers
    ]
    made = Part.model_validate({"name": MAIN, "title": "made up", "share_process": "workloads", **part})
    return plan(*cells, parts=(made,), command="run", goes_on=True)


def test_all_workloads_of_a_server_are_measured_in_one_process(bench: Bench) -> None:
    _, found = bench.run(shared_workloads())
    assert len(bench.processes) == 2 * 2
    assert all(len(set(one.cells)) == 2 * len(VERBS) for one in bench.processes)
    for trials in by_process(found).values():
        facts = [one.record.process for one in trials]
        assert [one.place for one in facts if one is not None] == list(range(6))
        named = [f"{one.record.workload}/{one.record.load_name}" for one in trials]
        assert [one.after for one in facts if one is not None] == ["", *named[:-1]]
        assert len(set(named)) == 6


def test_a_workload_that_is_new_to_the_process_is_planned_for_longer(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[float] = []

    def trial_started(*words: Any) -> None:
        told.append(words[-1])

    monkeypatch.setattr(bench.progress, "trial_started", trial_started)
    asked = shared_workloads(trials=1, servers="a")
    bench.run(asked)
    assert told == pytest.approx(asked.times_s(asked.order()))


def test_with_a_budget_workloads_that_share_get_their_blocks_together(bench: Bench) -> None:
    def answer(cell: Cell, number: int) -> Answer:
        spread = 0.05 if cell.trial.workload.name == "ping" else 0.0001
        source = random.Random(f"{cell.id}{number}")
        return {"requests_per_s": 1000 * math.exp(source.gauss(0, spread))}, ()

    bench.answer = answer
    asked = shared_workloads(trials=3, until_clear=8)
    (part,) = asked.parts
    cells = asked.of(MAIN)
    timed = part.model_copy(update={"budget_s": 1e6})
    assert [len(one.cells) for one in groups(timed, cells, watches(timed, cells))] == [len(cells)]
    bench.run(asked.model_copy(update={"parts": (timed,)}))
    numbers = Counter(cell.id for cell in bench.ran)
    assert set(numbers.values()) == {8}, "the noisy one takes the others along"
    assert len(bench.processes) == 2 * 8


def test_trials_that_shared_with_other_workloads_are_a_series_of_their_own() -> None:
    plans = [shared_workloads(share_process=share) for share in ("workloads", "loads", None)]
    keys = [plan_keys(json.dumps(one.as_stored())) for one in plans]
    assert all(len({one[cell] for one in keys}) == 3 for cell in keys[0])
