"""The parent of a server under test: it outlives a laboratory that is killed, and takes the server with it.

Run as a script by `prony.server.launch` (only the standard library, nothing of Prony). Its standard input
is a pipe from the laboratory: first one line of JSON (`ProcessSpec`), later `stop SECONDS`; when the pipe
closes, or the laboratory's process ends however it ends, everything below the guard gets SIGTERM, then
SIGKILL. It prints `started`, `failed`, `exited` and `gone`, one JSON object per line.
Between those it sleeps in `select` and costs nothing.

No process is left behind: the guard is the reaper of orphans below it (PR_SET_CHILD_SUBREAPER), the server
dies with the guard (PR_SET_PDEATHSIG), and the guard is in a session of its own, so no Ctrl-C reaches
either of them.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
GRACE_WITHOUT_LAB_S = 5.0
"""For the server's stop when the laboratory has gone."""
KILL_PATIENCE_S = 10.0
"""A process in an uninterruptible sleep may not disappear."""
CHECK_EVERY_S = 0.02

libc = ctypes.CDLL(None, use_errno=True)


class Guard:
    """One server and everything that it started."""

    def __init__(self, spec: dict[str, Any], more: bytes) -> None:
        self.spec = spec
        self.commands = more
        self.lab = _pidfd(int(spec["lab_pid"]))
        self.server = 0
        self.server_lives = False

    def run(self) -> int:
        """Start the server, keep it until a stop is due, leave no process behind."""
        wakeup, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: None)
        if not self._start():
            self._clean()
            return 1
        grace_s = self._wait(wakeup)
        left = self._end(grace_s)
        self._clean()
        _say(event="gone", left=left)
        return 0

    def _start(self) -> bool:
        reported, report_fd = os.pipe()
        self.server = os.fork()
        if self.server == 0:
            self._become(report_fd)
        os.close(report_fd)
        with os.fdopen(reported, "rb") as report:
            said = report.read()  # ends when exec closes the other side
        begun_ns, _, fault = said.decode(errors="replace").partition(" ")
        if fault or not begun_ns:
            os.waitpid(self.server, 0)
            _say(event="failed", reason=fault or "it ended before it was started")
            return False
        self.server_lives = True
        _say(event="started", pid=self.server, monotonic_ns=int(begun_ns))
        return True

    def _become(self, tell: int) -> NoReturn:
        """In the child: exec the server; report only a failure."""
        try:
            os.setsid()
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != int(self.spec["guard_pid"]):
                os._exit(127)
            signal.set_wakeup_fd(-1)
            for number in (
                signal.SIGINT,
                signal.SIGHUP,
                signal.SIGTERM,
                signal.SIGCHLD,
                signal.SIGPIPE,
                signal.SIGXFSZ,
            ):
                signal.signal(number, signal.SIG_DFL)
            os.chdir(self.spec["cwd"])
            log = os.open(self.spec["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            nothing = os.open(os.devnull, os.O_RDONLY)
            for source, target in ((nothing, 0), (log, 1), (log, 2)):
                os.dup2(source, target)
            if self.spec["cpus"]:
                _pin(self.spec["cpus"])
            os.write(tell, str(time.monotonic_ns()).encode())
            os.execve(self.spec["command"][0], self.spec["command"], self.spec["env"])
        except OSError as fault:
            os.write(tell, f" {fault.strerror}: {fault.filename}".encode())
        os._exit(127)

    def _wait(self, wakeup: int) -> float:
        """Sleep until the server is to stop; returns its grace period."""
        sources = [0, wakeup] if self.lab is None else [0, wakeup, self.lab]
        while not self.commands.endswith(b"\n"):
            readable, _, _ = select.select(sources, [], [])
            if wakeup in readable:
                signals = os.read(wakeup, 4096)
                self._reap()
                if signal.SIGTERM in signals:
                    return GRACE_WITHOUT_LAB_S
            if 0 in readable:
                more = os.read(0, 4096)
                if not more:
                    return GRACE_WITHOUT_LAB_S
                self.commands += more
            if self.lab is not None and self.lab in readable:
                return GRACE_WITHOUT_LAB_S
        return float(self.commands.removeprefix(b"stop "))

    def _end(self, grace_s: float) -> list[int]:
        """SIGTERM to the server's group and what survives it, SIGKILL after the grace period. Returns
        survivors.
        """
        if self.server_lives:
            _kill(-self.server, signal.SIGTERM)
        signalled: set[int] = set()
        now = time.monotonic()
        kill_at, give_up_at = now + grace_s, now + grace_s + KILL_PATIENCE_S
        while self._reap():
            now = time.monotonic()
            if now >= give_up_at:
                return sorted(_below(os.getpid()))
            if now >= kill_at:
                for pid in _below(os.getpid()):
                    _kill(pid, signal.SIGKILL)
            elif not self.server_lives:
                for pid in _below(os.getpid()) - signalled:
                    signalled.add(pid)
                    _kill(pid, signal.SIGTERM)
            time.sleep(CHECK_EVERY_S)
        return []

    def _reap(self) -> bool:
        """True while processes are left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.server:
                self.server_lives = False
                _say(event="exited", code=os.waitstatus_to_exitcode(status), monotonic_ns=time.monotonic_ns())

    def _clean(self) -> None:
        import shutil  # only now: a guard that waits needs none of it

        if after := self.spec["after"]:
            quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]  # 1 is the laboratory's
            with suppress(OSError):
                os.waitpid(os.posix_spawn(after[0], after, self.spec["env"], file_actions=quiet), 0)
        shutil.rmtree(self.spec["scratch"], ignore_errors=True)


def _say(**message: object) -> None:
    with suppress(OSError):  # without a laboratory the guard still cleans up
        os.write(1, json.dumps(message).encode() + b"\n")


def _kill(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _pin(cpus: list[int]) -> None:
    with suppress(OSError):  # the laboratory reads where the server runs, and reports it
        os.sched_setaffinity(0, cpus)


def _pidfd(pid: int) -> int | None:
    """Readable when the laboratory ends; None on a kernel without them (the pipe remains)."""
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return None


def _below(root: int) -> set[int]:
    """All living descendants of a process."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - nothing but the standard library's smallest parts
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as stat:  # noqa: PTH123 - likewise
                    fields = stat.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if fields and fields[0] not in (b"Z", b"X"):
                children.setdefault(int(fields[1]), []).append(int(entry))
    pids: set[int] = set()
    todo = [root]
    while todo:
        for child in children.get(todo.pop(), []):
            if child not in pids:
                pids.add(child)
                todo.append(child)
    return pids


def main() -> int:
    """Read the spec from standard input and execute it."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    line = b""
    while b"\n" not in line:
        more = os.read(0, 65536)
        if not more:
            return 0  # the laboratory ended before it said anything
        line += more
    line, _, rest = line.partition(b"\n")
    spec = json.loads(line)
    spec["guard_pid"] = os.getpid()
    if spec["guard_cpus"]:
        _pin(spec["guard_cpus"])
    return Guard(spec, rest).run()


if __name__ == "__main__":
    sys.exit(main())
