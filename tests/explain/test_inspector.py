"""The inspector's client against a stand-in for Node."""

from __future__ import annotations

import json
import socket
import threading

import pytest

from prony_explain import inspector
from prony_explain.inspector import Inspector
from tests.ports import refusing


def serve(listening: socket.socket) -> None:
    """Its list of what may be inspected, and one WebSocket that nothing is asked on."""
    with listening.accept()[0] as asked:
        asked.recv(4096)
        body = json.dumps([{"webSocketDebuggerUrl": "ws://127.0.0.1:9229/the-process"}]).encode()
        asked.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    with listening.accept()[0] as taken:
        assert taken.recv(4096).startswith(b"GET /the-process HTTP/1.1\r\n")
        taken.sendall(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
        taken.recv(4096)


def test_loopback_is_not_asked_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with refusing() as proxy, socket.create_server(("127.0.0.1", 0)) as listening:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy}")
        port = listening.getsockname()[1]
        monkeypatch.setattr(inspector, "_port_of", lambda _pid: port)
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        Inspector(1).close()
        thread.join(60)
        assert not thread.is_alive()
