"""Access control: open on loopback, a token, or a header set by a trusted proxy.

Tokens are compared in constant time, sessions are random cookies of this process, and neither is logged.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request

from prony.errors import UsageError
from prony_serve.web.limiting import FailureLimit
from prony_serve.web.refusal import Refusal

COOKIE = "prony_session"
SESSION_S = 12 * 3600.0
MOST_SESSIONS = 1000
SHORTEST_TOKEN = 16
MOST_TOKEN = 4096
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Rules:
    """Access rules of the command line."""

    token: str | None = None
    """Required of every reader, and for uploads."""
    trusted_header: str | None = None
    """Set by a proxy after its log-in; requests without it are refused."""
    trusted_proxies: tuple[Network, ...] = ()
    """Addresses of that proxy."""


@dataclass(frozen=True, slots=True)
class Reader:
    """An authorised reader."""

    may_upload: bool = False
    by_cookie: bool = False
    """Authorised by a cookie, which browsers send to any page: changes must also prove their origin."""


class Access:
    """Rules, sessions, and failed attempts."""

    def __init__(self, rules: Rules, clock: Callable[[], float] = time.monotonic) -> None:
        self.rules = rules
        self._clock = clock
        self._limit = FailureLimit(clock)
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, float] = OrderedDict()
        """Digest of a cookie -> its expiry."""

    @property
    def has_log_in(self) -> bool:
        """Whether there is a log-in form."""
        return self.rules.token is not None

    def reader(self, request: Request) -> Reader:
        """The request's reader. Raises Refusal: 401 or 429."""
        bearer = None if self.rules.token is None else _bearer(request)
        if bearer is not None:  # without --token-file it is a proxy's own and ignored
            self.check_token(bearer, request)
            return Reader(may_upload=True)
        if self.rules.trusted_header is not None:
            self._check_proxy(request)
            return Reader()
        if self.rules.token is None:
            return Reader()
        if not self._has_session(request.cookies.get(COOKIE, "")):
            raise Refusal(
                401,
                "a token is required: log in at /login, or send 'Authorization: Bearer TOKEN'",
                {"WWW-Authenticate": 'Bearer realm="prony"'},
                log_in=True,
            )
        return Reader(by_cookie=True)

    def check_token(self, given: str, request: Request) -> None:
        """Raises Refusal for a wrong token, and for any token after too many failures."""
        address = address_of(request)
        wait_s = self._limit.wait_s(address)
        if wait_s > 0:
            seconds = int(wait_s) + 1
            raise Refusal(429, f"too many wrong tokens; retry in {seconds} s", {"Retry-After": str(seconds)})
        if self.rules.token is None:
            raise Refusal(401, "this server accepts no token; start it with --token-file")
        if not hmac.compare_digest(_digest(given), _digest(self.rules.token)):
            self._limit.failed(address)
            raise Refusal(
                401,
                "wrong token; send the token from the --token-file of prony serve",
                {"WWW-Authenticate": 'Bearer realm="prony", error="invalid_token"'},
            )

    def scheme(self, request: Request) -> str:
        """http or https, as seen by the browser: a trusted proxy may set X-Forwarded-Proto."""
        forwarded = request.headers.get("x-forwarded-proto", "")
        return "https" if forwarded == "https" and self._by_trusted_proxy(request) else request.url.scheme

    def _by_trusted_proxy(self, request: Request) -> bool:
        peer = _parsed(address_of(request))
        return peer is not None and any(peer in network for network in self.rules.trusted_proxies)

    def _check_proxy(self, request: Request) -> None:
        name = self.rules.trusted_header or ""
        if not self._by_trusted_proxy(request):
            raise Refusal(401, "this address is not a trusted proxy; use the proxy (--trusted-proxy)")
        if not request.headers.get(name, "").strip():
            raise Refusal(401, f"the proxy set no header {name}; log in at the proxy")

    # -- sessions

    def begin_session(self) -> str:
        """A new cookie."""
        cookie = secrets.token_urlsafe(32)
        with self._lock:
            self._sessions[_digest(cookie).hex()] = self._clock() + SESSION_S
            while len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)
        return cookie

    def end_session(self, cookie: str) -> None:
        """Invalidates the cookie."""
        with self._lock:
            self._sessions.pop(_digest(cookie).hex(), None)

    def _has_session(self, cookie: str) -> bool:
        if not cookie:
            return False
        with self._lock:
            key = _digest(cookie).hex()
            ends = self._sessions.get(key)
            if ends is not None and ends <= self._clock():
                del self._sessions[key]
                return False
            return ends is not None


def read_token(path: Path) -> str:
    """The token in a file: its only line. Raises UsageError."""
    try:
        with path.open("rb") as file:
            text = file.read(MOST_TOKEN + 1).decode("ascii").strip()
    except OSError as fault:
        raise UsageError(f"--token-file {path} cannot be read: {fault.strerror}") from fault
    except UnicodeDecodeError as fault:
        raise UsageError(f"--token-file {path} is not ASCII text; expected a token on one line") from fault
    if not SHORTEST_TOKEN <= len(text) <= MOST_TOKEN or not text.isprintable() or " " in text:
        raise UsageError(
            f"--token-file {path} holds no token; expected {SHORTEST_TOKEN} or more printable characters on "
            "one line, without spaces; make one: "
            f"python3 -c 'import secrets; print(secrets.token_urlsafe(32))' > {path}"
        )
    return text


def address_of(request: Request) -> str:
    """Address of the peer; headers are ignored."""
    return request.client.host if request.client is not None else ""


def _parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return mapped or parsed


def _bearer(request: Request) -> str | None:
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else None


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
