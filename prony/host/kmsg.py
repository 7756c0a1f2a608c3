"""Counts new kernel log lines from warning level on (overheating, device resets, out of memory)."""

from __future__ import annotations

import os
from pathlib import Path

from prony.host.proc import ROOT

_RECORD_BYTES = 8192
"""A record is read whole; above the kernel's own bound."""
_WARNING = 4
_MOST_PER_READING = 10_000


class KernelLog:
    """A position in the kernel log, from its end at creation; `count()` advances it."""

    def __init__(self, root: Path = ROOT) -> None:
        self._descriptor: int | None = None
        self._lines = 0
        try:
            self._descriptor = os.open(root / "dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._descriptor, 0, os.SEEK_END)
        except OSError:
            self.close()

    def count(self) -> int | None:
        """New lines since the last call; None when unreadable."""
        if self._descriptor is None:
            return None
        for _ in range(_MOST_PER_READING):
            try:
                record = os.read(self._descriptor, _RECORD_BYTES)
            except BlockingIOError:
                break
            except BrokenPipeError:  # the log overran: continue with the oldest remaining line
                continue
            except OSError:
                self.close()
                return None
            if not record:
                break
            # `priority,sequence,time,flags;text`; priority = facility * 8 + level, facility 0: kernel
            priority = record.partition(b",")[0]
            self._lines += priority.isdigit() and int(priority) <= _WARNING
        return self._lines

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
