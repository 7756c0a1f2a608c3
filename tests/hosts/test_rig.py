"""The rig of namespaces does what the tests on several hosts take for granted."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts.rig import PREFIX, Carrier, Rig, command_line, needs_rig, no_netem, remove

pytestmark = needs_rig()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with Rig(tmp_path) as rig:
        yield rig


def pings(rig: Rig, to: str, count: int = 5) -> tuple[int, float]:
    """Replies, and the shortest round trip in ms, by TCP's own measure of a connection refused."""
    script = (
        "import socket,sys,time\n"
        "got, least = 0, 1e9\n"
        f"for _ in range({count}):\n"
        "    began = time.perf_counter()\n"
        "    s = socket.socket(); s.settimeout(2)\n"
        "    try: s.connect((sys.argv[1], 9))\n"
        "    except ConnectionRefusedError: got += 1; least = min(least, time.perf_counter() - began)\n"
        "    except OSError: pass\n"
        "    s.close()\n"
        "print(got, least * 1000)\n"
    )
    said = rig.run("lab", [sys.executable, "-c", script, rig.address(to)])
    got, least_ms = said.stdout.split()
    return int(got), float(least_ms)


def test_hosts_reach_each_other_by_their_own_links(rig: Rig) -> None:
    for host in ("server", "load1", "load2"):
        assert pings(rig, host)[0] == 5
    listed = rig.run("load1", ["ls", "/sys/class/net"]).stdout.split()
    assert sorted(listed) == ["eth0", "lo"]


def test_a_link_goes_down_and_comes_back(rig: Rig) -> None:
    rig.down("load1")
    assert pings(rig, "load1", 1)[0] == 0
    assert pings(rig, "load2", 1)[0] == 1
    rig.up("load1")
    assert any(pings(rig, "load1", 1)[0] for _ in range(5))


@pytest.fixture(params=["netem", "wire"])
def by(request: pytest.FixtureRequest) -> Carrier:
    """What delays and loses packets: the kernel, where it can, and the process that stands in for it."""
    why_not = no_netem()
    if request.param == "netem" and why_not is not None:
        pytest.skip(why_not)
    found: Carrier = request.param
    return found


def test_a_way_takes_as_long_as_it_is_told_to(rig: Rig, by: Carrier) -> None:
    rig.way("load1", delay_ms=20, by=by)
    got, least_ms = pings(rig, "load1")
    assert got == 5
    assert least_ms >= 40
    assert pings(rig, "load2")[1] < 40


def test_a_way_loses_packets(rig: Rig, by: Carrier) -> None:
    rig.way("load1", loss=1.0, by=by)
    assert pings(rig, "load1", 2)[0] == 0
    assert pings(rig, "load2", 2)[0] == 2


def test_a_clock_is_moved_for_its_process_only(rig: Rig, tmp_path: Path) -> None:
    words = [sys.executable, "-c", "import time; print(time.monotonic(), flush=True); time.sleep(60)"]
    here_s = time.monotonic()
    rig.start("load1", words, clock_ahead_s=3, output=tmp_path / "out")
    for _ in range(200):
        if (tmp_path / "out").read_text().strip():
            break
        time.sleep(0.05)
    there_s = float((tmp_path / "out").read_text())
    assert there_s > here_s + 3


def test_ssh_with_the_rigs_home(rig: Rig) -> None:
    rig.sshd("load1")
    config = str(rig.home / ".ssh/config")
    said = rig.run("lab", ["ssh", "-F", config, "-o", "BatchMode=yes", "load1", "ip -br addr"])
    assert rig.address("load1") in said.stdout, said.stderr


def test_nothing_is_left_over(tmp_path: Path) -> None:
    with Rig(tmp_path) as rig:
        sleeper = rig.start("load1", ["sh", "-c", "sleep 1000 & setsid sleep 2000"])
        for _ in range(100):
            if len(rig.processes("load1", "sleep")) >= 3:
                break
            time.sleep(0.05)
        assert any("2000" in line for line in rig.left("load1"))
        pids = rig.processes("load1")
        assert rig.kill("load1", "sleep 1000")
        space = rig.namespace("load1")
    assert sleeper.poll() is not None
    assert not [pid for pid in pids if command_line(pid)]  # a zombie has none
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    assert not re.search(rf"\b{space}\b", listed)


def test_a_rig_that_is_gone_by_now_can_be_removed() -> None:
    """Of two test runs that begin at once both find what a third left over."""
    remove(f"{PREFIX}-0-removed")
