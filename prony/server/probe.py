"""One HTTP request of the laboratory's own, sent before the load: is the server there, and is its response
right?
"""

from __future__ import annotations

import http.client
import json
import select
import socket
import ssl
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from prony.evidence.server import Probe
from prony.plan.response import at_pointer
from prony.plan.target import CountKeys
from prony.server.address import Address

LONGEST_BODY_BYTES = 64 << 20
CLOSE_SHOWS_WITHIN_S = 0.002
"""How long to look for a close that was not announced. Short, because it is part of the time to ready; what
happens under load is counted by the engine.
"""

PRINTABLE = string.punctuation
"""What stays as it is in a path, beside letters and digits."""


@dataclass(frozen=True, slots=True)
class ProbeResponse:
    """What came back. Header names are in lower case; of a repeated header the values are joined."""

    status: int
    headers: dict[str, str]
    body: bytes
    keeps_alive: bool
    """Whether the connection was still open after the response."""


def http_probe(
    host: str,
    port: int,
    method: str = "GET",
    path: str = "/",
    headers: Mapping[str, str] | None = None,
    body: bytes | memoryview | str | None = None,
    timeout_s: float = 5.0,
    tls: bool = False,
) -> ProbeResponse:
    """Send one request on a connection of its own and read the whole response.

    Certificates are not checked. Raises OSError when there is no connection, no response in time or one that
    is not HTTP.
    """
    connection = _connection(host, port, timeout_s, tls)
    try:
        connection.request(
            method,
            quote(path, safe=PRINTABLE),
            body=body.encode() if isinstance(body, str) else body,
            headers={name: value.encode() for name, value in (headers or {}).items()},
        )
        response = connection.getresponse()
        content = response.read(LONGEST_BODY_BYTES)
        if response.length:  # what is still owed; reading a limited amount does not complain about it
            raise OSError(
                f"the response is {response.length} bytes short, or larger than {LONGEST_BODY_BYTES}"
            )
        found: dict[str, str] = {}
        for name, value in response.getheaders():
            name, value = name.lower(), _as_the_engine_reads(value)
            found[name] = f"{found[name]}, {value}" if name in found else value
        return ProbeResponse(
            response.status, found, content, _still_open(connection.sock, CLOSE_SHOWS_WITHIN_S)
        )
    except (http.client.HTTPException, ValueError) as fault:
        raise OSError(f"the response is not HTTP: {fault!r}") from fault
    finally:
        connection.close()


def _as_the_engine_reads(value: str) -> str:
    """A header's value as UTF-8 on one line: http.client takes its bytes for Latin-1, and keeps folds."""
    text = value.encode("latin-1", "replace").decode("utf-8", "replace")
    return " ".join(line.strip(" \t") for line in text.split("\n")).replace("\r", "").strip(" \t")


def request_count(address: Address, keys: CountKeys | None) -> int | None:
    """The requests that a server has read so far; None when it does not count, or cannot be asked."""
    if keys is None:
        return None
    try:
        response = http_probe(address.host, address.port, path=keys.path, tls=address.tls)
        found = at_pointer(json.loads(response.body), keys.pointer)
    except (OSError, ValueError, LookupError):
        return None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def status_probe(
    host: str, port: int, path: str = "/", status: int = 200, tls: bool = False
) -> Callable[[], Probe | None]:
    """A probe for `RunningServer.wait_ready` that asks for one path and one status; None while nobody
    responses.
    """

    def probe() -> Probe | None:
        try:
            response = http_probe(host, port, path=path, tls=tls)
        except OSError:
            return None
        right = response.status == status
        return Probe(
            step="ready",
            status=response.status,
            body_bytes=len(response.body),
            content_type=response.headers.get("content-type"),
            meets_expectation=right,
            why_not=None if right else f"GET {path} gave status {response.status}, expected {status}",
            keeps_alive=response.keeps_alive,
        )

    return probe


def _connection(host: str, port: int, timeout_s: float, tls: bool) -> http.client.HTTPConnection:
    if not tls:
        return http.client.HTTPConnection(host, port, timeout=timeout_s)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=context)


def _still_open(connection: socket.socket | None, within_s: float) -> bool:
    """http.client drops the socket when the response announced a close; a silent close shows as readable."""
    if connection is None:
        return False
    readable, _, _ = select.select([connection], [], [], within_s)
    if not readable:
        return True
    return isinstance(connection, ssl.SSLSocket) and _only_tickets(connection)


def _only_tickets(connection: ssl.SSLSocket) -> bool:
    """TLS 1.3 sends session tickets after the handshake: they make the socket readable, and mean nothing
    here.
    """
    connection.setblocking(False)
    try:
        connection.recv(1)
    except ssl.SSLWantReadError:
        return True
    except OSError:
        return False
    return False  # its end, or bytes that nobody asked for
