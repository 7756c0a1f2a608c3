"""The programs that profile from outside: they end by themselves where nobody ends them, and are ended for
good by `detach`, whatever its thread was about to start.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from prony_explain import collector
from prony_explain.profilers import perf, py_spy
from prony_explain.profilers.base import BEYOND_S, Profiler, Schedule, Unavailable
from prony_explain.profilers.program import CLOSED, Program

WINDOW_S = 1000.0


def schedule() -> Schedule:
    """One slice, whose end has come as soon as it is waited for."""
    now_s = time.monotonic()
    return Schedule(now_s, (now_s + WINDOW_S,), lambda _wait_s: False)


def asked(monkeypatch: pytest.MonkeyPatch, profiler: Profiler) -> tuple[list[list[str]], str]:
    """What it would run, and what it says of finding nothing."""
    commands: list[list[str]] = []

    def start(
        _program: Program, command: Sequence[str], said: Path | None = None, complained: Path | None = None
    ) -> None:
        commands.append(list(command))
        for path in (said, complained):
            if path is not None:
                path.touch()

    monkeypatch.setattr(Program, "start", start)
    with pytest.raises(Unavailable) as raised:
        profiler.profile(schedule())
    profiler.detach()
    return commands, str(raised.value)


def test_py_spy_runs_little_longer_than_its_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    (command,), said = asked(monkeypatch, py_spy.PySpy(os.getpid()))
    length_s = float(command[command.index("--duration") + 1])
    assert WINDOW_S - 60 <= length_s - BEYOND_S <= WINDOW_S + 1
    assert "py-spy" in said


def test_perf_runs_little_longer_than_the_window_and_is_read_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (record, script), said = asked(monkeypatch, perf.Perf([os.getpid()]))
    *_, dashes, sleep, length = record
    assert (dashes, sleep) == ("--", "sleep")
    assert WINDOW_S - 60 <= float(length) - BEYOND_S <= WINDOW_S + 1
    assert "--no-inline" in script
    assert f"{perf.READ_S:.0f} s" in said
    assert perf.STOP_S + perf.READ_S < collector.ENDS_WITHIN_S


def test_a_recording_that_is_being_read_is_given_up(tmp_path: Path) -> None:
    reads, fake = tmp_path / "reads", tmp_path / "perf"
    fake.write_text(f'#!/bin/sh\nif [ "$1" = script ]; then : > {reads}; exec sleep 600; fi\n')
    fake.chmod(0o755)
    profiler = perf.Perf([os.getpid()])
    profiler._program = str(fake)
    said: list[str] = []

    def profile() -> None:
        try:
            profiler.profile(schedule())
        except Unavailable as fault:
            said.append(str(fault))

    thread = threading.Thread(target=profile)
    thread.start()
    deadline_s = time.monotonic() + 60
    while not reads.exists() and time.monotonic() < deadline_s:
        time.sleep(0.01)
    process = profiler._running._process
    profiler.detach()
    thread.join(60)
    assert said == [CLOSED]
    assert process is not None
    assert process.poll() is not None


def test_what_is_closed_starts_nothing(tmp_path: Path) -> None:
    program = Program()
    program.close(1.0)
    with pytest.raises(Unavailable):
        program.start(["touch", str(tmp_path / "touched")])
    assert not list(tmp_path.iterdir())


def test_what_does_not_end_when_it_is_interrupted_is_killed(tmp_path: Path) -> None:
    program, file = Program(), tmp_path / "said"
    program.start(["sh", "-c", "trap '' INT; echo there; exec sleep 600"], said=file)
    deadline_s = time.monotonic() + 60
    while not file.read_text() and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert program.ended(0.0) is None
    program.stop(0.1)
    assert program.ended(0.0) == -9


def test_a_process_that_py_spy_may_not_read_is_said_with_what_allows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With native frames and without: what it says first is quoted."""
    tried: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        tried.append(command)
        refusal = f"\nError: Permission Denied: try {len(tried)}\nReason: EPERM\n"
        return subprocess.CompletedProcess(command, 1, "", refusal)

    monkeypatch.setattr("prony_explain.profilers.py_spy.shutil.which", lambda _name: "/usr/bin/py-spy")
    monkeypatch.setattr("prony_explain.profilers.py_spy.tool.ask_version", lambda *_: "0.4")
    monkeypatch.setattr("prony_explain.profilers.py_spy.subprocess.run", run)
    with pytest.raises(Unavailable) as raised:
        py_spy.PySpy(7).attach()
    assert str(raised.value) == (
        "no CPU profile: py-spy may not read the process 7 (Error: Permission Denied: try 1); run Prony as "
        "root, or allow it: sysctl kernel.yama.ptrace_scope=0, in a container the capability SYS_PTRACE"
    )
    assert ["--native" in one for one in tried] == [True, False]
