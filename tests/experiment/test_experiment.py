"""The one loop: order, growth, resumption, faults, and that no trial that has ended is lost."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from prony.compare.capacity import LONGEST_S, End, lowest_rate
from prony.errors import EnvironmentFault
from prony.experiment import trials
from prony.experiment.experiment import remaining
from prony.experiment.growth import open_load, search_so_far
from prony.judge.finding import Finding
from prony.plan.cell import Cell
from prony.plan.load import ClosedLoad, OpenLoad
from prony.plan.objective import objectives
from prony.plan.part import Follow, Part, Search
from prony.plan.plan import MAIN, Plan
from prony.store import StoredTrial
from prony.trial.load_run import INTERRUPTED
from tests.experiment.conftest import Answer, Bench, cell, finding, others, plan, rate_of, users_of

FIRST, OWN, COMMON = "main", "latency-own", "latency-common"


def comparison(**more: object) -> Part:
    return Part.model_validate({"name": MAIN, "title": "made up", "shape": "comparison", **more})


def test_trials_run_in_the_order_of_the_plan_and_controls_last(bench: Bench) -> None:
    asked = plan(cell("a", 3, controls=1), cell("b", 3, controls=1))
    stored, found = bench.run(asked)
    assert stored == asked
    assert [one.record.cell for one in found] == [one.cell for one in asked.order()]
    assert [one.record.kind for one in found] == ["trial"] * 6 + ["control"] * 2
    assert [one.record.seed for one in found] == [3 + index for index in range(8)]
    assert bench.store.experiments()[0].status == "finished"


def test_a_trial_warms_up_by_the_limits_of_its_own_cell(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    run_trial = trials.__dict__["run_trial"]

    def remembering(*given: Any, **named: Any) -> Any:
        asked.append(named["steady"].remaining)
        return run_trial(*given, **named)

    monkeypatch.setattr(trials, "run_trial", remembering)
    strict = cell("a").model_copy(update={"limits": {"steady_remaining": 0.01}})
    bench.run(plan(strict, cell("b")))
    assert sorted(asked) == [0.01, 0.03]


def test_a_sweep_measures_every_number_in_each_round_in_an_order_of_its_own(bench: Bench) -> None:
    numbers = (1, 2, 4, 8, 16)
    cells = [cell("a", 3, ClosedLoad(users=users)) for users in numbers]
    bench.run(plan(*cells, parts=(Part(name=MAIN, title="s", shape="sweep"),), command="sweep"))
    order = [users_of(one) for one in bench.ran]
    rounds = [tuple(order[at : at + 5]) for at in (0, 5, 10)]
    assert [sorted(one) for one in rounds] == [list(numbers)] * 3
    assert len(set(rounds)) > 1


# A search for a capacity: a plan that grows.


def search_plan(first: Cell | None = None, most: int = 24, highest: float = 1e7) -> Plan:
    search = Search(objectives="p99<50ms", highest_per_s=highest, resolution=0.05, most_trials=most)
    part = Part(name=MAIN, title="c", shape="capacity", search=search)
    return plan(first or cell("a", load=ClosedLoad(users=64)), parts=(part,), command="capacity")


def server_with(limit_per_s: float, client_per_s: float = math.inf) -> Callable[[Cell, int], Answer]:
    def answer(cell: Cell, number: int) -> Answer:
        del number
        load = cell.trial.load
        if isinstance(load, ClosedLoad):
            return {"requests_per_s": 1.2 * limit_per_s}, ()
        rate = rate_of(cell)
        if rate > client_per_s:
            return {"p99_ms": 900.0}, (finding("schedule"),)
        return {"requests_per_s": rate, "p99_ms": 50 * (rate / limit_per_s) ** 4}, ()

    return answer


def test_a_search_grows_until_the_bracket_is_narrow(bench: Bench) -> None:
    bench.answer = server_with(2000)
    stored, found = bench.run(search_plan())
    search = search_so_far(stored, stored.parts[0], found).result
    assert search.end is End.FOUND
    assert search.held_per_s is not None
    assert search.failed_per_s is not None
    assert search.held_per_s < 2000 <= search.failed_per_s
    assert isinstance(stored.cells[0].trial.load, ClosedLoad)
    assert rate_of(stored.cells[1]) == 1200  # half of what the closed loop carried
    assert sum(one.trials for one in stored.cells) == len(found)
    ids = [one.record.id for one in found]
    assert ids == sorted(set(ids))


def test_the_client_is_no_server(bench: Bench) -> None:
    bench.answer = server_with(2000, client_per_s=700)
    asked = search_plan()
    search = asked.parts[0].search
    assert search is not None
    stored, found = bench.run(search_plan(cell("a", load=open_load(100, search))))
    end = search_so_far(stored, stored.parts[0], found).result
    assert (end.end, end.failed_per_s) == (End.CLIENT, None)
    assert end.held_per_s is not None
    assert end.held_per_s <= 700


def test_no_rate_is_too_low_for_its_percentile(bench: Bench) -> None:
    bench.answer = server_with(1)
    search = search_plan().parts[0].search
    assert search is not None
    stored, found = bench.run(search_plan(cell("a", load=open_load(1000, search))))
    assert search_so_far(stored, stored.parts[0], found).result.end is End.NEVER
    rates = {rate_of(one): one.trial.measured_s for one in stored.cells}
    assert min(rates) >= lowest_rate(objectives(search.objectives), LONGEST_S)
    assert rates[min(rates)] == LONGEST_S > rates[max(rates)]


def test_room_for_what_the_objective_allows() -> None:
    slow = Search(objectives="p99<5s", highest_per_s=1e6, resolution=0.05, most_trials=1)
    assert (open_load(1000, slow).max_users or 0) >= 10_000


def test_a_search_that_was_interrupted_goes_on_where_it_stopped(bench: Bench) -> None:
    bench.answer = server_with(2000)
    whole, _ = bench.run(search_plan())
    bench.ran.clear()
    bench.interrupt_at = 4
    experiment = bench.experiment(search_plan())
    with pytest.raises(KeyboardInterrupt):
        experiment.run()
    bench.interrupt_at = None
    stored, _ = bench.stored(experiment.identifier)
    bench.experiment(stored).resume(experiment.identifier)
    again, found = bench.stored(experiment.identifier)
    assert [one.id for one in again.cells] == [one.id for one in whole.cells]
    assert [INTERRUPTED in one.record.notes for one in found].count(True) == 1
    assert remaining(again, found) == ()


# Two passes: parts that follow another one.


def two_pass(trials: int = 2) -> Plan:
    parts = (
        comparison(),
        comparison(name=OWN, follows=Follow(part=MAIN, share=0.7, rate="own")),
        comparison(name=COMMON, follows=Follow(part=MAIN, share=0.7, rate="common")),
    )
    return plan(cell("a", trials, controls=1), cell("b", trials, controls=1), parts=parts)


def test_the_second_pass_is_at_shares_of_what_the_first_one_found(bench: Bench) -> None:
    carried = {"a": (1000.0, 4000.0), "b": (900.0, 900.0)}
    bench.answer = lambda cell, number: ({"requests_per_s": carried[cell.server][number % 2]}, ())
    stored, found = bench.run(two_pass())
    assert {one.server: rate_of(one) for one in stored.of(OWN)} == {"a": 1400.0, "b": pytest.approx(630.0)}
    assert [rate_of(one) for one in stored.of(COMMON)] == [pytest.approx(630.0)] * 2
    for one in (*stored.of(OWN), *stored.of(COMMON)):
        assert (one.trials, one.controls, one.trial.published_requests) == (2, 0, None)
        assert one.trial.measured == stored.cells[0].trial.measured
    assert len(found) == 4 + 2 + 4 + 4
    assert len({one.record.id for one in found}) == len(found)


def test_a_second_pass_without_a_capacity_is_on_record_with_its_reason(bench: Bench) -> None:
    """It used to vanish: exit code 0 and no passes."""

    def answer(cell: Cell, number: int) -> Answer:
        del number
        return {"requests_per_s": 1000.0}, () if cell.server == "a" else (finding("client"),)

    bench.answer = answer
    stored, found = bench.run(two_pass())
    assert len(found) == 6
    assert stored.of(OWN) == stored.of(COMMON) == ()
    assert {(one.part, one.server) for one in stored.skipped} == {
        (part, server) for part in (OWN, COMMON) for server in ("a", "b")
    }
    assert all("no trial of b counts" in one.why for one in stored.skipped)
    assert any(stored.skipped[0].why in said for said in bench.progress.said)


# Until it is clear.


def test_blocks_are_added_until_every_pair_is_clear(bench: Bench) -> None:
    speed = {"a": 1000.0, "b": 1500.0}
    bench.answer = lambda cell, number: ({"requests_per_s": speed[cell.server] * (1 + 0.001 * number)}, ())
    _, found = bench.run(plan(cell("a", 3), cell("b", 3), parts=(comparison(until_clear=20),)))
    assert 6 <= len(found) < 40


def test_a_second_pass_is_watched_too_each_server_at_a_rate_of_its_own(bench: Bench) -> None:
    def answer(cell: Cell, number: int) -> Answer:
        speed = {"a": 1000.0, "b": 1500.0}[cell.server] * (1 + 0.001 * number)
        return {"requests_per_s": speed, "p99_ms": 1e4 / speed}, ()

    bench.answer = answer
    parts = (
        comparison(until_clear=20),
        comparison(name=OWN, follows=Follow(part=MAIN, share=0.7, rate="own"), until_clear=20),
    )
    stored, found = bench.run(plan(cell("a", 3), cell("b", 3), parts=parts))
    second = [one for one in found if one.record.cell in {cell.id for cell in stored.of(OWN)}]
    assert 6 <= len(second) < 40


def test_each_load_of_a_plan_is_watched_on_its_own(bench: Bench) -> None:
    """A pair that is clear under one load and not under another goes on under both: blocks stay whole."""
    rates = {("a", 1): 100.0, ("b", 1): 200.0, ("a", 2): 100.0}

    def answer(cell: Cell, number: int) -> Answer:
        wobble = 1 + 0.2 * (-1) ** number if (cell.server, users_of(cell)) == ("b", 2) else 1 + number / 1000
        return {"requests_per_s": rates.get((cell.server, users_of(cell)), 100.0) * wobble}, ()

    bench.answer = answer
    cells = [cell(server, 3, ClosedLoad(users=users)) for server in "ab" for users in (1, 2)]
    _, found = bench.run(plan(*cells, parts=(comparison(until_clear=5),)))
    assert len(found) == 4 * 5


# What goes wrong.


def test_a_server_that_does_not_start_is_a_failed_trial_of_its_cell_and_the_plan_runs_on(
    bench: Bench,
) -> None:
    bench.faults["b"] = "port 8080 is taken by another process"
    _, found = bench.run(plan(cell("a", 2), cell("b", 2), goes_on=True))
    assert [one.record.failure for one in found if one.record.server == "a"] == [None, None]
    failures = [one for one in found if one.record.server == "b"]
    assert [one.record.failure for one in failures] == ["port 8080 is taken by another process"] * 2
    assert not any(one.judgement.conforms for one in failures)


def test_a_comparison_ends_at_once_where_a_server_cannot_be_measured_at_all(bench: Bench) -> None:
    bench.faults = {"a": "nothing answers", "b": "nothing answers"}
    with pytest.raises(EnvironmentFault, match="nothing answers"):
        bench.run(plan(cell("a", 2), cell("b", 2)))
    assert len(bench.ran) == 1
    assert bench.store.experiments() == []


def test_a_fault_later_on_does_not_end_a_comparison(bench: Bench) -> None:
    def answer(cell: Cell, number: int) -> Answer:
        if cell.server == "b" and number == 0:
            bench.faults["b"] = "port 8080 is taken by another process"
        return {"requests_per_s": 1000.0}, ()

    bench.answer = answer
    _, found = bench.run(plan(cell("a", 3), cell("b", 3)))
    assert [one.record.failure is None for one in found if one.record.server == "b"] == [True, False, False]
    assert len(found) == 6


def test_a_server_that_cannot_be_built_is_left_out_where_that_is_wanted(bench: Bench) -> None:
    bench.targets.of(cell("b")).unbuildable = "mvn is not installed"
    with pytest.raises(EnvironmentFault, match="mvn"):
        bench.run(plan(cell("a"), cell("b"), command="run"))
    stored, found = bench.run(plan(cell("a"), cell("b"), command="run"), skip_unmeetable=True)
    assert [one.record.server for one in found] == ["a"]
    assert [(one.server, one.why) for one in stored.skipped] == [("b", "mvn is not installed")]


def test_a_fault_after_the_window_loses_nothing(bench: Bench) -> None:
    bench.faults["a"] = "the engine was killed by SIGKILL"
    bench.fault_before_load = False
    _, (found,) = bench.run(plan(cell("a")))
    assert found.record.failure == "the engine was killed by SIGKILL"
    assert not found.judgement.conforms
    assert found.record.evidence.server_window is not None


@pytest.mark.parametrize(
    "end",
    [
        KeyboardInterrupt,
        EnvironmentFault("the engine did not start"),
        OSError(12, "Cannot allocate memory"),
        ValueError("not an address"),
    ],
)
def test_what_ends_the_calibration_does_not_lose_the_trial(
    bench: Bench, end: type[BaseException] | BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The calibration comes after the load; the trial is whole by then."""
    monkeypatch.setattr(trials, "ceiling_decides", lambda *_: True)

    def calibrate() -> NoReturn:
        raise end

    bench.calibrate = calibrate
    experiment = bench.experiment(plan(cell("a", 2)))
    if end is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            experiment.run()
    else:
        experiment.run()
    found = bench.store.trials(experiment.identifier)
    assert found
    assert found[0].record.evidence.calibration is None
    assert INTERRUPTED not in found[0].record.notes
    assert len(found) == (1 if end is KeyboardInterrupt else 2)


