"""A server that somebody else started keeps its CPUs to itself: the client goes where it may not run. Real
servers, pinned as a user pins them, and the commands that put a URL under load.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from prony.cli import measure
from prony.cli.common import Common
from prony.evidence.host import CpuPartition
from prony.experiment import requirements
from prony.experiment.testbed import Targets
from prony.plan.cell import cell_of
from prony.plan.load import ClosedLoad, WholeRun
from prony.plan.plan import MAIN, Plan, one_part
from prony.plan.target import Url
from prony.plan.trial import TrialPlan
from prony.plan.workload import from_url
from prony.store import Store
from tests.e2e.conftest import Lab
from tests.load.test_engine import Reference

CPUS = sorted(os.sched_getaffinity(0))
needs_two_cpus = pytest.mark.skipif(len(CPUS) < 2, reason="one CPU: nowhere else to go")
LOAD = ("--duration", "1s", "--warmup", "0s", "--users", "2")
PREFORKED = """
import os, socket, sys, time
master, *workers = [set(map(int, word.split(","))) for word in sys.argv[1:]]
os.sched_setaffinity(0, master)
listening = socket.create_server(("127.0.0.1", 0), reuse_port=True)
for cpus in workers:
    if os.fork() == 0:
        os.sched_setaffinity(0, cpus)
        time.sleep(600)
time.sleep(0.2)
print(listening.getsockname()[1], flush=True)
time.sleep(600)
"""
"""A master that holds the socket, and the workers to which it has handed it."""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as servers:
        yield servers


def pinned(stack: ExitStack, *cpus: int) -> Reference:
    """A server that may run on these CPUs; on all without any."""
    server = Reference()
    stack.callback(server.finish)
    if cpus:
        pin(server.process.pid, *cpus)
    return server


def pin(pid: int, *cpus: int) -> None:
    """All its threads, as a user does it."""
    words = ["taskset", "-apc", ",".join(map(str, cpus)), str(pid)]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def preforked(stack: ExitStack, *cpus: str) -> str:
    """The URL of a server of several processes: its master on the first of these CPUs."""
    server = subprocess.Popen(
        [sys.executable, "-c", PREFORKED, *cpus], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    stack.callback(server.wait)
    stack.callback(os.killpg, server.pid, signal.SIGKILL)
    assert server.stdout is not None
    return f"http://127.0.0.1:{int(server.stdout.readline())}"


def plan_of(*urls: str) -> Plan:
    trial = TrialPlan(workload=from_url("/"), load=ClosedLoad(users=1), measured=WholeRun(total_requests=1))
    return one_part("load", "", [cell_of(MAIN, url, Url(url=url), trial) for url in urls], seed=1)


def chosen(*urls: str, common: Common | None = None) -> tuple[list[CpuPartition], list[str]]:
    """The sides of each, as the commands choose them, and what is said before the load."""
    plan, targets = plan_of(*urls), Targets()
    testbed = measure.testbed_for(plan, targets, common or Common(), None)
    sides = [testbed.surroundings(targets.of(cell)).partition for cell in plan.cells]
    return sides, requirements.warnings(plan, targets, testbed)


@needs_two_cpus
@pytest.mark.parametrize("cpu", CPUS[:4])
def test_the_client_keeps_off_the_cpu_of_the_server(cpu: int, stack: ExitStack) -> None:
    (sides,), said = chosen(pinned(stack, cpu).url)
    assert sides.server == (cpu,)
    assert sides.client
    assert cpu not in sides.client
    assert said == []


@needs_two_cpus
@pytest.mark.parametrize("cpu", CPUS[:2])
@pytest.mark.parametrize(
    "words",
    [
        lambda url: ("load", url, *LOAD, "--json"),
        lambda url: ("sweep", url, "--users", "2", "--warmup", "0s", "--window", "1s", "--json"),
        lambda url: (
            *("capacity", url, "--slo", "p99<10s", "--start", "10", "--highest", "10", "--warmup", "0s"),
            *("--window", "1s", "--search-trials", "1", "--json"),
        ),
        lambda url: ("wrk", "-t", "1", "-c", "2", "-d", "1s", url),
    ],
    ids=["load", "sweep", "capacity", "wrk"],
)
@pytest.mark.rarely
def test_every_command_on_a_url_keeps_off_the_cpu_of_the_server(
    words: Callable[[str], tuple[str, ...]], cpu: int, lab: Lab, stack: ExitStack
) -> None:
    """The threads of the engine, as they report it, not the choice."""
    server = pinned(stack, cpu)
    done = lab.run(*words(f"{server.url}/"))
    assert done.returncode in (0, 3), done.stderr
    assert "roams" not in done.stderr
    for theirs, client, threads in measured(lab):
        assert theirs == {cpu}
        assert client
        assert cpu not in client | threads


def measured(lab: Lab) -> list[tuple[set[int], set[int], set[int]]]:
    """Of each trial of the newest result: the server's CPUs, the client's, and those on which its threads
    are.
    """
    store = Store.open(str(lab.db))
    found = []
    for one in store.trials(store.experiment("latest").id):
        sides, engine = one.record.evidence.partition, one.record.evidence.engine
        assert sides is not None
        assert engine is not None
        threads = {thread.cpu for thread in engine.ready.threads if thread.cpu is not None}
        assert threads
        found.append((set(sides.server), set(sides.client), threads))
    store.close()
    return found


@needs_two_cpus
@pytest.mark.rarely
def test_urls_that_are_compared_each_meet_a_client_beside_them(lab: Lab, stack: ExitStack) -> None:
    first, second = pinned(stack, CPUS[0]), pinned(stack, CPUS[1])
    short = ("--quick", "--trials", "1", "--window", "1s", "--warm-up-cap", "1s", "--users", "2")
    done = lab.run("compare", first.url, second.url, *short, *lab.lenient, "--json")
    assert done.returncode in (0, 3), done.stderr
    (part,) = json.loads(done.stdout)["parts"]
    assert [cell["server"] for cell in part["cells"]] == [first.url, second.url]
    trials = measured(lab)
    assert sorted((min(theirs), len(theirs)) for theirs, _, _ in trials) == [(cpu, 1) for cpu in CPUS[:2]]
    for theirs, client, threads in trials:
        assert not theirs & (client | threads)


@needs_two_cpus
def test_servers_on_different_cpus_meet_the_same_client_where_there_is_one(stack: ExitStack) -> None:
    sides, said = chosen(*(pinned(stack, cpu).url for cpu in CPUS[:2]))
    assert said == []
    for side in sides:
        assert not side.common
    if len(CPUS) > 2:
        assert len({side.client for side in sides}) == 1


@needs_two_cpus
def test_a_server_that_roams_is_said_with_the_command_that_pins_it(lab: Lab, stack: ExitStack) -> None:
    server = pinned(stack)
    for words in (("load", server.url, *LOAD), ("wrk", "-t1", "-c2", "-d1s", f"{server.url}/")):
        done = lab.run(*words)
        assert done.returncode in (0, 3), done.stderr
        (note,) = [line for line in done.stderr.splitlines() if "roams" in line and "taskset" in line]
        assert len(note.split()) <= 20
    found = re.search(r"taskset -apc (\S+) (\d+)", note)
    assert found is not None
    assert int(found[2]) == server.process.pid
    subprocess.run(found[0].split(), check=True, stdout=subprocess.DEVNULL)
    (sides,), said = chosen(server.url)
    assert not sides.common
    assert said == []


@needs_two_cpus
def test_cpus_that_are_named_win(stack: ExitStack) -> None:
    one, other = CPUS[:2]
    server = pinned(stack, one)
    (sides,), (said,) = chosen(server.url, common=Common(client_cpus=str(one)))
    assert sides.client == (one,)
    assert said.startswith(f"{server.url} is pinned to the client's CPU {one}; ")
    (sides,), _ = chosen(server.url, common=Common(server_cpus=str(other)))
    assert sides.server == (other,)
    assert one in sides.client


@needs_two_cpus
def test_several_listeners_count_with_all_their_cpus(stack: ExitStack) -> None:
    """SO_REUSEPORT: the kernel gives each its share of the connections."""
    one, other = CPUS[:2]
    url = preforked(stack, str(one))
    again = PREFORKED.replace('("127.0.0.1", 0)', f'("127.0.0.1", {url.rpartition(":")[2]})')
    second = subprocess.Popen([sys.executable, "-c", again, str(other)], stdout=subprocess.PIPE, text=True)
    stack.callback(second.wait)
    stack.callback(second.kill)
    assert second.stdout is not None
    second.stdout.readline()
    (sides,), said = chosen(url)
    assert set(sides.server) == {one, other}
    if len(CPUS) == 2:
        assert said == [
            f"{url} is pinned to the client's CPU {other}; pin it: taskset -apc {one} {second.pid}"
        ]
    else:
        assert not sides.common


@needs_two_cpus
def test_a_master_that_handed_its_socket_down_does_not_count(stack: ExitStack) -> None:
    """nginx's workers may be pinned; its master, which serves nothing, is not."""
    everywhere = ",".join(map(str, CPUS))
    for cpu in CPUS[:2]:
        (sides,), said = chosen(preforked(stack, everywhere, str(cpu)))
        assert sides.server == (cpu,)
        assert cpu not in sides.client
        assert said == []


