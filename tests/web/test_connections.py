"""Clients that send half a request, or read no response, over real sockets: nobody else waits for them."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import uvicorn

from prony.store import Store
from prony_serve.web import bodies, connections
from prony_serve.web.access import Rules
from prony_serve.web.app import create
from prony_serve.web.site import Site

PATIENCE_S = 60.0
TOKEN = "correct-horse-battery-staple"
HEAD = b"GET /login HTTP/1.1\r\nHost: 127.0.0.1\r\n"
FORM = b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"


@pytest.fixture
def port(empty: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Of a site with a token, which waits for a client a tenth of its usual time."""
    monkeypatch.setattr(connections, "HEAD_S", 1.0)
    monkeypatch.setattr(connections, "READ_S", 1.0)
    monkeypatch.setattr(bodies, "FORM_S", 1.0)
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 50)
    app = create(Site(empty, Rules(token=TOKEN)))
    config = uvicorn.Config(app, log_level="critical", lifespan="off", http=connections.Connection)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield listening.getsockname()[1]
        server.should_exit = True
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def opened(port: int, sent: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
    made.sendall(sent)
    return made


def asked(port: int) -> int:
    """The status of the log-in page, within a second: without waiting for anybody."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=0.9)
    connection.request("GET", "/login")
    status = connection.getresponse().status
    connection.close()
    return status


def closed_after_s(one: socket.socket, drip: bytes = b"") -> float:
    """How long it takes until the server closes; meanwhile a byte is sent now and then."""
    begun_s = time.monotonic()
    one.settimeout(0.2)
    while True:
        try:
            if one.recv(65536) == b"":
                return time.monotonic() - begun_s
        except TimeoutError:
            assert time.monotonic() - begun_s < PATIENCE_S
        except OSError:
            return time.monotonic() - begun_s
        if drip:
            try:
                one.sendall(drip)
            except OSError:
                return time.monotonic() - begun_s


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET",
        HEAD + b"X: ",
        HEAD + b"\r\n" + HEAD,  # half a head behind a whole request
        FORM + b"Content-Length: 90\r\n\r\ntoken=",
        FORM + b"Transfer-Encoding: chunked\r\n\r\n6\r\ntok",
    ],
)
def test_many_who_send_half_a_request_keep_nobody_out(port: int, sent: bytes) -> None:
    with ExitStack() as stack:
        for _ in range(150):
            stack.enter_context(opened(port, sent))
        assert [asked(port) for _ in range(5)] == [200] * 5


@pytest.mark.parametrize("sent", [b"", HEAD + b"X: ", HEAD + b"\r\n" + HEAD])
@pytest.mark.parametrize("drip", [b"", b"x"])
def test_half_a_head_is_closed_however_many_pieces_it_comes_in(port: int, sent: bytes, drip: bytes) -> None:
    with opened(port, sent) as one:
        assert 0.5 < closed_after_s(one, drip) < 5.0


def test_half_a_form_is_refused(port: int) -> None:
    with opened(port, FORM + b"Content-Length: 90\r\n\r\ntoken=") as one:
        assert one.recv(65536).startswith(b"HTTP/1.1 408 ")
        assert closed_after_s(one, b"x") < 5.0


def test_who_reads_no_response_is_closed(port: int) -> None:
    asks = (HEAD + b"\r\n") * 2000
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.settimeout(PATIENCE_S)
    one.connect(("127.0.0.1", port))
    with one, pytest.raises((ConnectionResetError, BrokenPipeError)):
        one.sendall(asks * 500)


def test_who_asks_again_and_again_keeps_the_connection(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.connect()
    kept = connection.sock
    for _ in range(5):
        connection.request("GET", "/login")
        assert connection.getresponse().read() != b""
        time.sleep(0.4)
    assert connection.sock is kept
    connection.close()
