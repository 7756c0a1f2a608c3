"""Starts a process below a guard of its own, with its own directory and log."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prony.errors import EnvironmentFault
from prony.host.affinity import granted_cpus
from prony.server import guard as guard_script
from prony.server.agent import LONGEST_SOCKET_PATH
from prony.server.build import KEPT_LOGS
from prony.server.cache import cache_dir, prune

GUARD_ENDS_WITHIN_S = 20.0


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """What a guard is to start, and where."""

    command: Sequence[str]
    env: Mapping[str, str]
    scratch: Path
    """Its directory from `make_scratch`, which the guard removes at the end."""
    log: Path
    cpus: Sequence[int]
    """The CPUs it may use for now."""
    own_cpus: Sequence[int]
    """Its CPUs in the window: the guard stays off them."""

    def line(self) -> bytes:
        """As the guard reads it."""
        process_spec = {
            "command": list(self.command),
            "env": dict(self.env),
            "cwd": str(self.scratch / "cwd"),
            "log": str(self.log),
            "cpus": list(self.cpus),
            "guard_cpus": sorted(set(granted_cpus()) - set(self.own_cpus)),
            "lab_pid": os.getpid(),
            "scratch": str(self.scratch),
        }
        return json.dumps(process_spec).encode() + b"\n"


def make_scratch() -> Path:
    """A private directory for one run: working directory, temporary directory, the agent's socket. Short, for
    the socket's sake.
    """
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
    """The guard, and its first message; `name` says in an error what could not be started. `-I -S`: nothing
    of the user's Python environment gets in, and it starts fast. Raises EnvironmentFault.
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
            _write(process.stdin.fileno(), process_spec.line())
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


def _write(handle: int, message: bytes) -> None:
    while message:
        message = message[os.write(handle, message) :]


def _give_up(process: subprocess.Popen[bytes]) -> None:
    """End the guard, and what it started, by closing its input."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
    try:
        process.wait(GUARD_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
