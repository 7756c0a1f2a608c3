"""Single requests of tests, by a client that is not the engine."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SingleResponse:
    """Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


def single(
    host: str,
    port: int,
    method: str = "GET",
    path: str = "/",
    headers: Mapping[str, str] | None = None,
    body: str | None = None,
    timeout_s: float = 5.0,
    tls: bool = False,
) -> SingleResponse:
    """One request on a connection of its own; certificates are not checked. Raises OSError without a
    response.
    """
    connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    if tls:
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection(host, port, timeout=timeout_s, context=context)
    try:
        connection.request(method, path, body, dict(headers or {}))
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return SingleResponse(response.status, found, response.read())
    except http.client.HTTPException as fault:
        raise OSError(f"the response is not HTTP: {fault!r}") from fault
    finally:
        connection.close()
