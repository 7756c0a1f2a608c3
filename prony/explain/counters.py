"""What the kernel counts for a server's processes: context switches, faults, waiting for a CPU, system calls.

From /proc; system calls by name by perf, where it may be used. Must not know what runs in the processes.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from prony.evidence.profile import Counters
from prony.host.proc import key_values, read_bytes, read_text
from prony.server import proc

_MINFLT, _MAJFLT = 7, 9
"""Places in /proc/PID/stat after the command name, see proc(5)."""
ALL_CALLS = "raw_syscalls:sys_enter"
CALLS = (
    "read", "write", "readv", "writev", "recvfrom", "sendto", "recvmsg", "sendmsg", "sendfile", "epoll_wait",
    "epoll_pwait", "epoll_pwait2", "epoll_ctl", "poll", "ppoll", "select", "futex", "accept", "accept4", "close",
    "openat", "newfstat", "fcntl", "setsockopt", "shutdown", "io_uring_enter", "sched_yield", "nanosleep",
    "clock_nanosleep", "clock_gettime", "gettimeofday", "getpid", "getrandom", "mmap", "munmap", "madvise",
    "mprotect", "rt_sigprocmask", "tgkill",
)  # fmt: skip
"""What servers call; the rest of `ALL_CALLS` is `other`."""
ELAPSED = "duration_time"
"""perf's own clock of what it counted, in nanoseconds: its start takes a while."""
TRACING = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
STOP_S = 5.0
Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Reading:
    """The counters of processes at one moment; sums over their threads."""

    t_s: float
    cpu_s: float | None
    voluntary: int | None
    involuntary: int | None
    minor: int | None
    major: int | None
    waited_s: float | None


def reading(pids: Iterable[int]) -> Reading:
    """Now. A thread that ends takes its own counters with it: pools that change hide some."""
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
    stats = [found for pid in there if (found := proc.stat_fields(pid)) is not None]
    return Reading(
        t_s=time.monotonic(),
        cpu_s=None if sample is None else sample.cpu_s,
        voluntary=voluntary if seen else None,
        involuntary=involuntary if seen else None,
        minor=sum(int(fields[_MINFLT]) for fields in stats) if stats else None,
        major=sum(int(fields[_MAJFLT]) for fields in stats) if stats else None,
        waited_s=waited_ns / 1e9 if waits_known else None,
    )


def between(first: Reading, last: Reading) -> Counters:
    """The difference of two readings; never below zero, as threads may have ended."""
    return Counters(
        seconds=last.t_s - first.t_s,
        cpu_s=_over(first.cpu_s, last.cpu_s),
        switches_voluntary=_over(first.voluntary, last.voluntary),
        switches_involuntary=_over(first.involuntary, last.involuntary),
        faults_minor=_over(first.minor, last.minor),
        faults_major=_over(first.major, last.major),
        run_queue_wait_s=_over(first.waited_s, last.waited_s),
    )


def _over(before: Number | None, after: Number | None) -> Number | None:
    return None if before is None or after is None else max(after - before, after - after)


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


class CallCounter:
    """`perf stat` on the kernel's tracepoints of system calls."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._begun_s = 0.0
        self._why = ""

    def start(self, pids: Collection[int]) -> None:
        """From now on, for all threads of these processes."""
        program = shutil.which("perf")
        if program is None:
            self._why = (
                "system calls were not counted: perf is not installed (package linux-perf or linux-tools)"
            )
            return
        events = ",".join((ALL_CALLS, ELAPSED, *(f"syscalls:sys_enter_{name}" for name in _known())))
        self._process = subprocess.Popen(
            [program, "stat", "-x", ";", "-e", events, "-p", ",".join(map(str, pids))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        self._begun_s = time.monotonic()

    def stop(self) -> SystemCalls:
        """Until now."""
        if self._process is None:
            return SystemCalls(missing=self._why)
        seconds = time.monotonic() - self._begun_s
        process, self._process = self._process, None
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        try:
            said = process.communicate(timeout=STOP_S)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            said = process.communicate()[1]
        return counted(said, seconds)


def counted(said: str, seconds: float) -> SystemCalls:
    """What `perf stat -x ';'` printed: rows of count, unit, event. `seconds`: as it seems from outside."""
    found: dict[str, int] = {}
    for line in said.splitlines():
        fields = line.split(";")
        if len(fields) > 2 and fields[0].isdigit():
            found[fields[2].partition(":u")[0]] = int(fields[0])
    every = found.pop(ALL_CALLS, None)
    if every is None:
        last = next((line for line in reversed(said.splitlines()) if line.strip()), "it said nothing")
        return SystemCalls(
            missing="system calls were not counted: perf may not read the kernel's tracepoints "
            f"({last.strip()}); run Prony as root, or allow it: sysctl kernel.perf_event_paranoid=-1 and "
            "read permission on /sys/kernel/tracing"
        )
    elapsed_ns = found.pop(ELAPSED, 0)
    named = {name.removeprefix("syscalls:sys_enter_"): number for name, number in found.items() if number}
    other = every - sum(named.values())
    return SystemCalls(elapsed_ns / 1e9 or seconds, {**named, **({"other": other} if other > 0 else {})})


def _known() -> list[str]:
    """Those that this kernel has; none where its list may not be read: `ALL_CALLS` then says the sum."""
    for root in TRACING:
        listed = read_bytes(f"{root}/available_events")
        if listed:
            there = set(listed.decode(errors="replace").split())
            return [name for name in CALLS if f"syscalls:sys_enter_{name}" in there]
    return []
