"""Kernel counters of a server's processes from /proc, and system calls by name from perf."""

from __future__ import annotations

import math
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import TypeVar

from prony.evidence.profile import Counters
from prony.host.net_counters import groups
from prony.host.proc import ROOT, key_values, read_bytes, read_text
from prony.server import proc
from prony_explain.processes import ProcessEnded, ended

_MINFLT, _MAJFLT = 7, 9
"""Indices in /proc/PID/stat after the command name, see proc(5)."""
ALL_CALLS = "raw_syscalls:sys_enter"
CALLS = (
    "read", "write", "readv", "writev", "recvfrom", "sendto", "recvmsg", "sendmsg", "sendfile", "epoll_wait",
    "epoll_pwait", "epoll_ctl", "futex", "accept4", "close", "clock_nanosleep", "sched_yield",
    "io_uring_enter",
)  # fmt: skip
"""System calls counted by name; the rest of `ALL_CALLS` is `other`."""
TRACING = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
READY_S, STOP_S = 3.0, 10.0
Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Tcp:
    """TCP counters of a process's network namespace, since its creation."""

    segments: int
    """Segments between two sockets of the namespace count once if this process is in it too."""
    opened: int
    """Connections, counted likewise."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Counters of processes at one moment, summed over their threads."""

    t_s: float
    cpu_s: float | None
    voluntary: int | None
    involuntary: int | None
    minor: int | None
    major: int | None
    waited_s: float | None
    tcp: Tcp | None = None


def ran_ns(pids: Iterable[int]) -> dict[Path, int]:
    """CPU time of each thread so far (schedstat), by its folder in /proc."""
    ran = {}
    for pid in pids:
        for task in _tasks(pid):
            fields = (read_text(str(task / "schedstat")) or "").split()
            if len(fields) == 3:
                ran[task] = int(fields[0])
    return ran


def reading(pids: Iterable[int]) -> Reading:
    """The counters now. A thread that ends takes its counters with it, so changing pools hide some."""
    there = tuple(pids)
    sample = proc.sample(there)
    voluntary = involuntary = waited_ns = 0
    seen = waits_known = False
    for pid in there:
        for task in _tasks(pid):
            status = key_values(read_text(str(task / "status")) or "")
            if "voluntary_ctxt_switches" in status:
                seen = True
                voluntary += int(status["voluntary_ctxt_switches"])
                involuntary += int(status["nonvoluntary_ctxt_switches"])
            fields = (read_text(str(task / "schedstat")) or "").split()
            if len(fields) == 3:
                waits_known = True
                waited_ns += int(fields[1])
    stats = [row for pid in there if (row := proc.stat_fields(pid)) is not None]
    return Reading(
        t_s=time.monotonic(),
        cpu_s=None if sample is None else sample.cpu_s,
        voluntary=voluntary if seen else None,
        involuntary=involuntary if seen else None,
        minor=sum(int(fields[_MINFLT]) for fields in stats) if stats else None,
        major=sum(int(fields[_MAJFLT]) for fields in stats) if stats else None,
        waited_s=waited_ns / 1e9 if waits_known else None,
        tcp=tcp(there[0]) if there else None,
    )


def tcp(pid: int, root: Path = ROOT) -> Tcp | None:
    """Counters of this process's namespace; None where unreadable. The load comes from Prony's namespace: if
    both are the same, each segment is counted at its sender only.
    """
    values = groups(read_text(root / f"proc/{pid}/net/snmp") or "").get("Tcp", {})
    try:
        shared = (root / f"proc/{pid}/ns/net").readlink() == (root / "proc/self/ns/net").readlink()
        segments = values["OutSegs"] + (0 if shared else values["InSegs"])
        opened = values["ActiveOpens"] + (0 if shared else values["PassiveOpens"])
    except (OSError, KeyError):
        return None
    return Tcp(segments, opened)


def between(first: Reading, last: Reading) -> Counters:
    """The difference of two readings, not below zero, as threads may have ended."""
    tcp = _tcp_over(first.tcp, last.tcp)
    return Counters(
        seconds=last.t_s - first.t_s,
        cpu_s=_over(first.cpu_s, last.cpu_s),
        switches_voluntary=_over(first.voluntary, last.voluntary),
        switches_involuntary=_over(first.involuntary, last.involuntary),
        faults_minor=_over(first.minor, last.minor),
        faults_major=_over(first.major, last.major),
        run_queue_wait_s=_over(first.waited_s, last.waited_s),
        tcp_segments=None if tcp is None else tcp.segments,
        tcp_opened=None if tcp is None else tcp.opened,
    )


