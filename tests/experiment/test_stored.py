"""prony/experiment/stored.py: what is read of a stored plan, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from prony.errors import StoreError, UsageError
from prony.experiment.stored import plan_of, resumable
from prony.plan.plan import Plan
from prony.store import ExperimentRow, Store
from prony.store.transfer import read

PUBLISHED = Path(__file__).parents[2] / "docs/results"


@pytest.fixture
def row(tmp_path: Path) -> ExperimentRow:
    """One of the published results."""
    store = Store.open(tmp_path / "results.db")
    identifier, _ = read(store, PUBLISHED / "jaxrs/results.prony")
    return store.experiment(identifier)


def test_a_stored_plan_is_the_plan(row: ExperimentRow, tmp_path: Path) -> None:
    plan = plan_of(row)
    assert (plan.title, plan.seed, plan.quick) == (row.name, row.seed, row.quick)
    assert Plan.model_validate(plan.as_stored()) == plan
    known = {cell.id: cell for cell in plan.cells}
    trials = Store.open(tmp_path / "results.db").trials(row.id)
    assert trials
    for trial in trials:
        cell = known[trial.record.cell]
        assert (cell.server, cell.trial.load_name) == (trial.record.server, trial.record.load_name)
    ran = [(t.record.cell, t.record.block, t.record.position) for t in trials if t.record.kind == "trial"]
    planned = [(one.cell, one.block, one.position) for one in plan.order() if one.kind == "trial"]
    assert ran == planned, "published results keep the order of their seed"


@pytest.mark.parametrize("change", [{"schema": 1}, {"quantum": True}, {"cells": 7}, {"parts": [{}]}])
def test_a_plan_of_another_version_is_refused_in_a_sentence(
    row: ExperimentRow, change: dict[str, object]
) -> None:
    with pytest.raises(StoreError, match=rf"{row.id}.*{row.prony_version}") as refused:
        plan_of(replace(row, spec={**row.spec, **change}))
    assert "\n" not in str(refused.value)


def test_what_runs_cannot_be_continued(row: ExperimentRow, tmp_path: Path) -> None:
    store = Store.open(tmp_path / "results.db")
    assert resumable(store, row.id)[1].title == row.name
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "experiment", lambda *_: replace(row, status="running"))
        with pytest.raises(UsageError, match=rf"^{row.id} "):
            resumable(store, row.id)
