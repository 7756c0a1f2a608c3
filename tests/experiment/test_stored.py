"""Results that earlier versions stored are read as the one plan that there is now."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from prony.errors import StoreError, UsageError
from prony.experiment.conclude import conclude
from prony.experiment.rejudge import rejudge
from prony.experiment.stored import cell_of_record, plan_of, resumable, trials_of
from prony.plan.load import ClosedLoad, OpenLoad, SteadyWindow, WholeRun
from prony.plan.part import CrossCheck
from prony.plan.plan import Plan
from prony.plan.target import Launch, Url
from prony.report.cross_check import opinions_of
from prony.report.reading import result_view
from prony.store import ExperimentRow, Store, StoredTrial
from prony.store.transfer import read

SCHEMA_1 = Path(__file__).parent / "schema1"
"""Exports of version 0.1.0: one of each command, with windows of a second."""
NAMES = sorted(path.name.removesuffix(".prony.gz") for path in SCHEMA_1.glob("*.prony.gz"))


def stored(name: str, folder: Path) -> tuple[ExperimentRow, list[StoredTrial]]:
    store = Store.open(folder / "results.db")
    identifier, _ = read(store, SCHEMA_1 / f"{name}.prony.gz")
    return store.experiment(identifier), store.trials(identifier)


def test_every_command_of_version_1_has_an_example() -> None:
    assert {"compare", "load-window", "sweep-url", "capacity", "plan", "second-opinion"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_old_experiment_has_a_plan_in_which_every_trial_has_its_cell(name: str, tmp_path: Path) -> None:
    row, trials = stored(name, tmp_path)
    plan = plan_of(row, trials)
    assert plan.title == row.name
    assert plan.seed == row.seed
    assert plan.quick == row.quick
    known = {cell.id: cell for cell in plan.cells}
    assert len(known) == len(plan.cells)
    for trial in trials:
        cell = known[cell_of_record(plan, trial.record)]
        assert (cell.server, cell.trial.load_name) == (trial.record.server, trial.record.load_name)
        assert cell.trial.workload.name == trial.record.workload
    assert Plan.model_validate(plan.as_stored()) == plan


def test_a_comparison(tmp_path: Path) -> None:
    plan = plan_of(*stored("compare-until-clear", tmp_path))
    (part,) = plan.parts
    assert (plan.command, part.shape, part.until_clear) == ("compare", "comparison", 4)
    assert [cell.target for cell in plan.cells] == [Launch(address="a"), Launch(address="b")]
    assert {cell.trials for cell in plan.cells} == {3}
    assert len(plan.order()) == 8


def test_the_order_is_the_one_in_which_its_trials_ran(tmp_path: Path) -> None:
    for name in ("compare", "compare-until-clear", "plan"):
        row, trials = stored(name, tmp_path / name)
        plan = plan_of(row, trials)
        ran = [(cell_of_record(plan, t.record), t.record.block, t.record.position) for t in trials]
        assert ran == [(one.cell, one.block, one.position) for one in plan.order()]


def test_a_load(tmp_path: Path) -> None:
    plan = plan_of(*stored("load-window", tmp_path))
    (cell,) = plan.cells
    assert (plan.command, plan.parts[0].shape) == ("load", "single")
    assert isinstance(cell.target, Url)
    assert cell.trial.measured == SteadyWindow(window_s=1.0)
    assert (cell.trial.warm_up.method, cell.trial.warm_up.cap_s) == ("fixed", 1.0)
    (cell,) = plan_of(*stored("load-requests", tmp_path)).cells
    assert cell.trial.measured == WholeRun(total_requests=500)


def test_a_sweep_has_a_cell_for_each_number_of_users(tmp_path: Path) -> None:
    plan = plan_of(*stored("sweep-url", tmp_path))
    assert plan.parts[0].shape == "sweep"
    assert [cell.trial.load for cell in plan.cells] == [ClosedLoad(users=users) for users in (1, 2, 4)]


def test_a_search_has_a_cell_for_each_rate_that_was_tried(tmp_path: Path) -> None:
    plan = plan_of(*stored("capacity", tmp_path))
    search = plan.parts[0].search
    assert search is not None
    assert (search.objectives, search.most_trials) == ("p50<50ms", 3)
    assert isinstance(plan.cells[0].trial.load, ClosedLoad)
    assert all(isinstance(cell.trial.load, OpenLoad) for cell in plan.cells[1:])


def test_a_plan_keeps_its_parts_and_cells(tmp_path: Path) -> None:
    plan = plan_of(*stored("plan", tmp_path))
    assert [part.name for part in plan.parts] == ["closed", "whole"]
    assert [part.shape for part in plan.parts] == ["matrix", "matrix"]
    assert len(plan.cells) == 6


def test_a_plan_of_a_later_version_is_refused_in_a_sentence(tmp_path: Path) -> None:
    row, _ = stored("plan", tmp_path)
    row.spec["cells"][0]["quantum"] = True
    with pytest.raises(StoreError, match="is not understood by this one"):
        plan_of(row)


def old_cross_check(folder: Path) -> tuple[ExperimentRow, list[StoredTrial]]:
    """As it was stored when the tools' runs were kept in the plan."""
    row, trials = stored("second-opinion", folder)
    spec = json.loads((Path(__file__).parent / "schema2/second-opinion.json").read_text("utf-8"))
    return replace(row, spec=spec), trials


