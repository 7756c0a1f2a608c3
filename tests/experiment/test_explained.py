"""Explained trials: one for each cell, when all others have ended, and in no figure."""

from __future__ import annotations

from typing import Any

import pytest

from prony.errors import EnvironmentFault, UsageError
from prony.experiment import trials
from prony.experiment.blocks import Ended
from prony.experiment.stored import stored_base
from prony.plan.cell import Cell
from prony.plan.load import SteadyWindow
from prony.plan.part import Part
from prony.plan.plan import MAIN, Plan
from prony.report.reading import result_view
from prony.store import StoredTrial
from prony_explain import explaining
from prony_explain.explaining import Explaining, explained
from tests.experiment.conftest import Answer, Bench, cell, plan
from tests.store.store_samples import FINGERPRINT


@pytest.fixture(autouse=True)
def nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    fetched: list[int] = []
    monkeypatch.setattr(Explaining, "prepare", lambda _self, targets, _on_line: fetched.append(len(targets)))
    return fetched


def with_explanation(asked: Plan) -> Plan:
    cells = tuple(one.model_copy(update={"explain": True}) for one in asked.cells)
    return asked.model_copy(update={"cells": cells})


def test_explained_trials_run_last_with_a_collector_and_without_what_only_figures_need(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, nothing_is_fetched: list[int]
) -> None:
    given: list[tuple[Any, Any]] = []
    run_trial = trials.__dict__["run_trial"]

    def remembering(plan: Any, *rest: Any, **named: Any) -> Any:
        given.append((plan, named["profile"]))
        return run_trial(plan, *rest, **named)

    monkeypatch.setattr(trials, "run_trial", remembering)
    asked = with_explanation(plan(cell("a", 2, controls=1), cell("b", 2, controls=1)))
    _, found = bench.run(asked)
    assert [one.record.kind for one in found] == ["trial"] * 4 + ["control"] * 2 + ["explained"] * 2
    assert [one.record.server for one in found][-2:] == ["a", "b"]
    assert [profile is not None for _, profile in given] == [False] * 6 + [True] * 2
    last = given[-1][0]
    assert (last.scaling_probe, last.published_requests, last.beside) == (False, None, ())
    assert last.load == asked.cells[1].trial.load
    assert nothing_is_fetched == [2]


def test_the_last_explained_trial_of_a_part_holds_its_explanation(bench: Bench) -> None:
    _, found = bench.run(with_explanation(plan(cell("a"), cell("b"))))
    assert [one.record.explanation is not None for one in found] == [False] * (len(found) - 1) + [True]


