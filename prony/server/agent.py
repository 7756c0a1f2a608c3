"""MXBeans through the agent inside a JVM; after an error the next reading reconnects."""

from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path

from pydantic import ValidationError

from prony.evidence.server import JvmSnapshot

LONGEST_SOCKET_PATH = 107
"""Of sockaddr_un, without the closing zero."""
TIMEOUT_S = 2.0
"""A JVM in a full garbage collection answers late."""
LONGEST_LINE_BYTES = 1 << 20


class AgentClient:
    """Connection to the agent; thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def snapshot(self) -> JvmSnapshot | None:
        """The JVM's counters, timed at the middle between request and response; None without a response."""
        with self._lock:
            try:
                return self._ask()
            except (OSError, ValueError, ValidationError):
                self._hang_up()
                return None

    def close(self) -> None:
        with self._lock:
            self._hang_up()

    def _ask(self) -> JvmSnapshot:
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.settimeout(TIMEOUT_S)
            self._socket.connect(str(self._path))
        asked_s = time.monotonic()
        self._socket.sendall(b"snapshot\n")
        line = bytearray()
        while not line.endswith(b"\n"):
            more = self._socket.recv(65536)
            if not more or len(line) > LONGEST_LINE_BYTES or time.monotonic() - asked_s > TIMEOUT_S:
                raise OSError("the agent did not answer with a line")
            line += more
        middle_s = (asked_s + time.monotonic()) / 2
        return JvmSnapshot.model_validate({**json.loads(line), "t_monotonic_s": middle_s})

    def _hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
