"""The suite's own connection over HTTP/2, against a peer that does what it is told; and what the suite says
of servers that are asked over HTTP/2.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.settings import SettingCodes

from prony.evidence.conformance import CheckResult, CheckStatus
from prony.server.address import Address
from prony.server.build import Built
from prony_conformance.http2 import Http2Wire
from prony_conformance.suite import CHECKS
from prony_conformance.wire import WireError, WireRequest
from tests.conformance.test_suite import HELLO, failed

Make = Callable[..., Built]
Examine = Callable[..., dict[str, CheckResult]]
Behaviour = Callable[[H2Connection, events.Event], None]
OK = [(":status", "200"), ("content-type", "text/plain")]


@contextmanager
def peer(behave: Behaviour) -> Iterator[Address]:
    """A server for one connection: `behave` is given each event, and what it writes goes out."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        http2 = H2Connection(H2Configuration(client_side=False, header_encoding="latin-1"))
        http2.config.validate_outbound_headers = False
        http2.initiate_connection()
        with connection:
            connection.sendall(http2.data_to_send())
            while data := connection.recv(65_536):
                for event in http2.receive_data(data):
                    behave(http2, event)
                connection.sendall(http2.data_to_send())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        host, port = listener.getsockname()
        yield Address(host, port)
    finally:
        listener.close()
        thread.join(10)


def respond(http2: H2Connection, stream: int | None, body: bytes, **fields: str) -> None:
    assert stream is not None
    http2.send_headers(stream, [*OK, *fields.items()], end_stream=not body)
    if body:
        http2.send_data(stream, body, end_stream=True)


def hello(http2: H2Connection, event: events.Event) -> None:
    if isinstance(event, events.StreamEnded):
        respond(http2, event.stream_id, b"Hello, World!")


def test_requests_follow_each_other_on_one_connection() -> None:
    with peer(hello) as address, Http2Wire(address) as line:
        found = [line.ask(WireRequest(headers={"Host": "other", "Connection": "close"})) for _ in range(3)]
        assert line.unasked() == b""
    assert [(one.status, one.version, one.body) for one in found] == [(200, "2", b"Hello, World!")] * 3
    assert found[0].headers == {"content-type": "text/plain"}
    assert not found[0].announces_close


def test_the_fields_are_those_of_http_2() -> None:
    seen: list[tuple[str, str]] = []

    def note(http2: H2Connection, event: events.Event) -> None:
        if isinstance(event, events.RequestReceived):
            seen.extend((str(name), str(value)) for name, value in event.headers or ())
        hello(http2, event)

    with peer(note) as address, Http2Wire(address) as line:
        line.ask(WireRequest("PUT", "/p1", {"Host": "other", "Keep-Alive": "1", "X-One": "1"}, b"{}"))
    assert seen == [
        (":method", "PUT"),
        (":scheme", "http"),
        (":authority", "other"),
        (":path", "/p1"),
        ("x-one", "1"),
        ("content-length", "2"),
    ]


class Large:
    """Reads a body, and sends one as long as the client's windows allow."""

    def __init__(self, length: int) -> None:
        self.received = 0
        self._left, self._stream = length, 0

    def __call__(self, http2: H2Connection, event: events.Event) -> None:
        if isinstance(event, events.DataReceived):
            self.received += len(event.data or b"")
            http2.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id or 0)
        if isinstance(event, events.StreamEnded):
            self._stream = event.stream_id or 0
            http2.send_headers(self._stream, OK)
        while self._stream and self._left:
            room = min(http2.local_flow_control_window(self._stream), http2.max_outbound_frame_size)
            if room <= 0:
                return
            piece = min(room, self._left)
            self._left -= piece
            http2.send_data(self._stream, bytes(piece), end_stream=not self._left)


def test_a_body_goes_out_as_the_windows_allow_and_a_long_response_comes_in() -> None:
    """Both are longer than the first windows, 65,535 bytes."""
    large = Large(300_000)
    with peer(large) as address, Http2Wire(address) as line:
        response = line.ask(WireRequest("POST", "/", body=bytes(200_000)))
    assert (large.received, len(response.body)) == (200_000, 300_000)


def reset(http2: H2Connection, event: events.Event) -> None:
    if isinstance(event, events.RequestReceived):
        http2.reset_stream(event.stream_id or 0, ErrorCodes.REFUSED_STREAM)


def go_away(http2: H2Connection, event: events.Event) -> None:
    if isinstance(event, events.RequestReceived):
        http2.close_connection(ErrorCodes.ENHANCE_YOUR_CALM, last_stream_id=0)