def test_an_explanation_that_fails_loses_no_trial(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ArithmeticError("no budget")

    monkeypatch.setattr(Explaining, "explain", fails)
    _, found = bench.run(with_explanation(plan(cell("a"))))
    assert found[-1].record.kind == "explained"
    assert found[-1].record.explanation is None


def test_a_plan_without_explanations_fetches_nothing(bench: Bench, nothing_is_fetched: list[int]) -> None:
    _, found = bench.run(plan(cell("a"), cell("b")))
    assert [one.record.kind for one in found] == ["trial"] * 2
    assert nothing_is_fetched == []


def test_the_window_of_an_explained_trial_is_not_cut_short() -> None:
    precise = cell("a").trial.model_copy(update={"measured": SteadyWindow(window_s=10, precision=0.02)})
    found = cell("a").model_copy(update={"trial": precise}).explained.measured
    assert found == SteadyWindow(window_s=10)


def view_of(bench: Bench, found: list[StoredTrial]) -> Any:
    return result_view(bench.store.experiment(found[0].record.experiment_id), found)


def test_every_figure_is_the_same_with_and_without_an_explanation(
    bench: Bench,
) -> None:
    speed = {"a": 1000.0, "b": 1300.0}

    def answer(one: Cell, number: int) -> Answer:
        slowed = 0.1 if number >= 5 else 1.0  # the explained trial is the sixth of its cell
        return {"requests_per_s": speed[one.server] * (1 + number / 100) * slowed}, ()

    bench.answer = answer
    asked = plan(
        cell("a", 5), cell("b", 5), parts=(Part(name=MAIN, title="c", shape="comparison", band=0.02),)
    )
    _, without = bench.run(asked)
    bench.ran.clear()
    _, with_one = bench.run(with_explanation(asked))
    assert len(with_one) == len(without) + 2
    first, second = view_of(bench, without), view_of(bench, with_one)
    (one,), (other,) = first.parts, second.parts
    assert one.pairs
    alike = ("pairs", "positions", "levels", "findings")
    assert [getattr(one, name) for name in alike] == [getattr(other, name) for name in alike]
    assert [t.figures for t in one.counting] == [t.figures for t in other.counting]
    assert [len(c.explained) for c in other.cells] == [1, 1]
    assert [t.record.kind for t in other.trials] == ["trial"] * 10
    assert second.planned == first.planned == 10
    assert [c.superseded for c in other.cells] == [(), ()]


def test_a_stored_experiment_can_be_explained_later(bench: Bench) -> None:
    asked = plan(cell("a", 2), cell("b", 2))
    identifier = bench.experiment(asked).run()
    stored, found = bench.stored(identifier)
    wanted = explained(stored, found)
    bench.store.update_plan(identifier, wanted.as_stored())
    bench.experiment(wanted).resume(identifier)
    assert bench.progress.started == [(4, 0), (2, 4)], "the fifth trial of six, not of two"
    _, after = bench.stored(identifier)
    assert [one.record.kind for one in after] == ["trial"] * 4 + ["explained"] * 2
    assert [one.record.id for one in after][:4] == [one.record.id for one in found]
    assert len({one.record.id for one in after}) == 6


def test_an_experiment_without_a_measured_trial_has_nothing_to_explain() -> None:
    with pytest.raises(UsageError, match="no measured trial"):
        explained(plan(cell("a")), [])


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (EnvironmentFault("Maven (mvn) was not found on the PATH"), r"Maven \(mvn\) was not found"),
        (UsageError("JDK 11 was asked for, but the server supports 17 or newer"), "JDK 11 was asked for"),
        (PermissionError(13, "Permission denied"), r"fetching it failed: PermissionError: \[Errno 13\]"),
    ],
)
def test_a_profiler_that_cannot_be_fetched_is_reported_by_the_profile(
    monkeypatch: pytest.MonkeyPatch, fault: Exception, said: str
) -> None:
    monkeypatch.undo()
    from prony_explain.processes import Chosen
    from prony_explain.profilers.base import Unavailable

    def fails(_on_line: object) -> Any:
        raise fault

    monkeypatch.setattr("prony.server.build.async_profiler", fails)
    found = explaining.Explaining()

    class Target:
        built = None

    found.prepare([Target()], lambda _name, _line: None)  # type: ignore[list-item]
    with pytest.raises(Unavailable, match=rf"async-profiler could not be fetched: {said}"):
        found.collector().find(Chosen(1, "jvm", (1,), 1.0))


@pytest.mark.parametrize(("explains", "measured"), [(True, 6), (False, 8)])
def test_a_budget_sets_the_time_of_explained_trials_aside(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, explains: bool, measured: int
) -> None:
    """A trial takes 10 s by the clock of this test, so a block 20 s."""
    monkeypatch.setattr("prony.experiment.experiment.time.monotonic", lambda: 10.0 * len(bench.ran))

    def answer(of: Cell, number: int) -> Answer:  # never clear
        step = number if of.server == "a" else number // 2
        return {"requests_per_s": 1000.0 + 300 * (step % 2)}, ()

    bench.answer = answer
    part = Part(name=MAIN, title="c", shape="comparison", budget_s=85.0, until_clear=30)
    asked = plan(cell("a", 3), cell("b", 3), parts=(part,), goes_on=True)
    _, found = bench.run(with_explanation(asked) if explains else asked)
    kinds = [one.record.kind for one in found]
    assert kinds == ["trial"] * measured + ["explained"] * (2 if explains else 0)
    assert 10.0 * len(bench.ran) <= 85.0


def test_the_time_of_explained_trials_is_in_the_estimate() -> None:
    asked = plan(cell("a", 2), cell("b", 2))
    more = with_explanation(asked).estimate_s - asked.estimate_s
    assert more == pytest.approx(sum(one.takes_s(one.explained) for one in asked.cells))
    assert more > 0


def test_an_explained_trial_decides_no_gate_and_is_no_base_of_one(bench: Bench) -> None:
    def answer(_of: Cell, number: int) -> Answer:
        return {"requests_per_s": 1.0 if number == 2 else 1000.0}, ()

    bench.answer = answer
    _, found = bench.run(with_explanation(plan(cell("mine", 2))))
    assert found[-1].figures == {"requests_per_s": 1.0}
    bench.store.tag(found[0].record.experiment_id, "main")
    _, base = stored_base(bench.store, "main", FINGERPRINT, cell("mine"), ("requests_per_s",))
    assert [one.values["requests_per_s"] for one in base.experiments] == [(1000.0, 1000.0)]
    ended = Ended(("requests_per_s",))
    for one in found:
        ended.add(one.record, one.judgement, one.figures)
    assert [one.value for one in ended.samples["requests_per_s"]] == [1000.0, 1000.0]
