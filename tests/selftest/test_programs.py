"""Programs that a section starts: what they print, and what is said where they end."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from prony_explain.processes import Chosen
from prony_selftest import programs
from prony_selftest.programs import NotRun, java, profiler, started


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_a_program_is_read_by_lines_and_ended_with_the_block() -> None:
    with started(python("import time; print(8080, flush=True); time.sleep(600)")) as program:
        assert program.line() == "8080"
    assert program.process.returncode is not None
    assert program.process.stdout is not None
    assert program.process.stdout.closed


def test_what_a_program_complained_of_is_in_the_sentence() -> None:
    text = "import sys; print('x' * 900 + 'no such option: burn', file=sys.stderr); sys.exit(3)"
    with started(python(text)) as program, pytest.raises(NotRun) as raised:
        program.line()
    message = str(raised.value)
    assert message.startswith("the program ended with exit code 3: xxx")
    assert message.endswith("no such option: burn")
    assert len(message) < 360
    with started(python("")) as program, pytest.raises(NotRun, match=r"exit code 0$"):
        program.line()


def test_without_a_jdk_it_is_said_which_one_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "find_jdks", list)
    with pytest.raises(NotRun, match=r"^no JDK 17 or newer with a compiler$"):
        java(17)
    with pytest.raises(NotRun, match=r"^no JDK with a compiler$"):
        java()


def test_the_profiler_is_that_of_an_explained_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prony.server.build.async_profiler", lambda _on_line: (Path("/libraries"), "4.2"))
    pid = os.getpid()
    assert profiler(Chosen(pid, "jvm", (pid,), 1.0)).name == "async-profiler 4.2"
    assert profiler(Chosen(pid, "native", (pid,), 1.0)).name.startswith("perf")
