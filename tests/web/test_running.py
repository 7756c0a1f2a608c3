"""A running experiment is followed from another process: by a page, by events; and when it is killed, it is
gone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from prony.evidence.engine import IntervalRow
from prony.store import Search
from prony_serve import running
from prony_serve.journal import Journal
from prony_serve.web import events
from prony_serve.web.events import Streams
from tests.report import factory

from .conftest import Shown

SCRIPT = """
import sys, time
from prony_serve.journal import Journal
journal = Journal(sys.argv[1])
journal.experiment_started(12, 600)
journal.stored_as(sys.argv[2], "A run that is killed")
journal.trial_started(1, "spring-tomcat", 0, 60)
sys.stdin.read()
"""


def row(t_ms: float, completed: int) -> IntervalRow:
    return IntervalRow(
        t_ms=t_ms, duration_ms=1000.0, in_window=True, completed=completed, in_flight=10, users=10,
        connections_open=10, connections_opened=0, mean_ns=1e6, p50_ns=900_000, p90_ns=1_000_000,
        p99_ns=2_500_000, max_ns=9_000_000, client_cpu=0.2, loop_lag_p99_ns=20_000,
    )  # fmt: skip


def begun(shown: Shown) -> tuple[Journal, str]:
    (newest,) = shown.store.search(Search(), limit=1).experiments
    journal = Journal(shown.store.where)
    journal.experiment_started(12, 600.0)
    journal.stored_as(newest.id, "A run <b>now</b>")
    return journal, newest.id


def until_written(shown: Shown, identifier: str, *, done: int) -> None:
    """By the journal's own thread: a write from here could be followed by an older one of that thread."""
    end_s = time.monotonic() + 30
    while (found := running.find(shown.store.where, identifier)) is None or found.done != done:
        assert time.monotonic() < end_s, "it was never written"
        time.sleep(0.02)


def test_the_pages_show_it_and_go_back_to_the_report_when_it_ends(shown: Shown) -> None:
    journal, identifier = begun(shown)
    with journal:
        journal.trial_started(3, "spring-jetty", 1, 60)
        journal.phase("window", 30.0)
        journal.row(row(1000.0, 7000))
        journal.row(row(2000.0, 7100))
        wrong = factory.finding(
            "errors", conforms=False, reason="<script>alert(1)</script>" + "x" * 10_000_000
        )
        journal.trial_ended(factory.judgement(wrong), {}, 41.0)
        until_written(shown, identifier, done=1)
        listed = shown.client.get("/").text
        assert f'href="/results/{identifier}/live"' in listed
        assert "A run &lt;b&gt;now&lt;/b&gt;" in listed
        live = shown.client.get(f"/results/{identifier}/live")
        assert live.status == 200
        assert "&lt;script&gt;alert(1)" in live.text
        assert "<script>alert" not in live.text
        assert len(live.text) < 100_000
        assert '<meta http-equiv="refresh"' in live.text  # without scripts
        (state,) = shown.client.get("/api/running").json()["running"]
        assert (state["id"], state["done"], state["trials"], state["server"]) == (
            identifier,
            1,
            12,
            "spring-jetty",
        )
        assert "owner" not in state
    ended = shown.client.get(f"/results/{identifier}/live")
    assert (ended.status, ended.headers["location"]) == (302, f"/results/{identifier}")
    assert shown.client.get("/api/running").json()["running"] == []
    assert not running.folder(shown.store.where).exists()


def test_two_threads_and_a_folder_that_goes_lose_no_state(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, identifier = begun(shown)
    with journal:
        state = journal.now()
    faults: list[OSError] = []

    def write_often() -> None:
        for _ in range(200):
            try:
                running.write(shown.store.where, state)
            except OSError as fault:
                faults.append(fault)

    threads = [threading.Thread(target=write_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    home = running.folder(shown.store.where)
    assert [path.name for path in home.iterdir()] == [f"{identifier}.json"]
    running.remove(shown.store.where, identifier)

    gone = iter([True])
    written = Path.write_text

    def write_text(path: Path, text: str, encoding: str) -> int:
        if next(gone, False):
            home.rmdir()  # as the end of another experiment does
        return written(path, text, encoding=encoding)

    monkeypatch.setattr(Path, "write_text", write_text)
    running.write(shown.store.where, state)
    assert (home / f"{identifier}.json").exists()
    running.remove(shown.store.where, identifier)


def test_events_tell_of_each_change_and_of_the_end(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "EVERY_S", 0.01)
    monkeypatch.setattr(events, "SILENT_BEATS", 2)
    journal, identifier = begun(shown)

    async def follow() -> list[str]:
        streams = Streams(shown.site)
        said: list[str] = []
        news: AsyncIterator[str] = streams._news(identifier)
        async for one in news:
            said.append(one)
            if len(said) == 1:
                journal.trial_started(5, "spring-tomcat", 1, 60)
                running.write(shown.store.where, journal.now())
            if one.startswith(":") and len(said) > 1:
                journal.finished()
        assert streams._open == 0
        return said

    with journal:
        running.write(shown.store.where, journal.now())
        said = anyio.run(follow)
    assert said[0].startswith("event: progress\ndata: ")
    assert said[-1] == f'event: ended\ndata: "/results/{identifier}"\n\n'
    texts = [json.loads(one.split("data: ")[1]) for one in said if one.startswith("event: progress")]
    assert any("spring-tomcat" in text for text in texts)
    assert not any("\n" in one.removesuffix("\n\n").split("data: ")[1] for one in said if "data: " in one)


def test_a_run_that_was_killed_is_no_longer_shown(shown: Shown) -> None:
    (newest,) = shown.store.search(Search(), limit=1).experiments
    folder = running.folder(shown.store.where)
    killed = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, shown.store.where, newest.id], stdin=subprocess.PIPE
    )
    try:
        path = folder / f"{newest.id}.json"
        for _ in range(600):
            if path.exists():
                break
            assert killed.poll() is None
            subprocess.run(["sleep", "0.1"], check=True)
        found = running.find(shown.store.where, newest.id)
        assert found is not None
        assert found.title == "A run that is killed"
        assert f'href="/results/{newest.id}/live"' in shown.client.get("/").text
    finally:
        killed.kill()
        killed.wait()
    assert running.find(shown.store.where, newest.id) is None
    assert not path.exists()
    assert "runs now" not in shown.client.get("/").text


def test_a_file_that_is_no_journal_is_passed_over(shown: Shown, tmp_path: Path) -> None:
    del tmp_path
    folder = running.folder(shown.store.where)
    folder.mkdir(exist_ok=True)
    try:
        (folder / "broken.json").write_text("{half of a")
        (folder / "other.json").write_text('{"id": 1}')
        assert running.running(shown.store.where) == ()
        assert shown.client.get("/").status == 200
        assert running.find(shown.store.where, "../../etc/passwd") is None
    finally:
        for one in folder.iterdir():
            one.unlink()
        folder.rmdir()