@needs_two_cpus
def test_several_processes_that_roam_are_pinned_by_one_line(stack: ExitStack) -> None:
    everywhere = ",".join(map(str, CPUS))
    url = preforked(stack, everywhere, everywhere, everywhere)
    _, (said,) = chosen(url)
    command = said.partition("pin it: ")[2]
    subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)
    assert chosen(url)[1] == []


def test_a_server_elsewhere_or_none_says_nothing(stack: ExitStack) -> None:
    del stack
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
    usual, said = chosen(nobody)
    assert said == []
    assert chosen("http://192.0.2.1:80") == (usual, [])


def test_one_cpu_has_no_other(stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Prony itself is kept to one CPU, the server may only be told to leave it."""
    server = pinned(stack)
    monkeypatch.setattr("prony.host.partition.granted_cpus", lambda: (CPUS[0],))
    (sides,), said = chosen(server.url)
    assert sides.client == (CPUS[0],)
    if len(CPUS) == 1:
        assert said == []
        return
    assert len(said) == 1
    pin(server.process.pid, CPUS[1])
    (sides,), said = chosen(server.url)
    assert (sides.server, sides.client, sides.shared, said) == ((CPUS[1],), (CPUS[0],), False, [])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has servers that another user may not read")
def test_a_server_of_another_user_is_not_guessed_at(stack: ExitStack) -> None:
    server = pinned(stack, CPUS[-1])
    usual, _ = chosen("http://192.0.2.1:80")
    os.seteuid(65534)
    try:
        found, said = chosen(server.url)
        named = chosen(server.url, common=Common(client_cpus=str(CPUS[0])))[1] if len(CPUS) > 1 else []
    finally:
        os.seteuid(0)
    assert found == usual
    assert len(said) == 1
    assert said[0].startswith(f"{server.url}: the CPUs of another user's process cannot be read")
    assert named == []
