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

from tests.hosts.lab import Lab, Run, until
from tests.hosts.rig import Rig, command_line, needs_rig

pytestmark = needs_rig()
MEASURED_INVALID, ENVIRONMENT = 3, 4
LONG_S = 60.0
"""Of a phase in which something is killed: it ends with that."""
SERVES = "prony-engine serve"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with Rig(tmp_path) as rig:
        yield rig


def load(lab: Lab, *, warm_up_s: float = 1.0, window_s: float = LONG_S) -> Run:
    """A load from both load hosts on a server that runs on the server's host."""
    times = ("--warmup", f"{warm_up_s:g}s", "--duration", f"{window_s:g}s")
    return lab.start("load", lab.serve(), "-c", "8", *times)


def load_in(lab: Lab, phase: str) -> Run:
    """A load that is in this phase now, and stays in it."""
    run = load(lab, warm_up_s=LONG_S) if phase == "warm-up" else load(lab)
    until_in(lab, run, phase)
    return run


def until_in(lab: Lab, run: Run, phase: str) -> None:
    """Until the progress says so, and a row of the phase has come or all engines run."""
    run.until(": warm-up" if phase == "warm-up" else r": window \d")
    until(lambda: all(lab.engines(host) for host in ("load1", "load2")), "no engine on the load hosts")


def one_sentence(run: Run, *words: str) -> None:
    """It was said, and nothing of a traceback, nor of a task of the event loop that was left over."""
    said = run.said()
    for never in ("Traceback", "Task was destroyed", "never awaited"):
        assert never not in said, said[-4000:]
    for word in words:
        assert word in said, said[-4000:]


def hosts_finding(lab: Lab) -> str:
    """The reason of the check `hosts` of the only trial."""
    (trial,) = lab.trials()
    assert trial["verdict"] == "invalid"
    return next(str(f["reason"]) for f in trial["findings"] if f["check"] == "hosts")


def test_a_load_from_two_hosts_is_their_sum_and_the_server_is_read_by_its_host(rig: Rig) -> None:
    lab = Lab(rig)
    run = load(lab, window_s=5.0)
    assert run.ended() in (0, MEASURED_INVALID), run.said()[-3000:]
    one_sentence(run)
    (trial,) = lab.trials()
    assert [host["name"] for host in trial["hosts"]] == ["server", "load1", "load2"]
    (record,) = lab.records()
    assert not record.evidence.server.owned
    assert record.evidence.server.pid in rig.processes("server", SERVES)
    assert record.evidence.server_window is not None
    assert record.evidence.server_window.cpu_s
    findings = {f["check"]: f for f in trial["findings"]}
    assert findings["hosts"]["status"] in ("valid", "suspect"), findings["hosts"]
    assert findings["errors"]["status"] == "valid"
    rates = [host["requests_per_s"] for host in trial["hosts"] if host["role"] == "load"]
    if trial["rejected_because"] is None:
        assert sum(rates) == pytest.approx(trial["figures"]["requests_per_s"], rel=0.01)
    lab.assert_nothing_left(besides=SERVES)


@pytest.mark.parametrize("phase", ["warm-up", "window"])
def test_a_load_worker_that_is_killed(rig: Rig, phase: str) -> None:
    lab = Lab(rig, servers={})
    run = load_in(lab, phase)
    assert rig.kill("load2", "hosts worker")
    assert run.ended(30) == MEASURED_INVALID, run.said()[-3000:]
    one_sentence(run, "load2 was lost")
    if phase == "window":
        assert "load2 was lost" in hosts_finding(lab)
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
    assert run.ended(30) == MEASURED_INVALID, run.said()[-3000:]
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
    assert run.ended(LONG_S / 2) == MEASURED_INVALID, run.said()[-3000:]
    one_sentence(run, "the server ended under load: killed by SIGKILL")
    (trial,) = lab.trials()
    assert trial["verdict"] == "invalid"
    lab.assert_nothing_left()


@pytest.mark.parametrize("back", [5.0, None], ids=["5 s", "for good"])
def test_a_link_that_goes_down(rig: Rig, back: float | None) -> None:
    lab = Lab(rig, servers={})
    run = load_in(lab, "window")
    rig.down("load2")
    if back is not None:
        time.sleep(back)
        rig.up("load2")
    assert run.ended(40) == MEASURED_INVALID, run.said()[-3000:]
    one_sentence(run, "load2")
    assert len(lab.stored()) == 1
    # Also beyond a dead link: the host's own lease ends its engine.
    until(lambda: not lab.engines("load2"), "the engine behind the dead link still runs", 15)
    rig.up("load2")
    lab.assert_nothing_left(besides=SERVES, within_s=30)


def test_a_link_of_100_mbit_is_named_as_the_bound(rig: Rig) -> None:
    lab = Lab(rig, servers={}, link="100 Mbit/s")
    for name in ("load1", "load2"):
        rig.rate(name, 100e6)
    url = lab.serve("--body-bytes", "20000")
    run = lab.start("load", url, "-c", "16", "--warmup", "3s", "--duration", "5s")
    assert run.ended() in (0, MEASURED_INVALID), run.said()[-3000:]
    (trial,) = lab.trials()
    network = next(f for f in trial["findings"] if f["check"] == "network")
    assert network["status"] == "suspect", network
    assert "the link is the bound: load" in network["reason"]
    assert trial["bound_by"] == "network"
    lab.assert_nothing_left(besides=SERVES)


def test_a_way_that_loses_packets_is_named(rig: Rig) -> None:
    rig.way("load2", loss=0.03)
    lab = Lab(rig, servers={}, loads=["load2"])
    run = load(lab, window_s=5.0)
    assert run.ended() in (0, MEASURED_INVALID), run.said()[-3000:]
    (trial,) = lab.trials()
    network = next(f for f in trial["findings"] if f["check"] == "network")
    assert network["status"] == "suspect", network
    assert "of the segments were sent again" in network["reason"]
    lab.assert_nothing_left(besides=SERVES)


def test_a_clock_that_is_3_s_off(rig: Rig) -> None:
    """The host counts from its own start: only the offset differs, which is found, and rows fall together."""
    lab = Lab(rig, servers={}, by_hand=["load2"])
    lab.worker("load2", clock_ahead_s=3)
    run = load(lab, window_s=5.0)
    assert run.ended() in (0, MEASURED_INVALID), run.said()[-3000:]
    (trial,) = lab.trials()
    found = next(f for f in trial["findings"] if f["check"] == "hosts")
    assert found["status"] in ("valid", "suspect"), found
    for told in ("skew_ms", "opened_late_ms"):  # an offset that was not taken out would be in both
        assert all(host[told] < 3000 for host in trial["hosts"])
