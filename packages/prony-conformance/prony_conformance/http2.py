"""The suite's own HTTP/2 connection, by the h2 package. Malformed requests need `wire.Wire`."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import hpack
from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.exceptions import H2Error
from h2.settings import SettingCodes

from prony.server.address import Address
from prony_conformance.wire import (
    BETWEEN_PIECES_S,
    LONGEST_BODY_BYTES,
    PIECE_BYTES,
    UNASKED_WITHIN_S,
    Line,
    WireError,
    WireRequest,
    WireResponse,
    connected,
    joined,
    piece_bytes,
    word,
)

OF_A_CONNECTION = {"connection", "host", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"}
"""Not sent over HTTP/2 (RFC 9113, 8.2.2); `Host` becomes `:authority`."""


SETTINGS_TYPE = b"\x04"
"""The fourth byte of a frame is its type (RFC 9113, 4.1)."""


class _LiteralEncoder(hpack.Encoder):
    """No Huffman coding: of a megabyte it takes Python minutes."""

    def encode(self, headers: Iterable[Any], huffman: bool = True) -> bytes:  # noqa: ARG002
        return super().encode(headers, huffman=False)


@dataclass(slots=True)
class _Reply:
    """State of one stream."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    ended: bool = False
    reset: str | None = None
    """RST_STREAM's code."""

    @property
    def over(self) -> bool:
        return self.ended or self.reset is not None


class Http2Wire(Line):
    """One request under way at a time. Use it in a `with`."""

    def __init__(self, address: Address) -> None:
        """Raises WireError when there is no connection, or the server chooses another version by ALPN."""
        self.address = address
        self._socket = connected(address, alpn=("h2", "http/1.1"))
        self._stream, self._reply = 0, _Reply()
        """Of the request under way."""
        self._goaway: str | None = None
        self._first = b""
        """What came first."""
        self._piecewise = False
        """Whether to listen between the pieces of what is sent."""
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding="latin-1"))
        self._h2.encoder = _LiteralEncoder()
        try:
            _is_h2(self._socket)
            self._h2.initiate_connection()
            self._flush()
        except WireError:
            self.close()
            raise

    def ask(self, request: WireRequest) -> WireResponse:
        try:
            self._stream, reply = self._h2.get_next_available_stream_id(), _Reply()
            self._reply = reply
            self._send(request)
            while not reply.over:
                self._receive()
        except H2Error as fault:
            raise self._gone or self._unheard or WireError(f"the response is not HTTP/2: {fault}") from fault
        if reply.reset is not None and not reply.ended:
            raise WireError(f"the server reset the stream: {reply.reset}", refusal=True)
        if reply.status is None:
            raise WireError("the stream ended without a status")
        return WireResponse(reply.status, "2", reply.headers, bytes(reply.body))

    def ask_oversized(self, request: WireRequest) -> WireResponse:
        try:
            while not self._first:
                self._receive()  # its SETTINGS, whose acknowledgement may not go out between pieces
        except H2Error as fault:
            raise self._unheard or WireError(f"the server's first frames are not HTTP/2: {fault}") from fault
        self._piecewise = True
        return self.ask(request)

    def settings(self) -> dict[str, int | None]:
        """Announced by the server, once it has responded; None: no limit."""
        remote = self._h2.remote_settings
        return {
            "streams": dict(remote).get(SettingCodes.MAX_CONCURRENT_STREAMS),
            "window_bytes": remote.initial_window_size,
            "header_list_bytes": remote.max_header_list_size,
        }

    def unasked(self) -> bytes:
        """Always empty: bytes of no open stream raise WireError, as does a body after HEAD."""
        patience_s = self._socket.gettimeout()
        self._socket.settimeout(UNASKED_WITHIN_S)
        with suppress(TimeoutError):
            while data := self._read():
                try:
                    self._take(self._h2.receive_data(data))
                except H2Error as fault:
                    raise WireError(f"unrequested frames: {fault}") from fault
        self._socket.settimeout(patience_s)
        return b""

    def _send(self, request: WireRequest) -> None:
        stream, body = self._stream, memoryview(request.body or b"")
        self._h2.send_headers(stream, _fields(request, self.address), end_stream=not body)
        self._flush()
        while body and not self._reply.over:
            room = min(self._h2.local_flow_control_window(stream), self._h2.max_outbound_frame_size)
            if room <= 0:
                self._receive()
                continue
            piece, body = body[:room], body[room:]
            self._h2.send_data(stream, bytes(piece), end_stream=not body)
            self._flush()

    def _receive(self) -> None:
        try:
            data = self._read()
        except TimeoutError as fault:
            what = "a response" if self._reply.status is None else "the rest of the response"
            raise WireError(f"timeout: {what} took over {self._socket.gettimeout():g} s") from fault
        if not data:
            closed = WireError("the connection was closed without a response", hung_up=True)
            raise self._gone or self._unheard or closed
        self._take(self._h2.receive_data(data))
        if self._gone is not None and not self._reply.over:
            raise self._gone  # what it still sends on this stream, the package would not take

    def _read(self) -> bytes:
        try:
            data = self._socket.recv(PIECE_BYTES)
            self._first = self._first or data
            return data
        except TimeoutError:
            raise
        except OSError as fault:
            raise self._gone or WireError(f"closed, no response: {word(fault)}", hung_up=True) from fault

    @property
    def _gone(self) -> WireError | None:
        """The server's GOAWAY."""
        if self._goaway is None:
            return None
        return WireError(f"the server sent GOAWAY: {self._goaway}", hung_up=True, refusal=True)

    @property
    def _unheard(self) -> WireError | None:
        """The error where the server does not begin with SETTINGS (RFC 9113, 3.4)."""
        if self._first[3:4] == SETTINGS_TYPE:
            return None
        how = "chose h2 by ALPN, but" if self.address.tls else "got HTTP/2 by prior knowledge, but"
        return WireError(f"the server does not speak HTTP/2 here: it {how} sent no SETTINGS")

    def _take(self, happened: Iterable[events.Event]) -> None:
        self._heed(happened)
        self._flush()

    def _heed(self, happened: Iterable[events.Event]) -> None:
        for event in happened:
            if isinstance(event, events.ConnectionTerminated):
                self._goaway = _code(event.error_code)
                continue
            if isinstance(event, events.DataReceived):
                self._h2.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id or 0)
            if getattr(event, "stream_id", None) == self._stream:
                _note(self._reply, event)

    def _flush(self) -> None:
        data = self._h2.data_to_send()
        if not data:
            return
        try:
            if self._piecewise:
                self._send_pieces(data)
            else:
                self._socket.sendall(data)
        except OSError as fault:
            self._last_words()
            raise self._gone or WireError(f"closed while sending: {word(fault)}", hung_up=True) from fault

    def _send_pieces(self, data: bytes) -> None:
        patience_s = self._socket.gettimeout()
        at = 0
        while at < len(data) and self._goaway is None and not self._reply.over:
            size = piece_bytes(at)
            self._socket.sendall(data[at : at + size])
            at += size
            self._socket.settimeout(BETWEEN_PIECES_S)
            with suppress(TimeoutError):
                self._heed(self._h2.receive_data(self._read()))
            self._socket.settimeout(patience_s)

    def _last_words(self) -> None:
        """A GOAWAY before it hung up."""
        with suppress(OSError, H2Error):
            while data := self._socket.recv(PIECE_BYTES):
                for event in self._h2.receive_data(data):
                    if isinstance(event, events.ConnectionTerminated):
                        self._goaway = _code(event.error_code)


