"""A process tree from /proc: members, CPU time, memory, threads, affinity. None means: not readable."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from prony.evidence.server import ProcessSample
from prony.host.affinity import pin_process
from prony.host.proc import (
    PAGE_BYTES,
    TICKS_PER_S,
    all_processes,
    key_values,
    read_bytes,
    read_text,
    thread_ids,
)

_PPID, _MAJFLT, _CMAJFLT, _UTIME, _CUTIME, _CSTIME, _THREADS, _RSS = 1, 9, 10, 11, 13, 14, 17, 21
"""Places in /proc/PID/stat after the command name, see proc(5)."""


def stat_fields(pid: int) -> list[bytes] | None:
    """/proc/PID/stat from the state on; None for no or a dead process."""
    fields = (read_bytes(f"/proc/{pid}/stat") or b"").rpartition(b")")[2].split()
    return fields if fields and fields[0] not in (b"Z", b"X") else None


def alive(pid: int) -> bool:
    """Whether the process exists; a zombie does not count."""
    return stat_fields(pid) is not None


def parent_of(pid: int) -> int | None:
    fields = stat_fields(pid)
    return None if fields is None else int(fields[_PPID])


def descendants(root: int) -> tuple[int, ...]:
    pids = _by_children_files(root)
    return _by_parents(root) if pids is None else pids


def _by_children_files(root: int) -> tuple[int, ...] | None:
    """None where the kernel was built without these files."""
    pids: list[int] = []
    todo = [root]
    while todo:
        pid = todo.pop(0)
        for thread in thread_ids(pid):
            children = read_bytes(f"/proc/{pid}/task/{thread}/children")
            if children is None and pid == root and thread == root and alive(root):
                return None
            below = [int(child) for child in (children or b"").split()]
            pids += below
            todo += below
    return tuple(pid for pid in pids if alive(pid))


def _by_parents(root: int) -> tuple[int, ...]:
    children: dict[int, list[int]] = {}
    for process in all_processes().values():
        children.setdefault(process.parent, []).append(process.pid)
    pids: list[int] = []
    todo = [root]
    while todo:
        below = children.get(todo.pop(0), [])
        pids += below
        todo += below
    return tuple(pid for pid in pids if alive(pid))


def sample(pids: Iterable[int], reaper: int | None = None) -> ProcessSample | None:
    """A reading of the whole tree; None when no process may be read. CPU time counts living processes, the
    children that they waited for, and those that ended with `reaper`; its sum is exact, its split has clock
    ticks. Shared pages count in each process.
    """
    user_ticks = system_ticks = 0.0
    exact_s = 0.0
    rss = peak = threads = processes = faults = 0
    descriptors: int | None = 0
    peak_known = True
    written: list[tuple[int, int] | None] = []
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
        faults += int(fields[_MAJFLT]) + int(fields[_CMAJFLT])
        threads += int(fields[_THREADS])
        rss += int(fields[_RSS]) * PAGE_BYTES
        high = _peak_rss_bytes(pid)
        peak_known, peak = peak_known and high is not None, peak + (high or 0)
        opened = _descriptors(pid)
        descriptors = None if descriptors is None or opened is None else descriptors + opened
        written.append(_written_bytes(pid))
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
        written_bytes=None if None in written else sum(one[0] for one in written if one),
        disk_bytes=None if None in written else sum(one[1] for one in written if one),
        threads=threads,
        descriptors=descriptors,
        processes=processes,
        major_faults=faults,
    )


def _cpu_clock_s(pid: int) -> float | None:
    """The process's CPU-time clock (clock_getcpuclockid(3): the id is made of the inverted pid)."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return None


def _peak_rss_bytes(pid: int) -> int | None:
    high = key_values(read_text(f"/proc/{pid}/status") or "").get("VmHWM", "").split()
    return int(high[0]) * 1024 if high else None


def _written_bytes(pid: int) -> tuple[int, int] | None:
    """(by write calls, of files on disks), see proc_pid_io(5); None where another user's."""
    counts = key_values(read_text(f"/proc/{pid}/io") or "")
    return (int(counts["wchar"]), int(counts["write_bytes"])) if "write_bytes" in counts else None


def _descriptors(pid: int) -> int | None:
    """Since Linux 6.2 the size of the folder says it, without listing thousands."""
    folder = Path(f"/proc/{pid}/fd")
    try:
        return folder.stat().st_size or sum(1 for _ in folder.iterdir())
    except OSError:
        return None


def descriptor_limit_soft(pid: int) -> int | None:
    """Soft limit of open files; None when unlimited or unreadable."""
    limits = read_text(f"/proc/{pid}/limits") or ""
    row = next((line for line in limits.splitlines() if line.startswith("Max open files")), "")
    soft = row.removeprefix("Max open files").split()
    return int(soft[0]) if soft and soft[0].isdigit() else None


def command_line(pid: int) -> tuple[str, ...]:
    words = (read_bytes(f"/proc/{pid}/cmdline") or b"").rstrip(b"\0")
    return tuple(os.fsdecode(word) for word in words.split(b"\0")) if words else ()


def program(pid: int) -> str:
    """Name of its program, without the path."""
    words = command_line(pid)
    return Path(words[0]).name if words else read_text(f"/proc/{pid}/comm") or ""


def describe(pid: int) -> str:
    """`1234 (nginx)`."""
    name = program(pid)
    return f"{pid} ({name})" if name else str(pid)


def pin(root: int, cpus: Iterable[int]) -> bool:
    """Pins every thread below `root`; False when not permitted. New processes inherit the mask."""
    wanted = set(cpus)
    seen: set[int] = set()
    while fresh := set(descendants(root)) - seen:
        seen |= fresh
        if any(not pin_process(pid, wanted).done and alive(pid) for pid in fresh):
            return False
    return bool(seen)