def body_after_head(http2: H2Connection, event: events.Event) -> None:
    if isinstance(event, events.StreamEnded):
        respond(http2, event.stream_id, b"Hello, World!")


def too_short(http2: H2Connection, event: events.Event) -> None:
    if isinstance(event, events.StreamEnded):
        respond(http2, event.stream_id, b"Hello", **{"content-length": "13"})


@pytest.mark.parametrize(
    ("behave", "method", "said", "refusal"),
    [
        (reset, "GET", "the server reset the stream: REFUSED_STREAM", True),
        (go_away, "GET", "the server sent GOAWAY: ENHANCE_YOUR_CALM", True),
        (body_after_head, "HEAD", "the response is not HTTP/2: .*Expected 0 bytes, received 13", False),
        (too_short, "GET", "the response is not HTTP/2: .*Expected 13 bytes, received 5", False),
    ],
)
def test_what_is_no_response_is_said_in_words(
    behave: Behaviour, method: str, said: str, refusal: bool
) -> None:
    with peer(behave) as address, Http2Wire(address) as line:
        with pytest.raises(WireError, match=said) as fault:
            line.ask(WireRequest(method))
        assert fault.value.refusal is refusal


def test_the_settings_are_those_of_the_server() -> None:
    def few(http2: H2Connection, event: events.Event) -> None:
        if isinstance(event, events.RequestReceived):
            http2.update_settings(
                {SettingCodes.MAX_CONCURRENT_STREAMS: 7, SettingCodes.INITIAL_WINDOW_SIZE: 1024}
            )
        hello(http2, event)

    with peer(few) as address, Http2Wire(address) as line:
        line.ask(WireRequest())
        assert (line.settings()["streams"], line.settings()["window_bytes"]) == (7, 1024)


def test_a_server_that_speaks_http_1_alone_is_named(faulty_server: Make, examine: Examine) -> None:
    """It answers 1.1 rightly, so it gets ready; every check over HTTP/2 fails."""
    results = examine(faulty_server(http_version='"2"'), HELLO)
    assert failed(results) >= {"answers", "unknown-path", "keep-alive", "concurrent", "streams"}
    assert not failed(results) & {"start", "close", "http-1.0", "stop"}, "those are asked over 1.x"
    assert "the first frame is not SETTINGS" in results["answers"].found


def test_a_fall_back_by_alpn_is_named(engine: Make, examine: Examine) -> None:
    tls = ("--tls", "--cert", "{tls_cert}", "--key", "{tls_key}")
    results = examine(engine(*tls, scheme="https", http_version='"2"'), HELLO, "answers", "concurrent")
    assert failed(results) == {"answers", "concurrent"}
    assert 'the server chose "http/1.1" by ALPN, expected "h2"' in results["answers"].found


def test_an_honest_server_passes_over_http_2(engine: Make, examine: Examine) -> None:
    results = examine(engine("--http2", http_version='"2"'), HELLO)
    assert failed(results) == {"further", "unknown-path"}, "it answers every path alike"
    assert {"start", *CHECKS, "stop"} <= set(results)
    assert results["streams"].found == "100 responses on 1 connection"
    assert "10000 streams at once" in results["settings"].found
    assert results["http-1.0"].status is CheckStatus.PASSED, "asked over HTTP/1.0"


@pytest.mark.parametrize(
    ("troubles", "check", "part"),
    [
        (["--reset", "share=0.3"], "streams", "stream reset by the server"),
        (["--errors", "share=0.3,status=503"], "streams", "another status"),
        (["--truncate", "share=0.3"], "concurrent", "not HTTP"),
        (["--close-after", "5"], "keep-alive", "20 responses on 4 connections"),
        (["--wrong-body", "share=1"], "answers", "header Content-Type is 'text/html"),
    ],
)
def test_scripted_trouble_is_found_over_http_2(
    engine: Make, examine: Examine, troubles: list[str], check: str, part: str
) -> None:
    result = examine(engine("--http2", *troubles, http_version='"2"'), HELLO, check)[check]
    assert result.status is CheckStatus.FAILED
    assert part in result.found


def test_a_limit_of_one_stream_is_noted_and_fails_nothing(engine: Make, examine: Examine) -> None:
    """The requests wait in the client, and the finding `streams` of a trial says how long."""
    made = engine("--http2", "--streams", "1", http_version='"2"')
    results = examine(made, HELLO, "streams", "settings")
    assert failed(results) == set()
    assert "1 streams at once" in results["settings"].found
