"""Commands to a running HotSpot JVM by its attach mechanism, without a JDK: `load` puts a native agent into
it, `jcmd` asks what jcmd asks.

The JVM answers on a Unix socket in its own /tmp, which it opens when it finds a file `.attach_pid<PID>` on
SIGQUIT (HotSpot's AttachListener for Linux; the same as in `jdk.attach`).
"""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path

from prony.host.proc import key_values, read_text
from prony.server import proc
from prony_explain.processes import NotReached, ProcessEnded, cause, ended

PROTOCOL = b"1"
OPENS_WITHIN_S = 6.0
ANSWERS_WITHIN_S = 30.0
LOOK_EVERY_S = 0.02
ARGUMENTS = 3
"""Each command of this protocol has as many."""


class NotAttached(NotReached):
    """The JVM could not be asked, or refused; `str()` says why."""


def load(pid: int, library: Path, options: str) -> str:
    """Put a native agent into the JVM, or call one that is there again; what the JVM says. Raises
    NotAttached, or ProcessEnded.
    """
    said = _ask(pid, b"load", os.fsencode(library), b"true", options.encode())
    first, _, rest = said.partition("\n")
    refused = first.strip() not in ("", "0") or (
        rest.startswith("return code:") and rest.split(":")[1].split()[0] != "0"
    )
    if refused:
        raise NotAttached(f"the JVM {pid} did not take {library.name}: {said.strip()}")
    return rest


def jcmd(pid: int, command: str) -> str:
    """What `jcmd PID command` prints. Raises NotAttached, or ProcessEnded."""
    status, _, said = _ask(pid, b"jcmd", command.encode()).partition("\n")
    if status.strip() != "0":
        raise NotAttached(f"the JVM {pid} refused {command}: {said.strip()}")
    return said


def root_of(pid: int) -> Path:
    """The file system as this process sees it: that of a container is not ours."""
    return Path(f"/proc/{pid}/root")


def _ask(pid: int, command: bytes, *arguments: bytes) -> str:
    words = [PROTOCOL, command, *arguments, *[b""] * (ARGUMENTS - len(arguments))]
    try:
        with _connected(pid) as connection:
            connection.sendall(b"".join(word + b"\0" for word in words))
            said = bytearray()
            while part := connection.recv(1 << 16):
                said += part
        if not said:
            raise ConnectionError("it hung up")
    except OSError as fault:
        silent = NotAttached(f"the JVM {pid} does not answer on its attach socket: {fault}")
        raise cause(silent, pid) from fault
    return said.decode(errors="replace")


def _connected(pid: int) -> socket.socket:
    if ended(pid):
        raise ProcessEnded(pid)
    inner = _inner_pid(pid)
    path = root_of(pid) / "tmp" / f".java_pid{inner}"
    if not path.exists():
        _wake(pid, inner, path)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(ANSWERS_WITHIN_S)
    try:
        connection.connect(str(path))
    except BaseException:
        connection.close()
        raise
    return connection


def _wake(pid: int, inner: int, path: Path) -> None:
    """Make the JVM open its socket. A file that another user wrote would be ignored by it."""
    owner = proc.owner(pid)
    if owner not in (None, os.geteuid()) and os.geteuid() != 0:
        raise NotAttached(f"the JVM {pid} belongs to another user; run Prony as that user or as root")
    if not proc.catches(pid, signal.SIGQUIT):
        deaf = NotAttached(
            f"the JVM {pid} does not take SIGQUIT (-Xrs or -XX:+DisableAttachMechanism): it would end; start "
            "it without that option"
        )
        raise cause(deaf, pid)
    asks = root_of(pid) / "tmp" / f".attach_pid{inner}"
    try:
        asks.touch()
        if owner is not None and owner != os.geteuid():
            os.chown(asks, owner, -1)
        os.kill(pid, signal.SIGQUIT)
        deadline = time.monotonic() + OPENS_WITHIN_S
        while not path.exists():
            if ended(pid):
                raise ProcessEnded(pid)
            if time.monotonic() > deadline:
                raise NotAttached(
                    f"the JVM {pid} opened no attach socket in {OPENS_WITHIN_S:.0f} s; "
                    "-XX:+DisableAttachMechanism forbids it"
                )
            time.sleep(LOOK_EVERY_S)
    finally:
        with suppress(OSError):
            asks.unlink()


def _inner_pid(pid: int) -> int:
    """Its number within its own PID namespace."""
    row = key_values(read_text(f"/proc/{pid}/status") or "").get("NSpid", "").split()
    return int(row[-1]) if row else pid
