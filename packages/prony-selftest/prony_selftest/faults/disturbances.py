"""Disturbances of a host during a trial: CPU burners, quotas, namespaces. Each is undone with its context."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from prony.host.proc import thread_ids
from prony.host.readings import ENGINE
from prony.server.proc import descendants, parent_of, program
from prony_selftest.faults.model import Disturbance, RunningSetup, Side

CLONE_NEWNET = 0x40000000
CGROUPS = Path("/sys/fs/cgroup")


HALF_THE_TIME = """import os, time
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
while os.getppid() == {parent}:
    end = time.monotonic() + 0.005
    while time.monotonic() < end:
        pass
    time.sleep(0.005)
"""


@contextmanager
def killed_after(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """The process, killed at the end of the block."""
    process = subprocess.Popen(command)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def burner(side: Side, *, real_time: bool = False) -> Disturbance:
    """A process that burns a CPU of this side; with `real_time` half of its time, before all others."""

    @contextmanager
    def burn(running: RunningSetup) -> Iterator[None]:
        cpus = running.server_cpus if side == "server" else running.client_cpus
        place = f"import os; os.sched_setaffinity(0, {{{cpus[0]}}})"
        # Ends with this process, even if it is killed.
        burn_cpu = f"while os.getppid() == {os.getpid()}: sum(range(9999))"
        if real_time:
            burn_cpu = HALF_THE_TIME.format(parent=os.getpid())
        with killed_after([sys.executable, "-I", "-S", "-c", f"{place}\n{burn_cpu}"]):
            yield

    return burn


@contextmanager
def network_namespace() -> Iterator[None]:
    """A network namespace with its own loopback, for processes started inside."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/proc/self/ns/net").open("rb") as home:
        if libc.unshare(CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "cannot create a network namespace")
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True, capture_output=True)
            yield
        finally:
            if libc.setns(home.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "cannot leave the network namespace")


@contextmanager
def port_range(first: int, last: int) -> Iterator[None]:
    """A network namespace with this range of ephemeral ports."""
    with network_namespace():
        Path("/proc/sys/net/ipv4/ip_local_port_range").write_text(f"{first} {last}")
        yield


SHALLOW_BYTES, DEEP_BYTES = 16_000, 4_000_000


def shallow_link() -> AbstractContextManager[None]:
    """A network namespace whose loopback has 40 Mbit/s and a queue of ten packets, and drops the excess."""
    return _link(SHALLOW_BYTES)


def deep_link() -> AbstractContextManager[None]:
    """The same link with a queue that drops nothing."""
    return _link(DEEP_BYTES)


@contextmanager
def _link(queue_bytes: int) -> Iterator[None]:
    options = ("rate", "40mbit", "burst", str(SHALLOW_BYTES), "limit", str(queue_bytes))
    with network_namespace():
        for command in (
            ["ip", "link", "set", "lo", "mtu", "1500"],
            ["tc", "qdisc", "add", "dev", "lo", "root", "tbf", *options],
        ):
            subprocess.run(command, check=True, capture_output=True)
        yield


PERIOD_US = 100_000
CPU_FILES = ("cpu.max", "cpu.cfs_quota_us")
MEMORY_FILES = ("memory.high", "memory.limit_in_bytes")
"""Of cgroup v2 and v1."""


def cpu_quota(share: float, side: Side = "server") -> Disturbance:
    """A control group that limits this side to this share of one CPU."""

    def limit(group: Path) -> None:
        if (group / "cpu.max").exists():
            (group / "cpu.max").write_text(f"{int(share * PERIOD_US)} {PERIOD_US}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(int(share * PERIOD_US)))

    return _limited(side, CPU_FILES, limit)


def memory_limit(limit_bytes: int) -> Disturbance:
    """A control group that limits the server's memory, page cache included."""

    def limit(group: Path) -> None:
        file = next(group / name for name in MEMORY_FILES if (group / name).exists())
        file.write_text(str(limit_bytes))

    return _limited("server", MEMORY_FILES, limit)


def _limited(side: Side, files: Sequence[str], limit: Callable[[Path], None]) -> Disturbance:
    """A control group with this limit, for one side."""

    @contextmanager
    def hold(running: RunningSetup) -> Iterator[None]:
        root, pid = _group_root(files), running.server_pid if side == "server" else _engine_pid()
        if root is None or pid is None:
            raise OSError(f"cannot create a control group with {files[0]}")
        home = root / _group_of(pid, root).lstrip("/")
        group = Path(tempfile.mkdtemp(prefix="prony-selftest-", dir=root))
        try:
            limit(group)
            for thread in thread_ids(
                pid
            ):  # a quota holds for ordinary threads only, as all are in a container
                os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))
            (group / "cgroup.procs").write_text(str(pid))
            yield
        finally:
            with suppress(OSError):
                for member in (group / "cgroup.procs").read_text().split():
                    (home / "cgroup.procs").write_text(member)
            with suppress(OSError):
                group.rmdir()

    return hold


def _engine_pid() -> int | None:
    """The load generator is this process's own child; a server is its guard's."""
    own = (pid for pid in descendants(os.getpid()) if parent_of(pid) == os.getpid())
    return next((pid for pid in own if program(pid) == ENGINE), None)


def _group_root(files: Sequence[str]) -> Path | None:
    """Folder where groups with one of these files can be created: cgroup v2, or a hierarchy of v1."""
    for root in (CGROUPS, CGROUPS / "cpu", CGROUPS / "cpu,cpuacct", CGROUPS / "memory"):
        try:
            group = Path(tempfile.mkdtemp(prefix="prony-selftest-", dir=root))
        except OSError:
            continue
        has_file = any((group / file).exists() for file in files)
        group.rmdir()
        if has_file:
            return root
    return None


def can_limit(files: Sequence[str]) -> bool:
    """Whether control groups with one of these files can be created."""
    return _group_root(files) is not None


def _group_of(pid: int, root: Path) -> str:
    controller = root.name.partition(",")[0]
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if (root == CGROUPS and number == "0") or controller in controllers.split(","):
            return path
    return "/"


FLOOD = """
import os, socket, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
sink, source = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
sink.bind(("127.0.0.1", 0))
while os.getppid() == int(sys.argv[2]):
    for _ in range(1000):
        source.sendto(b"x" * 64, sink.getsockname())
"""
STEERING = Path("/sys/class/net/lo/queues/rx-0/rps_cpus")


@contextmanager
def foreign_traffic(running: RunningSetup) -> Iterator[None]:
    """Packets of another network namespace, processed on the server's CPU by receive packet steering."""
    mask = sum(1 << cpu for cpu in running.server_cpus)
    settle = f'mount -t sysfs sysfs /sys && ip link set lo up && echo {mask:x} > {STEERING} && exec "$@"'
    words = (sys.executable, "-I", "-S", "-c", FLOOD, str(running.client_cpus[0]), str(os.getpid()))
    with killed_after(["unshare", "-n", "-m", "sh", "-c", settle, "sh", *words]):
        yield
