"""The suite's own connections: HTTP/1 as raw bytes, also malformed; responses parsed by h11."""

from __future__ import annotations

import socket
import ssl
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

import h11

from prony.server.address import Address

LONGEST_BODY_BYTES = 64 << 20
LONGEST_HEAD_BYTES = 64 << 10
PIECE_BYTES = 64 << 10
SMALL_PIECE_BYTES = 4 << 10
PIECES_SMALL_UP_TO_BYTES = 128 << 10
BETWEEN_PIECES_S = 0.003
TIMEOUT_S = 10.0
UNASKED_WITHIN_S = 0.05


class WireError(Exception):
    """No response, or not HTTP. `str()` is the end of a sentence."""

    def __init__(self, message: str, *, hung_up: bool = False, refusal: bool = False) -> None:
        super().__init__(message)
        self.hung_up = hung_up
        """The connection was closed before the first byte of the response."""
        self.refusal = refusal
        """The server said by a frame of HTTP/2 that it does not serve the request: RST_STREAM, GOAWAY."""


@dataclass(frozen=True, slots=True)
class WireRequest:
    """Nothing left to fill in; `Host` and the body's framing are added."""

    method: str = "GET"
    path: str = "/"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    chunked: bool = False
    version: str = "1.1"

    def encoded(self, address: Address) -> bytes:
        lines = [f"{self.method} {self.path} HTTP/{self.version}"]
        named = {name.lower() for name in self.headers}
        if "host" not in named:
            lines.append(f"Host: {address.authority}")
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        body = self.body
        if body is not None and self.chunked:
            lines.append("Transfer-Encoding: chunked")
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
        elif "content-length" not in named and (body is not None or self.method in ("POST", "PUT", "PATCH")):
            lines.append(f"Content-Length: {len(body or b'')}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + (body or b"")


@dataclass(frozen=True, slots=True)
class WireResponse:
    """Header names in lower case; repeated headers joined."""

    status: int
    version: str
    headers: dict[str, str]
    body: bytes

    @property
    def announces_close(self) -> bool:
        words = {word.strip().lower() for word in self.headers.get("connection", "").split(",")}
        return "close" in words or (self.version == "1.0" and "keep-alive" not in words)


class Line(ABC):
    """An open connection, whatever the version of HTTP. Use it in a `with`."""

    _socket: socket.socket

    @abstractmethod
    def ask(self, request: WireRequest) -> WireResponse:
        """Send, and read the response. Raises WireError."""

    @abstractmethod
    def ask_oversized(self, request: WireRequest) -> WireResponse:
        """Piece by piece: a server that closes with bytes unread resets the connection, and its answer would
        be lost. Raises WireError, with `refusal` or `hung_up` where the server refuses without a response.
        """

    @abstractmethod
    def unasked(self) -> bytes:
        """Bytes that the server sends without a request. Raises WireError."""

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Wire(Line):
    """Over HTTP/1."""

    def __init__(self, address: Address, alpn: tuple[str, ...] = ("http/1.1",)) -> None:
        """Raises WireError when there is no connection. `alpn`: offered over TLS."""
        self.address = address
        self._rest = b""
        """Bytes received and not yet parsed."""
        self._hung_up = False
        self._socket = connected(address, alpn)

    def ask(self, request: WireRequest) -> WireResponse:
        self.send(request.encoded(self.address))
        return self.read(request.method)

    def ask_oversized(self, request: WireRequest) -> WireResponse:
        self._send_until_answered(request.encoded(self.address))
        return self.read(request.method)

    def send(self, data: bytes) -> None:
        """Raises WireError."""
        try:
            self._socket.sendall(data)
        except OSError as fault:
            raise WireError(f"closed while sending: {word(fault)}", hung_up=True) from fault

    def _send_until_answered(self, data: bytes) -> None:
        """Piece by piece, until the server responds or closes."""
        at = 0
        while at < len(data) and self._listen(BETWEEN_PIECES_S) is None:
            size = piece_bytes(at)
            try:
                self._socket.sendall(data[at : at + size])
            except OSError:
                return  # bytes sent before it hung up can still be read
            at += size

    def read(self, method: str) -> WireResponse:
        """The next response, to a request with this method. Raises WireError."""
        parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=LONGEST_HEAD_BYTES)
        parser.send(h11.Request(method=method, target="/", headers=[("Host", "h")]))
        parser.send(h11.EndOfMessage())
        if self._rest:
            parser.receive_data(self._rest)
            self._rest = b""
        head: h11.Response | None = None
        body = bytearray()
        while True:
            try:
                event = parser.next_event()
            except h11.RemoteProtocolError as fault:
                raise WireError(f"the response is not HTTP: {fault}") from fault
            if event is h11.NEED_DATA:
                self._receive(parser, head is not None)
            elif isinstance(event, h11.Response):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > LONGEST_BODY_BYTES:
                    raise WireError(f"body larger than {LONGEST_BODY_BYTES >> 20} MiB")
            elif isinstance(event, h11.EndOfMessage):
                self._rest = bytes(parser.trailing_data[0])
                break
        assert head is not None
        headers = joined(
            (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in head.headers
        )
        return WireResponse(head.status_code, head.http_version.decode(), headers, bytes(body))

    def ended(self, within_s: float) -> bool:
        """Whether the server closes the connection in this time, silently."""
        return self._listen(within_s) == b""

    def unasked(self) -> bytes:
        return self._listen(UNASKED_WITHIN_S) or b""

    def _receive(self, parser: h11.Connection, begun: bool) -> None:
        try:
            data = b"" if self._hung_up else self._socket.recv(PIECE_BYTES)
        except TimeoutError as fault:
            what = "the rest of the response" if begun else "a response"
            raise WireError(f"timeout: {what} took over {self._socket.gettimeout():g} s") from fault
        except OSError as fault:
            silent = not begun and not parser.trailing_data[0]
            raise WireError(f"closed, no response: {word(fault)}", hung_up=silent) from fault
        if not data and not begun and not parser.trailing_data[0]:
            raise WireError("the connection was closed without a response", hung_up=True)
        parser.receive_data(data)

    def _listen(self, within_s: float) -> bytes | None:
        """Bytes within this time; None: none; empty: the end. TLS may buffer what select does not show."""
        if self._rest or self._hung_up:
            return self._rest
        patience_s = self._socket.gettimeout()
        self._socket.settimeout(within_s)
        try:
            self._rest = self._socket.recv(PIECE_BYTES)
        except TimeoutError:
            return None
        except OSError:
            self._rest = b""
        finally:
            self._socket.settimeout(patience_s)
        self._hung_up = not self._rest
        return self._rest


def piece_bytes(sent: int) -> int:
    """Small pieces first: a server that refuses and closes with bytes unread resets the connection."""
    return SMALL_PIECE_BYTES if sent < PIECES_SMALL_UP_TO_BYTES else PIECE_BYTES


def connected(address: Address, alpn: tuple[str, ...]) -> socket.socket:
    """Over TLS with these versions by ALPN. Raises WireError."""
    try:
        plain = socket.create_connection((address.host, address.port), TIMEOUT_S)
        return _secured(plain, address.host, alpn) if address.tls else plain
    except OSError as fault:
        raise WireError(f"no connection: {fault.strerror or fault}") from fault


def _secured(plain: socket.socket, host: str, alpn: tuple[str, ...]) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if alpn:
        context.set_alpn_protocols(list(alpn))
    try:
        return context.wrap_socket(plain, server_hostname=host)
    except OSError:
        plain.close()
        raise


def joined(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """By name; repeated fields joined."""
    found: dict[str, str] = {}
    for name, value in pairs:
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def word(fault: OSError) -> str:
    return (fault.strerror or str(fault)).lower()
