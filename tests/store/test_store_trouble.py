"""Whatever a disk, a crash or a wrong file name can do: one sentence, and no measurement is lost."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Dialect
from sqlalchemy.exc import OperationalError

from prony.errors import ExitCode, StoreError, UsageError
from prony.evidence.trial import TrialRecord
from prony.judge.finding import Judgement
from prony.store import Store, keeping, location, rescue, schema, transfer
from prony.store.database import Database, explained
from prony.store.owner import this_process
from prony_serve import running
from tests.store import store_samples
from tests.store.conftest import MakeTrial
from tests.store.several import several_labs
from tests.store.store_samples import NOON

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


def test_what_is_stored_and_rescued_is_its_owners_to_read(
    store: Store,
    begin: Begin,
    make_trial: MakeTrial,
    judgement: Judgement,
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = os.umask(0o022)
    try:
        other = Store.open(tmp_path / "new" / "results.db")
        state = running.Running(id="x", title="x", owner=this_process(), started=NOON, trials=1)
        running.write(other.where, state)
        saved = rescued(store, make_trial(begin()), judgement, monkeypatch)
        made = [Path(f"{other.where}{end}") for end in ("", "-wal", "-shm")]
        kept = [one.stat().st_mode & 0o777 for one in (*made, saved, path) if one.exists()]
        assert (len(kept) >= 3, set(kept)) == (True, {0o600})
        for folder in (path.parent, tmp_path / "new", running.folder(other.where)):
            assert folder.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)
    (tmp_path / "ours.db").touch(mode=0o660)
    (tmp_path / "ours.db").chmod(0o660)
    Store.open(tmp_path / "ours.db").close()
    assert (tmp_path / "ours.db").stat().st_mode & 0o777 == 0o660, "a team's own file keeps its mode"


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


def saved_trial(message: str) -> Path:
    """The file that a message names."""
    found = re.search(r"saved as (\S+\.json)\.", message)
    assert found is not None, message
    return Path(found.group(1))


def test_locked_by_another_program(
    store: Store,
    begin: Begin,
    make_trial: MakeTrial,
    judgement: Judgement,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(location, "BUSY_S", 0.05)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    record = make_trial(begin())
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked") as caught:
        store.add_trial(record, judgement, {"a": 1.0})
    other.execute("ROLLBACK")
    other.close()
    saved = saved_trial(str(caught.value))
    assert store.trials(record.experiment_id) == []
    assert transfer.read(store, saved) == (record.experiment_id, 1)
    (stored,) = store.trials(record.experiment_id)
    assert (stored.record, stored.judgement, stored.figures) == (record, judgement, {"a": 1.0})
    assert transfer.read(store, saved) == (record.experiment_id, 0)
    assert store.trials(record.experiment_id) == [stored], "importing it again changes nothing"


def rescued(store: Store, record: TrialRecord, judgement: Judgement, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which a trial was saved that the database refused."""

    def full(*_: object) -> None:
        raise StoreError("The disk is full.")

    with monkeypatch.context() as broken:
        broken.setattr(store, "_insert_trial", full)
        with pytest.raises(StoreError, match="results import") as caught:
            store.add_trial(record, judgement, {"a": 1.0})
    return saved_trial(str(caught.value))


