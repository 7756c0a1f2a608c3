"""What nobody keeps goes, wholly; what is tagged, running or newer stays."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.judge.finding import Judgement
from prony.store import FoundExperiment, Store, schema
from prony.store.pruning import Keep
from tests import command
from tests.store.conftest import MakeTrial


def prony(*words: str) -> subprocess.CompletedProcess[str]:
    return command.run(words)


NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def found(days_ago: float, **values: object) -> FoundExperiment:
    fields: dict[str, object] = {
        "id": f"{days_ago}",
        "name": "x",
        "command": "compare",
        "created": NOW - timedelta(days=days_ago),
        "ended": None,
        "status": "finished",
        "quick": False,
        "prony_version": "1",
        "fingerprint_key": "k",
        "hostname": "h",
        "trials": 1,
        "conforming": 1,
    }
    return FoundExperiment(**fields | values)  # type: ignore[arg-type]


STORED = [found(days) for days in (0.1, 1, 5, 20, 40, 90)]


@pytest.mark.parametrize(
    ("keep", "going"),
    [
        (Keep(newest=2), ["5", "20", "40", "90"]),
        (Keep(newest=100), []),
        (Keep(age=timedelta(days=20)), ["40", "90"]),
        (Keep(newest=5, age=timedelta(days=2)), ["90"]),
        (Keep(newest=1, age=timedelta(days=30)), ["40", "90"]),
    ],
)
def test_what_either_rule_keeps_stays(keep: Keep, going: list[str]) -> None:
    assert [one.id for one in keep.drops(STORED, NOW)] == going


def test_tagged_and_running_ones_stay() -> None:
    stored = [found(1), found(10, tags=("main",)), found(20, status="running"), found(90, status="running")]
    assert [one.id for one in Keep(newest=1).drops(stored, NOW)] == ["90"], "nothing runs for three months"


def test_ages_are_not_trusted_when_the_clock_went_back() -> None:
    with pytest.raises(UsageError, match="--keep") as caught:
        Keep(age=timedelta(days=1)).drops([found(-400), found(1)], NOW)
    assert "\n" not in str(caught.value)
    assert [one.id for one in Keep(newest=1).drops([found(-400), found(1)], NOW)] == ["1"]


@pytest.fixture
def three(store: Store, begin: Callable[[], str], make_trial: MakeTrial, judgement: Judgement) -> list[str]:
    made = [begin() for _ in range(3)]
    for identifier in made:
        store.add_trial(make_trial(identifier), judgement, {"a": 1.0})
        store.note(identifier, "a note")
        store.finish_experiment(identifier)
    return made


def test_the_command_lists_and_removes_only_when_told_to(store: Store, three: list[str], path: Path) -> None:
    store.tag(three[0], "main")
    words = ("results", "prune", "--keep", "1", "--db", str(path))
    dry = prony(*words)
    assert dry.returncode == 0, dry.stderr
    assert three[1] in dry.stdout
    assert "--delete" in dry.stdout
    assert store.search().total == 3
    said = json.loads(prony(*words, "--json").stdout)
    assert (said["deleted"], said["kept"], [one["id"] for one in said["experiments"]]) == (
        False,
        2,
        [three[1]],
    )
    done = prony(*words, "--delete")
    assert done.returncode == 0, done.stderr
    assert [one.id for one in store.search().experiments] == [three[2], three[0]]
    assert json.loads(prony(*words, "--delete", "--json").stdout)["experiments"] == []


def test_nothing_of_it_stays_and_the_file_shrinks(
    store: Store, begin: Callable[[], str], make_trial: MakeTrial, judgement: Judgement, path: Path
) -> None:
    identifier = begin()
    for number in range(1, 21):
        noise = os.urandom(20_000).hex()
        store.add_trial(make_trial(identifier, number, notes=(noise,)), judgement, {})
    store.note(identifier, "a note")
    store.answered(identifier, "a is faster")
    store.answered(identifier, "http://user:geheim@host/ is faster")
    (found,) = store.search().experiments
    assert "is faster" in found.answer
    assert "geheim" not in found.answer
    store.finish_experiment(identifier)
    assert store.stored_bytes(identifier) > 20 * 20_000
    before = path.stat().st_size
    assert store.remove(identifier)
    store.shrink()
    assert not store.remove(identifier)
    assert path.stat().st_size < before / 4
    with sqlite3.connect(path) as raw:
        for table in schema.metadata.tables:
            if table != "prony_schema":
                assert raw.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
    raw.close()


def test_one_that_was_tagged_meanwhile_stays(store: Store, three: list[str]) -> None:
    store.tag(three[0], "main")
    assert not store.remove(three[0])
    assert len(store.trials(three[0])) == 1


@pytest.mark.parametrize("keep", ["0", "x", "-1", "30", "1y", ""])
@pytest.mark.usefixtures("three")
def test_absurd_ages_are_one_sentence(path: Path, keep: str) -> None:
    done = prony("results", "prune", f"--keep={keep}", "--db", str(path))
    if keep == "30":
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "--keep" in done.stderr
