"""Inspector of a Node process, opened by SIGUSR1: DevTools Protocol over a WebSocket (RFC 6455)."""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import socket
import struct
import threading
import time
from contextlib import closing
from typing import Any

from prony.server import sockets
from prony_explain.processes import NotReached, ProcessEnded, catches, cause, ended

FIRST_PORT, LAST_PORT = 9229, 9329
"""Node's default is 9229; cluster workers take the next ones."""
OPENS_WITHIN_S = 5.0
ANSWERS_WITHIN_S = 60.0
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


class NotOpened(NotReached):
    """The inspector is not reachable; `str()` says why."""


class Inspector:
    """Connection to one process. Raises NotOpened without an inspector, or ProcessEnded."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._last = 0
        self._rest = b""
        self._lock = threading.Lock()
        if ended(pid):
            raise ProcessEnded(pid)
        port = _port_of(pid) or _opened(pid)
        if port is None:
            raise NotOpened(
                f"the Node process {pid} opened no inspector on SIGUSR1 (port {FIRST_PORT} taken, or "
                "--disable-sigusr1)"
            )
        try:
            path = _path(port)
            self._socket = socket.create_connection(("127.0.0.1", port), OPENS_WITHIN_S)
            self._socket.settimeout(ANSWERS_WITHIN_S)
            self._shake_hands(port, path)
        except (OSError, ValueError, LookupError, http.client.HTTPException) as fault:
            silent = NotOpened(f"the inspector of the Node process {pid} does not answer: {fault}")
            raise cause(silent, pid) from fault

    def ask(self, method: str, **values: Any) -> dict[str, Any]:
        """The result of one command; threads take turns. Raises NotOpened or ProcessEnded."""
        try:
            with self._lock:
                reply = self._answer(method, values)
        except (OSError, ValueError) as fault:
            raise cause(NotOpened(f"the inspector failed at {method}: {fault}"), self._pid) from fault
        if "error" in reply:
            raise NotOpened(f"the inspector refused {method}: {reply['error'].get('message')}")
        result: dict[str, Any] = reply.get("result", {})
        return result

    def _answer(self, method: str, values: dict[str, Any]) -> dict[str, Any]:
        self._last += 1
        self._send(TEXT, json.dumps({"id": self._last, "method": method, "params": values}).encode())
        while True:
            reply: dict[str, Any] = json.loads(self._message())
            if reply.get("id") == self._last:
                return reply

    def close(self) -> None:
        """Disconnect; Node keeps its inspector open."""
        self._socket.close()

    def _shake_hands(self, port: int, path: str) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        self._socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        head = b""
        while b"\r\n\r\n" not in head:
            part = self._socket.recv(4096)
            if not part:
                raise ConnectionError("connection closed")
            head += part
        head, _, self._rest = head.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 101"):
            raise ConnectionError(head.split(b"\r\n")[0].decode(errors="replace"))

    def _send(self, kind: int, payload: bytes) -> None:
        """Sends one masked frame."""
        mask = os.urandom(4)
        size = len(payload)
        head = bytes([0x80 | kind])
        if size < 126:
            head += bytes([0x80 | size])
        elif size < 1 << 16:
            head += bytes([0x80 | 126]) + struct.pack("!H", size)
        else:
            head += bytes([0x80 | 127]) + struct.pack("!Q", size)
        self._socket.sendall(head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload)))

    def _message(self) -> bytes:
        whole = bytearray()
        while True:
            first, second = self._read(2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack("!H", self._read(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", self._read(8))
            payload, kind = self._read(size), first & 0x0F
            if kind == CLOSE:
                raise ConnectionError("connection closed")
            if kind == PING:
                self._send(PONG, payload)
            elif kind != PONG:
                whole += payload
                if first & 0x80:
                    return bytes(whole)

    def _read(self, count: int) -> bytes:
        data = bytearray(self._rest[:count])
        self._rest = self._rest[count:]
        while len(data) < count:
            part = self._socket.recv(count - len(data))
            if not part:
                raise ConnectionError("connection closed")
            data += part
        return bytes(data)


def _path(port: int) -> str:
    """Path of the inspector's WebSocket; without a proxy, as it is on loopback."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=OPENS_WITHIN_S)) as connection:
        connection.request("GET", "/json/list")
        address: str = json.load(connection.getresponse())[0]["webSocketDebuggerUrl"]
    return "/" + address.split("/", 3)[3]


def _opened(pid: int) -> int | None:
    """Port opened by SIGUSR1; None at the timeout. Raises NotOpened (unsafe signal), ProcessEnded."""
    if not catches(pid, signal.SIGUSR1):
        ignores = NotOpened(
            f"the Node process {pid} does not handle SIGUSR1 (--disable-sigusr1, or not Node itself), which "
            "might end it; start it without that option, or with --inspect"
        )
        raise cause(ignores, pid)
    try:
        os.kill(pid, signal.SIGUSR1)
    except OSError as fault:
        refused = NotOpened(f"the Node process {pid} cannot be signalled: {fault.strerror}")
        raise cause(refused, pid) from fault
    deadline = time.monotonic() + OPENS_WITHIN_S
    while time.monotonic() < deadline:
        port = _port_of(pid)
        if port is not None:
            return port
        if ended(pid):
            raise ProcessEnded(pid)
        time.sleep(0.05)
    return None


def _port_of(pid: int) -> int | None:
    """The inspector port of this process; others may have taken the usual one."""
    for port in range(FIRST_PORT, LAST_PORT):
        inodes = sockets.listening_inodes(port, "127.0.0.1")
        if inodes and pid in sockets.holders(inodes):
            return port
    return None
