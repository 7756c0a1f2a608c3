"""A store of every earlier schema is read by this Prony as if it had been written now, on both databases."""

from __future__ import annotations

import gzip
import sqlite3
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.exc import OperationalError

from prony.errors import StoreError
from prony.report.reading import load_result
from prony.store import Search, Store, migrations, schema, summaries, transfer
from tests.experiment.test_stored import NAMES, SCHEMA_1
from tests.store.test_store_trouble import without_root

SCHEMAS = Path(__file__).parent / "schemas"
"""`vN.db.gz` and `vN.postgresql.sql.gz`: stores of the last Prony with schema N. That of 1 holds the exports
of tests/experiment/schema1; in each the second experiment was judged twice.
"""
EARLIER = range(1, schema.SCHEMA_VERSION)


def stored_file(version: int, folder: Path) -> Path:
    """An SQLite store of an earlier schema."""
    path = folder / f"v{version}.db"
    path.write_bytes(gzip.decompress((SCHEMAS / f"v{version}.db.gz").read_bytes()))
    return path


def restore(version: int, url: str) -> None:
    """A PostgreSQL store of an earlier schema, into an empty database."""
    dump = gzip.decompress((SCHEMAS / f"v{version}.postgresql.sql.gz").read_bytes()).decode()
    lines = [line for line in dump.splitlines() if not line.startswith("\\")]  # psql's own
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("\n".join(lines).encode())


def check(target: str | Path, fresh: Store) -> None:
    """It is what the exports say, and whatever is new works on it."""
    store = Store.open(target)
    assert {row.id for row in store.experiments()} == {row.id for row in fresh.experiments()}
    for row in store.experiments():
        mine, theirs = store.trials(row.id), fresh.trials(row.id)
        assert [one.record for one in mine] == [one.record for one in theirs]
        assert [one.first for one in mine] == [one.first for one in theirs]
        assert all(
            judged.stale and not judged.judgement.findings for one in mine for judged in one.judgements
        )
        assert load_result(store, row.id).title == row.name
    found, expected = store.search().experiments, fresh.search().experiments
    assert [(one.id, one.command, one.servers) for one in found] == [
        (one.id, one.command, one.servers) for one in expected
    ]
    assert {one.command for one in found} == {"compare", "load", "sweep", "capacity", "run"}
    judged_twice = [
        one for row in store.experiments() for one in store.trials(row.id) if len(one.judgements) > 1
    ]
    assert judged_twice
    (identifier,) = {one.record.experiment_id for one in judged_twice}
    assert next(one for one in found if one.id == identifier).conforming == len(judged_twice)
    store.tag(identifier, "old")
    assert [one.id for one in store.search(Search(tag="old", conforming=True)).experiments] == [identifier]
    assert store.remove(found[-1].id)
    store.check_writable()
    store.close()
    again = Store.open(target)
    assert again.search().total == len(expected) - 1
    again.close()


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The same experiments in a store of now."""
    store = Store.open(tmp_path_factory.mktemp("fresh") / "results.db")
    for name in NAMES:
        transfer.read(store, SCHEMA_1 / f"{name}.prony.gz")
    return store


def test_there_is_a_stored_file_of_every_earlier_schema() -> None:
    missing = [
        name
        for version in EARLIER
        for name in (f"v{version}.db.gz", f"v{version}.postgresql.sql.gz")
        if not (SCHEMAS / name).exists()
    ]
    assert missing == [], "whoever raises SCHEMA_VERSION stores one of the schema before"


@pytest.mark.parametrize("version", EARLIER)
def test_an_earlier_file_is_migrated(version: int, tmp_path: Path, fresh: Store) -> None:
    path = stored_file(version, tmp_path)
    check(path, fresh)
    assert differing(create_engine(f"sqlite:///{path}")) == []
    with sqlite3.connect(path) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert raw.execute("PRAGMA foreign_key_check").fetchall() == []
    raw.close()


@pytest.mark.e2e
@pytest.mark.needs("postgresql")
@pytest.mark.parametrize("version", EARLIER)
def test_an_earlier_database_is_migrated(version: int, url: str, fresh: Store) -> None:
    restore(version, url)
    check(url, fresh)
    assert differing(create_engine(url.replace("postgresql:", "postgresql+psycopg:"))) == []


def differing(engine: Engine) -> list[object]:
    """What a database has other than the tables of now, but for the table that Alembic keeps."""
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        found = compare_metadata(context, schema.metadata)
    engine.dispose()
    return [one for one in found if getattr(one[1], "name", "") != "alembic_version"]


def test_the_migrations_from_nothing_make_the_tables_of_now(tmp_path: Path) -> None:
    path = tmp_path / "made.db"
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        migrations.upgrade(connection, 0, schema.SCHEMA_VERSION)
    assert differing(engine) == []
    Store.open(tmp_path / "now.db").close()

    def tables(file: Path) -> dict[str, list[str]]:
        """Columns and constraints of each; SQLite's copy of a table has the constraints in any order."""
        with sqlite3.connect(file) as raw:
            rows = raw.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        raw.close()
        return {
            name: sorted("".join(sql.replace('"', "").split()).removesuffix(")").split(","))
            for name, sql in rows
            if name not in ("alembic_version",)
        }

    assert tables(path) == tables(tmp_path / "now.db")


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stored_file(1, tmp_path)
    before = tables_and_rows(path)

    def fail(connection: Connection) -> None:
        connection.exec_driver_sql("DROP TABLE judgements")
        raise OperationalError("s", {}, Exception("no such luck"))

    monkeypatch.setattr(summaries, "rebuild", fail)
    with pytest.raises(StoreError, match=r"older Prony \(schema 1; this one has 3\).*no such luck") as caught:
        Store.open(path)
    assert "\n" not in str(caught.value)
    assert tables_and_rows(path) == before
    monkeypatch.undo()
    assert len(Store.open(path).experiments()) == len(NAMES)


