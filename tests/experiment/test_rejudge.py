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
from prony.experiment.rejudge import rejudge
from prony.judge.finding import Status
from prony.report.rejudged import RejudgedOut, render
from prony.store import Store, transfer

EXAMPLE = Path(__file__).parent / "schema1" / "plan.prony.gz"
"""Six trials on a busy host: `isolation` is invalid in all of them, nothing else is."""
BUSY = {"isolation_others": 1.0, "isolation_invalid_factor": 1000.0}
"""Limits under which that host's other processes are no reason to reject."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.db"


@pytest.fixture
def store(path: Path) -> Store:
    store = Store.open(path)
    identifier, _ = transfer.read(store, EXAMPLE)
    rejudge(store, identifier, {})  # in the words of this version
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
    found = rejudge(store, identifier, BUSY)
    assert {one.before.verdict for one in found} == {Status.INVALID}
    assert Status.INVALID not in {one.after.verdict for one in found}
    for one in found:
        assert {change.shown.check for change in one.changes} == {"isolation"}
    after = store.trials(identifier)
    assert records(path) == evidence
    for old, new, one in zip(before, after, found, strict=True):
        assert new.judgements[: len(old.judgements)] == old.judgements
        assert new.first == old.first
        assert (new.judgement, new.judgement.limits) == (one.after, BUSY)
    back = rejudge(store, identifier, {})
    assert {one.after.verdict for one in back} == {Status.INVALID}, "and under the plan's own limits again"


def test_the_limits_of_the_plan_hold_and_those_that_are_given_go_before_them(store: Store) -> None:
    row = store.experiment("latest")
    for cell in row.spec["cells"]:
        cell["limits"] = BUSY
    store.update_plan(row.id, row.spec)
    assert Status.INVALID not in {one.after.verdict for one in rejudge(store, row.id, {})}
    strict = rejudge(store, row.id, {"isolation_others": 0.001, "isolation_invalid_factor": 1.0})
    assert {one.after.verdict for one in strict} == {Status.INVALID}


def test_an_export_takes_all_judgements_along(store: Store, tmp_path: Path) -> None:
    identifier = store.experiment("latest").id
    rejudge(store, identifier, BUSY)
    file, other = tmp_path / "results.prony", Store.open(tmp_path / "other.db")
    transfer.write(store, identifier, file)
    transfer.read(other, file)
    assert other.trials(identifier) == store.trials(identifier)


@pytest.mark.usefixtures("store")
def test_the_command_says_what_changed(path: Path, tmp_path: Path) -> None:
    limits = tmp_path / "limits.yaml"
    limits.write_text("isolation_others: 1\n")
    words = ["results", "rejudge", "latest", "--db", str(path), "--limits", str(limits)]
    words += ["--limits", "isolation_invalid_factor=1000", "--json"]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0, shown.output
    out = RejudgedOut.model_validate(json.loads(shown.stdout))
    assert out.limits == BUSY
    assert [trial.before for trial in out.trials] == ["invalid"] * 6
    assert [[(c.check, c.before) for c in trial.changes] for trial in out.trials] == [
        [("isolation", "invalid")]
    ] * 6
    assert all("other processes below 100 %" in trial.changes[0].limit for trial in out.trials)


def test_the_table_names_trials_whose_checks_differ_and_no_others(store: Store) -> None:
    identifier = store.experiment("latest").id
    unchanged, changed = (
        _shown(identifier, limits, store) for limits in ({}, {"isolation_invalid_factor": 1000.0})
    )
    assert "6 trials judged again" in unchanged
    assert "0 verdicts differ; 0 new judgements stored" in unchanged
    assert "isolation:" not in unchanged
    assert "limits of the plan and isolation_invalid_factor=1000." in changed
    assert "6 new judgements stored" in changed
    assert changed.count("isolation: invalid → suspect") == 6


def _shown(identifier: str, limits: dict[str, float], store: Store) -> str:
    console = Console(record=True, width=400, file=StringIO())
    render(identifier, limits, rejudge(store, identifier, limits), console)
    return console.export_text()


def test_an_unknown_experiment_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="No experiment 'zzz'"):
        rejudge(store, "zzz", {})
