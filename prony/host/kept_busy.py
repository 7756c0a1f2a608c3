"""CPUs that are kept busy for a moment: a hypervisor takes time only from a CPU that wants to run, so an idle
host shows no steal.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

START_S = 0.1
"""Until an interpreter runs."""
SPIN = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): sum(range(9999))"
"""Ends with who began it, also where that one is killed."""


@contextmanager
def kept_busy(cpus: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The ids of processes, one on each of these CPUs, that take the time which nobody else wants
    (SCHED_IDLE). Where that cannot be had there is none.
    """
    spinning: list[subprocess.Popen[bytes]] = []
    try:
        for cpu in cpus:
            with suppress(OSError):
                one = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", SPIN, str(os.getpid())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                spinning.append(one)
                os.sched_setscheduler(one.pid, os.SCHED_IDLE, os.sched_param(0))
                os.sched_setaffinity(one.pid, {cpu})
        time.sleep(START_S if spinning else 0)
        yield tuple(one.pid for one in spinning)
    finally:
        for one in spinning:
            one.kill()
        for one in spinning:
            one.wait()
