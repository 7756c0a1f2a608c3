"""Processes that tests look at."""

from __future__ import annotations

import subprocess
import time

from prony.server import proc

WITHIN_S = 60.0


def started(*command: str) -> subprocess.Popen[bytes]:
    """A process that is its program: `Popen` returns before the kernel has its new command line and maps, and
    until then they are those of the process that started it.
    """
    process = subprocess.Popen(command)
    deadline = time.monotonic() + WITHIN_S
    while proc.command_line(process.pid) != command:
        if time.monotonic() > deadline or process.poll() is not None:
            process.kill()
            process.wait()
            raise AssertionError(f"{command} did not become {command[0]} within {WITHIN_S:.0f} s")
        time.sleep(0.001)
    return process
