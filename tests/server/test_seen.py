"""What is read from the kernel and over HTTP: listeners, their owners, probes, foreign servers, quotas."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.errors import EnvironmentFault, UsageError
from prony.evidence.server import CgroupThrottle
from prony.host import cgroup
from prony.host.affinity import pin_process
from prony.plan.target import Url
from prony.server import proc, sockets, threads
from prony.server.build import Built
from prony.server.launch import launch
from prony.server.probe import status_probe
from prony.targets import RunningExternal, external

HOST = "127.0.0.1"


@pytest.mark.parametrize(
    ("bound", "asked", "seen"),
    [
        (HOST, HOST, True),
        (HOST, "localhost", True),
        ("0.0.0.0", HOST, True),
        ("127.0.0.2", HOST, False),
        ("::", HOST, True),
        ("::1", HOST, False),
        ("::ffff:127.0.0.1", HOST, True),
    ],
)
def test_listeners_are_found_by_port_and_address(bound: str, asked: str, seen: bool) -> None:
    family = socket.AF_INET6 if ":" in bound else socket.AF_INET
    if family == socket.AF_INET6 and not Path("/proc/net/if_inet6").exists():
        pytest.skip("this host has no IPv6")
    with socket.socket(family) as listener:
        listener.bind((bound, 0))
        listener.listen()
        port = listener.getsockname()[1]
        found = sockets.listeners(port, asked)
        assert bool(found) is seen
        for each in found:
            assert each.inode == os.fstat(listener.fileno()).st_ino
            assert each.uid == os.getuid()
            assert sockets.owner_of(each) == os.getpid()
            assert sockets.owned_by([each.inode], [os.getpid()]) == {each.inode}
            parent = os.getppid()
            readable = os.access(f"/proc/{parent}/fd", os.R_OK)
            assert sockets.owned_by([each.inode], [parent]) == (set() if readable else None)


def test_a_free_port_is_free_and_outside_the_ephemeral_range() -> None:
    port = sockets.free_port(HOST)
    assert port in sockets.OWN_PORTS
    sockets.check_free(HOST, port)
    with socket.create_server((HOST, port)), pytest.raises(EnvironmentFault, match=f"port {port}"):
        sockets.check_free(HOST, port)


def test_a_bound_port_without_a_listener_is_taken_too() -> None:
    with socket.socket() as bound:
        bound.bind((HOST, 0))
        port = bound.getsockname()[1]
        with pytest.raises(EnvironmentFault, match=f"port {port}"):
            sockets.check_free(HOST, port)


def test_an_address_of_another_host_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"192\.0\.2\.1:8080"):
        sockets.check_free("192.0.2.1", 8080)


def test_a_server_that_somebody_else_started_is_seen(toy: Callable[..., Built]) -> None:
    with launch(toy("--workers", "2")) as server:
        server.wait_ready(status_probe(server.host, server.port), 30)
        foreign = RunningExternal(Url(url=server.url))
        assert set(foreign.pids()) == set(server.pids())
        identity = foreign.identity
        assert identity.pid == server.pid
        assert identity.owned is False
        assert identity.command[1].endswith("toy.py")
        sample = foreign.sample()
        assert sample is not None
        assert sample.processes == 3
        assert foreign.exit_description() is None
        assert foreign.jvm() is None
        assert set(foreign.cpus()) <= set(range(os.cpu_count() or 1))
        assert {pid for pid, _, _ in foreign.thread_times() or {}} == set(server.pids())
    assert (
        foreign.exit_description()
        == f"the process that listened on port {server.port} (PID {server.pid}) has ended"
    )
    assert foreign.sample() is None


def test_of_several_listeners_the_most_specific_is_read() -> None:
    """The kernel gives a connection to 127.0.0.1 to who listens there, not to who listens everywhere."""
    with socket.create_server(("0.0.0.0", 0)) as everywhere:
        everywhere.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        port = everywhere.getsockname()[1]
        (found,) = sockets.answering(port, {HOST}) or []
        assert found.inode == os.fstat(everywhere.fileno()).st_ino
        assert sockets.answering(port, {"192.0.2.1"}) == [], "a port of this host is not one of another's"
        assert sockets.listeners(port, "192.0.2.1") != []
    shared = [socket.socket() for _ in range(3)]
    for listener, host in zip(shared, ("0.0.0.0", HOST, HOST), strict=True):
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, shared[0].getsockname()[1]))
        listener.listen()
    near = {os.fstat(listener.fileno()).st_ino for listener in shared[1:]}
    assert {one.inode for one in sockets.answering(shared[0].getsockname()[1], {HOST}) or []} == near
    for listener in shared:
        listener.close()


def test_prony_never_takes_itself_for_the_server() -> None:
    """A server in the process that runs Prony is its ancestor, or itself."""
    with socket.create_server((HOST, 0)) as listener:
        foreign = RunningExternal(Url(url=f"http://{HOST}:{listener.getsockname()[1]}"))
        assert foreign.identity.pid == os.getpid()
        assert foreign.pids() == ()
        assert foreign.sample() is None
        assert foreign.cpus() == ()


def test_a_server_of_which_a_part_runs_elsewhere_is_not_read() -> None:
    with socket.create_server((HOST, 0)) as listener:
        here = f"{HOST}:{listener.getsockname()[1]}"
        foreign = RunningExternal(Url(url=f"http://{here}", addresses=(here, "192.0.2.1:80")))
        assert foreign.identity.pid is None


BUSY = """
import threading
threading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start()
print(flush=True)
"""


def test_the_busiest_thread_is_found_and_where_it_may_run() -> None:
    cpu = sorted(os.sched_getaffinity(0))[-1]
    command = ["taskset", "-c", str(cpu), sys.executable, "-c", BUSY]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        opened = threads.thread_times([process.pid])
        while (
            used := threads.busiest(opened, threads.thread_times([process.pid]))
        ) is None or used.cpu_s < 0.2:
            time.sleep(0.05)
        closed = threads.thread_times([process.pid])
        process.kill()
    assert used.pid == process.pid
    assert used.tid != process.pid, "the main thread only waits"
    assert used.name
    assert threads.working_cpus(opened, closed) == (cpu,)
    assert threads.thread_times([process.pid]) is None
    assert threads.busiest(opened, None) is None
    assert threads.working_cpus(None, closed) == ()


@pytest.mark.parametrize(
    "name", ["C2 CompilerThre", "GC Thread#0", "G1 Conc#0", "VM Thread", "ZWorkerYoung#0", "Shenandoah GC T"]
)
def test_a_compiler_or_a_collector_is_not_the_busiest_thread(name: str) -> None:
    def reading(cpu_s: float) -> threads.Readings:
        one = threads.ThreadTime(name, cpu_s, frozenset({0}), cpu_s)
        two = threads.ThreadTime("worker", cpu_s / 2, frozenset({1}), cpu_s)
        return {(1, 2, 0): one, (1, 3, 0): two}

    used = threads.busiest(reading(0.0), reading(8.0))
    assert used is not None
    assert (used.name, used.cpu_s) == ("worker", 4.0)
    assert threads.working_cpus(reading(0.0), reading(8.0)) == (0, 1)


RENAMED = """
import threading
def named(name, starts):
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as comm:
        comm.write(name)
    print(name, flush=True)
    if starts and input() == "":
        threading.Thread(target=named, args=(name, False)).start()
    threading.Event().wait()
