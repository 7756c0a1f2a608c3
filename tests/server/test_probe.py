"""The laboratory's own request: it reads a head as the engine does, and sends what the engine sends."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from prony.judge.checks.identity import identity
from prony.judge.finding import Kind
from prony.judge.limits import CheckLimits
from prony.server.probe import http_probe
from tests.judge import factory as f

HEADS = {
    "UTF-8": ("Server: Bücher/1.0".encode(), "Bücher/1.0"),
    "UTF-8 with a byte that is a line end in Latin-1": ("Server: Åre".encode(), "Åre"),
    "UTF-8, other blanks and line ends": ("Server: a\u2028b\u00a0".encode(), "a\u2028b\u00a0"),
    "an emoji": ("Server: \N{ROCKET}/2".encode(), "\N{ROCKET}/2"),
    "Latin-1": ("Server: Bücher/1.0".encode("latin-1"), "B\N{REPLACEMENT CHARACTER}cher/1.0"),
    "UTF-8 cut off": (b"Server: a\xe2\x82", "a\N{REPLACEMENT CHARACTER}"),
    "blanks around": (b"Server: \t nginx \t ", "nginx"),
    "twice": (b"Server: a\r\nServer: b", "a, b"),
    "folded": (b"Server: a\r\n\t b", "a b"),
    "empty": (b"Server:", ""),
}


@contextmanager
def answering(head: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """A server that answers every request with this line in its head: its port, and what it was sent."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        sent: list[bytes] = []

        def answer() -> None:
            with listening.accept()[0] as connection:
                sent.append(connection.recv(65536))
                connection.sendall(b"HTTP/1.1 200 OK\r\n" + head + b"\r\nContent-Length: 2\r\n\r\nok")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield listening.getsockname()[1], sent
        thread.join(10.0)


@pytest.mark.parametrize("name", HEADS)
def test_one_server_is_one_server_whatever_bytes_its_name_has(name: str) -> None:
    line, expected = HEADS[name]
    with answering(line) as (port, _):
        found = http_probe("127.0.0.1", port).headers["server"]
    assert found == expected
    probe = f.healthy().probes[0].model_copy(update={"server_header": found})
    head = (b"HTTP/1.1 200 OK\r\n" + line + b"\r\nContent-Length: 2\r\n\r\n").decode("utf-8", "replace")
    judged = identity(
        f.totals(f.healthy(), first_head=head).model_copy(update={"probes": (probe,)}), CheckLimits()
    )
    assert judged is not None
    assert judged.kind is Kind.FINE, judged.reason


def test_what_is_sent_may_be_other_than_latin_1() -> None:
    with answering(b"Server: x") as (port, sent):
        http_probe("127.0.0.1", port, path="/ü%20b?q=€&r=[1]", headers={"X-Name": "Zoë €"})
    assert sent[0].startswith(b"GET /%C3%BC%20b?q=%E2%82%AC&r=[1] HTTP/1.1\r\n")
    assert "\r\nX-Name: Zoë €\r\n".encode() in sent[0]
