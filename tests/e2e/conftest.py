"""The command as a user runs it: real processes, a store and a catalogue of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests import command
from tests.command import PRONY
from tests.exit_codes import demanded_code

MINE = """
title: the reference server, {what}
workloads: [hello]
command: ["{{engine}}", serve, --listen, "{{host}}:{{port}}", --cpus, "{{cpu_list}}",
          --content-type, text/plain, --body-file, "{{dir}}/hello.txt", {options}]
"""
SHORT = ("--quick", "--window", "2s", "--warm-up-cap", "1s", "--users", "8", "--seed", "1")
"""The smallest comparison that goes through every phase of a trial."""
PROMPT = ("--work", "50us", "--delay", "fixed:5ms")
SLUGGISH = ("--work", "1ms", "--delay", "fixed:125ms")
"""A server, and one of a 25th of its rate. Both wait nearly all the time: other load on the host changes the
rate of neither by much, where it can halve that of a server that computes.
"""
LENIENT = """
little_deviation: 1
bound_cpu_min: 0.001
bound_rise_max: 1000
schedule_achieved_min: 0
schedule_lag_floor_ms: 1000000
schedule_late_share_max: 1
stall_floor_ms: 1000000
"""
"""Limits under which what else runs on the host leaves every trial conforming."""
PATIENCE_S = 240.0
"""For a command to end: it takes seconds, but on a host with ten others that compute."""
SHORTEST = ("--quick", "--window", "1s", "--warm-up-cap", "1s", "--users", "8", "--seed", "1")
"""Where only the number of trials and their order matter. A server under test should burn little CPU for a
response, and answer some hundred a second: each trial first counts its requests as published.
"""


@dataclass
class Lab:
    """A command line with its own store and servers."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)
    installed: bool = False
    """Start the command that a user has, with everything at its usual length (tests/command.py)."""

    @property
    def db(self) -> Path:
        return self.folder / "results.db"

    def server(self, name: str, *options: str) -> None:
        """Add a server to the catalogue: the reference server with these options."""
        place = self.folder / "servers" / name
        place.mkdir(parents=True, exist_ok=True)
        (place / "hello.txt").write_text("Hello, World!")
        quoted = ", ".join(json.dumps(option) for option in options)
        (place / "server.yaml").write_text(MINE.format(what=name, options=quoted))

    @property
    def lenient(self) -> tuple[str, str]:
        """Words for a command: `LENIENT` limits."""
        file = self.folder / "lenient.yaml"
        file.write_text(LENIENT)
        return "--limits", str(file)

    def environment(self) -> dict[str, str]:
        return os.environ | {
            "PRONY_DB": str(self.db),
            "PRONY_SERVERS": str(self.folder / "servers"),
            "COLUMNS": "100",
            **self.env,
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        if not self.installed:
            return command.start(words, env=self.environment(), cwd=self.folder)
        return subprocess.Popen(
            [str(PRONY), *words],
            env=self.environment(),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, timeout_s: float = PATIENCE_S) -> subprocess.CompletedProcess[str]:
        """Run to the end. No output may ever hold a traceback."""
        process = self.start(*words)
        out, err = command.ended(process, timeout_s)
        assert "Traceback" not in out + err, err
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def json(self, *words: str) -> dict[str, Any]:
        """What the command prints with --json; its exit code agrees with the verdicts that it stored."""
        done = self.run(*words, "--json")
        assert done.stdout, done.stderr
        loaded: dict[str, Any] = json.loads(done.stdout)
        searches = (part["search"] for part in loaded.get("parts", ()) if part.get("search"))
        held_per_s = next((search["held_per_s"] for search in searches), None)
        expected = demanded_code(self.db, loaded["id"], held_per_s) if "id" in loaded else 0
        assert done.returncode == expected, done.stderr
        return loaded

    def cells(self, *words: str) -> list[dict[str, Any]]:
        """The cells of all parts of the result that this command prints."""
        return [cell for part in self.json(*words)["parts"] for cell in part["cells"]]

    def trial(self, *words: str) -> dict[str, Any]:
        """The only trial of the result that this command prints."""
        (cell,) = self.cells(*words)
        (trial,) = cell["trials"]
        return dict(trial)

    def leftovers(self) -> list[str]:
        """Command lines of living processes that belong to this lab."""
        found = []
        for process in psutil.process_iter(["cmdline", "status"]):
            line = " ".join(process.info["cmdline"] or [])
            if str(self.folder) in line and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(line)
        return found


def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Its output and errors, when it has ended."""
    return command.ended(process, PATIENCE_S)


def said_until(process: subprocess.Popen[str], *words: str) -> None:
    """Reads what it says until a line has all these words: there is one at each change of phase."""
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if all(word in line for word in words):
            return
    raise AssertionError(said)


Here = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def here(lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Here]:
    """`here("compare", "a")`: the same entry point without a process of its own, for what is refused before
    anything starts, and what is only shown; a process costs more than all the rest of it.
    """
    from prony.cli.main import main

    signals = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in signals]

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        for name, value in lab.environment().items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(lab.folder)
        monkeypatch.setattr(sys, "argv", [str(PRONY), *words])
        try:
            code = main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err, err
        return subprocess.CompletedProcess(words, code, out, err)

    yield run
    for number, handler in zip(signals, before, strict=True):
        signal.signal(number, handler)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)