for name in ("http-worker", "C1 CompilerThre", "C2 CompilerThre"):
    threading.Thread(target=named, args=(name, name.startswith("C2"))).start()
"""
"""Threads with the names of a JVM's; at a line of input the second compiler starts a third."""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_compilers_are_moved_with_those_that_they_start_and_all_come_back() -> None:
    one, *_ = every = sorted(os.sched_getaffinity(0))
    command = ["taskset", "-c", str(one), sys.executable, "-c", RENAMED]
    own, all_cpus = frozenset({one}), frozenset(every)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def where() -> set[tuple[str, frozenset[int]]]:
            return {
                (thread.name[:2], thread.cpus)
                for thread in (threads.thread_times([process.pid]) or {}).values()
            }

        try:
            assert process.stdin is not None
            assert process.stdout is not None
            for _ in range(3):
                process.stdout.readline()
            before = where()
            assert before > {("ht", own), ("C1", own), ("C2", own)}
            assert threads.pin_compilers(threads.thread_times([process.pid]), every)
            process.stdin.write("\n")
            process.stdin.flush()
            process.stdout.readline()
            moved = threads.thread_times([process.pid])
            assert [one.cpus for one in (moved or {}).values() if one.name.startswith("C2")] == [all_cpus] * 2
            assert where() == {(name, all_cpus if name in {"C1", "C2"} else own) for name, _ in before}
            assert threads.compiler_cpus(None, moved) == all_cpus
            assert pin_process(process.pid, own).done
            assert where() == before
            assert threads.compiler_cpus(threads.thread_times([process.pid])) == own
        finally:
            process.kill()


def test_a_compiler_that_is_gone_or_may_not_be_moved_is_not_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    def compilers(*ids: int) -> threads.Readings:
        return {(1, at, 0): threads.ThreadTime("C2 CompilerThre", 1.0, frozenset(), 0.0) for at in ids}

    def move(thread: int, _cpus: object) -> None:
        if thread < 3:
            raise ProcessLookupError if thread == 1 else PermissionError

    monkeypatch.setattr(os, "sched_setaffinity", move)
    assert not threads.pin_compilers(compilers(1, 2), {0, 1})
    assert not threads.pin_compilers({(1, 1, 0): threads.ThreadTime("worker", 1.0, frozenset(), 0.0)}, {0, 1})
    assert not threads.pin_compilers(None, {0, 1})
    assert threads.pin_compilers(compilers(1, 3), {0, 1}), "one has ended, the other was moved"


