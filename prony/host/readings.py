"""All readings of the doctor, taken together."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from prony.errors import UsageError
from prony.evidence.host import CpuPartition, Fingerprint, PortRange
from prony.host import hardware
from prony.host.affinity import Pinning, Realtime, granted_cpus, pin_thread, realtime
from prony.host.diag import socket_sums
from prony.host.fingerprint import fingerprint
from prony.host.kmsg import KernelLog
from prony.host.others import census, others_between
from prony.host.partition import partition
from prony.host.proc import (
    ROOT,
    cpu_ticks,
    cpus_text,
    process_stat,
    read_int,
    read_text,
    swapped_in_bytes,
)
from prony.host.resource_limits import descriptor_limits, port_range
from prony.host.topology import Topology, topology

ENGINE = "prony-engine"
_PROBE_TIMEOUT_S = 10.0
START_S = 0.1
SPIN = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): sum(range(9999))"
"""Ends with its parent, even if that is killed."""


@dataclass(frozen=True, slots=True)
class DriverReading:
    works: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Readings:
    """The host's readings; None: unread."""

    fingerprint: Fingerprint
    topology: Topology
    granted: tuple[int, ...]
    partition: CpuPartition | None
    cpu_kinds: Mapping[str, str]
    """Kind of core -> its CPUs, if there are several kinds."""
    sample_s: float
    steal: float | None
    """The highest share among the granted CPUs during the sample."""
    others: float | None
    """CPU time of other processes ÷ capacity of the granted CPUs during the sample."""
    busiest: str | None
    swapped_in_bytes: int | None
    memory: Mapping[str, int]
    ports: PortRange | None
    source_addresses: int | None
    """Outside 127.0.0.0/8."""
    sockets: Mapping[str, int]
    descriptors: tuple[int | None, int | None]
    locked_memory_bytes: int | None
    """Soft limit; None: unlimited."""
    conntrack: tuple[int, int] | None
    """(entries, capacity) of the connection tracking table; None without one."""
    engine: str | None
    drivers: Mapping[str, DriverReading] | None
    emulated: str | None
    pinning: Pinning
    realtime: Realtime
    kernel_log: bool
    disk: tuple[Path, int | None]
    """(folder for results, free bytes)."""


def gather(*, sample_s: float = 3.0, results: Path | None = None, root: Path = ROOT) -> Readings:
    """Reads everything, in `sample_s` with all granted CPUs busy, plus the engine's probe."""
    cores = topology(root)
    granted = granted_cpus() if root == ROOT else cores.cpus
    with kept_busy(granted if sample_s > 0 and root == ROOT else ()) as spinning:
        steal, others, busiest, swapped = _sample(sample_s, granted, root, (os.getpid(), *spinning))
    engine = _engine()
    locked, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    probe = None if engine is None else probed(engine)
    return Readings(
        fingerprint=fingerprint({}, root=root),
        topology=cores,
        granted=granted,
        partition=_partition(cores, granted),
        cpu_kinds=_cpu_kinds(cores.cpus, root),
        sample_s=sample_s,
        steal=steal,
        others=others,
        busiest=busiest,
        swapped_in_bytes=swapped,
        memory=hardware.memory(root),
        ports=port_range(root),
        source_addresses=source_addresses(root),
        sockets=socket_sums(root) or {},
        descriptors=descriptor_limits(),
        locked_memory_bytes=None if locked == resource.RLIM_INFINITY else locked,
        conntrack=_conntrack(root),
        engine=engine,
        drivers=None if probe is None else parse_drivers(probe),
        emulated=None if probe is None else parse_emulated(probe),
        pinning=pin_thread(os.sched_getaffinity(0)),  # its own mask again: permitted?
        realtime=realtime(root),
        kernel_log=_reads_kernel_log(root),
        disk=_disk(results),
    )


def _partition(topology: Topology, granted: tuple[int, ...]) -> CpuPartition | None:
    try:
        return partition(topology=topology, allowed=granted)
    except UsageError:
        return None


def _cpu_kinds(cpus: tuple[int, ...], root: Path) -> dict[str, str]:
    """By Intel's names, or arm64's capacity."""
    kinds: dict[str, str] = {}
    for kind, label in (
        ("cpu_core", "performance"),
        ("cpu_atom", "efficiency"),
        ("cpu_lowpower", "low power"),
    ):
        text = read_text(root / "sys/devices" / kind / "cpus")
        if text:
            kinds[label] = text
    if len(kinds) > 1:
        return kinds
    by_capacity: dict[int, list[int]] = {}
    for cpu in cpus:
        capacity = read_int(root / f"sys/devices/system/cpu/cpu{cpu}/cpu_capacity")
        if capacity is not None:
            by_capacity.setdefault(capacity, []).append(cpu)
    if len(by_capacity) < 2:
        return {}
    return {f"capacity {capacity}": cpus_text(members) for capacity, members in sorted(by_capacity.items())}


