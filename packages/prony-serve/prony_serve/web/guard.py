"""ASGI middleware: checks host name, origin and reader; sets the headers of every response."""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from prony import redaction
from prony.report.delivery import defect_file
from prony_serve.web.access import Access, Reader
from prony_serve.web.refusal import Refusal

log = logging.getLogger("prony_serve.web")

SAFE = frozenset({"GET", "HEAD"})
PUBLIC = ("/login", "/static/")
"""Shown without a log-in: the form and its style."""
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}  # fmt: skip
Refuse = Callable[[Request, Refusal], Awaitable[Response]]


class Guard:
    """`names`: this server's host names in lower case, besides its addresses."""

    def __init__(self, app: ASGIApp, access: Access, names: frozenset[str], refuse: Refuse) -> None:
        self._app = app
        self._access = access
        self._names = names
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                _complete(MutableHeaders(scope=message))
            await send(message)

        try:
            scope["reader"] = self._reader(request)
            await self._app(scope, receive, sending)
        except Refusal as refusal:
            if not begun:
                await (await self._refuse(request, refusal))(scope, receive, sending)
        except Exception as fault:
            if not begun:  # else the application has answered
                await (await self._refuse(request, defect(fault)))(scope, receive, sending)

    def _reader(self, request: Request) -> Reader:
        """Raises Refusal."""
        host = request.headers.get("host", "")
        if not self._is_own(host):
            shown = host[:100] or "(empty)"
            raise Refusal(421, f"this server is not called '{shown}'; add the name with --allow-host")
        if request.method not in SAFE:
            _check_origin(request, host)
        path = request.scope["path"]
        if path.startswith(PUBLIC):
            return Reader()
        reader = self._access.reader(request)
        if reader.by_cookie and request.method not in SAFE and "origin" not in request.headers:
            raise Refusal(403, "a change by cookie needs an Origin header")
        return reader

    def _is_own(self, host: str) -> bool:
        """Addresses are always accepted: only a name can be pointed here by another party."""
        name = host_name(host)
        return name is not None and (name in self._names or is_address(name))


def own_names(more: tuple[str, ...] = ()) -> frozenset[str]:
    """localhost, the host's own names, and those of the command line, in lower case."""
    return frozenset(name.lower() for name in ("localhost", socket.gethostname(), socket.getfqdn(), *more))


def host_name(host: str) -> str | None:
    """The name in a Host header, in lower case; None when it is invalid."""
    try:
        parts = urlsplit(f"//{host}")
        parts.port  # noqa: B018  (raises for an invalid port)
    except ValueError:
        return None
    if parts.path or parts.query or parts.fragment or parts.username is not None or "@" in host:
        return None
    return parts.hostname


def is_address(name: str) -> bool:
    """Whether it is an IP address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _check_origin(request: Request, host: str) -> None:
    """Changes must come from a page of this server, or from a program that sends no origin."""
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        raise Refusal(403, f"changes from another origin are refused ({origin[:100]})")
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Refusal(403, "changes from another site are refused")


def _complete(headers: MutableHeaders) -> None:
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    headers.setdefault("Content-Security-Policy", POLICY)
    headers.setdefault("Cache-Control", "no-store")


def defect(fault: Exception) -> Refusal:
    """A fault of Prony itself: the traceback goes to a file, the reader gets a sentence."""
    where = defect_file(fault)
    log.error("defect: %s: %s; details: %s", type(fault).__name__, redaction.text(str(fault)), where)
    return Refusal(500, f"a defect of Prony; details are {where} on the server")
