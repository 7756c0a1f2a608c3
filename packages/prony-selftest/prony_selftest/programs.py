"""Programs with a known truth: started and ended per section, and their profiler."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from prony.server.jdk import find_jdks
from prony_explain.explaining import Explaining
from prony_explain.processes import Chosen
from prony_explain.profilers.base import Profiler

FOLDER = Path(__file__).parent / "staged"
LAST_CHARACTERS = 300


class NotRun(Exception):
    """The program cannot run here; `str()` says why."""


@dataclass(frozen=True, slots=True)
class Program:
    """A running program and its output."""

    process: subprocess.Popen[str]
    _errors: IO[str]

    def line(self) -> str:
        """Its next output line. Raises NotRun with the end of its errors if it has ended."""
        assert self.process.stdout is not None, "a pipe"
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            self._errors.seek(0)
            errors = self._errors.read().strip()[-LAST_CHARACTERS:]
            raise NotRun(f"the program ended with exit code {code}{': ' if errors else ''}{errors}")
        return line.strip()


@contextmanager
def started(command: Sequence[str]) -> Iterator[Program]:
    """The program, until the end of the block."""
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            yield Program(process, errors)
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()
            assert process.stdout is not None, "a pipe"
            process.stdout.close()


def java(least: int = 0) -> str:
    """The `java` of a JDK with a compiler, of this version or newer. Raises NotRun."""
    for jdk in find_jdks():
        if jdk.has_compiler and jdk.major >= least:
            return str(jdk.java)
    raise NotRun(f"no JDK{f' {least} or newer' if least else ''} with a compiler")


def profiler(chosen: Chosen) -> Profiler:
    """The profiler of an explained trial for this process. Raises Unavailable."""
    explaining = Explaining()
    explaining.fetch(lambda _stream, _line: None)
    return explaining.collector().find(chosen)