def test_a_defect_of_the_judge_does_not_lose_the_trial(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a check divides by nothing")

    monkeypatch.setattr(trials, "conclude", broken)
    experiment = bench.experiment(plan(cell("a")))
    with pytest.raises(ZeroDivisionError):
        experiment.run()
    (found,) = bench.store.trials(experiment.identifier)
    assert not found.judgement.conforms
    assert found.judgement.findings[0].code == "not_judged"
    assert "a check divides by nothing" in found.judgement.findings[0].reason


def test_a_trial_that_was_interrupted_half_way_is_kept_and_run_again(bench: Bench) -> None:
    bench.interrupt_at = 2
    experiment = bench.experiment(plan(cell("a", 3)))
    with pytest.raises(KeyboardInterrupt):
        experiment.run()
    assert bench.store.experiments()[0].status == "interrupted"
    bench.interrupt_at = None
    stored, found = bench.stored(experiment.identifier)
    assert [one.index for one in remaining(stored, found)] == [2, 3]
    bench.experiment(stored).resume(experiment.identifier)
    _, found = bench.stored(experiment.identifier)
    names = [one.record.id.rpartition(experiment.identifier)[2] for one in found]
    assert sorted(names) == ["-001", "-002", "-002-2", "-003"]


# Disturbed from outside.


def disturbed(*more: Finding, times: int) -> Callable[[Cell, int], Answer]:
    found = (others(), *more)

    def answer(cell: Cell, number: int) -> Answer:
        del cell
        return {"requests_per_s": 1000.0}, found if number < times else ()

    return answer


def test_a_disturbed_trial_is_repeated_and_stays_on_record(bench: Bench) -> None:
    bench.answer = disturbed(times=2)
    _, found = bench.run(plan(cell("a")).model_copy(update={"repeat_disturbed": 2}))
    assert [one.judgement.bias("requests_per_s").counts for one in found] == [True, True, False]
    assert len({(one.record.cell, one.record.block) for one in found}) == 1
    assert len({one.record.id for one in found}) == 3
    assert any("isolation said so" in said for said in bench.progress.said)


def test_it_is_repeated_no_more_often_than_allowed(bench: Bench) -> None:
    bench.answer = disturbed(others("host"), times=99)
    _, found = bench.run(plan(cell("a", 2)).model_copy(update={"repeat_disturbed": 1}))
    assert [one.record.block for one in found] == [0, 0, 1, 1]


@pytest.mark.parametrize(
    "found",
    [
        (finding("errors"),),
        (others(), finding("errors")),
        (others().model_copy(update={"outside": False}),),
        (others(lost=0.001),),
    ],
    ids=["does not conform", "neither, though disturbed", "from inside", "by too little"],
)
def test_what_others_did_not_do_or_hardly_is_never_repeated(bench: Bench, found: tuple[Finding, ...]) -> None:
    bench.answer = lambda *_: ({"requests_per_s": 1000.0}, found)
    _, ran = bench.run(plan(cell("a")).model_copy(update={"repeat_disturbed": 5}))
    assert len(ran) == 1


def test_the_first_disturbed_trial_says_what_it_would_take(bench: Bench) -> None:
    bench.answer = disturbed(times=99)
    bench.run(plan(cell("a", 3)))
    said = [one for one in bench.progress.said if "disturbed" in one]
    assert len(said) == 1
    assert "isolation said so" in said[0]
    assert "end the other processes" in said[0]
    assert "--repeat-disturbed" in said[0]
    assert bench.progress.ended[0] == "conforms"


def test_only_the_repeat_counts_for_until_clear(bench: Bench) -> None:
    """A pair is not compared with the trial that was disturbed."""
    speed = {"a": 1000.0, "b": 1500.0}

    def answer(cell: Cell, number: int) -> Answer:
        first_of_a = cell.server == "a" and number == 0
        return {"requests_per_s": speed[cell.server] * (1 + number / 1000)}, (
            (others(),) if first_of_a else ()
        )

    bench.answer = answer
    asked = plan(cell("a", 3), cell("b", 3), parts=(comparison(until_clear=20),))
    _, found = bench.run(asked.model_copy(update={"repeat_disturbed": 1}))
    assert len(found) == 7


def test_open_loads_of_the_second_pass_have_names_of_their_own() -> None:
    one = cell("a").under(OpenLoad(rate_per_s=630))
    assert one.id == "main/a/hello/open-630-constant"


def test_a_search_ends_where_its_server_is_gone_and_claims_nothing(bench: Bench) -> None:
    """A rate at which nothing could be offered is no rate that the server missed."""
    answers = server_with(2000)

    def answer(cell: Cell, number: int) -> Answer:
        if len(bench.ran) == 3:
            bench.faults["a"] = "nothing answers"
        return answers(cell, number)

    bench.answer = answer
    experiment = bench.experiment(search_plan())
    with pytest.raises(EnvironmentFault, match="nothing answers"):
        experiment.run()
    stored, found = bench.stored(experiment.identifier)
    assert [one.record.failure for one in found] == [None] * 3
    bench.faults.clear()
    bench.experiment(stored).resume(experiment.identifier)
    assert search_so_far(*_with_part(bench.stored(experiment.identifier))).result.end is End.FOUND


def _with_part(stored: tuple[Plan, list[StoredTrial]]) -> tuple[Plan, Part, list[StoredTrial]]:
    return stored[0], stored[0].parts[0], stored[1]


def test_an_interrupt_while_a_trial_is_judged_does_not_lose_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(trials, "conclude", interrupted)
    experiment = bench.experiment(plan(cell("a", 2)))
    with pytest.raises(KeyboardInterrupt):
        experiment.run()
    (found,) = bench.store.trials(experiment.identifier)
    assert "not judged: KeyboardInterrupt" in found.judgement.findings[0].reason


def test_a_clock_that_went_back_is_reported(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.run(plan(cell("a")))
    assert not any("clock" in note for note in bench.progress.said)
    monkeypatch.setattr(type(bench.store), "ahead_s", lambda _: 3600.0)
    bench.run(plan(cell("a")))
    assert any("60 min ahead" in note for note in bench.progress.said)
