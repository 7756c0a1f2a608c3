"""A server's life, with a real process each time: ready, watched, pinned, stopped, and never left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from prony.errors import EnvironmentFault, UsageError
from prony.load.preflight import Preflight
from prony.server import proc
from prony.server.build import Built
from prony.server.launch import RunningServer, launch
from prony.server.probe import status_probe
from prony.server.sockets import free_port, listeners
from tests.server.affinity import cpus_of_threads
from tests.single import single

HOST = "127.0.0.1"
Toy = Callable[..., Built]


def probe_of(server: RunningServer) -> Preflight:
    return status_probe(server.host, server.port)


def gone(pid: int, within_s: float = 60.0) -> bool:
    deadline = time.monotonic() + within_s
    while proc.alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@contextmanager
def somebody_on(port: int) -> Iterator[None]:
    with socket.create_server((HOST, port)):
        yield


def test_a_server_gets_ready_is_watched_and_is_gone(toy: Toy) -> None:
    with launch(toy("--report", "figures {'a': 1}".replace("'", '\\"'), reports="figures")) as server:
        start = server.wait_ready(probe_of(server), 30)
        assert start.time_to_listen_s is not None
        assert start.time_to_ready_s is not None
        assert 0 < start.time_to_listen_s <= start.time_to_ready_s
        assert start.reported == {"a": 1.0}
        assert start.jvm is None
        sample = server.sample()
        assert sample is not None
        assert sample.cpu_s > 0
        assert sample.rss_bytes > 1 << 20
        assert sample.threads == 1
        identity = server.identity
        assert identity.owns_port is True
        assert identity.pid == server.pids()[0] == server.pid
        assert identity.descriptor_limit_soft
        assert server.alive()
        assert server.exit_description() is None
        assert Path(f"/proc/{server.pid}/cwd").readlink().parent == server.scratch
        assert single(HOST, server.port).body == str(server.pid).encode()
    assert server.clean is True
    assert not proc.alive(server.pid)
    assert not listeners(server.port, HOST)
    assert not server.scratch.exists()
    assert server.log.exists()
    assert server.identity.owns_port is True, "what was known at ready is still known after the stop"
    assert server.stop() is True, "a second stop is harmless"


def test_a_taken_port_names_who_has_it(toy: Toy) -> None:
    port = free_port(HOST)
    with (
        somebody_on(port),
        pytest.raises(EnvironmentFault, match=rf"port {port} .*PID {os.getpid()} \("),
    ):
        launch(toy(), port=port)


def test_a_port_that_somebody_takes_meanwhile_is_not_believed(toy: Toy) -> None:
    taken = rf"port \d+ .*PID {os.getpid()} "
    with (
        launch(toy("--silent")) as server,
        somebody_on(server.port),
        pytest.raises(EnvironmentFault, match=taken),
    ):
        server.wait_ready(probe_of(server), 1)


def test_a_server_that_exits_says_how_and_why(toy: Toy) -> None:
    with launch(toy("--exit", "3")) as server:
        with pytest.raises(EnvironmentFault, match="exit code 3") as fault:
            server.wait_ready(probe_of(server), 30)
        assert fault.value.details is not None
        assert "the toy is broken" in fault.value.details
        assert str(server.log) in str(fault.value)


def test_a_server_that_never_listens(toy: Toy) -> None:
    with launch(toy("--silent")) as server, pytest.raises(EnvironmentFault, match=f"port {server.port}"):
        server.wait_ready(probe_of(server), 0.5)
    assert server.clean


def test_a_server_that_answers_wrongly_is_not_ready(toy: Toy) -> None:
    with launch(toy("--status", "503")) as server:
        give_up_s = time.monotonic() + 60
        while not listeners(server.port, HOST) and time.monotonic() < give_up_s:
            time.sleep(0.01)
        with pytest.raises(EnvironmentFault, match=r"503.*200"):
            server.wait_ready(probe_of(server), 3)


def test_a_server_that_is_killed_is_noticed(toy: Toy) -> None:
    with launch(toy()) as server:
        server.wait_ready(probe_of(server), 30)
        os.kill(server.pid, signal.SIGKILL)
        assert gone(server.pid)
        deadline = time.monotonic() + 10
        while server.alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.exit_description() == "killed by SIGKILL"
        assert server.sample() is None
    assert server.clean


def test_the_tree_is_the_server(toy: Toy) -> None:
    """Workers and a process that left the session belong to it: counted, pinned and stopped with it."""
    cpu = min(os.sched_getaffinity(0))
    with launch(toy("--workers", "2", "--detached")) as server:
        server.wait_ready(probe_of(server), 30)
        deadline = time.monotonic() + 10
        while len(server.pids()) < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        pids = server.pids()
        assert len(pids) == 4
        assert set(proc._by_parents(server.guard.pid)) == set(pids), "on kernels without lists of children"
        sample = server.sample()
        assert sample is not None
        assert sample.processes == 4
        assert server.set_affinity([cpu])
        assert cpus_of_threads(server) == {frozenset([cpu])}
    assert server.clean
    assert not any(proc.alive(pid) for pid in pids)


def test_all_threads_are_pinned(toy: Toy) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    with launch(toy("--threads", "8")) as server:
        server.wait_ready(probe_of(server), 30)
        assert cpus_of_threads(server) == {frozenset(allowed)}
        assert server.set_affinity(allowed[:1])
        assert cpus_of_threads(server) == {frozenset(allowed[:1])}
        assert os.sched_getaffinity(server.guard.pid).isdisjoint(allowed[:1]) or len(allowed) == 1
        assert not server.set_affinity([4095]), "a CPU that does not exist"


def test_a_server_that_will_not_stop_is_killed(toy: Toy) -> None:
    with launch(toy("--stubborn")) as server:
        server.wait_ready(probe_of(server), 30)
        assert server.stop(grace_s=0.2) is True
        assert server.exit_description() == "killed by SIGKILL"


def test_what_cannot_be_executed_is_said(toy: Toy, tmp_path: Path) -> None:
    built = toy()
    no_program = tmp_path / "garbage"
    no_program.write_text("not a program", encoding="utf-8")
    no_program.chmod(0o755)
    garbage = Built(built.spec.model_copy(update={"command": (str(no_program),)}))
    with pytest.raises(EnvironmentFault, match="Exec format error"):
        launch(garbage)
    missing = Built(built.spec.model_copy(update={"command": ("no-such-program",)}))
    with pytest.raises(EnvironmentFault, match="'no-such-program'"):
        launch(missing)
    unknown = Built(built.spec.model_copy(update={"command": ("{python}", "{prot}")}))
    with pytest.raises(UsageError, match=r"'\{prot\}'.*'port'"):
        launch(unknown)


def test_the_environment_is_ours_and_not_the_users(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xmx1m")
    with launch(toy(env="{TOY: yes-it-is}")) as server:
        server.wait_ready(probe_of(server), 30)
        environ = Path(f"/proc/{server.pid}/environ").read_bytes().split(b"\0")
    assert b"TOY=yes-it-is" in environ
    assert not any(word.startswith(b"JAVA_TOOL_OPTIONS") for word in environ)


LABORATORY = """
import sys
from pathlib import Path
from prony.server.build import Built
from prony.server.catalogue import Catalogue
from prony.server.launch import launch
from tests.single import single
server = launch(Built(Catalogue.load([Path(sys.argv[1])]).resolve("toy")))
print(server.pid, server.guard.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_no_server_outlives_the_laboratory(toy: Toy, tmp_path: Path, number: signal.Signals) -> None:
    toy("--workers", "1", "--stubborn")
    laboratory = subprocess.Popen(
        [sys.executable, "-c", LABORATORY, str(tmp_path / "servers")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert laboratory.stdin is not None
    assert laboratory.stdout is not None
    with laboratory.stdin, laboratory.stdout:
        server, guard = (int(word) for word in laboratory.stdout.readline().split())
        assert proc.alive(server)
        laboratory.send_signal(number)
        laboratory.wait(60)
        assert gone(server, 30)
        assert gone(guard, 30)


def test_a_killed_guard_takes_the_server_with_it(toy: Toy) -> None:
    with launch(toy()) as server:
        server.wait_ready(probe_of(server), 30)
        os.kill(server.guard.pid, signal.SIGKILL)
        assert gone(server.pid)
        assert not server.alive()
        assert server.exit_description() == "its guard process was killed"
    assert server.clean
    assert not server.scratch.exists()


def test_launching_from_a_thread_that_ends_keeps_the_server(toy: Toy) -> None:
    """The death signal goes by the parent *thread*: that has to be the guard's, not one of the laboratory."""
    started: list[RunningServer] = []
    thread = threading.Thread(target=lambda: started.append(launch(toy())))
    thread.start()
    thread.join()
    with started[0] as server:
        server.wait_ready(probe_of(server), 30)
        assert server.alive()