def _sample(
    sample_s: float, granted: tuple[int, ...], root: Path, pids: Sequence[int]
) -> tuple[float | None, float | None, str | None, int | None]:
    ticks, people, swapped = cpu_ticks(root), census(root), swapped_in_bytes(root)
    time.sleep(sample_s)
    later_ticks, later_people, later_swapped = cpu_ticks(root), census(root), swapped_in_bytes(root)
    steals = []
    for cpu in granted:
        if ticks and later_ticks and cpu in ticks and cpu in later_ticks:
            total = later_ticks[cpu].total - ticks[cpu].total
            if total > 0:
                steals.append((later_ticks[cpu].steal - ticks[cpu].steal) / total)
    ours = (process_stat(pid, root) for pid in pids)
    own = {(process.pid, process.started_ticks) for process in ours if process is not None}
    use = others_between(people, later_people, own)
    span_s = later_people.t_monotonic_s - people.t_monotonic_s
    seen = use.complete and span_s > 0 and bool(granted)
    risen = None if swapped is None or later_swapped is None else later_swapped - swapped
    return (
        max(steals, default=None),
        use.cpu_s / (span_s * len(granted)) if seen else None,
        use.busiest,
        risen,
    )


def source_addresses(root: Path = ROOT) -> int | None:
    """Number of IPv4 source addresses for another host."""
    text = read_text(root / "proc/net/fib_trie")
    if text is None:
        return None
    addresses, last = set(), ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("|--"):
            last = line.removeprefix("|--").strip()
        elif line == "/32 host LOCAL" and not last.startswith("127."):
            addresses.add(last)
    return len(addresses)


def _conntrack(root: Path) -> tuple[int, int] | None:
    base = root / "proc/sys/net/netfilter"
    count, most = read_int(base / "nf_conntrack_count"), read_int(base / "nf_conntrack_max")
    return None if count is None or most is None else (count, most)


def _engine() -> str | None:
    """The engine's path as for a load: PRONY_ENGINE, next to this Python, on the PATH."""
    named = os.environ.get("PRONY_ENGINE")
    if named:
        return named
    beside = Path(sys.executable).parent / ENGINE
    return str(beside) if beside.is_file() else shutil.which(ENGINE)


def io_uring_works() -> bool | None:
    """Whether io_uring works by the engine's probe (10 ms); None without an engine or a result."""
    engine = _engine()
    drivers = None if engine is None else probed_drivers(engine)
    driver = None if drivers is None else drivers.get("io_uring")
    return None if driver is None else driver.works


def probed_drivers(engine: str) -> dict[str, DriverReading] | None:
    output = probed(engine)
    return None if output is None else parse_drivers(output)


def probed(engine: str) -> str | None:
    """Output of `prony-engine probe`; None when it fails."""
    try:
        return subprocess.run(
            [engine, "probe"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PROBE_TIMEOUT_S,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None


def parse_drivers(text: str) -> dict[str, DriverReading] | None:
    """Driver -> reading, from `{"driver", "works", "reason"}`, bare or under `drivers`; else None."""
    try:
        content = json.loads(text)
        entries = content["drivers"] if isinstance(content, dict) else content
        return {
            str(entry["driver"]): DriverReading(bool(entry["works"]), str(entry.get("reason", "")))
            for entry in entries
        }
    except (ValueError, KeyError, TypeError):
        return None


def parse_emulated(text: str) -> str | None:
    """The emulator, from the same text; None: not emulated, or unreadable."""
    try:
        emulated = json.loads(text)["emulated"]
    except (ValueError, KeyError, TypeError):
        return None
    return None if emulated is None else str(emulated)


def _reads_kernel_log(root: Path) -> bool:
    log = KernelLog(root)
    try:
        return log.count() is not None
    finally:
        log.close()


def _disk(results: Path | None) -> tuple[Path, int | None]:
    folder = results or Path(os.environ.get("XDG_DATA_HOME") or Path.home())
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        return folder, shutil.disk_usage(folder).free
    except OSError:
        return folder, None


@contextmanager
def kept_busy(cpus: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Process ids of idle-priority (SCHED_IDLE) spinners on these CPUs; fewer where not permitted."""
    spinning: list[subprocess.Popen[bytes]] = []
    try:
        for cpu in cpus:
            with suppress(OSError):
                process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", SPIN, str(os.getpid())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                spinning.append(process)
                os.sched_setscheduler(process.pid, os.SCHED_IDLE, os.sched_param(0))
                os.sched_setaffinity(process.pid, {cpu})
        time.sleep(START_S if spinning else 0)
        yield tuple(process.pid for process in spinning)
    finally:
        for process in spinning:
            process.kill()
        for process in spinning:
            process.wait()
