"""A run of `prony-engine`, which stops when its standard input closes: it cannot outlive the laboratory."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from prony.errors import EnvironmentFault, LoadRefused
from prony.evidence.engine import EngineReport, IntervalRow, Mark, Ready
from prony.load.base import followed_to_end
from prony.load.contract import EngineLoad, engine_plan
from prony.load.minutes import merged, same_part
from prony.thinning import Thinned

BINARY = "prony-engine"
STOP_GRACE_S = 30.0
"""Time to stop before a kill: on busy CPUs writing the report takes a while."""


def find_engine() -> Path:
    """The engine's binary: `PRONY_ENGINE`, next to this Python, or on the PATH. Raises EnvironmentFault."""
    named = os.environ.get("PRONY_ENGINE")
    if named:
        if os.access(named, os.X_OK):
            return Path(named)
        raise EnvironmentFault(f"PRONY_ENGINE={named} is not an executable file; unset it or correct it")
    beside = Path(sys.executable).parent / BINARY
    if beside.is_file():
        return beside
    on_path = shutil.which(BINARY)
    if on_path:
        return Path(on_path)
    raise EnvironmentFault(
        "no prony-engine next to this Python or on the PATH; install it: make setup, or pip install ."
    )


def engine_version() -> str:
    try:
        done = subprocess.run(
            [find_engine(), "--version"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired, EnvironmentFault):
        return "unknown"
    return done.stdout.strip().removeprefix(f"{BINARY} ") or "unknown"


def engine_takes(command: str) -> bool:
    """Whether the engine's schema has this command: an older engine ignores what it does not know."""
    return command in _commands(find_engine())


@cache
def _commands(engine: Path) -> frozenset[str]:
    try:
        done = subprocess.run([engine, "schema"], capture_output=True, timeout=10, check=False)
        listed = json.loads(done.stdout)["command"]["oneOf"]
        return frozenset(command["properties"]["command"]["const"] for command in listed)
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError):
        return frozenset()


def finished_report(
    ready: Ready, rows: tuple[IntervalRow, ...], marks: list[Mark], done: Mapping[str, Any]
) -> EngineReport:
    return EngineReport.model_validate({**done, "ready": ready, "rows": rows, "marks": tuple(marks)})


class EngineRun:
    """A running engine: `next_event` takes its events, `stop` ends it, `report` is its result."""

    def __init__(self, load: EngineLoad) -> None:
        self.load = load
        self._rows = Thinned(merged, same_part)
        self.marks: list[Mark] = []
        self.ready: Ready | None = None
        self._finished: dict[str, Any] | None = None
        self._error: dict[str, Any] | None = None
        self._events: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._stderr: list[str] = []
        self.ended = False
        """Whether all events have been taken."""
        self._killed = False
        try:
            self._process = subprocess.Popen(
                [find_engine(), "run"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",  # a script may print anything to standard error
                start_new_session=True,  # Ctrl-C reaches the laboratory only, which then stops the engine
            )
        except OSError as fault:
            raise EnvironmentFault(f"the engine could not be started: {fault.strerror}") from fault
        self._readers = [
            threading.Thread(target=self._read_events, daemon=True),
            threading.Thread(target=self._read_diagnostics, daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        self.send(engine_plan(load))

    @property
    def rows(self) -> tuple[IntervalRow, ...]:
        return self._rows.rows

    @property
    def last_row(self) -> IntervalRow:
        return self._rows.last

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def pids(self) -> frozenset[int]:
        return frozenset({self.pid})

    def next_event(self, timeout_s: float) -> dict[str, Any] | None:
        if self.ended:
            return None
        try:
            event = self._events.get(timeout=max(0.0, timeout_s))
        except queue.Empty:
            return None
        if event is None:
            self.ended = True
            self.close()  # end of output: it has exited, or is about to
            if self._finished is None:
                raise self._why_it_ended()
            return None
        self._keep(event)
        return event

    @property
    def finished(self) -> bool:
        return self._finished is not None or self.ended

    @property
    def end_reason(self) -> str:
        return str(self._finished.get("reason", "unknown")) if self._finished else "it is running"

    def open_window(self, duration_s: float) -> None:
        self.send({"command": "window", "duration_ms": round(duration_s * 1000)})

    def close_window(self) -> None:
        self.send({"command": "close_window"})

    def stop(self) -> None:
        if not self.ended:
            self.send({"command": "stop"})
            deadline = time.monotonic() + STOP_GRACE_S
            while not self.finished and time.monotonic() < deadline:
                self.next_event(deadline - time.monotonic())
        self.close()

    def close(self) -> None:
        if self._process.stdin and not self._process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(STOP_GRACE_S)
        except subprocess.TimeoutExpired:
            self._killed = True
            self._process.kill()
            self._process.wait()
        for reader in self._readers:
            reader.join(1.0)

    def run_to_end(
        self, timeout_s: float, on_row: Callable[[IntervalRow], None] | None = None
    ) -> EngineReport:
        return followed_to_end(self, timeout_s, on_row, "the engine")

    def report(self) -> EngineReport:
        if self.ready is None or self._finished is None:
            raise self._why_it_ended()
        return finished_report(self.ready, self.rows, self.marks, self._finished)

    def _keep(self, event: dict[str, Any]) -> None:
        kind = event.get("event")
        try:
            if kind == "interval":
                self._rows.add(IntervalRow.model_validate(event))
            elif kind == "mark":
                self.marks.append(Mark.model_validate(event))
            elif kind == "ready":
                self.ready = Ready.model_validate(event)
            elif kind == "finished":
                self._finished = event
            elif kind == "error":
                self._error = event
        except ValidationError as fault:
            raise EnvironmentFault(
                f"the engine's '{kind}' event does not match this version of Prony "
                f"(engine {engine_version()}): run make setup to install matching versions",
                details=str(fault),
            ) from fault

    def _why_it_ended(self) -> EnvironmentFault:
        details = "\n".join(self._stderr[-20:]) or None
        if self._error is not None:
            kind = LoadRefused if self._error.get("kind") == "plan" else EnvironmentFault
            return kind(f"the engine refused the load: {self._error.get('message', '')}", details=details)
        return EnvironmentFault(self._how_it_ended(), details=details)

    def _how_it_ended(self) -> str:
        code = self._process.poll()
        last = next((line for line in reversed(self._stderr) if line.strip()), "it printed no reason")
        if self._killed:
            return (
                f"the engine did not stop within {STOP_GRACE_S:.0f} s and was killed: "
                "the host is too busy for this load, or the engine has a defect"
            )
        if code is not None and code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            hint = " (out of memory? see dmesg)" if -code == signal.SIGKILL else ""
            return f"the engine was killed by {name}{hint}; its last line: {last}"
        ended = "is running" if code is None else f"ended with exit code {code}"
        return f"the engine {ended} without a report: {last}"

    def send(self, message: dict[str, Any]) -> None:
        """Sends a command (docs/engine.md); ignored after the engine's end."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass  # it has ended; its output says why

    def _read_events(self) -> None:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                try:
                    event = json.loads(line)
                except ValueError:
                    event = {"event": "error", "message": f"it wrote a line that is not JSON: {line[:80]!r}"}
                self._events.put(event)
        finally:
            self._events.put(None)

    def _read_diagnostics(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if self.load.script is not None and not line.startswith("prony-engine"):
                print(line, end="", file=sys.stderr, flush=True)  # the script's own words
            self._stderr.append(line.rstrip())
            del self._stderr[:-200]
