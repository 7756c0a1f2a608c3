"""A process below a guard: whether it lives, what it uses, on which CPUs it runs, and that it is gone at the
end.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from prony.errors import EnvironmentFault
from prony.evidence.server import ProcessSample
from prony.server import proc, sockets

FINEST_POLL_S = 0.001
COARSEST_POLL_S = 0.01
POLLS_PER_ELAPSED = 200
"""Start-up is polled every 1 to 10 ms, at half a percent of the elapsed time: precise enough, and cheap."""
LAST_LINES = 20
STOP_MARGIN_S = 15.0
"""On top of the grace period: killed processes need time to go (see guard.KILL_PATIENCE_S)."""


@dataclass(slots=True, kw_only=True)
class GuardedProcess:
    """One fresh process and its children. Use it in a `with`: it is always stopped at the end."""

    kind: ClassVar[str] = "process"
    """Its kind, for messages: `server` or `service`."""

    name: str
    """Its name in messages."""
    host: str
    port: int
    command: tuple[str, ...]
    log: Path
    """Its log file; kept after it has stopped."""
    scratch: Path
    """Its working and temporary directories; removed when it stops."""
    guard: subprocess.Popen[bytes]
    pid: int
    started_monotonic_s: float
    """Time of its exec."""
    clean: bool | None = None
    """Whether nothing was left after the stop; None until it has been stopped."""
    _exited: tuple[int, float] | None = None
    _left: list[int] | None = None
    _said: bytearray = field(default_factory=bytearray)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def pids(self) -> tuple[int, ...]:
        """All its living processes, the first one first."""
        return proc.descendants(self.guard.pid)

    def owns_port(self) -> bool | None:
        """Whether every socket that listens on the port belongs to this process; None when nobody listens or
        it cannot be told.
        """
        found = sockets.listeners(self.port, self.host)
        if not found:
            return None
        owned = sockets.owned_by((listener.inode for listener in found), self.pids())
        return None if owned is None else len(owned) == len(found)

    def _await_port(self, deadline_s: float) -> float:
        """Wait until it listens on its port itself; returns that moment. Raises EnvironmentFault."""
        while not self.owns_port():
            self._poll(deadline_s, f"nothing listens on port {self.port}")
        return time.monotonic()

    def _poll(self, deadline_s: float, state: str) -> None:
        """Wait one polling interval; raises when the process has ended or the time is up."""
        elapsed_s = time.monotonic() - self.started_monotonic_s
        if not self.alive():
            raise EnvironmentFault(
                f"{self.kind} {self.name} ended before it was ready: {self.exit_description()} "
                f"(log: {self.log})",
                details=self.last_lines(),
            )
        if time.monotonic() >= deadline_s:
            raise EnvironmentFault(
                f"{self.kind} {self.name} was not ready after {elapsed_s:.0f} s: "
                f"{self._other_listener() or state} (log: {self.log})",
                details=self.last_lines(),
            )
        time.sleep(min(COARSEST_POLL_S, max(FINEST_POLL_S, elapsed_s / POLLS_PER_ELAPSED)))

    def _other_listener(self) -> str:
        """The other process that listens on this port, as a clause; empty when there is none."""
        found = sockets.listeners(self.port, self.host)
        owned = sockets.owned_by((listener.inode for listener in found), self.pids()) or set()
        other = next((listener for listener in found if listener.inode not in owned), None)
        if other is None:
            return ""
        pid = sockets.owner_of(other)
        who = f"PID {proc.describe(pid)}" if pid is not None else "a process that this user cannot see"
        return f"port {self.port} is taken by {who}"

    def set_affinity(self, cpus: Iterable[int]) -> bool:
        """Put all threads of all its processes on these CPUs and the guard elsewhere; False when this is not
        permitted.
        """
        wanted = set(cpus)
        others = set(range(os.cpu_count() or 1)) - wanted
        if others:
            with suppress(OSError):  # it sleeps; where it would run matters only in principle
                os.sched_setaffinity(self.guard.pid, others)
        return bool(wanted) and proc.pin(self.guard.pid, wanted)

    def sample(self) -> ProcessSample | None:
        """CPU, memory, threads, descriptors of all its processes; None when it is gone."""
        return proc.sample(self.pids(), reaper=self.guard.pid)

    def alive(self) -> bool:
        """Whether the launched process still runs."""
        self._listen_to_guard()
        return self._exited is None and self.guard.poll() is None and self.clean is None

    def exit_description(self) -> str | None:
        """`exit code 1` or `killed by SIGKILL`; None while it runs."""
        if self.alive():
            return None
        if self._exited is None:
            return "it was stopped" if self.clean is not None else "its guard process was killed"
        code = self._exited[0]
        if code >= 0:
            return f"exit code {code}"
        try:
            return f"killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"killed by signal {-code}"

    def last_lines(self) -> str:
        """The end of its output."""
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - 16384))
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        return "\n".join([line for line in lines if line.strip()][-LAST_LINES:])

    def stop(self, grace_s: float = 10.0) -> bool:
        """SIGTERM, after `grace_s` SIGKILL. True when all processes and the listening socket are gone. May be
        called twice.
        """
        with self._lock:
            if self.clean is None:
                self.clean = self._stop(grace_s)
        return self.clean

    def _stop(self, grace_s: float) -> bool:
        before = self.pids()
        assert self.guard.stdin is not None
        with suppress(BrokenPipeError, ValueError):  # it may have ended and taken the process with it
            self.guard.stdin.write(f"stop {grace_s}\n".encode())
        try:
            self.guard.wait(grace_s + STOP_MARGIN_S)
        except subprocess.TimeoutExpired:
            self.guard.kill()
            self.guard.wait()
        self._listen_to_guard()
        for pipe in (self.guard.stdin, self.guard.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        shutil.rmtree(self.scratch, ignore_errors=True)  # the guard has done it, unless it was killed
        left = [pid for pid in before if proc.alive(pid)]
        return not left and not self._left and not sockets.listeners(self.port, self.host)

    def _listen_to_guard(self) -> None:
        """Read the guard's messages so far."""
        with self._lock:
            assert self.guard.stdout is not None
            while not self.guard.stdout.closed:
                try:
                    said = os.read(self.guard.stdout.fileno(), 4096)
                except BlockingIOError:
                    break
                if not said:
                    break
                self._said += said
            *lines, rest = bytes(self._said).split(b"\n")
            self._said[:] = rest
            for line in lines:
                self._note(json.loads(line))

    def _note(self, message: dict[str, Any]) -> None:
        if message["event"] == "exited":
            self._exited = (int(message["code"]), message["monotonic_ns"] / 1e9)
        elif message["event"] == "gone":
            self._left = [int(pid) for pid in message["left"]]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
