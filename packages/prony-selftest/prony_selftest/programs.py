"""Programs of which the truth is known: started for a section, ended with it, and the profiler for them."""

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
    """Why a program could not be run here, in one sentence."""


@dataclass(frozen=True, slots=True)
class Program:
    """One that runs, and what it prints."""

    process: subprocess.Popen[str]
    _said: IO[str]

    def line(self) -> str:
        """The next line of its output. Raises NotRun where it ended, with the end of its errors."""
        assert self.process.stdout is not None, "a pipe"
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            self._said.seek(0)
            said = self._said.read().strip()[-LAST_CHARACTERS:]
            raise NotRun(f"the program ended with exit code {code}{': ' if said else ''}{said}")
        return line.strip()


@contextmanager
def started(command: Sequence[str]) -> Iterator[Program]:
    """The program, until the end of the block."""
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True)
        try:
            yield Program(process, said)
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()
            assert process.stdout is not None, "a pipe"
            process.stdout.close()


def java(least: int = 0) -> str:
    """The `java` of a JDK that runs a source file, of this version or newer. Raises NotRun."""
    for one in find_jdks():
        if one.has_compiler and one.major >= least:
            return str(one.java)
    raise NotRun(f"no JDK{f' {least} or newer' if least else ''} with a compiler was found")


def profiler(chosen: Chosen) -> Profiler:
    """What an explained trial would take for this process. Raises Unavailable."""
    found = Explaining()
    found.fetch(lambda _stream, _line: None)
    return found.collector().find(chosen)