def test_a_rescued_trial_brings_its_experiment_along(
    store: Store,
    begin: Begin,
    make_trial: MakeTrial,
    judgement: Judgement,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """The database may be lost: any other store takes the trial, with the plan and the host's fingerprint."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    identifier = begin()
    store.update_plan(identifier, store_samples.plan(note="grown"))
    saved = rescued(store, make_trial(identifier), judgement, monkeypatch)
    other = Store.open(tmp_path / "other.db")
    assert transfer.read(other, saved) == (identifier, 1)
    mine, theirs = store.experiment(identifier), other.experiment(identifier)
    assert (theirs.spec, theirs.fingerprint, theirs.created) == (mine.spec, mine.fingerprint, mine.created)
    assert theirs.spec["note"] == "grown"
    assert theirs.status == "interrupted"
    store.add_trial(make_trial(identifier, 2), judgement, {})
    whole = tmp_path / "whole.prony"
    transfer.write(store, identifier, whole)
    assert transfer.read(other, whole) == (identifier, 1), "and the rest of it, when the database is back"


def test_a_rescued_trial_of_a_process_that_did_not_begin_the_experiment(
    store: Store,
    begin: Begin,
    make_trial: MakeTrial,
    judgement: Judgement,
    monkeypatch: pytest.MonkeyPatch,
    path: Path,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    identifier = begin()
    saved = rescued(Store.open(path), make_trial(identifier), judgement, monkeypatch)
    with pytest.raises(UsageError, match=identifier):
        transfer.read(Store.open(tmp_path / "other.db"), saved)
    assert transfer.read(store, saved) == (identifier, 1)


def changed(part: str, **values: object) -> Callable[[str], str]:
    """The file with other columns in one of its rows."""

    def change(text: str) -> str:
        content = json.loads(text)
        content[part].update(values)
        return json.dumps(content)

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text[: len(text) // 2], "damaged"),
        (lambda text: text.replace('"prony_rescue": 3', '"prony_rescue": 99'), "version 99"),
        (lambda text: text.replace("prony_rescue", "other"), "prony results export"),
        (lambda text: text.replace('"id": "', '"id": "x'), "damaged"),
        (changed("experiment", id="../../etc/passwd"), "damaged"),
        (changed("experiment", id="261122-0000"), "damaged"),
        (changed("experiment", status="fine"), "damaged"),
        (changed("experiment", spec="[]"), "damaged"),
        (changed("experiment", extra=1), "damaged"),
        (changed("trial", server="jetty"), "damaged"),
        (changed("trial", experiment_id="261122-0000"), "damaged"),
        (changed("trial", extra=1), "damaged"),
        (changed("judgement", conforms="fine"), "damaged"),
        (changed("judgement", figures="[]"), "damaged"),
        (lambda _: '{"prony_rescue": ' + "[" * 100_000, "damaged"),
    ],
)
def test_a_rescued_trial_that_cannot_be_read_is_refused(
    store: Store,
    begin: Begin,
    make_trial: MakeTrial,
    judgement: Judgement,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    change: Callable[[str], str],
    said: str,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    identifier = begin()
    saved = rescued(store, make_trial(identifier), judgement, monkeypatch)
    saved.write_text(change(saved.read_text()))
    with pytest.raises(UsageError, match=said) as caught:
        transfer.read(store, saved)
    assert "\n" not in str(caught.value)
    assert store.trials(identifier) == []
    assert [one.id for one in store.search().experiments] == [identifier]


FILL = """
import os, resource, sys
sys.path.insert(0, {tests!r})
from store_samples import FINGERPRINT, JUDGEMENT, make_trial, plan
from prony.store import Store
store = Store.open({path!r})
identifier = store.create_experiment(name="x", spec=plan(), fingerprint=FINGERPRINT, seed=1, quick=False)
size = {limit!r}
if size:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
stored = 0
try:
    for number in range(1, 400):
        noise = os.urandom(20_000).hex()  # so that the record does not compress to nothing
        store.add_trial(make_trial(identifier, number, notes=(noise,)), JUDGEMENT, {{}})
        stored = number
except Exception as fault:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(stored, len(store.trials(identifier)), type(fault).__name__, fault)
"""


def fill(path: Path, tmp: Path, limit: int) -> tuple[int, int, str]:
    """Store trials until the disk is full: (stored, found again, the message)."""
    script = FILL.format(tests=str(Path(__file__).parent), path=str(path), limit=limit)
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp)},
        timeout=120,
        check=False,
    )
    stored, found, kind, message = done.stdout.split(" ", 3)
    assert kind == "TrialNotStored", done.stdout + done.stderr
    return int(stored), int(found), message.strip()


def test_a_file_that_may_not_grow_loses_nothing(tmp_path: Path) -> None:
    stored, found, message = fill(tmp_path / "results.db", tmp_path, 1_000_000)
    assert stored == found > 0
    record = TrialRecord.model_validate_json(json.loads(saved_trial(message).read_text())["trial"]["record"])
    assert record.id.endswith(f"-{stored + 1:03d}")


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        stored, found, message = fill(disk / "results.db", tmp_path, 0)
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    assert stored == found > 0
    assert "the disk is full" in message
    assert saved_trial(message).stat().st_size > 1000


def test_without_any_room_the_message_does_not_promise_a_file(
    store: Store,
    begin: Begin,
    make_trial: MakeTrial,
    judgement: Judgement,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record = make_trial(begin())
    monkeypatch.setattr(rescue, "_folders", lambda: [path / "is no folder"])

    def full(*_: object) -> None:
        raise StoreError("The disk is full.")

    monkeypatch.setattr(store, "_insert_trial", full)
    with pytest.raises(StoreError, match=record.id):
        store.add_trial(record, judgement, {})


def test_an_interrupt_while_storing_does_not_lose_the_trial(
    store: Store, begin: Begin, make_trial: MakeTrial, judgement: Judgement, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = make_trial(begin())
    really = keeping.trial_values
    calls: list[str] = []

    def interrupted(value: TrialRecord) -> dict[str, object]:
        calls.append(value.id)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return really(value)

    monkeypatch.setattr(keeping, "trial_values", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.add_trial(record, judgement, {})
    assert [one.record for one in store.trials(record.experiment_id)] == [record]


KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from store_samples import FINGERPRINT, JUDGEMENT, make_trial, plan
from prony.store import Store, keeping
store = Store.open({path!r})
identifier = store.create_experiment(name="x", spec=plan(), fingerprint=FINGERPRINT, seed=1, quick=False)
for number in (1, 2, 3):
    store.add_trial(make_trial(identifier, number), JUDGEMENT, {{"n": number}})
print(identifier, flush=True)
if {inside!r}:
    # The trial's row is written by then, and not committed.
    keeping.summaries.add_trial = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    store.add_trial(make_trial(identifier, 4), JUDGEMENT, {{}})
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("inside", [False, True], ids=["between trials", "inside a transaction"])
def test_a_killed_lab_loses_nothing_that_was_stored(path: Path, inside: bool) -> None:
    script = KILLED.format(tests=str(Path(__file__).parent), path=str(path), inside=inside)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    identifier = done.stdout.strip()
    store = Store.open(path)
    assert [one.figures for one in store.trials(identifier)] == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert store.experiment(identifier).status == "interrupted"
    with sqlite3.connect(path) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    raw.close()
    store.check_writable()


def test_several_labs_may_write_at_once_and_even_create_the_file_together(path: Path) -> None:
    several_labs(path)


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
