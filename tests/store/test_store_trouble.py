"""Whatever a disk, a crash or a wrong file name can do: one sentence, and no measurement is lost."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Dialect
from sqlalchemy.exc import OperationalError

from prony.errors import ExitCode, StoreError
from prony.judge.finding import Judgement
from prony.store import Store, schema
from prony.store.database import Database, explained
from tests.store.conftest import MakeTrial

Begin = Callable[[], str]
NOBODY = 65534


def refused(target: str | Path) -> str:
    """The sentence with which a target is refused."""
    with pytest.raises(StoreError) as caught:
        Store.open(target)
    assert caught.value.exit_code == ExitCode.STORE
    assert "\n" not in str(caught.value)
    return str(caught.value)


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {entry.name: (entry.read_bytes(), entry.stat().st_mtime_ns) for entry in folder.iterdir()}


@contextmanager
def without_root() -> Iterator[None]:
    """Root ignores permission bits; for a moment be a user who does not."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_to_all(tmp_path: Path) -> None:
    """A folder that any user may reach (pytest makes its own ones for one user alone)."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder.name.startswith(("pytest-", "popen-", "test_")):
            folder.chmod(0o755)


def test_files_of_others_are_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("These are not the results you are looking for.")
    (tmp_path / "torn.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    for name, mode in (("other.db", "DELETE"), ("wal.db", "WAL")):
        with sqlite3.connect(tmp_path / name) as other:
            other.execute(f"PRAGMA journal_mode={mode}")
            other.execute("CREATE TABLE photos (id INTEGER)")
            other.execute("INSERT INTO photos VALUES (1)")
        other.close()
    before = contents(tmp_path)
    assert "text.db" in refused(tmp_path / "text.db")
    assert "torn.db" in refused(tmp_path / "torn.db")
    assert "'photos'" in refused(tmp_path / "other.db")
    assert "'photos'" in refused(tmp_path / "wal.db")
    assert contents(tmp_path) == before


def test_a_folder_and_a_path_through_a_file_are_refused(tmp_path: Path) -> None:
    assert "results.db" in refused(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    for device in (tmp_path / "pipe", "/dev/null"):
        assert str(device) in refused(device)
    (tmp_path / "file").write_text("x")
    assert f"{tmp_path / 'file'} " in refused(tmp_path / "file" / "results.db")


def test_an_empty_file_and_an_empty_database_become_a_store(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    with sqlite3.connect(tmp_path / "header.db") as fresh:
        fresh.execute(
            "PRAGMA journal_mode=WAL"
        )  # as a Prony leaves it that is killed before the tables are made
    fresh.close()
    assert (tmp_path / "header.db").stat().st_size > 0
    for name in ("empty.db", "header.db"):
        Store.open(tmp_path / name).check_writable()


@pytest.mark.usefixtures("store")
def test_a_newer_schema_is_refused_and_left_alone(path: Path) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE prony_schema SET value = '99' WHERE name = 'version'")
    raw.close()
    before = path.read_bytes()
    assert "schema 99" in refused(path)
    assert path.read_bytes() == before


@pytest.mark.usefixtures("store")
def test_a_missing_version_is_damage(path: Path) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute("DELETE FROM prony_schema")
    raw.close()
    assert str(path) in refused(path)


def test_a_damaged_database_is_one_sentence(
    store: Store, begin: Begin, make_trial: MakeTrial, judgement: Judgement, path: Path
) -> None:
    identifier = begin()
    for number in range(1, 30):
        store.add_trial(make_trial(identifier, number), judgement, {})
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(StoreError, match="damaged"):
        Store.open(path).experiments()


def test_a_record_that_is_not_understood_is_one_sentence(
    store: Store, begin: Begin, make_trial: MakeTrial, judgement: Judgement, path: Path
) -> None:
    identifier = begin()
    store.add_trial(make_trial(identifier), judgement, {})
    for change in ("record = x'00'", "record_format = 'cbor'"):
        with sqlite3.connect(path) as raw:
            raw.execute(f"UPDATE trials SET {change}")
        raw.close()
        with pytest.raises(StoreError, match=f"{identifier}-001"):
            store.trials(identifier)


@pytest.mark.usefixtures("store", "open_to_all")
def test_a_file_that_may_not_be_read(path: Path) -> None:
    path.chmod(0)
    with without_root():
        assert "Permission denied" in refused(path)


@pytest.mark.usefixtures("open_to_all")
def test_a_read_only_folder_can_be_read_but_not_written(
    store: Store, begin: Begin, make_trial: MakeTrial, judgement: Judgement, path: Path
) -> None:
    identifier = begin()
    store.add_trial(make_trial(identifier), judgement, {"a": 1.0})
    store.close()
    path.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        with without_root():
            reading = Store.open(path)
            assert reading.trials(identifier)[0].figures == {"a": 1.0}
            with pytest.raises(StoreError, match="--db"):
                reading.check_writable()
            assert "new.db" in refused(path.parent / "new.db")
            assert "Permission denied" in refused(path.parent / "deeper" / "new.db")
    finally:
        path.parent.chmod(0o755)


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("postgresql://ann:secret@localhost:1/x", None),
        ("nonsense://ann:secret@h/x", "nonsense"),
        ("postgresql://ann:secret@h:port/x", "h:port/x"),
        ("sqlite://", None),
        ("sqlite:///:memory:", None),
        (":memory:", None),
    ],
)
def test_urls_that_cannot_be_used(target: str, sentence: str | None) -> None:
    message = refused(target)
    assert "secret" not in message
    if sentence is not None:
        assert sentence in message


def test_a_missing_driver_is_named_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    message = refused("postgresql://ann:secret@localhost/x")
    assert "pip install 'prony[postgresql]'" in message
    assert "secret" not in message


def test_what_a_server_says_becomes_a_sentence() -> None:
    class Refusal(Exception):
        sqlstate = "53100"

    assert "disk is full" in str(explained(OperationalError("s", {}, Refusal("x")), "db"))
    odd = explained(OperationalError("s", {}, Exception("line one\nline two")), "db")
    assert "line one line two" in str(odd)


def test_a_shared_database_with_other_tables_of_our_names_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it may be on a server, where foreign tables are nothing odd."""
    path.parent.mkdir()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE experiments (id INTEGER)")
    other.close()
    monkeypatch.setattr(Database, "_refuse_foreign_file", lambda _: None)
    assert "'experiments'" in refused(path)


def test_the_schema_uses_only_types_that_every_database_has() -> None:
    from sqlalchemy.dialects import postgresql
    from sqlalchemy.schema import CreateTable

    dialect: Dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    for table in schema.metadata.sorted_tables:
        text = str(CreateTable(table).compile(dialect=dialect))
        assert "CREATE TABLE" in text
    assert {type(c.type).__name__ for t in schema.metadata.tables.values() for c in t.columns} <= {
        "String",
        "Text",
        "Integer",
        "Boolean",
        "LargeBinary",
    }
