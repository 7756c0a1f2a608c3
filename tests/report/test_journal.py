"""The progress journal: one file beside the store while an experiment runs, and no harm from it."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from prony_serve import journal as module
from prony_serve import running
from prony_serve.journal import Journal
from tests.report import factory

ID = "261122-aaaa"


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_BETWEEN_S", 0.01)
    monkeypatch.setattr(module, "HEARTBEAT_S", 0.02)


def until(found: object) -> None:
    """Up to a minute: `found` is a function that becomes true."""
    assert callable(found)
    for _ in range(6000):
        if found():
            return
        time.sleep(0.01)
    raise AssertionError("it never became true")


def test_it_is_there_from_the_first_trial_to_the_end(tmp_path: Path) -> None:
    where = str(tmp_path / "results.db")
    with Journal(where) as journal:
        journal.experiment_started(6, 300.0)
        journal.build("tomcat", "compiling")
        assert not running.folder(where).exists()  # not stored yet: nobody can ask for it
        journal.stored_as(ID, "A title")
        journal.trial_started(2, "tomcat", 1, 60)
        journal.phase("window", 30.0)
        until(lambda: (entry := running.find(where, ID)) is not None and entry.phase == "window")
        (entry,) = running.running(where)
        assert (entry.title, entry.trials, entry.trial, entry.server, entry.block) == (
            "A title",
            6,
            2,
            "tomcat",
            1,
        )
        made = factory.trial(factory.record("tomcat"))
        journal.trial_stored(made.record, made.judgement, made.figures)
        journal.trial_ended(made.judgement, made.figures, 42.0)
        until(lambda: (entry := running.find(where, ID)) is not None and entry.done == 1)
        (entry,) = running.running(where)
        (ended_trial,) = entry.ended
        assert (ended_trial.conforms, ended_trial.requests_per_s) == (True, made.figures["requests_per_s"])
        assert "requests/s" in ended_trial.outcome
        assert not entry.is_silent
    assert not running.folder(where).exists()
    assert running.running(where) == ()


def test_a_long_run_keeps_a_small_file(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "results.db"))
    for k in range(500):
        journal.trial_started(k, "tomcat", k, 1)
        wrong = factory.finding("errors", conforms=False, reason="x" * 1_000_000)
        journal.trial_ended(factory.judgement(wrong), {"requests_per_s": 7000.0}, 1.0)
        journal.note("y" * 1_000_000)
    now = journal.now()
    assert {(t.conforms, t.requests_per_s) for t in now.ended} == {(False, None)}
    assert len(now.model_dump_json()) < 200_000


def test_a_folder_that_cannot_be_written_harms_nothing(tmp_path: Path) -> None:
    (tmp_path / "results.db.running").write_text("in the way")
    with Journal(str(tmp_path / "results.db")) as journal:
        journal.stored_as(ID, "A title")
        journal.note("on")
    assert (tmp_path / "results.db.running").read_text() == "in the way"


def test_a_server_has_its_files_in_the_users_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    ended_trial, other = (running.folder(f"postgresql://host/{name}") for name in ("a", "b"))
    assert ended_trial.parent == other.parent == tmp_path / "prony" / "running"
    assert ended_trial != other


def test_ctrl_c_leaves_no_lock_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt in the `__enter__` of a condition, which is Python, leaves its lock taken: an experiment
    that was interrupted at a change of phase waited for it for good, and its server ran on.
    """

    def interrupted(condition: threading.Condition) -> bool:
        condition.acquire()
        raise KeyboardInterrupt

    with Journal(str(tmp_path / "results.db")) as journal:
        journal.stored_as(ID, "A title")
        monkeypatch.setattr(threading.Condition, "__enter__", interrupted)
        journal.phase("warm-up", 1.0)
        journal.note("a note")
        monkeypatch.undo()