def _is_h2(connection: socket.socket) -> None:
    if isinstance(connection, ssl.SSLSocket) and connection.selected_alpn_protocol() != "h2":
        chosen = connection.selected_alpn_protocol() or "no version"
        raise WireError(f"no load over HTTP/2: of h2 and http/1.1 (ALPN) the server chose {chosen}")


def _fields(request: WireRequest, address: Address) -> list[tuple[str, str]]:
    named = {name.lower(): value for name, value in request.headers.items()}
    fields = [
        (":method", request.method),
        (":scheme", "https" if address.tls else "http"),
        (":authority", named.get("host", address.authority)),
        (":path", request.path),
    ]
    fields += [(name, value) for name, value in named.items() if name not in OF_A_CONNECTION]
    if request.body is not None and not request.chunked and "content-length" not in named:
        fields.append(("content-length", str(len(request.body))))
    return fields


def _note(reply: _Reply, event: events.Event) -> None:
    match event:
        case events.ResponseReceived():
            pairs = [(_text(name), _text(value)) for name, value in event.headers or ()]
            reply.status = int(dict(pairs)[":status"])
            reply.headers = joined(pair for pair in pairs if not pair[0].startswith(":"))
        case events.DataReceived():
            reply.body += event.data or b""
            if len(reply.body) > LONGEST_BODY_BYTES:
                raise WireError(f"body larger than {LONGEST_BODY_BYTES >> 20} MiB")
        case events.StreamEnded():
            reply.ended = True
        case events.StreamReset():
            reply.reset = _code(event.error_code)


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")


def _code(code: ErrorCodes | int | None) -> str:
    return code.name if isinstance(code, ErrorCodes) else f"code {code}"
