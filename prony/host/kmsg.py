"""Counts new kernel log lines of warning level or worse (overheating, device resets, out of memory)."""

from __future__ import annotations

import os
from pathlib import Path

from prony.host.proc import ROOT

_RECORD_BYTES = 8192
"""A record of /dev/kmsg is read whole or not at all; the kernel's own bound is below this."""
_WARNING = 4
_MOST_PER_READING = 10_000


class KernelLog:
    """A position at the end of the kernel log; each `count()` reads on from there."""

    def __init__(self, root: Path = ROOT) -> None:
        self._descriptor: int | None = None
        self._lines = 0
        try:
            self._descriptor = os.open(root / "dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._descriptor, 0, os.SEEK_END)
        except OSError:
            self.close()

    def count(self) -> int | None:
        """Lines of warning level or worse from the kernel since the start; None when the log
        cannot be read.
        """
        if self._descriptor is None:
            return None
        for _ in range(_MOST_PER_READING):
            try:
                record = os.read(self._descriptor, _RECORD_BYTES)
            except BlockingIOError:
                break
            except BrokenPipeError:  # the log ran over: lines were lost, reading goes on with the oldest left
                continue
            except OSError:
                self.close()
                return None
            if not record:
                break
            self._lines += _warns(record)
        return self._lines

    def close(self) -> None:
        """Close the log."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _warns(record: bytes) -> bool:
    """`priority,sequence,time,flags;text`, priority = facility * 8 + level; facility 0 is the
    kernel itself.
    """
    number = record.partition(b",")[0]
    return number.isdigit() and int(number) <= _WARNING
