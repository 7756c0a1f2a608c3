"""Requests to the site as its server would hand them over: no socket, no browser."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import anyio
from starlette.types import ASGIApp, Message

from tests.report.page import Page

HOST = "127.0.0.1:8321"


@dataclass(frozen=True, slots=True)
class Reply:
    """A response as a whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def page(self) -> Page:
        """Its elements; every one is closed in order."""
        assert self.headers["content-type"].startswith("text/html"), self.headers
        page = Page(self.text)
        assert page.faults == []
        return page

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class Client:
    """A browser at an address, which keeps one cookie."""

    app: ASGIApp
    address: str = "127.0.0.1"
    host: str = HOST
    cookie: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **headers: str) -> Reply:
        return self.ask("GET", path, headers=headers)

    def post(self, path: str, body: bytes | Iterable[bytes] = b"", **headers: str) -> Reply:
        return self.ask("POST", path, body, headers=headers)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | Iterable[bytes] = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        given = {name.replace("_", "-").lower(): value for name, value in (headers or {}).items()}
        sent = {"host": self.host, "accept": "text/html", **self.headers, **given}
        if self.cookie:
            sent["cookie"] = self.cookie
        reply = anyio.run(self._asked, method, path, [body] if isinstance(body, bytes) else list(body), sent)
        if "set-cookie" in reply.headers:
            self.cookie = reply.headers["set-cookie"].partition(";")[0]
        return reply

    async def _asked(self, method: str, path: str, body: list[bytes], headers: Mapping[str, str]) -> Reply:
        at = urlsplit(path)
        pieces = iter([*body, None])
        said: list[Message] = []

        async def receive() -> Message:
            piece = next(pieces, None)
            if piece is None:
                return {"type": "http.request", "body": b"", "more_body": False}
            return {"type": "http.request", "body": piece, "more_body": True}

        async def send(message: Message) -> None:
            said.append(message)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": at.path,
            "raw_path": at.path.encode(),
            "query_string": at.query.encode(),
            "root_path": "",
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
            "client": (self.address, 50000),
            "server": ("127.0.0.1", 8321),
        }
        with anyio.fail_after(60):
            await self.app(scope, receive, send)
        start = next(one for one in said if one["type"] == "http.response.start")
        whole = b"".join(one.get("body", b"") for one in said if one["type"] == "http.response.body")
        named = {name.decode("latin-1"): value.decode("latin-1") for name, value in start["headers"]}
        return Reply(start["status"], named, whole)
