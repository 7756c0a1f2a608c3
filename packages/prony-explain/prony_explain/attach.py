"""HotSpot's attach mechanism without a JDK: `load` loads a native agent, `jcmd` runs a diagnostic command.

Protocol of HotSpot's AttachListener for Linux, as in `jdk.attach`: on SIGQUIT the JVM looks for a file
`.attach_pid<PID>` and opens a Unix socket in its own /tmp.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path

from prony.host.proc import key_values, read_text
from prony_explain.processes import NotReached, ProcessEnded, catches, cause, ended, uid_of

PROTOCOL = b"1"
OPENS_WITHIN_S = 6.0
ANSWERS_WITHIN_S = 30.0
LOOK_EVERY_S = 0.02
ARGUMENTS = 3
"""Number of arguments per command."""


class NotAttached(NotReached):
    """The JVM could not be reached, or refused; `str()` says why."""


def load(pid: int, library: Path, options: str) -> str:
    """Loads a native agent or calls a loaded one; the JVM's reply. Raises NotAttached, ProcessEnded."""
    reply = _ask(pid, b"load", os.fsencode(library), b"true", options.encode())
    first, _, rest = reply.partition("\n")
    refused = first.strip() not in ("", "0") or (
        rest.startswith("return code:") and rest.split(":")[1].split()[0] != "0"
    )
    if refused:
        raise NotAttached(f"the JVM {pid} refused {library.name}: {reply.strip()}")
    return rest


def jcmd(pid: int, command: str) -> str:
    """Output of `jcmd PID command`. Raises NotAttached or ProcessEnded."""
    status, _, reply = _ask(pid, b"jcmd", command.encode()).partition("\n")
    if status.strip() != "0":
        raise NotAttached(f"the JVM {pid} refused {command}: {reply.strip()}")
    return reply


def root_of(pid: int) -> Path:
    """The process's root directory; in a container it differs from ours."""
    return Path(f"/proc/{pid}/root")


def _ask(pid: int, command: bytes, *arguments: bytes) -> str:
    words = [PROTOCOL, command, *arguments, *[b""] * (ARGUMENTS - len(arguments))]
    try:
        with _connected(pid) as connection:
            connection.sendall(b"".join(word + b"\0" for word in words))
            reply = bytearray()
            while part := connection.recv(1 << 16):
                reply += part
        if not reply:
            raise ConnectionError("connection closed without a reply")
    except OSError as fault:
        silent = NotAttached(f"the JVM {pid} does not answer on its attach socket: {fault}")
        raise cause(silent, pid) from fault
    return reply.decode(errors="replace")


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
    """Make the JVM open its socket. It ignores files of other users."""
    owner = uid_of(pid)
    if owner not in (None, os.geteuid()) and os.geteuid() != 0:
        raise NotAttached(f"the JVM {pid} belongs to another user; run Prony as that user or as root")
    if not catches(pid, signal.SIGQUIT):
        ignores = NotAttached(
            f"the JVM {pid} does not handle SIGQUIT (-Xrs or -XX:+DisableAttachMechanism), which would end "
            "it; start it without that option"
        )
        raise cause(ignores, pid)
    request = root_of(pid) / "tmp" / f".attach_pid{inner}"
    try:
        request.touch()
        if owner is not None and owner != os.geteuid():
            os.chown(request, owner, -1)
        os.kill(pid, signal.SIGQUIT)
        deadline = time.monotonic() + OPENS_WITHIN_S
        while not path.exists():
            if ended(pid):
                raise ProcessEnded(pid)
            if time.monotonic() > deadline:
                raise NotAttached(
                    f"JVM {pid} does not attach in {OPENS_WITHIN_S:.0f} s (-XX:+DisableAttachMechanism?)"
                )
            time.sleep(LOOK_EVERY_S)
    finally:
        with suppress(OSError):
            request.unlink()


def _inner_pid(pid: int) -> int:
    """The PID in the process's own namespace."""
    row = key_values(read_text(f"/proc/{pid}/status") or "").get("NSpid", "").split()
    return int(row[-1]) if row else pid
