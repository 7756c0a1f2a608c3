"""Instructions that processes retire, by the CPU's counter (perf_event_open(2)): the work of the code, which
a busy host hardly moves.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from prony.host.proc import read_text, thread_ids

INSTRUCTIONS = (0, 1)
"""PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS."""
SYSCALL = {"x86_64": 298, "aarch64": 241}
INHERIT = 1 << 1
"""Threads and processes that a counted thread starts are counted with it."""
TIMES = 3
"""PERF_FORMAT_TOTAL_TIME_ENABLED and _RUNNING: counters that share the CPU's few are scaled."""
CLOSE_ON_EXEC = 8
PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
MOST_THREADS = 2_000


class Instructions:
    """While entered, a counter on each thread of these processes, user and kernel."""

    def __init__(self, pids: Iterable[int], event: tuple[int, int] = INSTRUCTIONS) -> None:
        self._threads = [thread for pid in pids for thread in thread_ids(pid)]
        self._event = event
        self._files: list[int] = []
        self._lapped: int | None = 0
        self.unread = ""
        """Why there is no count; the end of a sentence."""

    def __enter__(self) -> Self:
        if not 0 < len(self._threads) <= MOST_THREADS:
            self.unread = f"as {len(self._threads)} of its threads are on this host (1 to {MOST_THREADS:,})"
            return self
        try:
            for thread in self._threads:
                self._open(thread)
        except OSError as fault:
            self.unread = _reason(fault)
            self.__exit__()
        if not self._files and not self.unread:
            self.unread = "as its threads had ended"
        return self

    def __exit__(self, *_: object) -> None:
        while self._files:
            os.close(self._files.pop())

    def read(self) -> int | None:
        """Instructions since it was entered; None: not readable."""
        if not self._files:
            return None
        total = 0.0
        for file in self._files:
            count, enabled_ns, running_ns = struct.unpack("QQQ", os.read(file, 24))
            if enabled_ns and not running_ns:
                self.unread = "as another program has the CPU's counters"
                return None
            total += count * enabled_ns / running_ns if running_ns else 0
        return round(total)

    def lap(self) -> int | None:
        """Instructions since the lap before, or since it was entered; None: either is not readable."""
        before, self._lapped = self._lapped, self.read()
        return None if before is None or self._lapped is None else self._lapped - before

    def _open(self, thread: int) -> None:
        if (number := SYSCALL.get(platform.machine())) is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        kind, config = self._event
        attributes = struct.pack("IIQQQQQIIQ", kind, 64, config, 0, 0, TIMES, INHERIT, 0, 0, 0)
        file = _libc().syscall(number, attributes, thread, -1, -1, CLOSE_ON_EXEC)
        if file >= 0:
            self._files.append(file)
        elif (code := ctypes.get_errno()) != errno.ESRCH:  # a thread that ended
            raise OSError(code, os.strerror(code))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _reason(fault: OSError) -> str:
    if fault.errno in (errno.EACCES, errno.EPERM):
        return f"as kernel.perf_event_paranoid is {read_text(PARANOID)}: run as root"
    if fault.errno in (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP):
        return "as this host has no CPU counters (most virtual machines have none)"
    return f"perf_event_open: {fault.strerror}"
