"""What `--resume` still runs, and what a report shows of a trial that was interrupted and run again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from prony.experiment.experiment import remaining
from prony.experiment.trials import index_of, trial_id
from prony.judge.limits import CheckLimits
from prony.plan.planfile_read import read
from prony.store import Store
from prony.trial.load_run import INTERRUPTED
from tests.report import factory
from tests.store.store_samples import FINGERPRINT, JUDGEMENT, make_trial

PLAN = "title: x\nservers: one\nworkloads: hello\ntrials: 3\nloads: {users: 1}\n"


@pytest.mark.parametrize("attempt", [1, 2, 12])
def test_the_id_of_a_trial_says_its_place_whichever_attempt_it_was(attempt: int) -> None:
    made = make_trial("20261121-a-b", id=trial_id("20261121-a-b", 7, attempt))
    assert index_of(made) == 7


def test_a_trial_that_was_interrupted_is_run_again(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(PLAN)
    plan = read(tmp_path / "mine.yaml", limits=CheckLimits, seed=1)
    store = Store.open(f"sqlite:///{tmp_path / 'results.db'}")
    identifier = store.create_experiment(
        name="x", spec=plan.as_stored(), fingerprint=FINGERPRINT, seed=1, quick=False
    )
    cell = plan.cells[0].id

    def ended(number: int, **more: object) -> None:
        made = make_trial(identifier, number).model_copy(update={"cell": cell, "block": number - 1, **more})
        store.add_trial(made, JUDGEMENT, {})

    ended(1)
    ended(2, notes=(INTERRUPTED,))
    assert [one.index for one in remaining(plan, store.trials(identifier))] == [2, 3]
    ended(2, id=trial_id(identifier, 2, 2))
    assert [one.index for one in remaining(plan, store.trials(identifier))] == [3]


def test_a_report_shows_the_later_attempt_and_keeps_one_that_has_none() -> None:
    first, second = factory.experiment(blocks=2).cells[0].trials
    later = first.record.started_at + timedelta(hours=1)
    cut = [replace(t, record=t.record.model_copy(update={"notes": (INTERRUPTED,)})) for t in (first, second)]
    again = replace(first, record=first.record.model_copy(update={"id": "again", "started_at": later}))
    view = factory.experiment([*cut, again], ["spring-tomcat"])
    (cell,) = view.cells
    assert [trial.record.id for trial in cell.trials] == [second.record.id, "again"]
    assert [trial.record.id for trial in cell.superseded] == [first.record.id]
    assert any("block 2: interrupted after" in warning for warning in view.warnings)