def test_an_old_cross_check_has_the_runs_of_its_tools_in_its_trials(tmp_path: Path) -> None:
    row, trials = old_cross_check(tmp_path)
    (part,) = plan_of(row, trials).parts
    assert part.cross_check == CrossCheck(
        versions={"wrk": "4.2.0"}, left_out={"ab": "it is not installed: apt install apache2-utils"}
    )
    own, wrk = opinions_of(result_view(row, trials).parts[0])
    assert (own.tool, own.runs[0].counted) == ("prony", 9100)
    assert (wrk.tool, wrk.runs[0].requests, wrk.runs[0].counted) == ("wrk", 9000, 9004)
    assert wrk.ratio == pytest.approx(9004 / own.runs[0].per_s)


def test_a_stale_judgement_is_made_again_for_whoever_shows_the_trial(tmp_path: Path) -> None:
    row, trials = stored("plan", tmp_path)
    assert all(one.judgements[-1].stale for one in trials)
    for before, after in zip(trials, trials_of(row, trials), strict=True):
        assert not after.judgements[-1].stale
        assert after.judgement == conclude(before.record).judgement
        assert after.judgement.findings
        assert after.record == before.record
    view = result_view(row, trials)
    assert [one.judgement for one in view.trials] == [one.judgement for one in trials_of(row, trials)]
    assert any("prony results rejudge" in one for one in view.warnings), "and the reader is told"


def test_it_is_made_again_under_the_limits_that_it_was_made_under_and_that_there_still_are(
    tmp_path: Path,
) -> None:
    row, trials = stored("plan", tmp_path)
    limits = {"samples_confidence": 0.9, "errors_of_old": 0.5}
    (newest,) = trials[0].judgements
    old = replace(newest, judgement=newest.judgement.model_copy(update={"limits": limits}))
    (again, *_) = trials_of(row, [replace(trials[0], judgements=(old,)), *trials[1:]])
    assert again.judgement.limits == {"samples_confidence": 0.9}


def test_judging_again_stores_what_is_stale_anew_and_keeps_it(tmp_path: Path) -> None:
    row, trials = stored("plan", tmp_path)
    store = Store.open(tmp_path / "results.db")
    found = rejudge(store, row.id, {})
    assert all(one.changed for one in found)
    assert {change.before for one in found for change in one.changes} == {None}
    now = store.trials(row.id)
    assert [one.first for one in now] == [one.first for one in trials]
    again = trials_of(row, trials)
    assert [one.judgement.findings for one in now] == [one.judgement.findings for one in again]
    assert not any(one.judgements[-1].stale for one in now)
    assert not any(one.changed for one in rejudge(store, row.id, {}))


def test_an_old_cross_check_cannot_be_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row, trials = old_cross_check(tmp_path)
    store = Store.open(tmp_path / "results.db")
    monkeypatch.setattr(store, "experiment", lambda _: row)
    monkeypatch.setattr(store, "trials", lambda _: trials)
    with pytest.raises(UsageError, match="run it again"):
        resumable(store, row.id)


@pytest.mark.parametrize("name", NAMES)
def test_only_what_recorded_its_whole_plan_can_be_continued(name: str, tmp_path: Path) -> None:
    store = Store.open(tmp_path / "results.db")
    identifier, _ = read(store, SCHEMA_1 / f"{name}.prony.gz")
    if name.startswith(("compare", "plan")):
        assert resumable(store, identifier)[1].title
    else:
        with pytest.raises(UsageError, match="run it again"):
            resumable(store, identifier)
