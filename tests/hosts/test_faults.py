"""What is lost in a trial on several hosts: each fault ends in one sentence, the documented exit code, a
trial that is stored or rejected, and no process that is left over.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts.lab import NO_FIGURE, SERVES, Lab, Run, one_sentence, until
from tests.hosts.rig import Rig, command_line, needs_rig

pytestmark = needs_rig()
ENVIRONMENT = 4
LONG_S = 60.0
"""Of a phase in which something is killed: it ends with that."""


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with Rig(tmp_path) as rig:
        yield rig


def load_in(lab: Lab, phase: str) -> Run:
    """A load that is in this phase now, and stays in it."""
    run = lab.load(warm_up_s=LONG_S if phase == "warm-up" else 1.0, window_s=LONG_S)
    until_in(lab, run, phase)
    return run


def until_in(lab: Lab, run: Run, phase: str) -> None:
    """Until the progress says so, and a row of the phase has come or all engines run."""
    run.until(": warm-up" if phase == "warm-up" else r": window \d")
    until(lambda: all(lab.engines(host) for host in ("load1", "load2")), "no engine on the load hosts")


def hosts_finding(lab: Lab) -> str:
    """The reason of the check `hosts` of the only trial."""
    (trial,) = lab.trials()
    assert not trial["conforms"]
    return next(str(f["reason"]) for f in trial["findings"] if f["check"] == "hosts")


@pytest.mark.parametrize("phase", ["warm-up", "window"])
def test_a_load_worker_that_is_killed(rig: Rig, phase: str) -> None:
    lab = Lab(rig, servers={})
    run = load_in(lab, phase)
    assert rig.kill("load2", "hosts worker")
    assert run.ended(30) == NO_FIGURE, run.said()[-3000:]
    one_sentence(run, "load2 was lost")
    if phase == "window":
        assert "load2" in hosts_finding(lab)
    assert len(lab.stored()) == 1
    lab.assert_nothing_left(besides=SERVES)


def test_a_scheduler_that_is_killed(rig: Rig) -> None:
    lab = Lab(rig, servers={})
    run = load_in(lab, "window")
    parents = {run.pid}
    schedulers = [pid for pid in rig.processes("lab") if pid not in parents and "prony" in command_line(pid)]
    assert schedulers, rig.left("lab")
    for pid in schedulers:
        os.kill(pid, signal.SIGKILL)
    assert run.ended(30) == NO_FIGURE, run.said()[-3000:]
    one_sentence(run, "was lost")
    lab.assert_nothing_left(besides=SERVES)


def test_a_laboratory_that_is_killed(rig: Rig) -> None:
    lab = Lab(rig, servers={})
    run = load_in(lab, "window")
    os.kill(run.pid, signal.SIGKILL)
    run.ended(5)
    lab.assert_nothing_left(besides=SERVES)


LAUNCHED = ("-w", "hello", "--trials", "1", "-c", "4", "--warm-up-cap", f"{LONG_S:g}s", "--window", "5s")


def test_the_worker_of_the_servers_host_that_is_killed_ends_a_comparison(rig: Rig) -> None:
    lab = Lab(rig)
    run = lab.start("compare", "reference", "reference:https", *LAUNCHED)
    until_in(lab, run, "warm-up")
    assert rig.kill("server", "hosts worker")
    assert run.ended(60) == ENVIRONMENT, run.said()[-3000:]
    one_sentence(run, "server was lost")
    assert len(lab.stored()) == 1
    lab.assert_nothing_left()


def test_a_server_that_is_killed_ends_its_trial(rig: Rig) -> None:
    lab = Lab(rig)
    run = lab.start("sweep", "reference", *LAUNCHED)
    until_in(lab, run, "warm-up")
    assert rig.kill("server", SERVES)
    assert run.ended(LONG_S / 2) == NO_FIGURE, run.said()[-3000:]
    one_sentence(run, "the server ended under load: killed by SIGKILL")
    (trial,) = lab.trials()
    assert not trial["conforms"]
    lab.assert_nothing_left()


@pytest.mark.parametrize("back", [5.0, None], ids=["5 s", "for good"])
def test_a_link_that_goes_down(rig: Rig, back: float | None) -> None:
    lab = Lab(rig, servers={})
    run = load_in(lab, "window")
    rig.down("load2")
    if back is not None:
        time.sleep(back)
        rig.up("load2")
    assert run.ended(40) == NO_FIGURE, run.said()[-3000:]
    one_sentence(run, "load2")
    assert len(lab.stored()) == 1
    # Also beyond a dead link: the host's own lease ends its engine.
    until(lambda: not lab.engines("load2"), "the engine behind the dead link still runs", 15)
    rig.up("load2")
    lab.assert_nothing_left(besides=SERVES, within_s=30)
