"""A whole comparison, small: real servers, real engine, judged, stored, shown."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
from contextlib import closing

import pytest

from tests.e2e.conftest import PATIENCE_S, PROMPT, SHORT, SHORTEST, SLUGGISH, Lab, ended, said_until
from tests.exit_codes import demanded_code


@pytest.fixture
def two(lab: Lab) -> Lab:
    """A server and one that burns CPU for every response."""
    lab.server("quick-one", "--work", "40us")
    lab.server("slow-one", "--work", "120us")
    return lab


def stored_trials(lab: Lab) -> int:
    with closing(sqlite3.connect(lab.db)) as database:
        return int(database.execute("select count(*) from trials").fetchone()[0])


def test_the_slower_server_is_found_and_everything_is_kept(lab: Lab) -> None:
    """25 times as fast: more than any other load on the host can undo."""
    lab.server("quick-one", *PROMPT)
    lab.server("slow-one", *SLUGGISH)
    shown = lab.json("compare", "quick-one", "slow-one", *SHORTEST, *lab.lenient)
    assert (shown["schema"], shown["quick"]) == (3, True)
    (part,) = shown["parts"]
    assert [cell["server"] for cell in part["cells"]] == ["quick-one", "slow-one"]
    for cell in part["cells"]:
        assert len(cell["trials"]) == 3
        for trial in cell["trials"]:
            codes = {finding["check"]: finding["code"] for finding in trial["findings"]}
            assert {"errors", "little", "client", "bound_by", "connections", "steady", "samples"} <= set(
                codes
            )
            assert {codes["errors"], codes["content"]} == {"ok"}
            assert trial["conforms"], trial["not_conforming"]
            assert trial["figures"]["time_to_ready_s"]["value"] > 0
            assert trial["counters"]["requests"] > 0
    pair = part["pairs"][0]
    assert pair["figure"] == "requests_per_s"
    assert pair["claim"] == "open" or pair["better"] == "quick-one", pair
    assert pair["low"] > 1
    assert pair["worst_low"] is None or pair["worst_low"] <= pair["low"]
    if pair["claim"] == "open":  # by what else the host does, and nothing of its own
        assert pair["sources"][0]["source"] in {"isolation", "client", "host"}, pair["sources"]
    else:
        assert 1 < pair["at_least"] <= pair["low"]
    assert stored_trials(lab) == 6
    assert lab.json("results", "show", "latest") == shown


@pytest.mark.rarely
def test_a_server_that_does_not_conform_is_said_before_its_figures(lab: Lab) -> None:
    lab.server("keeps")
    lab.server("closes", "--ignore-keep-alive")
    found = {}
    for cell in lab.cells("compare", "keeps", "closes", *SHORT, "--trials", "1"):
        (trial,) = cell["trials"]
        (found[cell["server"]],) = [f for f in trial["findings"] if f["check"] == "conformance"]
    assert found["keeps"]["code"] == "ok"
    assert found["keeps"]["reason"] == "passed 3 of 3"
    assert found["closes"]["code"] != "ok"
    assert "20 responses on 20 connections" in found["closes"]["reason"]


@pytest.mark.rarely
def test_the_table_and_the_page_are_written(two: Lab) -> None:
    two.installed = True
    done = two.run("compare", "quick-one", "slow-one", *SHORTEST, "--trials", "1", "--report", "page.html")
    assert done.returncode == demanded_code(two.db), done.stderr
    assert "about" in done.stderr.splitlines()[0]  # the estimate comes first
    assert "quick-one" in done.stdout
    assert "requests/s" in done.stdout
    assert "trials conform" in done.stdout
    page = (two.folder / "page.html").read_text()
    assert "slow-one" in page
    assert two.run("report", "latest", "-o", "again.html").returncode == 0
    assert (two.folder / "again.html").stat().st_size > 10_000
    assert two.leftovers() == []


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.rarely)])
def test_an_interrupt_keeps_what_had_finished_and_leaves_no_process(two: Lab, number: signal.Signals) -> None:
    process = two.start("compare", "quick-one", "slow-one", *SHORT, "--no-duet")
    said_until(process, "trial 2 of 6", ": warm-up")
    process.send_signal(number)
    out, err = ended(process)
    assert process.returncode == 130, err
    assert "continue with: prony compare --resume" in err
    assert "Interrupted: 1 of 1 trial of 6 planned" in out
    assert "Traceback" not in err
    assert stored_trials(two) == 1
    assert two.leftovers() == []
    shown = two.json("results", "show", "latest")
    assert shown["ended_trials"] == 1
    assert any("Interrupted: " in warning for warning in shown["warnings"])


@pytest.mark.rarely
def test_a_laboratory_that_is_killed_leaves_no_server_behind(two: Lab) -> None:
    two.installed = True
    process = two.start("compare", "quick-one", "slow-one", *SHORT)
    wait_for_server(two, process)
    os.kill(process.pid, signal.SIGKILL)
    ended(process)
    deadline = time.monotonic() + PATIENCE_S
    while two.leftovers() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert two.leftovers() == []


@pytest.mark.rarely
def test_a_server_that_is_killed_under_load_is_a_failed_trial_not_a_crash(two: Lab) -> None:
    process = two.start("compare", "quick-one", "slow-one", *SHORT, "--window", "8s", "--trials", "1")
    said_until(process, ": warm-up")  # to be asked whether it conforms, a server is started as well
    os.kill(wait_for_server(two, process), signal.SIGKILL)
    _, err = ended(process)
    assert process.returncode == 3, err
    assert "Traceback" not in err
    assert "killed by SIGKILL" in json.dumps(two.json("results", "show", "latest"))
    assert stored_trials(two) == 2


def wait_for_server(lab: Lab, process: subprocess.Popen[str]) -> int:
    """The process id of the server under test, once it runs."""
    import psutil

    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        for candidate in psutil.process_iter(["cmdline"]):
            words = candidate.info["cmdline"] or []
            if str(lab.folder) in " ".join(words) and len(words) > 1 and words[1] == "serve":
                return int(candidate.pid)
        time.sleep(0.1)
    raise AssertionError("no server was started")
