"""Keeps CPUs busy for a moment: an idle CPU shows no steal."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

START_S = 0.1
"""Start of an interpreter."""
SPIN = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): sum(range(9999))"
"""Ends with its parent, even if that is killed."""


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
