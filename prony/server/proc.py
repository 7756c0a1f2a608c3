"""A process tree as the kernel sees it: members, CPU time, memory, threads, affinity. Must not know what runs in it.

All from /proc and clocks of the kernel; nothing here disturbs the processes. None means: could not be read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from prony.evidence.server import ProcessSample

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
AFFINITY_PASSES = 50
"""New threads inherit the affinity of their creator, so a few passes over the threads leave none behind."""

_PPID, _UTIME, _CUTIME, _CSTIME, _THREADS, _RSS = 1, 11, 13, 14, 17, 21
"""Places in /proc/PID/stat after the command name, see proc(5)."""


def stat_fields(pid: int) -> list[bytes] | None:
    """/proc/PID/stat from the state on (the command name may hold blanks and brackets); None for no or a dead process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return fields if fields and fields[0] not in (b"Z", b"X") else None


def descendants(root: int) -> tuple[int, ...]:
    """All living processes below `root`, parents before children."""
    found = _by_children_files(root)
    return _by_parents(root) if found is None else found


def _by_children_files(root: int) -> tuple[int, ...] | None:
    """Cheap, but only there when the kernel was built with it; None then."""
    found: list[int] = []
    todo = [root]
    while todo:
        pid = todo.pop(0)
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue
        for thread in threads:
            try:
                with open(f"/proc/{pid}/task/{thread}/children", "rb") as children:
                    below = [int(child) for child in children.read().split()]
            except FileNotFoundError:
                if pid == root and thread == str(root) and stat_fields(root) is not None:
                    return None
                continue
            except OSError:
                continue
            found += below
            todo += below
    return tuple(pid for pid in found if stat_fields(pid) is not None)


def _by_parents(root: int) -> tuple[int, ...]:
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            fields = stat_fields(int(entry))
            if fields is not None:
                children.setdefault(int(fields[_PPID]), []).append(int(entry))
    found: list[int] = []
    todo = [root]
    while todo:
        below = children.get(todo.pop(0), [])
        found += below
        todo += below
    return tuple(found)


def sample(pids: Iterable[int], reaper: int | None = None) -> ProcessSample | None:
    """One reading of the whole tree; None when no process is left or none may be read.

    CPU time counts living processes and the children that they waited for, plus those that ended up with `reaper`, so
    that a worker that was replaced is not forgotten. Its sum is exact to the kernel's nanosecond clock; the split into
    user and system time has the resolution of the clock tick. Pages that processes share count in each of them.
    """
    user_ticks = system_ticks = 0.0
    exact_s = 0.0
    rss = peak = threads = processes = 0
    descriptors: int | None = 0
    peak_known = True
    now = time.monotonic()
    for pid in pids:
        fields = stat_fields(pid)
        if fields is None:
            continue
        processes += 1
        user, system, children_user, children_system = (int(field) for field in fields[_UTIME : _CSTIME + 1])
        user_ticks += user + children_user
        system_ticks += system + children_system
        own_s = _cpu_clock_s(pid)
        exact_s += (user + system) / TICKS_PER_S if own_s is None else own_s
        exact_s += (children_user + children_system) / TICKS_PER_S
        threads += int(fields[_THREADS])
        rss += int(fields[_RSS]) * PAGE_BYTES
        high = _peak_rss_bytes(pid)
        peak_known, peak = peak_known and high is not None, peak + (high or 0)
        opened = _descriptors(pid)
        descriptors = None if descriptors is None or opened is None else descriptors + opened
    if processes == 0:
        return None
    if reaper is not None and (fields := stat_fields(reaper)) is not None:
        orphans_user, orphans_system = int(fields[_CUTIME]), int(fields[_CSTIME])
        user_ticks += orphans_user
        system_ticks += orphans_system
        exact_s += (orphans_user + orphans_system) / TICKS_PER_S
    ticks = user_ticks + system_ticks
    system_s = exact_s * system_ticks / ticks if ticks else 0.0
    return ProcessSample(
        t_monotonic_s=now,
        cpu_user_s=exact_s - system_s,
        cpu_system_s=system_s,
        rss_bytes=rss,
        peak_rss_bytes=peak if peak_known else None,
        threads=threads,
        descriptors=descriptors,
        processes=processes,
    )


def _cpu_clock_s(pid: int) -> float | None:
    """The process's CPU-time clock (clock_getcpuclockid(3): the id is made of the inverted pid)."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return None


def _peak_rss_bytes(pid: int) -> int | None:
    return status_number(pid, b"VmHWM:", 1024)


def status_number(pid: int, key: bytes, unit: int = 1) -> int | None:
    """A number from /proc/PID/status times `unit`."""
    try:
        with open(f"/proc/{pid}/status", "rb") as status:
            for line in status:
                if line.startswith(key):
                    return int(line.split()[1]) * unit
    except (OSError, ValueError, IndexError):
        pass
    return None


def _descriptors(pid: int) -> int | None:
    """Open descriptors; since Linux 6.2 the size of the folder says it, without listing thousands of sockets."""
    try:
        return os.stat(f"/proc/{pid}/fd").st_size or len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None


def descriptor_limit_soft(pid: int) -> int | None:
    """The soft limit of open files of a running process; None when unlimited or unreadable."""
    try:
        for line in Path(f"/proc/{pid}/limits").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("Max open files"):
                soft = line.split()[3]
                return int(soft) if soft.isdigit() else None
    except OSError:
        pass
    return None


def describe(pid: int) -> str:
    """`1234 (nginx)`, as a person would name it."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        name = Path(os.fsdecode(words[0])).name or Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return str(pid)
    return f"{pid} ({name})"


def threads_of(pids: Iterable[int]) -> list[int]:
    """The thread ids of these processes."""
    found: list[int] = []
    for pid in pids:
        try:
            found += [int(thread) for thread in os.listdir(f"/proc/{pid}/task")]
        except OSError:
            continue
    return found


def pin(root: int, cpus: Iterable[int]) -> bool:
    """Put every thread of everything below `root` on these CPUs. False when the kernel does not let us."""
    wanted = set(cpus)
    for _ in range(AFFINITY_PASSES):
        missed = 0
        for thread in threads_of(descendants(root)):
            try:
                if os.sched_getaffinity(thread) != wanted:
                    os.sched_setaffinity(thread, wanted)
                    missed += 1
            except ProcessLookupError:
                continue
            except OSError:
                return False
        if missed == 0:
            return True
    return False


def is_pinned(pids: Iterable[int], cpus: Iterable[int]) -> bool:
    """Whether every thread may run on exactly these CPUs."""
    wanted = set(cpus)
    seen = False
    for thread in threads_of(pids):
        try:
            if os.sched_getaffinity(thread) != wanted:
                return False
            seen = True
        except ProcessLookupError:
            continue
        except OSError:
            return False
    return seen
