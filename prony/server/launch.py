"""Starts a built server as a fresh process: its CPUs, its port, its folders, its guard. Must not know what
it is loaded with.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from prony.errors import EnvironmentFault
from prony.host.affinity import granted_cpus
from prony.server import certificates
from prony.server import guard as guard_script
from prony.server.agent import LONGEST_SOCKET_PATH, AgentClient
from prony.server.build import KEPT_LOGS, Built
from prony.server.cache import cache_dir, prune
from prony.server.command import environment, expand
from prony.server.running import RunningServer
from prony.server.sockets import check_free, free_port

__all__ = ["RunningServer", "launch"]

GUARD_ENDS_WITHIN_S = 20.0


def launch(
    built: Built,
    *,
    cpus: Sequence[int] = (),
    start_on: Sequence[int] | None = None,
    port: int | None = None,
    host: str = "127.0.0.1",
    jvm_flags: Sequence[str] = (),
    agent: bool = True,
    log_dir: Path | None = None,
) -> RunningServer:
    """Start a fresh process; it is not ready yet (`RunningServer.wait_ready`).

    `cpus`: those that are its own in the window, told to a JVM as its processor count; empty means all that
    we have. `start_on`: where it may run for now (default: `cpus`). `port` None picks a free one, unless the
    server has an address of its own. `agent=False` leaves the agent out of a JVM. Raises EnvironmentFault
    (port taken, cannot be executed, no room for its folders) and UsageError (a placeholder that nobody
    knows).
    """
    spec = built.spec
    if spec.url is not None:
        parts = urlsplit(spec.url)
        host = parts.hostname or host
        port = parts.port or (443 if spec.tls else 80)
    if port is None:
        port = free_port(host)
    else:
        check_free(host, port)
    scratch = _scratch()
    try:
        socket_path = scratch / "agent.sock"
        with_agent = (
            agent and built.agent is not None and len(os.fsencode(socket_path)) <= LONGEST_SOCKET_PATH
        )
        log = _log_file(log_dir, spec.name)
        flags = _jvm_flags(built, cpus, scratch, log, socket_path if with_agent else None)
        places = _places(built, cpus, host, port, scratch / "tmp")
        made = certificates.make(scratch / "tls", host) if spec.scheme == "https" and not spec.url else None
        if made is not None:
            places |= made.placeholders()
        command = expand(built, places, [*flags, *jvm_flags])
        order = {
            "command": command,
            "env": environment(built, places),
            "cwd": str(scratch / "cwd"),
            "log": str(log),
            "cpus": sorted((cpus if start_on is None else start_on) or granted_cpus()),
            "guard_cpus": sorted(set(granted_cpus()) - set(cpus)),
            "lab_pid": os.getpid(),
            "scratch": str(scratch),
        }
        process, started = _start_guard(order, log, spec.name)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    return RunningServer(
        built=built,
        host=host,
        port=port,
        command=tuple(command),
        log=log,
        scratch=scratch,
        guard=process,
        pid=int(started["pid"]),
        started_monotonic_s=started["monotonic_ns"] / 1e9,
        agent=AgentClient(socket_path) if with_agent else None,
        ca=made.ca if made is not None else None,
    )


def _jvm_flags(
    built: Built, cpus: Sequence[int], scratch: Path, log: Path, socket_path: Path | None
) -> list[str]:
    """What the laboratory adds to the command of a JVM.

    Without the processor count it would size itself for all CPUs: another collector, other pools. The report
    of a crash goes beside the log, because the working folder does not outlive the server.
    """
    if built.jdk is None:
        return []
    spec = built.spec
    flags = [f"-XX:ActiveProcessorCount={len(cpus)}"] if cpus else []
    flags += [f"-Xms{spec.heap}", f"-Xmx{spec.heap}"] if spec.heap is not None else []
    flags += [f"-Djava.io.tmpdir={scratch / 'tmp'}", f"-XX:ErrorFile={log.with_suffix('.crash')}"]
    if socket_path is not None:
        flags.append(f"-javaagent:{built.agent}={socket_path}")
    return [*flags, *spec.jvm_flags]


def _places(built: Built, cpus: Sequence[int], host: str, port: int, tmp: Path) -> dict[str, str]:
    own = sorted(cpus) or sorted(granted_cpus())
    places = {
        "host": host,
        "port": str(port),
        "scheme": "https" if built.spec.tls else "http",
        "cpus": str(len(own)),
        "cpu_list": ",".join(map(str, own)),
        "tmp": str(tmp),
    }
    workers = built.spec.ceilings.workers(len(own))
    return places if workers is None else places | {"worker_threads": str(workers)}


def _scratch() -> Path:
    """A private folder for one run: working folder, temp folder, the agent's socket. Short, for the
    socket's sake.
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
        f"no temporary folder could be made in {tempfile.gettempdir()}: {reason}; free space or set TMPDIR"
    )


def _log_file(log_dir: Path | None, name: str) -> Path:
    """A new, empty file; old ones in the cache are removed."""
    folder = cache_dir("logs") if log_dir is None else log_dir
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stamp = f"{re.sub(r'[^A-Za-z0-9_.]+', '-', name)}-{time.strftime('%Y%m%d-%H%M%S')}"
        handle, path = tempfile.mkstemp(prefix=f"{stamp}-", suffix=".log", dir=folder)
        os.close(handle)
    except OSError as fault:
        raise EnvironmentFault(f"the server's log cannot be written in {folder}: {fault.strerror}") from fault
    if log_dir is None:
        for old in prune(folder, "*-*-*.log", KEPT_LOGS):
            old.unlink(missing_ok=True)
    return Path(path)


def _start_guard(
    order: dict[str, Any], log: Path, name: str
) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    """The guard and its first word. `-I -S`: nothing of the user's Python environment gets into it, and it
    starts fast.
    """
    with log.open("ab") as faults:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(guard_script.__file__).resolve())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=faults, start_new_session=True,
            bufsize=0,  # what it says later is read from the descriptor: nothing may linger in a buffer
        )  # fmt: skip
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            _write(process.stdin.fileno(), json.dumps(order).encode() + b"\n")
        first = process.stdout.readline()
        said = json.loads(first) if first else {"event": "failed", "reason": "its guard process ended"}
        if said["event"] != "started":
            raise EnvironmentFault(
                f"server {name} could not be executed: {said['reason']} ({order['command'][0]})"
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
    """The guard ends, and takes the server with it, when its input closes."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
    try:
        process.wait(GUARD_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