def test_the_compilers_time_only_grows() -> None:
    """The JVM ends a compiler's thread that has nothing to do, and its CPU time would go with it."""

    def reading(*compilers: float) -> threads.Readings:
        worker = {(1, 1, 0): threads.ThreadTime("worker", 9.0, frozenset(), 0.0)}
        return worker | {
            (1, 2, at): threads.ThreadTime("C2 CompilerThre", cpu_s, frozenset(), 0.0)
            for at, cpu_s in enumerate(compilers)
        }

    compilers = threads.Compilers()
    assert (compilers.cpu_s(None), compilers.cpu_s(reading())) == (None, None)
    assert [compilers.cpu_s(reading(*one)) for one in ((1.0, 2.0), (1.5,), (1.5, 2.5))] == [3.0, 3.5, 4.0]


def test_a_threads_share_is_of_the_time_between_its_own_two_readings() -> None:
    """A slow reading before it makes its span another than that of its process."""

    def thread(cpu_s: float, t_s: float) -> threads.ThreadTime:
        return threads.ThreadTime("worker", cpu_s, frozenset(), t_s)

    first = {(1, 1, 0): thread(0.5, 100.0), (1, 2, 0): thread(1.0, 100.004)}
    used = threads.busiest(first, {(1, 1, 0): thread(0.6, 110.0), (1, 2, 0): thread(10.9, 110.054)})
    assert used is not None
    assert used.tid == 2
    assert used.cpu_s == pytest.approx(9.9)
    assert used.wall_s == pytest.approx(10.05)
    began = threads.busiest(first, {(1, 3, 0): thread(4.0, 110.0)})
    assert began is not None
    assert began.wall_s == pytest.approx(10.0), "since the first reading of all"


def test_run_delay_is_that_of_all_threads_and_of_those_that_ended() -> None:
    def thread(ran_s: float, waited_s: float | None) -> threads.ThreadTime:
        return threads.ThreadTime("worker", 0.0, frozenset(), 0.0, ran_s, waited_s)

    first = {(1, 1, 0): thread(1.0, 0.5), (1, 2, 0): thread(3.0, 7.0)}
    last = {(1, 1, 0): thread(5.0, 1.5), (1, 3, 0): thread(5.0, 1.0)}
    assert threads.run_delay_s(first, last, 9.0) == pytest.approx(2.0), "the second ended"
    assert threads.run_delay_s(first, last, 9.9) == pytest.approx(2.2), "0.9 s of CPU time are not seen"
    assert threads.run_delay_s(first, last, 11.0) is None
    assert threads.run_delay_s(first, None, 9.0) is None
    assert threads.run_delay_s(first, last | {(1, 4, 0): thread(0.0, None)}, 9.0) is None


def test_a_thread_that_competes_for_a_cpu_waits_for_it() -> None:
    cpu = sorted(os.sched_getaffinity(0))[-1]
    command = ["taskset", "-c", str(cpu), sys.executable, "-c", "while True: pass"]
    with subprocess.Popen(command) as one, subprocess.Popen(command) as other:
        try:
            opened = threads.thread_times([one.pid])
            until_s = time.monotonic() + 60
            waited_s = 0.0
            while waited_s < 0.1 and time.monotonic() < until_s:
                time.sleep(0.02)
                waited_s = threads.run_delay_s(opened, threads.thread_times([one.pid]), 0.0) or 0.0
        finally:
            one.kill()
            other.kill()
    assert waited_s >= 0.1


def test_a_server_elsewhere_is_not_seen() -> None:
    foreign = RunningExternal(Url(url="http://192.0.2.1"))
    assert foreign.pids() == ()
    assert foreign.identity.pid is None
    assert foreign.sample() is None
    assert foreign.throttle() is None
    assert foreign.exit_description() is None


def test_cpu_time_is_counted_exactly_and_children_are_not_forgotten() -> None:
    before = proc.sample([os.getpid()])
    child = os.fork()
    if child == 0:
        os._exit(sum(range(3_000_000)) % 1)
    os.waitpid(child, 0)
    after = proc.sample([os.getpid()])
    assert before is not None
    assert after is not None
    own = os.times()
    assert after.cpu_s == pytest.approx(sum(own[:4]), abs=0.2)
    assert after.cpu_s > before.cpu_s
    assert (after.major_faults or 0) >= (before.major_faults or 0)
    assert after.descriptors is not None
    assert after.peak_rss_bytes is not None
    assert after.peak_rss_bytes >= after.rss_bytes * 0.9
    assert proc.descriptor_limit_soft(os.getpid())


