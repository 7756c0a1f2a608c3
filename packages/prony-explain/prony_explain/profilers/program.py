"""A program run by a profiler: one at a time, none after `close`, from any thread."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from prony_explain.profilers.base import Unavailable

CLOSED = "no CPU profile: the profiler was detached meanwhile"


class Program:
    """The program started last. Its output goes to files, so that any thread may wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def start(self, command: Sequence[str], said: Path | None = None, complained: Path | None = None) -> None:
        """`said`, `complained`: files for standard output and error. Raises Unavailable once closed."""
        with self._lock, ExitStack() as files:
            if self._closed:
                raise Unavailable(CLOSED)
            out, err = (
                subprocess.DEVNULL if path is None else files.enter_context(path.open("wb"))
                for path in (said, complained)
            )
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    def ended(self, within_s: float) -> int | None:
        """Its exit code; None while it runs after `within_s`. Raises Unavailable once closed."""
        code: int | None = None
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                code = self._process.wait(within_s)
        if self._closed:
            raise Unavailable(CLOSED)
        return code

    def stop(self, within_s: float) -> None:
        """Interrupt it, so that it writes its data; kill it after `within_s`."""
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
        """Stop it and refuse further starts."""
        self._closed = True
        with self._lock:  # waits for a start under way
            self.stop(within_s)
