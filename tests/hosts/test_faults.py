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
WARM_UP_S, WINDOW_S = 3.0, 5.0
SERVES = "prony-engine serve"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with Rig(tmp_path) as rig:
        yield rig


def load(lab: Lab, *more: str) -> Run:
    """A short load from both load hosts on a server that runs on the server's host."""
    times = ("--warmup", f"{WARM_UP_S:g}s", "--duration", f"{WINDOW_S:g}s")
    return lab.start("load", lab.serve(), "-c", "8", *times, *more)


def wait(lab: Lab, run: Run, when: str) -> None:
    """Until the engines run, and into the window where that is meant."""
    until(lambda: all(lab.engines(h) for h in ("load1", "load2")) or run.process.poll() is not None, "a load")
    assert run.process.poll() is None, run.said()[-3000:]
    time.sleep(1.0 if when == "warm-up" else WARM_UP_S + 1.5)


def one_sentence(run: Run, *words: str) -> None:
    """It was said, and nothing of a traceback."""
    said = run.said()
    assert "Traceback" not in said, said[-4000:]
    for word in words:
        assert word in said, said[-4000:]


def hosts_finding(run: Run) -> str:
    """The reason of the check `hosts` of the only trial."""
    (trial,) = (t for part in run.json()["parts"] for cell in part["cells"] for t in cell["trials"])
    assert trial["verdict"] == "invalid"
    return next(str(f["reason"]) for f in trial["findings"] if f["check"] == "hosts")


def test_a_load_from_two_hosts_is_their_sum(rig: Rig) -> None:
    lab = Lab(rig, server=False)
    run = load(lab)
    assert run.ended() in (0, MEASURED_INVALID), run.said()[-3000:]
    (trial,) = (t for part in run.json()["parts"] for cell in part["cells"] for t in cell["trials"])
    assert [host["name"] for host in trial["hosts"]] == ["load1", "load2"]
    findings = {f["check"]: f for f in trial["findings"]}
    assert findings["hosts"]["status"] in ("valid", "suspect"), findings["hosts"]
    assert findings["errors"]["status"] == "valid"
    rates = [host["requests_per_s"] for host in trial["hosts"]]
    if trial["rejected_because"] is None:
        assert sum(rates) == pytest.approx(trial["figures"]["requests_per_s"], rel=0.01)
    lab.assert_nothing_left(besides=SERVES)


@pytest.mark.parametrize("when", ["warm-up", "window"])
def test_a_load_worker_that_is_killed(rig: Rig, when: str) -> None:
    lab = Lab(rig, server=False)
    run = load(lab)
    wait(lab, run, when)
    assert rig.kill("load2", "hosts worker")
    assert run.ended(30) == MEASURED_INVALID, run.said()[-3000:]
    one_sentence(run, "load2 was lost")
    if when == "window":
        assert "load2 was lost" in hosts_finding(run)
    assert len(lab.stored()) == 1
    lab.assert_nothing_left(besides=SERVES)


def test_a_scheduler_that_is_killed(rig: Rig) -> None:
    lab = Lab(rig, server=False)
    run = load(lab)
    wait(lab, run, "window")
    parents = {run.pid}
    schedulers = [pid for pid in rig.processes("lab") if pid not in parents and "prony" in command_line(pid)]
    assert schedulers, rig.left("lab")
    for pid in schedulers:
        os.kill(pid, signal.SIGKILL)
    assert run.ended(30) == MEASURED_INVALID, run.said()[-3000:]
    one_sentence(run, "was lost")
    lab.assert_nothing_left(besides=SERVES)


def test_a_laboratory_that_is_killed(rig: Rig) -> None:
    lab = Lab(rig, server=False)
    run = load(lab)
    wait(lab, run, "window")
    os.kill(run.pid, signal.SIGKILL)
    run.ended(5)
    lab.assert_nothing_left(besides=SERVES)


def compare(lab: Lab) -> Run:
    """A short trial of a server that Prony launches on the server's host."""
    options = ("--trials", "1", "-c", "4", "--warm-up-cap", f"{WARM_UP_S:g}s", "--window", f"{WINDOW_S:g}s")
    return lab.start("compare", "reference", "reference:https", "-w", "hello", *options)


@pytest.mark.parametrize(
    ("kill", "code", "sentence"),
    [
        # A comparison begins no further trial on hosts that are lost; after its server it does.
        ("hosts worker", ENVIRONMENT, "server was lost"),
        (SERVES, MEASURED_INVALID, "the server ended under load"),
    ],
    ids=["worker", "server"],
)
def test_the_servers_host(rig: Rig, kill: str, code: int, sentence: str) -> None:
    lab = Lab(rig)
    run = compare(lab)
    wait(lab, run, "warm-up")
    assert rig.kill("server", kill)
    assert run.ended(150) == code, run.said()[-3000:]
    one_sentence(run, sentence)
    assert len(lab.stored()) == 1
    lab.assert_nothing_left()


@pytest.mark.parametrize("back", [5.0, None], ids=["5 s", "for good"])
def test_a_link_that_goes_down(rig: Rig, back: float | None) -> None:
    lab = Lab(rig, server=False)
    run = load(lab)
    wait(lab, run, "window")
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
    lab = Lab(rig, server=False, link="100 Mbit/s")
    for name in ("load1", "load2"):
        rig.rate(name, 100e6)
    url = lab.serve("--body-bytes", "20000")
    run = lab.start("load", url, "-c", "16", "--warmup", "3s", "--duration", "5s")
    assert run.ended() in (0, MEASURED_INVALID), run.said()[-3000:]
    (trial,) = (t for part in run.json()["parts"] for cell in part["cells"] for t in cell["trials"])
    network = next(f for f in trial["findings"] if f["check"] == "network")
    assert network["status"] == "suspect", network
    assert "the link is the bound: load" in network["reason"]
    assert trial["bound_by"] == "network"
    lab.assert_nothing_left(besides=SERVES)


def test_a_clock_that_is_3_s_off(rig: Rig) -> None:
    """The host counts from its own start: only the offset differs, which is found, and rows fall together."""
    lab = Lab(rig, server=False, by_hand=["load2"])
    lab.worker("load2", clock_ahead_s=3)
    run = load(lab)
    assert run.ended() in (0, MEASURED_INVALID), run.said()[-3000:]
    (trial,) = (t for part in run.json()["parts"] for cell in part["cells"] for t in cell["trials"])
    found = next(f for f in trial["findings"] if f["check"] == "hosts")
    assert found["status"] in ("valid", "suspect"), found
    for told in ("skew_ms", "opened_late_ms"):  # an offset that was not taken out would be in both
        assert all(host[told] < 3000 for host in trial["hosts"])
