"""Stored trials judged again: under other limits, with the first judgement kept and no trial changed."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from prony.cli.main import app
from prony.errors import UsageError
from prony.experiment.conclude import rejudge
from prony.judge.finding import Kind
from prony.report.rejudged import RejudgedOut, render
from prony.store import Store, transfer
from tests import seeded_store

NIGHT = 3
"""Of its six trials the fifth does not conform: 5 % of its requests failed."""
AS_MADE = [True, True, True, True, False, True]
LENIENT = {"errors_share_max": 0.1}
"""Under this limit it conforms."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.db"


@pytest.fixture
def store(path: Path) -> Store:
    store = Store.open(path)
    seeded_store.seed(store, NIGHT + 1)
    return store


def records(path: Path) -> list[bytes]:
    with closing(sqlite3.connect(path)) as database:
        return [row[0] for row in database.execute("SELECT record FROM trials ORDER BY id")]


def test_the_same_limits_say_the_same_and_store_nothing(store: Store) -> None:
    identifier = store.experiment("latest").id
    before = store.trials(identifier)
    found = rejudge(store, "latest", {})
    assert [one.changed for one in found] == [False] * 6
    assert store.trials(identifier) == before


def test_other_limits_are_judged_from_the_evidence_and_the_first_judgement_stays(
    store: Store, path: Path
) -> None:
    identifier = store.experiment("latest").id
    before, evidence = store.trials(identifier), records(path)
    found = rejudge(store, identifier, LENIENT)
    assert [one.before.conforms for one in found] == AS_MADE
    assert all(one.after.conforms for one in found)
    for one in found:
        assert {change.shown.check for change in one.changes} == {"errors"}
    after = store.trials(identifier)
    assert records(path) == evidence
    for old, new, one in zip(before, after, found, strict=True):
        assert new.judgements[: len(old.judgements)] == old.judgements
        assert new.first == old.first
        assert (new.judgement, new.judgement.limits) == (one.after, LENIENT)
    assert store.search(limit=1).experiments[0].conforming == 6, "lists show the newest judgement"
    back = rejudge(store, identifier, {})
    assert [one.after.conforms for one in back] == AS_MADE, "and under the plan's own limits again"


def test_the_limits_of_the_plan_hold_and_those_that_are_given_go_before_them(store: Store) -> None:
    row = store.experiment("latest")
    for cell in row.spec["cells"]:
        cell["limits"] = {**LENIENT, "errors_of_old": 0.5}
    store.update_plan(row.id, row.spec)
    assert all(one.after.conforms for one in rejudge(store, row.id, {})), "what is no limit any more is none"
    strict = rejudge(store, row.id, {"errors_share_max": 0.04})
    assert [one.after.conforms for one in strict] == AS_MADE


def test_an_export_takes_all_judgements_along(store: Store, tmp_path: Path) -> None:
    identifier = store.experiment("latest").id
    rejudge(store, identifier, LENIENT)
    file, other = tmp_path / "results.prony", Store.open(tmp_path / "other.db")
    transfer.write(store, identifier, file)
    transfer.read(other, file)
    assert other.trials(identifier) == store.trials(identifier)


@pytest.mark.usefixtures("store")
def test_the_command_says_what_changed(path: Path, tmp_path: Path) -> None:
    limits = tmp_path / "limits.yaml"
    limits.write_text("errors_share_max: 0.2\n")
    words = ["results", "rejudge", "latest", "--db", str(path), "--limits", str(limits)]
    words += ["--limits", "errors_share_max=0.1", "--json"]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0, shown.output
    out = RejudgedOut.model_validate(json.loads(shown.stdout))
    assert out.limits == LENIENT
    assert [(trial.conformed, trial.conforms) for trial in out.trials] == [(was, True) for was in AS_MADE]
    (change,) = out.trials[AS_MADE.index(False)].changes
    assert (change.check, change.code) == ("errors", "failed")
    assert (change.before, change.after) == (Kind.NOT_CONFORMING, Kind.BUDGET)
    assert "10 %" in change.limit


def test_the_table_names_trials_whose_checks_differ_and_no_others(store: Store) -> None:
    identifier = store.experiment("latest").id
    unchanged, changed = (_shown(identifier, limits, store) for limits in ({}, LENIENT))
    assert "6 trials judged again" in unchanged
    assert "5 conform; 0 new judgements stored" in unchanged
    assert f"{identifier}-" not in unchanged
    assert "limits of the plan and errors_share_max=0.1." in changed
    assert "6 conform, before 5; 6 new judgements stored" in changed
    assert changed.count("errors:") == changed.count(f"{identifier}-") == 1


def _shown(identifier: str, limits: dict[str, float], store: Store) -> str:
    console = Console(record=True, width=400, file=StringIO())
    render(identifier, limits, rejudge(store, identifier, limits), console)
    return console.export_text()


def test_an_unknown_experiment_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="No experiment 'zzz'"):
        rejudge(store, "zzz", {})
