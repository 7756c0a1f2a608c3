"""What is stored comes back as it was, is never changed, and is found by what a person types."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from prony import __version__
from prony.errors import ExitCode, StoreError, UsageError
from prony.evidence.host import Fingerprint
from prony.judge.finding import Judgement
from prony.store import ExperimentStatus, Store, catalogue, ids, owner
from prony.store.location import default_path
from tests.store.conftest import MakeTrial
from tests.store.store_samples import plan

Begin = Callable[[], str]


def test_an_experiment_and_its_trials_come_back_as_they_were(
    store: Store,
    begin: Begin,
    make_trial: MakeTrial,
    judgement: Judgement,
    fingerprint: Fingerprint,
    path: Path,
) -> None:
    identifier = begin()
    records = [make_trial(identifier, number) for number in (2, 1, 3)]
    for record in records:
        store.add_trial(record, judgement, {"requests_per_s": 1.5, "p99_ms": 2.5})
    again = Store.open(path)  # a fresh look at the file
    row = again.experiment(identifier)
    assert (row.id, row.name, row.spec, row.seed, row.quick) == (identifier, "a vs b", plan(), 7, True)
    assert (row.status, row.ended, row.trials, row.prony_version) == ("running", None, 3, __version__)
    assert row.fingerprint == fingerprint
    assert abs(row.created - datetime.now(UTC)) < timedelta(minutes=5)
    stored = again.trials(identifier)
    assert [one.record for one in stored] == records, "as they ran, whatever the clock says: it may go back"
    assert stored[0].judgement == judgement
    assert stored[0].figures == {"requests_per_s": 1.5, "p99_ms": 2.5}
    assert again.trials("nothing") == []


def test_a_record_is_compressed_and_small(
    store: Store, begin: Begin, make_trial: MakeTrial, judgement: Judgement, path: Path
) -> None:
    record = make_trial(begin(), rows=600)
    store.add_trial(record, judgement, {})
    with sqlite3.connect(path) as raw:
        (size,) = raw.execute("SELECT length(record) FROM trials").fetchone()
    raw.close()
    assert size * 5 < len(record.model_dump_json())


@pytest.mark.parametrize("status", ["finished", "interrupted"])
def test_the_end_of_an_experiment_is_recorded(store: Store, begin: Begin, status: ExperimentStatus) -> None:
    identifier = begin()
    store.finish_experiment(identifier, status)
    row = store.experiment(identifier)
    assert row.status == status
    assert row.ended is not None
    assert row.ended >= row.created


def test_judging_again_keeps_the_older_judgement(
    store: Store, begin: Begin, make_trial: MakeTrial, judgement: Judgement
) -> None:
    record = make_trial(begin())
    store.add_trial(record, judgement, {"a": 1.0})
    second = Judgement(conforms=False, findings=())
    store.add_judgements({record.id: (second, {"a": 2.0})})
    (stored,) = store.trials(record.experiment_id)
    assert [one.judgement for one in stored.judgements] == [judgement, second]
    assert (stored.judgement, stored.figures) == (second, {"a": 2.0})
    assert stored.record == record
    with pytest.raises(StoreError, match="nowhere"):
        store.add_judgements({record.id: (judgement, {}), "nowhere": (second, {})})
    assert store.trials(record.experiment_id) == [stored]


def test_a_stored_trial_is_never_changed(
    store: Store,
    begin: Begin,
    make_trial: MakeTrial,
    judgement: Judgement,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    record = make_trial(begin())
    store.add_trial(record, judgement, {"a": 1.0})
    other = make_trial(record.experiment_id, server="jetty")
    with pytest.raises(StoreError, match=other.id):
        store.add_trial(other, judgement, {})
    (stored,) = store.trials(record.experiment_id)
    assert stored.record == record
    assert len(stored.judgements) == 1


def test_a_trial_of_no_experiment_is_refused(
    store: Store, make_trial: MakeTrial, judgement: Judgement, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(StoreError, match="000000-0000"):
        store.add_trial(make_trial("000000-0000"), judgement, {})


def put(store: Store, fingerprint: Fingerprint, path: Path, *identifiers: str) -> None:
    """Experiments under ids of our choosing, in the order of their creation."""
    for number, identifier in enumerate(identifiers):
        made = store.create_experiment(
            name=identifier, spec={}, fingerprint=fingerprint, seed=number, quick=False
        )
        with sqlite3.connect(path) as raw:
            raw.execute(
                "UPDATE experiments SET id = ?, created = ? WHERE id = ?",
                (identifier, f"2026-11-{number + 1:02d}T00:00:00+00:00", made),
            )
            raw.execute(
                "UPDATE experiment_summaries SET experiment_id = ? WHERE experiment_id = ?",
                (identifier, made),
            )
        raw.close()


def test_an_experiment_is_found_by_what_a_person_types(
    store: Store, fingerprint: Fingerprint, path: Path
) -> None:
    put(store, fingerprint, path, "261101-0abc", "261102-7xyz", "261103-7xy0")
    assert [row.id for row in store.experiments()] == ["261103-7xy0", "261102-7xyz", "261101-0abc"]
    for typed, found in {
        "latest": "261103-7xy0",
        " LATEST ": "261103-7xy0",
        "261101-0abc": "261101-0abc",
        "261102": "261102-7xyz",
        "7xyz": "261102-7xyz",
        "0": "261101-0abc",
        "OABC": "261101-0abc",
        "261103-7XYO": "261103-7xy0",
    }.items():
        assert store.experiment(typed).id == found, typed
    with pytest.raises(UsageError, match=r"'7xy'.* 2 ") as caught:
        store.experiment("7xy")
    assert caught.value.exit_code == ExitCode.USAGE
    for nothing in ("zz", "", "%", "_"):
        with pytest.raises(UsageError, match=f"'{nothing}'"):
            store.experiment(nothing)


def test_an_empty_store_says_so(store: Store) -> None:
    assert store.experiments() == []
    with pytest.raises(UsageError, match=re.escape(store.where)):
        store.experiment("latest")


def test_ids_are_in_the_order_of_time_and_typeable() -> None:
    start = datetime(2026, 11, 20, 23, 59, 0, tzinfo=UTC)
    moments = [start + timedelta(milliseconds=90 * step) for step in range(2000)]
    made = [ids.experiment_id(moment) for moment in moments]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    for identifier in made:
        assert len(identifier) == 11
        assert set(identifier) <= set(ids.ALPHABET) | {"-"}
        assert ids.as_typed(identifier.upper()) == identifier
    assert ids.experiment_id(start, 1) > ids.experiment_id(start)
    late = datetime(2026, 11, 21, 23, 59, 59, 999_999, tzinfo=UTC)
    assert ids.experiment_id(late, 50) == "261121-zzzz"
    assert ids.experiment_id(datetime(2026, 11, 21, tzinfo=UTC)) == "261121-0000"


def test_two_experiments_in_the_same_instant_get_two_ids(
    store: Store, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(datetime):
        @classmethod
        def now(cls, _tz: tzinfo | None = None) -> Stopped:
            return cls(2026, 11, 21, 12, tzinfo=UTC)

    monkeypatch.setattr(catalogue, "datetime", Stopped)
    made = [begin() for _ in range(5)]
    assert made == ["261121-g000", "261121-g001", "261121-g002", "261121-g003", "261121-g004"]
    monkeypatch.undo()
    assert store.experiment("latest").id == "261121-g004"


def test_an_experiment_whose_process_died_is_not_running(store: Store, begin: Begin, path: Path) -> None:
    identifier = begin()
    assert store.experiment(identifier).status == "running"
    mine = owner.this_process()
    assert not owner.is_gone(mine)
    host, boot, pid, started = mine.split("|")
    assert owner.is_gone(f"{host}|{boot}|{pid}|{int(started) + 1}")
    assert owner.is_gone(f"{host}|another-boot|{pid}|{started}")
    assert not owner.is_gone(f"another-host|{boot}|{pid}|{started}")
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE experiments SET owner = ?", (f"{host}|{boot}|4194304|1",))
    raw.close()
    assert store.experiment(identifier).status == "interrupted"


def test_the_probe_leaves_nothing_behind(store: Store, path: Path) -> None:
    store.check_writable()
    with sqlite3.connect(path) as raw:
        names = [row[0] for row in raw.execute("SELECT name FROM prony_schema")]
    raw.close()
    assert sorted(names) == ["created_by", "version"]


def test_the_default_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PRONY_DB", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert Store.open().where == str(tmp_path / "prony/results.db")
    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/ignored")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_path() == str(tmp_path / "home/.local/share/prony/results.db")
    monkeypatch.setenv("PRONY_DB", str(tmp_path / "named.db"))
    assert Store.open().where == str(tmp_path / "named.db")
    assert Store.open(f"sqlite:///{tmp_path}/url.db").where == str(tmp_path / "url.db")


def test_a_name_with_odd_characters_is_only_a_name(tmp_path: Path) -> None:
    path = tmp_path / "a b?mode=ro&x#é%20.db"
    store = Store.open(path)
    store.check_writable()
    assert path.exists()
    assert Store.open(path).experiments() == []
