"""A program that a profiler runs beside the server: one at a time, and none any more once it is closed, from
whichever thread.
"""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from prony_explain.profilers.base import Unavailable

CLOSED = "no CPU profile: the profiler was taken off meanwhile"


class Program:
    """What was started last. Its output goes into files, so that any thread may wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def start(self, command: Sequence[str], said: Path | None = None, complained: Path | None = None) -> None:
        """`said` and `complained`: where standard output and standard error go, if anywhere. Raises
        Unavailable once it is closed.
        """
        with self._lock, ExitStack() as files:
            if self._closed:
                raise Unavailable(CLOSED)
            out, err = (
                subprocess.DEVNULL if path is None else files.enter_context(path.open("wb"))
                for path in (said, complained)
            )
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    def ended(self, within_s: float) -> int | None:
        """How it ended, by itself; None where it did not by then. Raises Unavailable where it was closed."""
        code: int | None = None
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                code = self._process.wait(within_s)
        if self._closed:
            raise Unavailable(CLOSED)
        return code

    def stop(self, within_s: float) -> None:
        """Interrupt it, so that it writes what it has; kill it where it does not end by then."""
        process = self._process
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        try:
            process.wait(within_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def close(self, within_s: float) -> None:
        """For good."""
        self._closed = True
        with self._lock:  # what is being started is there then
            self.stop(within_s)
