"""A process below a guard: started with its own directory and log, observed, and gone at the end."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from prony.errors import EnvironmentFault
from prony.evidence.server import ProcessSample
from prony.host.affinity import granted_cpus
from prony.server import guard as guard_script
from prony.server import proc, sockets
from prony.server.agent import LONGEST_SOCKET_PATH
from prony.server.cache import cache_dir, prune

KEPT_LOGS = 60
FINEST_POLL_S = 0.001
COARSEST_POLL_S = 0.01
POLLS_PER_ELAPSED = 200
"""Start-up is polled every 1 to 10 ms, at half a percent of the elapsed time."""
LAST_LINES = 20
STOP_MARGIN_S = 15.0
"""On top of the grace period (see guard.KILL_PATIENCE_S)."""


@dataclass(slots=True, kw_only=True)
class GuardedProcess:
    """One fresh process and its children. Use it in a `with`."""

    kind: ClassVar[str] = "process"
    """For messages: `server` or `service`."""

    name: str
    host: str
    port: int
    command: tuple[str, ...]
    log: Path
    """Kept after the stop."""
    scratch: Path
    """Working and temporary directories; removed at the stop."""
    guard: subprocess.Popen[bytes]
    pid: int
    started_monotonic_s: float
    """Time of its exec."""
    clean: bool | None = None
    """Whether nothing was left after the stop; None before."""
    _exited: tuple[int, float] | None = None
    _left: list[int] | None = None
    _said: bytearray = field(default_factory=bytearray)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def pids(self) -> tuple[int, ...]:
        """Living processes, the first one first."""
        return proc.descendants(self.guard.pid)

    def owns_port(self) -> bool | None:
        """Whether it owns every listening socket of the port; None: nobody listens, or not known."""
        listening = sockets.listeners(self.port, self.host)
        if not listening:
            return None
        owned = sockets.owned_by((listener.inode for listener in listening), self.pids())
        return None if owned is None else len(owned) == len(listening)

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
        listening = sockets.listeners(self.port, self.host)
        owned = sockets.owned_by((listener.inode for listener in listening), self.pids()) or set()
        other = next((listener for listener in listening if listener.inode not in owned), None)
        if other is None:
            return ""
        pid = sockets.owner_of(other)
        who = f"PID {proc.describe(pid)}" if pid is not None else "a process that this user cannot see"
        return f"port {self.port} is taken by {who}"

    def set_affinity(self, cpus: Iterable[int]) -> bool:
        """Pin all its threads to these CPUs and the guard elsewhere; False when not permitted."""
        wanted = set(cpus)
        others = set(range(os.cpu_count() or 1)) - wanted
        if others:
            with suppress(OSError):  # it sleeps; where it would run matters only in principle
                os.sched_setaffinity(self.guard.pid, others)
        return bool(wanted) and proc.pin(self.guard.pid, wanted)

    def sample(self) -> ProcessSample | None:
        """None when it is gone."""
        return proc.sample(self.pids(), reaper=self.guard.pid)

    def alive(self) -> bool:
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
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - 16384))
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        return "\n".join([line for line in lines if line.strip()][-LAST_LINES:])

    def stop(self, grace_s: float = 10.0) -> bool:
        """SIGTERM, after `grace_s` SIGKILL. True when processes and socket are gone. Idempotent."""
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
        _close_pipes(self.guard)
        shutil.rmtree(self.scratch, ignore_errors=True)  # the guard has done it, unless it was killed
        left = [pid for pid in before if proc.alive(pid)]
        return not left and not self._left and not sockets.listeners(self.port, self.host)

    def _listen_to_guard(self) -> None:
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
                message = json.loads(line)
                if message["event"] == "exited":
                    self._exited = (int(message["code"]), message["monotonic_ns"] / 1e9)
                elif message["event"] == "gone":
                    self._left = [int(pid) for pid in message["left"]]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


GUARD_ENDS_WITHIN_S = 20.0


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """What a guard starts, and where."""

    command: Sequence[str]
    env: Mapping[str, str]
    scratch: Path
    """From `make_scratch`; the guard removes it at the end."""
    log: Path
    cpus: Sequence[int]
    """Where it starts."""
    own_cpus: Sequence[int]
    """Its CPUs in the window: the guard stays off them."""
    cwd: Path | None = None
    """None: an empty one in `scratch`."""
    after: Sequence[str] = ()
    """Runs at the end, however it comes."""

    def line(self) -> bytes:
        process_spec = {
            "command": list(self.command),
            "env": dict(self.env),
            "cwd": str(self.cwd or self.scratch / "cwd"),
            "log": str(self.log),
            "cpus": list(self.cpus),
            "guard_cpus": sorted(set(granted_cpus()) - set(self.own_cpus)),
            "lab_pid": os.getpid(),
            "scratch": str(self.scratch),
            "after": list(self.after),
        }
        return json.dumps(process_spec).encode() + b"\n"


def make_scratch() -> Path:
    """A private directory for one run. Its path is short, for the agent's socket."""
    places = [None, "/tmp"] if len(tempfile.gettempdir()) > LONGEST_SOCKET_PATH - 40 else [None]
    for place in reversed(places):
        try:
            scratch = Path(tempfile.mkdtemp(prefix="prony-", dir=place))
            (scratch / "tmp").mkdir()
            (scratch / "cwd").mkdir()
            return scratch
        except OSError as fault:
            reason = fault.strerror
    raise EnvironmentFault(
        f"cannot create a directory in {tempfile.gettempdir()}: {reason}; free space or set TMPDIR"
    )


def log_file(log_dir: Path | None, name: str) -> Path:
    """A new, empty file; old ones in the cache are removed."""
    folder = cache_dir("logs") if log_dir is None else log_dir
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stamp = f"{re.sub(r'[^A-Za-z0-9_.]+', '-', name)}-{time.strftime('%Y%m%d-%H%M%S')}"
        handle, path = tempfile.mkstemp(prefix=f"{stamp}-", suffix=".log", dir=folder)
        os.close(handle)
    except OSError as fault:
        raise EnvironmentFault(f"the log cannot be written in {folder}: {fault.strerror}") from fault
    if log_dir is None:
        for old in prune(folder, "*-*-*.log", KEPT_LOGS):
            old.unlink(missing_ok=True)
    return Path(path)


def start_guard(process_spec: ProcessSpec, name: str) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    """The guard and its first message; `-I -S`: without the user's Python environment. Raises
    EnvironmentFault.
    """
    with process_spec.log.open("ab") as faults:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(guard_script.__file__).resolve())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=faults, start_new_session=True,
            bufsize=0,  # what it says later is read from the descriptor: nothing may linger in a buffer
        )  # fmt: skip
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            message = process_spec.line()
            while message:
                message = message[os.write(process.stdin.fileno(), message) :]
        first = process.stdout.readline()
        said = json.loads(first) if first else {"event": "failed", "reason": "its guard process ended"}
        if said["event"] != "started":
            raise EnvironmentFault(
                f"{name} could not be executed: {said['reason']} ({process_spec.command[0]})"
            )
        handle = process.stdout.fileno()
        fcntl.fcntl(handle, fcntl.F_SETFL, fcntl.fcntl(handle, fcntl.F_GETFL) | os.O_NONBLOCK)
    except BaseException:
        _give_up(process)
        raise
    return process, said


def _give_up(process: subprocess.Popen[bytes]) -> None:
    _close_pipes(process)  # which ends the guard and what it started
    try:
        process.wait(GUARD_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