def test_written_bytes_are_counted(tmp_path: Path) -> None:
    before = proc.sample([os.getpid()])
    (tmp_path / "log").write_bytes(b"x" * 100_000)
    after = proc.sample([os.getpid()])
    assert before is not None
    assert after is not None
    assert (after.written_bytes or 0) - (before.written_bytes or 0) >= 100_000
    assert (after.disk_bytes or 0) >= (before.disk_bytes or 0)


def group(root: Path, name: str, **files: str) -> None:
    (root / name).mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (root / name / file.replace("__", ".")).write_text(content, encoding="ascii")


@pytest.mark.parametrize("version", [1, 2])
def test_the_group_that_was_throttled_longest_counts(tmp_path: Path, version: int) -> None:
    kind = "cgroup2 cgroup2 rw" if version == 2 else "cgroup cgroup rw,cpu,cpuacct"
    group(tmp_path, "proc/self", mountinfo=f"30 25 0:26 / /fs rw - {kind}\n")
    group(tmp_path, "proc/1")
    pid, root = tmp_path / "proc/1/cgroup", tmp_path / "fs"
    if version == 2:
        pid.write_text("0::/slice/app/leaf\n", encoding="ascii")
        group(
            root,
            "slice",
            cpu__max="100000 100000",
            cpu__stat="nr_periods 99\nnr_throttled 9\nthrottled_usec 9\n",
        )
        group(root, "slice/app", cpu__max="50000 100000",
              cpu__stat="usage_usec 5\nnr_periods 20\nnr_throttled 4\nthrottled_usec 1500000\n")  # fmt: skip
        group(root, "slice/app/leaf", cpu__max="max 100000", cpu__stat="usage_usec 5\n")
    else:
        pid.write_text("3:cpuset:/x\n2:cpu,cpuacct:/slice/app\n0::/\n", encoding="ascii")
        group(root, "slice", cpu__cfs_quota_us="-1")
        group(root, "slice/app", cpu__cfs_quota_us="50000",
              cpu__stat="nr_periods 20\nnr_throttled 4\nthrottled_time 1500000000\n")  # fmt: skip
    found = cgroup.throttle(1, tmp_path)
    assert found is not None
    assert found[0] == CgroupThrottle(periods=20, throttled_periods=4, throttled_s=1.5)
    more = CgroupThrottle(periods=30, throttled_periods=5, throttled_s=2.0)
    assert cgroup.between(found, (more, *found[1:])) == CgroupThrottle(
        periods=10, throttled_periods=1, throttled_s=0.5
    )
    assert cgroup.between(found, None) is None
    if version == 2:
        above = CgroupThrottle(periods=119, throttled_periods=29, throttled_s=4.000009)
        assert cgroup.between(found, (more, above)) == CgroupThrottle(
            periods=20, throttled_periods=20, throttled_s=4.0
        ), "the level above stopped it for longer"


@pytest.mark.parametrize(
    ("path", "own", "pids"),
    [
        ("/system.slice/shop.service", "/system.slice/lab.service", {7, 8}),
        ("/system.slice/shop.service", "/system.slice/shop.service", set()),
        (f"/system.slice/docker-{'0a' * 32}.scope", "/x", {7, 8}),
        ("/user.slice/session-3.scope", "/user.slice/session-4.scope", set()),
        ("/user.slice/app.slice/app-code-7.scope", "/x", set()),
        ("/", "/x", set()),
    ],
)
def test_a_service_or_container_has_the_processes_of_its_group(
    tmp_path: Path, path: str, own: str, pids: set[int]
) -> None:
    group(tmp_path, "proc/self", mountinfo="30 25 0:26 / /fs rw - cgroup2 cgroup2 rw\n", cgroup=f"0::{own}\n")
    group(tmp_path, "proc/7", cgroup=f"0::{path}\n")
    group(tmp_path / "fs", path.lstrip("/"), cgroup__procs="7\n8\n")
    assert cgroup.members(7, tmp_path) == pids
    assert cgroup.members(9, tmp_path) == frozenset()


def test_a_daemon_of_its_group_is_the_servers_but_does_not_say_where_it_runs(
    toy: Callable[..., Built], monkeypatch: pytest.MonkeyPatch
) -> None:
    with launch(toy()) as server, subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1) as daemon:
        server.wait_ready(status_probe(server.host, server.port), 30)
        monkeypatch.setattr(external, "members", lambda _: frozenset({daemon.pid}))
        foreign = RunningExternal(Url(url=server.url))
        assert set(foreign.pids()) == {*server.pids(), daemon.pid}
        assert set(foreign.placement().cpus) == set(server.pids())
        daemon.kill()


def test_a_process_that_is_gone_has_no_counters() -> None:
    assert cgroup.throttle(2**22 + 1) is None, "no such process"
