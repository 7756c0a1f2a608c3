"""Parsers for /proc and /sys that return None when unreadable. `root`: a fake tree in tests."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from prony.errors import UsageError

ROOT = Path("/")
TICKS_PER_S: int = os.sysconf("SC_CLK_TCK")
PAGE_BYTES: int = os.sysconf("SC_PAGE_SIZE")

_READ_BYTES = 65536
KERNEL_THREAD = 0x00200000
"""PF_KTHREAD in the flags of /proc/PID/stat (include/linux/sched.h)."""


def now_s() -> float:
    """CLOCK_MONOTONIC in seconds, the clock of the engine and all samples."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def read_bytes(path: str | Path) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        parts = [os.read(descriptor, _READ_BYTES)]
        while parts[-1]:
            parts.append(os.read(descriptor, _READ_BYTES))
        return b"".join(parts)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def read_text(path: str | Path) -> str | None:
    """Stripped."""
    raw = read_bytes(path)
    return None if raw is None else raw.decode("utf-8", "replace").strip()


def read_int(path: str | Path) -> int | None:
    text = read_text(path)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def key_values(text: str, separator: str = ":") -> dict[str, str]:
    """Lines of `key<separator>value` as a dict; the first line of a key wins."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        key, sign, value = line.partition(separator)
        if sign:
            values.setdefault(key.strip(), value.strip())
    return values


def parse_cpus(text: str) -> tuple[int, ...]:
    """The CPUs of a list like `0-3,8`, ascending. Raises UsageError."""
    cpus: set[int] = set()
    for part in text.split(","):
        part = part.strip()
        if not part:
            continue
        low, dash, high = part.partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()):
            raise UsageError(f"'{text}' is not a list of CPUs; write it like 0-3,8.")
        first, last = int(low), int(high) if dash else int(low)
        if last < first or last > 65535:
            raise UsageError(f"'{part}' in '{text}' is not a range of CPUs; write it like 0-3,8.")
        cpus.update(range(first, last + 1))
    return tuple(sorted(cpus))


def cpus_text(cpus: Iterable[int]) -> str:
    """The inverse of `parse_cpus`: `0-3,8`."""
    ranges: list[tuple[int, int]] = []
    for cpu in sorted(set(cpus)):
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1] = (ranges[-1][0], cpu)
        else:
            ranges.append((cpu, cpu))
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def read_cpus(path: str | Path) -> tuple[int, ...] | None:
    text = read_text(path)
    if text is None:
        return None
    try:
        return parse_cpus(text)
    except UsageError:
        return None


@dataclass(frozen=True, slots=True)
class CpuTicks:
    """A CPU line of /proc/stat in cumulative clock ticks; user includes guest time."""

    user: int
    system: int
    idle: int
    irq: int
    steal: int

    @property
    def busy(self) -> int:
        return self.user + self.system + self.irq

    @property
    def total(self) -> int:
        return self.busy + self.idle + self.steal


def cpu_ticks(root: Path = ROOT) -> dict[int, CpuTicks] | None:
    raw = read_bytes(root / "proc/stat")
    if raw is None:
        return None
    by_cpu: dict[int, CpuTicks] = {}
    for line in raw.split(b"\n"):
        if not line.startswith(b"cpu"):
            break
        if line[3:4] == b" ":
            continue
        fields = line.split()
        try:
            ticks = [int(field) for field in fields[1:9]]
            cpu = int(fields[0][3:])
        except ValueError:
            continue
        if len(ticks) < 8:
            ticks += [0] * (8 - len(ticks))
        user, nice, system, idle, io_wait, irq, soft_irq, steal = ticks
        by_cpu[cpu] = CpuTicks(user + nice, system, idle + io_wait, irq + soft_irq, steal)
    return by_cpu or None


@dataclass(frozen=True, slots=True)
class ProcessStat:
    pid: int
    parent: int
    name: str
    kernel_thread: bool
    own_ticks: int
    reaped_ticks: int
    """CPU ticks of reaped descendants."""
    threads: int
    started_ticks: int
    """Start in ticks since boot; with the pid, the identity of a process."""
    last_cpu: int
    rss_bytes: int


def process_stat(pid: int, root: Path = ROOT) -> ProcessStat | None:
    return _parse_process(pid, read_bytes(f"{root}/proc/{pid}/stat"))


def _parse_process(pid: int, raw: bytes | None) -> ProcessStat | None:
    if not raw:
        return None
    # The name is in brackets and may hold brackets and blanks: the last bracket ends it.
    opened, closed = raw.find(b"("), raw.rfind(b")")
    fields = raw[closed + 2 :].split()
    if opened < 0 or closed < 0 or len(fields) < 37:
        return None
    return ProcessStat(
        pid=pid,
        parent=int(fields[1]),
        name=raw[opened + 1 : closed].decode("utf-8", "replace"),
        kernel_thread=bool(int(fields[6]) & KERNEL_THREAD),
        own_ticks=int(fields[11]) + int(fields[12]),
        reaped_ticks=int(fields[13]) + int(fields[14]),
        threads=int(fields[17]),
        started_ticks=int(fields[19]),
        last_cpu=int(fields[36]),
        rss_bytes=int(fields[21]) * PAGE_BYTES,
    )


def all_processes(root: Path = ROOT) -> dict[int, ProcessStat]:
    """Every visible process, kernel threads included. About 10 µs each."""
    processes: dict[int, ProcessStat] = {}
    try:
        names = os.listdir(root / "proc")  # noqa: PTH208 - hundreds of names: no Path objects
    except OSError:
        return processes
    for name in names:
        if name.isdecimal():
            stat = process_stat(int(name), root)
            if stat is not None:
                processes[stat.pid] = stat
    return processes


def threads_total(root: Path = ROOT) -> int | None:
    """Number of the kernel's tasks, including hidden ones."""
    text = read_text(root / "proc/loadavg")
    try:
        return None if text is None else int(text.split()[3].partition("/")[2])
    except (IndexError, ValueError):
        return None


def swapped_in_bytes(root: Path) -> int | None:
    pages = key_values(read_text(root / "proc/vmstat") or "", " ").get("pswpin")
    return int(pages) * PAGE_BYTES if pages is not None and pages.isdecimal() else None


def memory_stall_s(root: Path) -> float | None:
    """Cumulative seconds in which some task waited for memory; None on a kernel without PSI."""
    some = (read_text(root / "proc/pressure/memory") or "").partition("\n")[0]
    total_us = some.rpartition("total=")[2]
    return int(total_us) / 1e6 if total_us.isdecimal() else None


def thread_ids(pid: int, root: Path = ROOT) -> list[int]:
    """Threads of a process; empty when it is gone or hidden."""
    try:
        return [int(entry.name) for entry in (root / f"proc/{pid}/task").iterdir() if entry.name.isdecimal()]
    except OSError:
        return []
