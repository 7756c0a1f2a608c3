"""A server on a plain socket that keeps the bytes of each request, for comparisons by value."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

Answers = Callable[[bytes], bytes]
"""Request -> further header lines, each with its end, an empty line and the body."""


def nothing(_request: bytes) -> bytes:
    return b"\r\n"


class Recorder:
    """Answers every request with 200; keeps connections as HTTP/1.0 and 1.1 ask for."""

    def __init__(self, answers: Answers = nothing, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.requests: list[bytes] = []
        self._answers = answers
        self._socket = socket.create_server((host, port))
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://{host}:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            got = b""
            while True:
                while b"\r\n\r\n" not in got:
                    more = connection.recv(65536)
                    if not more:
                        return
                    got += more
                head, _, got = got.partition(b"\r\n\r\n")
                length = re.search(rb"\ncontent-length: *(\d+)", head.lower())
                count = int(length[1]) if length else 0
                while len(got) < count:
                    got += connection.recv(65536)
                request, got = head + b"\r\n\r\n" + got[:count], got[count:]
                self.requests.append(request)
                more, _, body = self._answers(request).rpartition(b"\r\n")
                lines = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n" % len(body)
                connection.sendall(lines + more + b"\r\n" + body)
                if b" HTTP/1.0\r\n" in head and b"keep-alive" not in head.lower():
                    return

    @property
    def targets(self) -> list[str]:
        """What each request asks for."""
        return [request.split(b" ")[1].decode("latin-1") for request in self.requests]

    def headers(self, name: str) -> list[str | None]:
        """A header of each request; None where it has none."""
        pattern = re.compile(rb"(?i)\r\n" + re.escape(name.encode()) + rb": ?([^\r]*)")
        found = [pattern.search(request) for request in self.requests]
        return [None if match is None else match[1].decode("latin-1") for match in found]
