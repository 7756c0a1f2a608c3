"""The engine reads responses as http.client of Python does: a corpus of bytes, served to both over sockets,
with a table of where the two differ and why.
"""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from prony.load.engine import find_engine

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: "
SAME: dict[str, tuple[str, bytes]] = {
    "length": ("GET", LENGTH + b"3\r\n\r\nabc"),
    "no body": ("GET", LENGTH + b"0\r\n\r\n"),
    "too short": ("GET", LENGTH + b"9\r\n\r\nabc"),
    "until the close": ("GET", b"HTTP/1.1 200 OK\r\n\r\nabc"),
    "until the close, 1.0": ("GET", b"HTTP/1.0 200 OK\r\nServer: x\r\n\r\nabcdef"),
    "chunked": ("GET", CHUNKED + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"),
    "chunk extension": ("GET", CHUNKED + b'3;a="b"\r\nabc\r\n0\r\n\r\n'),
    "trailers": ("GET", CHUNKED + b"3\r\nabc\r\n0\r\nA: b\r\nC: d\r\n\r\n"),
    "capital size": ("GET", CHUNKED + b"A\r\n0123456789\r\n0\r\n\r\n"),
    "chunk cut off": ("GET", CHUNKED + b"9\r\nabc"),
    "size is no number": ("GET", CHUNKED + b"xyz\r\nabc\r\n0\r\n\r\n"),
    "chunked beats length": (
        "GET",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    ),
    "head request": ("HEAD", LENGTH + b"5000\r\n\r\n"),
    "head request, chunked": ("HEAD", CHUNKED),
    "204": ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
    "304 with length": ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
    "100 before": ("GET", b"HTTP/1.1 100 Continue\r\nA: b\r\n\r\n" + LENGTH + b"2\r\n\r\nok"),
    "100 alone": ("GET", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "no reason": ("GET", b"HTTP/1.1 404\r\nContent-Length: 1\r\n\r\nx"),
    "empty reason": ("GET", b"HTTP/1.1 404 \r\nContent-Length: 1\r\n\r\nx"),
    "odd status": ("GET", b"HTTP/1.1 799 Odd\r\nContent-Length: 1\r\n\r\nx"),
    "status of two digits": ("GET", b"HTTP/1.1 20 OK\r\nContent-Length: 1\r\n\r\nx"),
    "bare line feeds": ("GET", b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok"),
    "spaces around a value": ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: \t 2 \r\n\r\nok"),
    "other protocol": ("GET", b"SSH-2.0-OpenSSH_9.2p1\r\n"),
    "nothing": ("GET", b""),
}
DIFFERENT: dict[str, tuple[str, bytes, str, str]] = {
    "103 before": (
        "GET",
        b"HTTP/1.1 103 Early Hints\r\n\r\n" + LENGTH + b"2\r\n\r\nok",
        "http.client skips 100 alone, RFC 9110 (15.2) asks for every 1xx",
        "200 2",
    ),
    "two lengths": (
        "GET",
        LENGTH + b"2\r\nContent-Length: 3\r\n\r\nabc",
        "http.client takes the first, RFC 9112 (6.3) asks for a refusal",
        "none",
    ),
    "length is no number": (
        "GET",
        LENGTH + b"x\r\n\r\nabc",
        "http.client reads until the close, RFC 9112 (6.3) asks for a refusal",
        "none",
    ),
    "HTTP/3 in words": (
        "GET",
        b"HTTP/1.7 200 OK\r\nContent-Length: 1\r\n\r\nx",
        "http.client takes every HTTP/1.x, the engine 1.0 and 1.1",
        "none",
    ),
    "head cut off": (
        "GET",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        "http.client takes what came of the fields for all of them; it is a response that broke off",
        "none",
    ),
    "no last chunk": (
        "GET",
        CHUNKED + b"3\r\nabc\r\n0\r\n",
        "http.client accepts that the empty line after the last chunk is missing",
        "none",
    ),
}


@contextmanager
def serving(response: bytes) -> Iterator[int]:
    """A server that answers every connection's first request with the same bytes and closes; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended = threading.Event()

        def serve() -> None:
            while not ended.is_set():
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                with peer, suppress(OSError):
                    head = b""
                    while b"\r\n\r\n" not in head:
                        part = peer.recv(65536)
                        if not part:
                            break
                        head += part
                    else:
                        peer.sendall(response)
                        peer.shutdown(socket.SHUT_WR)
                        peer.settimeout(2)
                        while peer.recv(65536):
                            pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            ended.set()
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)


def by_http_client(method: str, port: int) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, "/")
        response = connection.getresponse()
        return f"{response.status} {len(response.read())}"
    except (http.client.HTTPException, ValueError, OSError):
        return "none"
    finally:
        connection.close()


def by_the_engine(method: str, port: int) -> str:
    plan: dict[str, Any] = {
        "version": 1,
        "target": {"url": f"http://127.0.0.1:{port}"},
        "load": {"model": "closed", "users": 1},
        "scenarios": [{"steps": [{"method": method, "path": "/"}]}],
        "stop": {"total_requests": 1, "after_ms": 10_000},
    }
    with subprocess.Popen(
        [find_engine(), "run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as engine:
        assert engine.stdin is not None
        assert engine.stdout is not None
        engine.stdin.write(json.dumps(plan) + "\n")
        engine.stdin.flush()
        finished = [json.loads(line) for line in engine.stdout][-1]
    totals = finished["totals"]
    assert totals["completed"] + totals["failed"] == 1, totals
    if totals["completed"] == 0:
        return "none"
    (response,) = totals["answers"]
    return f"{response['status']} {response['body_bytes']}"


@pytest.mark.parametrize("name", SAME)
def test_both_read_the_same(name: str) -> None:
    method, response = SAME[name]
    with serving(response) as port:
        assert by_the_engine(method, port) == by_http_client(method, port)


@pytest.mark.parametrize("name", DIFFERENT)
def test_where_they_differ_it_is_for_a_reason(name: str) -> None:
    method, response, reason, expected = DIFFERENT[name]
    with serving(response) as port:
        assert by_the_engine(method, port) == expected, reason
        assert by_http_client(method, port) != expected, "http.client has changed: move this to SAME"
