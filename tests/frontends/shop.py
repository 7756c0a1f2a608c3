"""The server that the tutorials ask: pages, a form with a token, a session, items as JSON. It remembers what
it was asked, and answers 4xx to whatever a user did not do as the tutorial says.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

from tests.frontends.site import serving

PAGES = {"/": "Home", "/changes": "Changes", "/about": "About", "/slow": "Slow"}


@dataclass
class Visits:
    """Where the server listens, and what came."""

    port: int
    asked: Counter[str] = field(default_factory=Counter)
    """Method and path, numbers of items as `#` -> how often."""
    refused: list[str] = field(default_factory=list)
    """What was answered with 4xx."""


class Shop(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    visits: Visits
    items: dict[str, object]
    lock: threading.Lock

    def handle(self) -> None:
        with suppress(ConnectionError):  # the user may leave
            super().handle()

    def answer(self) -> None:
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        path, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
        parts = path.split("/")[1:]
        number = len(parts) == 3 and parts[2].isdigit()
        with self.lock:
            self.visits.asked[f"{self.command} {'/'.join(['', *parts[:2], '#']) if number else path}"] += 1
            status, kind, body, more = self.looked_up(path, parts, query, text)
            if status >= 400:
                self.visits.refused.append(
                    f"{self.command} {self.path} {dict(self.headers)} {text[:200]}: {status}"
                )
        content = body.encode()
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **more}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def looked_up(
        self, path: str, parts: list[str], query: dict[str, list[str]], text: str
    ) -> tuple[int, str, str, dict[str, str]]:
        """Status, type, body, and more headers."""
        page, api = "text/html", "application/json"
        known = "session=s" in self.headers.get("Cookie", "")
        bearer = self.headers.get("Authorization", "") == "Bearer t-1"
        match self.command, parts:
            case "GET", _ if path in PAGES:
                return 200, page, f"<title>{PAGES[path]}</title><a href='/about'>about</a>", {}
            case "GET", ["form"]:
                return 200, page, '<form><input type="hidden" name="csrf" value="c-77"></form>', {}
            case "POST", ["form"]:
                return 200 if parse_qs(text).get("csrf") == ["c-77"] else 403, page, "taken", {}
            case "POST", ["login"]:
                given = parse_qs(text)
                if given.get("user", [""])[0] and given.get("password") == ["secret"]:
                    return 200, page, "welcome", {"Set-Cookie": "session=s1; Path=/"}
                return 401, page, "who are you", {}
            case "GET", ["account"]:
                return 200 if known else 401, page, "your account" if known else "log in", {}
            case "POST", ["token"]:
                return 200, api, json.dumps({"token": "t-1", "roles": ["a", "b"]}), {"X-Token": "t-1"}
            case "GET", ["private"]:
                return 200 if bearer else 401, api, json.dumps({"secret": bearer}), {}
            case "GET", ["search"]:
                return 200 if query.get("q") else 400, page, "found", {}
            case "GET", ["api", "items"]:
                return (
                    200,
                    api,
                    json.dumps({"items": [{"id": 1, "kind": "red"}, {"id": 2, "kind": "blue"}]}),
                    {},
                )
            case "POST", ["api", "items"] if self.headers.get("Content-Type", "").startswith(api):
                number = str(len(self.items) + 1)
                self.items[number] = json.loads(text)
                return 201, api, json.dumps({"id": int(number)}), {}
            case "GET", ["api", "items", number] if number in self.items:
                return 200, api, json.dumps({"id": int(number), "item": self.items[number]}), {}
            case "DELETE", ["api", "items", number] if number in self.items:
                return 200, api, "{}", {}
        return 404, page, "not here", {}

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def shop() -> Iterator[Visits]:
    """A shop of its own, until the test ends."""
    verbs = dict.fromkeys((f"do_{verb}" for verb in ("GET", "PUT", "POST", "DELETE", "HEAD")), Shop.answer)
    handler = type("Here", (Shop,), {"items": {}, "lock": threading.Lock(), **verbs})
    with serving(handler) as port:
        handler.visits = Visits(port)  # type: ignore[attr-defined]
        yield handler.visits  # type: ignore[attr-defined]
