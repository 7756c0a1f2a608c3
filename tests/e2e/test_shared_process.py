"""Loads, and workloads, that share a process, as a user runs them: one start, and nothing left behind."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from tests.e2e.conftest import Lab, ended, said_until

pytestmark = pytest.mark.e2e

PLAN = """
title: Shared
servers: [one, two]
workloads: hello
trials: 2
seed: 7
share_process: loads
warm_up: {min_s: 1, cap_s: 1, settle_min_s: 1, settle_cap_s: 1}
scaling_probe: false
loads: {users: [1, 2, 4]}
measured: {window_s: 1}
"""


@pytest.fixture
def small(lab: Lab) -> Lab:
    for name in ("one", "two"):
        lab.server(name, "--delay", "fixed:5ms")
    (lab.folder / "small.yaml").write_text(PLAN)
    return lab


def processes(shown: dict[str, Any]) -> dict[str, list[str]]:
    """Process -> the loads that it had, in their order."""
    trials = [
        (trial["process"]["place"], cell["load"], trial["process"]["id"])
        for part in shown["parts"]
        for cell in part["cells"]
        for trial in cell["trials"]
    ]
    found: dict[str, list[str]] = {}
    for _, load, process in sorted(trials):
        found.setdefault(process, []).append(load)
    return found


def test_each_process_has_all_loads_of_its_server(small: Lab) -> None:
    planned = small.json("run", "small.yaml", "--dry-run")
    assert len({trial["process"] for trial in planned["trials"]}) == 4
    shown = small.json("run", "small.yaml", *small.lenient)
    assert shown["ended_trials"] == shown["planned_trials"] == 12
    found = processes(shown)
    assert len(found) == 4
    assert all(sorted(loads) == ["closed-1", "closed-2", "closed-4"] for loads in found.values())
    starts = [
        trial["process"]["place"]
        for part in shown["parts"]
        for cell in part["cells"]
        for trial in cell["trials"]
        if "time_to_ready_s" in trial["figures"]
    ]
    assert starts == [0] * len(starts), "only the first load of a process has a start"
    assert small.leftovers() == []
    again = small.json("results", "show", "latest")
    assert processes(again) == found


def test_without_it_each_load_has_a_process_of_its_own(small: Lab) -> None:
    planned = small.json("run", "small.yaml", "--dry-run", "--share-process", "none")
    assert {trial["process"] for trial in planned["trials"]} == {None}


WORKLOADS = """
title: Shared workloads
servers: [one, two]
workloads: [hello, again.yaml]
trials: 1
seed: 7
share_process: workloads
warm_up: {min_s: 1, cap_s: 1, settle_min_s: 1, settle_cap_s: 1}
scaling_probe: false
loads: {users: [1, 2]}
measured: {window_s: 1}
"""
AGAIN = """
prepare: [{name: first, path: /first, expect: {status: [200]}}]
steps: [{name: again, path: /again, expect: {status: [200], body_equals: "Hello, World!"}}]
cleanup: [{name: last, path: /last, expect: {status: [200]}}]
"""


def test_workloads_share_and_a_run_that_is_ended_goes_on_with_new_processes(small: Lab) -> None:
    (small.folder / "workloads.yaml").write_text(WORKLOADS)
    (small.folder / "again.yaml").write_text(AGAIN)
    for file in (small.folder / "servers").glob("*/server.yaml"):
        file.write_text(
            file.read_text().replace("workloads: [hello]\n", "")
        )  # it offers whatever it is asked for
    process = small.start("run", "workloads.yaml", *small.lenient)
    said_until(process, "trial 2 of 8", ": settle")
    os.kill(process.pid, signal.SIGINT)
    ended(process)
    assert small.leftovers() == []
    shown = small.json("run", "--resume", "latest")
    assert shown["ended_trials"] == 8
    assert small.leftovers() == []
    trials = [
        (cell["server"], f"{cell['workload']}/{cell['load']}", trial["process"])
        for part in shown["parts"]
        for cell in part["cells"]
        for trial in cell["trials"]
        if not trial["repeated"]
    ]
    named = {f"{workload}/closed-{users}" for workload in ("hello", "again") for users in (1, 2)}
    whole: dict[str, list[str]] = {}
    for _, name, at in sorted(trials, key=lambda one: one[2]["place"]):
        had = whole.setdefault(at["id"], [])
        assert at["after"] == (had[-1] if had else ""), "what came before has its workload and its load"
        had.append(name)
    assert (len(trials), len(whole)) == (8, 3), "one was cut short"
    assert all({name for server, name, _ in trials if server == one} == named for one in ("one", "two"))
    assert [set(had) == named for had in whole.values() if len(had) == 4] == [True]
