"""A server that was started: when it was ready, what it uses, on which CPUs it runs, and that it is gone at
the end.

Must not know which load it is under, or judge what it reads.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from prony.errors import EnvironmentFault
from prony.evidence.server import CgroupThrottle, JvmSnapshot, Probe, ProcessSample, ServerIdentity, StartUp
from prony.server import proc, sockets, throttle
from prony.server.agent import AgentClient
from prony.server.build import Built

FINEST_POLL_S = 0.001
COARSEST_POLL_S = 0.01
POLLS_PER_ELAPSED = 200
"""Start-up is polled every 1 to 10 ms, half a percent of the time that has passed: exact enough, and cheap
for the server.
"""
REPORT_PATIENCE_S = 10.0
"""How long after listening the application may take to print its own figures."""
LAST_LINES = 20
STOP_MARGIN_S = 15.0
"""On top of the grace: killed processes need time to go (see guard.KILL_PATIENCE_S)."""


@dataclass(slots=True)
class RunningServer:
    """One fresh server process and everything that it started. Use it in a `with`: it stops the server
    however that ends.
    """

    built: Built
    host: str
    port: int
    command: tuple[str, ...]
    log: Path
    """Where its output goes; kept after it has stopped."""
    scratch: Path
    """Its working and temp folders; removed when it stops."""
    guard: subprocess.Popen[bytes]
    pid: int
    started_monotonic_s: float
    """When it was executed."""
    agent: AgentClient | None = None
    ca: Path | None = None
    """The certificate to trust (PEM) when it speaks HTTPS with a certificate that was made for this run; gone
    after the stop.
    """
    clean: bool | None = None
    """Whether everything was gone after the stop; None as long as it has not been stopped."""
    _owned_at_ready: bool | None = None
    _limit_at_ready: int | None = None
    _exited: tuple[int, float] | None = None
    _left: list[int] | None = None
    _said: bytearray = field(default_factory=bytearray)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def name(self) -> str:
        """As it is addressed."""
        return self.built.spec.name

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        return "https" if self.built.spec.tls else "http"

    @property
    def url(self) -> str:
        """Where it is reached."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def identity(self) -> ServerIdentity:
        """Which server this is. `owns_port` and the descriptor limit are those at ready (a JVM raises its
        own limit).
        """
        spec, jdk = self.built.spec, self.built.jdk
        return ServerIdentity(
            name=spec.name,
            title=spec.title,
            versions=spec.versions | dict(self.built.versions) | ({"jdk": jdk.version} if jdk else {}),
            runtime=spec.runtime,
            command=self.command,
            build_key=self.built.key,
            pid=self.pid,
            port=self.port,
            owns_port=self._owned_at_ready,
            descriptor_limit_soft=self._limit_at_ready,
        )

    def pids(self) -> tuple[int, ...]:
        """All living processes of the server, the first one first."""
        return proc.descendants(self.guard.pid)

    def owns_port(self) -> bool | None:
        """Whether every socket that listens on the port belongs to this server; None when nobody listens
        or it cannot be told.
        """
        found = sockets.listeners(self.port, self.host)
        if not found:
            return None
        owned = sockets.owned_by((listener.inode for listener in found), self.pids())
        return None if owned is None else len(owned) == len(found)

    def wait_ready(self, probe: Callable[[], Probe | None], timeout_s: float = 60.0) -> StartUp:
        """Wait until the server listens on its port itself, has printed its figures (if it does) and `probe`
        finds a right answer.

        The log never tells that a server is ready, only the port and the answer do. Its own figures are
        awaited before the first request, because that request loads classes. `probe` gives None while nobody
        answers. The agent is asked after the first right answer. Raises EnvironmentFault when the server
        exits, when another process answers on its port, or after `timeout_s` since it was executed, with its
        last lines.
        """
        deadline_s = self.started_monotonic_s + timeout_s
        while not self.owns_port():
            self._poll(deadline_s, f"nobody listens on port {self.port}")
        listening_s = time.monotonic()
        reported = self._await_report(min(deadline_s, listening_s + REPORT_PATIENCE_S))
        answered = "it listens but does not answer"
        while (answer := self._ask(probe)) is None or not answer.meets_expectation:
            if answer is not None:
                answered = (
                    answer.why_not
                    or f"it answered with status {answer.status}, which is not what was expected"
                )
            self._poll(deadline_s, answered)
        ready_s = time.monotonic()
        self._owned_at_ready = self.owns_port()
        self._limit_at_ready = self.descriptor_limit
        return StartUp(
            time_to_listen_s=round(listening_s - self.started_monotonic_s, 4),
            time_to_ready_s=round(ready_s - self.started_monotonic_s, 4),
            reported=reported,
            jvm=self.jvm(),
            process=self.sample(),
        )

    @staticmethod
    def _ask(probe: Callable[[], Probe | None]) -> Probe | None:
        try:
            return probe()
        except OSError:
            return None

    def _poll(self, deadline_s: float, state: str) -> None:
        """Wait a moment, unless the server has ended or the time is up."""
        elapsed_s = time.monotonic() - self.started_monotonic_s
        if not self.alive():
            raise EnvironmentFault(
                f"server {self.name} ended before it was ready: {self.exit_description()} (log: {self.log})",
                details=self.last_lines(),
            )
        if time.monotonic() >= deadline_s:
            raise EnvironmentFault(
                f"server {self.name} was not ready after {elapsed_s:.0f} s: {self._strangers() or state} "
                f"(log: {self.log})",
                details=self.last_lines(),
            )
        time.sleep(min(COARSEST_POLL_S, max(FINEST_POLL_S, elapsed_s / POLLS_PER_ELAPSED)))

    def _strangers(self) -> str:
        """Who else listens on our port, as a half-sentence."""
        found = sockets.listeners(self.port, self.host)
        owned = sockets.owned_by((listener.inode for listener in found), self.pids()) or set()
        other = next((listener for listener in found if listener.inode not in owned), None)
        if other is None:
            return ""
        pid = sockets.owner_of(other)
        who = f"PID {proc.describe(pid)}" if pid is not None else "a process that cannot be seen"
        return f"port {self.port} is taken by {who}"

    def _await_report(self, deadline_s: float) -> dict[str, float]:
        """The figures that the application prints at ready; empty when it prints none (in time)."""
        word = self.built.spec.reports
        while word is not None:
            found = _reported(self.log, word)
            if found is not None:
                return found
            if time.monotonic() >= deadline_s:
                break
            self._poll(float("inf"), "")
        return {}

    def set_affinity(self, cpus: Iterable[int]) -> bool:
        """Put all threads of all its processes on these CPUs and the guard elsewhere; False when this is
        not permitted.
        """
        wanted = set(cpus)
        others = set(range(os.cpu_count() or 1)) - wanted
        if others:
            with suppress(OSError):  # it sleeps; where it would run matters only in principle
                os.sched_setaffinity(self.guard.pid, others)
        return bool(wanted) and proc.pin(self.guard.pid, wanted)

    def affinity_ok(self, cpus: Iterable[int]) -> bool:
        """Whether all its threads may run on exactly these CPUs."""
        return proc.is_pinned(self.pids(), cpus)

    def sample(self) -> ProcessSample | None:
        """CPU, memory, threads, descriptors of all its processes; None when it is gone."""
        return proc.sample(self.pids(), reaper=self.guard.pid)

    def jvm(self) -> JvmSnapshot | None:
        """What the agent says; None when there is no agent or no answer."""
        return None if self.agent is None else self.agent.snapshot()

    @property
    def descriptor_limit(self) -> int | None:
        """The soft limit of open files of the first process."""
        return proc.descriptor_limit_soft(self.pid)

    def throttle(self) -> CgroupThrottle | None:
        """CPU quota counters up to now (`throttle.between` gives the difference); None when they cannot be
        read.
        """
        return throttle.throttle(self.pid)

    def alive(self) -> bool:
        """Whether the process that was started still runs."""
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
        """SIGTERM, after `grace_s` SIGKILL. True when all processes and the listening socket are gone. May
        be called twice.
        """
        with self._lock:
            if self.clean is None:
                self.clean = self._stop(grace_s)
        return self.clean

    def _stop(self, grace_s: float) -> bool:
        if self.agent is not None:
            self.agent.close()
        before = self.pids()
        assert self.guard.stdin is not None
        with suppress(BrokenPipeError, ValueError):  # it may have ended and taken the server with it
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
        """Take in what the guard has said so far."""
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


def _reported(log: Path, word: str) -> dict[str, float] | None:
    """The numbers in the JSON object after `word` at the start of a whole line; None when there is no such
    line yet.
    """
    try:
        content = log.read_bytes()
    except OSError:
        return None
    for line in content.split(b"\n")[:-1]:
        if line.startswith(word.encode() + b" "):
            try:
                figures = json.loads(line[len(word) :])
            except ValueError:
                return {}
            if not isinstance(figures, dict):
                return {}
            return {
                str(key): float(value) for key, value in figures.items() if isinstance(value, int | float)
            }
    return None