def _over(before: Number | None, after: Number | None) -> Number | None:
    return None if before is None or after is None else max(after - before, after - after)


def _tcp_over(before: Tcp | None, after: Tcp | None) -> Tcp | None:
    if before is None or after is None:
        return None
    return Tcp(after.segments - before.segments, after.opened - before.opened)


def _tasks(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []


@dataclass(frozen=True, slots=True)
class SystemCalls:
    """System calls by name over some seconds, or why they are missing."""

    seconds: float = 0.0
    by_name: dict[str, int] | None = None
    missing: str = ""


def count_calls(pids: Collection[int], over: Callable[[float], bool], length_s: float) -> SystemCalls:
    """System calls of all threads for `length_s`, or until `over(seconds)`, which waits, returns True.

    `perf stat` on the kernel's tracepoints, switched on and off by its control pipes, as opening the counters
    of all threads takes a while. A timeout ends it if Prony does not.
    """
    program = shutil.which("perf")
    if program is None:
        return SystemCalls(
            missing="system calls were not counted: perf is not installed (package linux-perf, linux-tools "
            "or perf)"
        )
    events = ",".join((ALL_CALLS, *(f"syscalls:sys_enter_{name}" for name in _known())))
    bound_ms = math.ceil(1000 * (length_s + READY_S + STOP_S))
    with _pipe() as (orders, ours), _pipe() as (theirs, acks):
        command = [
            program, "stat", "-x", ";", "-D", "-1", "--control", f"fd:{orders.fileno()},{acks.fileno()}",
            "--timeout", str(bound_ms), "-e", events, "-p", ",".join(map(str, pids)),
        ]  # fmt: skip
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            pass_fds=(orders.fileno(), acks.fileno()),
        )
        orders.close()
        acks.close()
        begun_s = ended_s = None
        try:
            if _order(ours, theirs, b"enable\n", READY_S):
                begun_s = time.monotonic()
                over(length_s)
                _order(ours, theirs, b"disable\n", STOP_S)
                ended_s = time.monotonic()
        finally:
            ours.close()
            theirs.close()
            output = _ended(process)
    calls = counted(output, 0.0 if begun_s is None or ended_s is None else ended_s - begun_s)
    gone = [pid for pid in pids if ended(pid)] if calls.by_name is None else []
    return SystemCalls(missing=f"system calls were not counted: {ProcessEnded(*gone)}") if gone else calls


@contextmanager
def _pipe() -> Iterator[tuple[FileIO, FileIO]]:
    """A pipe as (read end, write end), closed afterwards."""
    reading, writing = os.pipe()
    with FileIO(reading, "rb") as source, FileIO(writing, "wb") as sink:
        yield source, sink


def _order(ours: FileIO, theirs: FileIO, words: bytes, within_s: float) -> bool:
    """Sends a command; whether perf acknowledged it."""
    try:
        ours.write(words)
    except OSError:
        return False
    ready, _, _ = select.select([theirs], [], [], within_s)
    return bool(ready) and bool(theirs.read(64))


def _ended(process: subprocess.Popen[str]) -> str:
    """Ends perf; its standard error."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    try:
        return process.communicate(timeout=STOP_S)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[1]


def counted(said: str, seconds: float) -> SystemCalls:
    """Parses `perf stat -x ';'`: rows of count, unit, event."""
    counts: dict[str, int] = {}
    for line in said.splitlines():
        fields = line.split(";")
        if len(fields) > 2 and fields[0].isdigit():
            counts[fields[2].partition(":u")[0]] = int(fields[0])
    every = counts.pop(ALL_CALLS, None)
    if every is None:
        last = next((line for line in reversed(said.splitlines()) if line.strip()), "no output")
        return SystemCalls(
            missing="system calls were not counted: perf may not read the kernel's tracepoints "
            f"({last.strip()}); run Prony as root, or allow it: sysctl kernel.perf_event_paranoid=-1 and "
            "read permission on /sys/kernel/tracing"
        )
    named = {name.removeprefix("syscalls:sys_enter_"): number for name, number in counts.items() if number}
    other = every - sum(named.values())
    return SystemCalls(seconds, {**named, **({"other": other} if other > 0 else {})})


def _known() -> list[str]:
    """Calls with a tracepoint on this kernel; empty, and only the sum is counted, if unreadable."""
    for root in TRACING:
        listed = read_bytes(f"{root}/available_events")
        if listed:
            there = set(listed.decode(errors="replace").split())
            return [name for name in CALLS if f"syscalls:sys_enter_{name}" in there]
    return []
