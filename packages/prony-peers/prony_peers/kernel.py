"""CPU time and memory of a process by the kernel's accounting."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from prony.errors import EnvironmentFault
from prony.host.proc import key_values, read_text

_CPUCLOCK_SCHED = 2
"""A process's CPU-time clock in nanoseconds (linux/posix-timers.h)."""
_POLL_S = 0.05


def process_cpu_s(pid: int) -> float | None:
    """CPU seconds of all threads so far, including ended ones; None after the process has gone."""
    try:
        return time.clock_gettime_ns((~pid << 3) | _CPUCLOCK_SCHED) / 1e9
    except OSError:
        return None


def process_gone(pid: int) -> bool:
    """Whether a child has ended, waited for or not."""
    status = read_text(f"/proc/{pid}/stat")
    return status is None or status.rpartition(")")[2].split()[:1] in ([], ["Z"], ["X"])


def peak_rss_bytes(pid: int) -> int | None:
    """Peak resident memory so far; None once the process has gone. Not `ru_maxrss`, inherited at fork."""
    status = read_text(f"/proc/{pid}/status")
    peak = key_values(status).get("VmHWM", "") if status else ""
    digits = peak.removesuffix(" kB").strip()
    return int(digits) * 1024 if digits.isdecimal() else None


def start_pinned(
    argv: Sequence[str],
    cpus: int | Collection[int],
    *,
    stdout: IO[bytes] | int,
    stderr: IO[bytes] | int,
    folder: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Starts a program and its children pinned to these CPUs. Raises EnvironmentFault."""
    allowed = {cpus} if isinstance(cpus, int) else set(cpus)
    try:
        # No threads run here, so code between fork and exec is harmless; `taskset` would be one more exec.
        return subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            cwd=folder,
            preexec_fn=lambda: os.sched_setaffinity(0, allowed),
        )
    except (OSError, subprocess.SubprocessError) as fault:
        raise EnvironmentFault(f"{argv[0]} could not be started on CPU {sorted(allowed)}: {fault}") from fault


@dataclass(frozen=True, slots=True)
class ExitedProcess:
    """How a process ended. `cpu_s` covers its whole life, including waited-for children."""

    exit_code: int
    cpu_s: float
    t_monotonic_s: float
    peak_rss_bytes: int | None
    """Last reading, at most 50 ms before its end."""


def wait(process: subprocess.Popen[bytes], timeout_s: float) -> ExitedProcess | None:
    """Waits for the process to end; None when it was killed at the timeout."""
    deadline = time.monotonic() + timeout_s
    peak: int | None = None
    killed = False
    descriptor = os.pidfd_open(process.pid)
    try:
        while not select.select([descriptor], [], [], _POLL_S)[0]:
            peak = peak_rss_bytes(process.pid) or peak
            if time.monotonic() > deadline and not killed:
                process.kill()
                killed = True
    finally:
        os.close(descriptor)
    ended_s = time.monotonic()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.stdin is not None:
        process.stdin.close()
    if killed:
        return None
    return ExitedProcess(process.returncode, usage.ru_utime + usage.ru_stime, ended_s, peak)
