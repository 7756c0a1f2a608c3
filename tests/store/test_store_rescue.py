"""A trial that the database refuses, or whose lab is killed: it is saved, and read in again."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.errors import StoreError, UsageError
from prony.evidence.trial import TrialRecord
from prony.judge.finding import Judgement
from prony.store import Store, keeping, location, rescue, transfer
from prony.store.owner import this_process
from prony_serve import running
from tests.store import store_samples
from tests.store.conftest import MakeTrial
from tests.store.several import several_labs
from tests.store.store_samples import NOON
from tests.store.test_store_trouble import Begin


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
