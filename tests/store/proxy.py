"""A network between the store and its server that can be cut, at a given word if need be."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Proxy:
    """Forwards from `port` to a server on the same host."""

    to: int
    port: int = 0
    refuses: int = 0
    """Connections that are closed as soon as they come, from now on."""
    refused: int = 0
    _word: bytes = b""
    _forwards_word: bool = False
    _mute: bool = False
    _open: list[socket.socket] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def cut(self) -> None:
        """End every connection."""
        with self._lock:
            for one in self._open:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            self._open.clear()

    def cut_at(self, word: bytes, *, after: bool) -> None:
        """End every connection when the client sends this word next: before the server hears it, or when the
        server has answered it, without the client hearing that.
        """
        self._word, self._forwards_word = word, after

    def accept(self, listener: socket.socket) -> None:
        """Serve until the listener is closed."""
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            if self.refuses > 0:
                self.refuses -= 1
                self.refused += 1
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self.to))
            with self._lock:
                self._open += [client, server]
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._forward, args=(one, other, one is client), daemon=True).start()

    def _forward(self, one: socket.socket, other: socket.socket, from_client: bool) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                if from_client and self._word and self._word in data:
                    self._word, self._mute = b"", self._forwards_word
                    if not self._mute:
                        break
                elif not from_client and self._mute:  # it is done, and nobody hears of it
                    self._mute = False
                    break
                other.sendall(data)
        for each in (one, other):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@contextmanager
def proxy(to: int) -> Iterator[Proxy]:
    """A proxy to this port of the loopback address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made = Proxy(to, listener.getsockname()[1])
        threading.Thread(target=made.accept, args=(listener,), daemon=True).start()
        try:
            yield made
        finally:
            made.cut()
            listener.shutdown(socket.SHUT_RDWR)