def tables_and_rows(path: Path) -> dict[str, int]:
    with sqlite3.connect(path) as raw:
        names = [row[0] for row in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        counts = {name: raw.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}
    raw.close()
    return counts


def test_an_earlier_file_that_may_only_be_read_says_why_it_cannot_be(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and folder.name.startswith(("pytest-", "popen-", "test_")):
            folder.chmod(0o755)
    path = stored_file(1, tmp_path)
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        with without_root(), pytest.raises(StoreError, match=r"schema 1; this one has 3\).*may only be read"):
            Store.open(path)
    finally:
        tmp_path.chmod(0o755)


OPENS = "import sys; from prony.store import Store; print(len(Store.open(sys.argv[1]).experiments()))"


def test_several_may_open_an_earlier_file_at_once(tmp_path: Path) -> None:
    path = stored_file(1, tmp_path)
    labs = [
        subprocess.Popen([sys.executable, "-c", OPENS, str(path)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert [lab.communicate(timeout=240)[0].strip() for lab in labs] == [str(len(NAMES))] * 3
    assert differing(create_engine(f"sqlite:///{path}")) == []


def test_a_record_that_cannot_be_read_does_not_keep_a_store_from_being_migrated(tmp_path: Path) -> None:
    path = stored_file(1, tmp_path)
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE trials SET record = x'00' WHERE id = (SELECT min(id) FROM trials)")
        raw.execute("UPDATE experiments SET spec = '' WHERE id = (SELECT max(id) FROM experiments)")
    raw.close()
    store = Store.open(path)
    assert store.search().total == len(NAMES)
    with sqlite3.connect(path) as raw:
        (of,) = raw.execute("SELECT experiment_id FROM trials WHERE record = x'00'").fetchone()
    raw.close()
    with pytest.raises(StoreError, match="cannot be read"):
        store.trials(of)
