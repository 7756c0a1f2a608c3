"""A small web site for tests: pages that are always the same, and a record of what was asked for."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, slots=True)
class Response:
    """What stands at a path."""

    body: str = "x"
    kind: str = "text/html"
    status: int = 200
    location: str = ""
    """Of a redirect."""
    delay_s: float = 0.0
    """It is on its way for so long."""
    more: tuple[tuple[str, str], ...] = ()
    """Further headers, each on a line of its own."""


@dataclass(slots=True)
class Site:
    """A running site."""

    port: int
    paths: list[str] = field(default_factory=list)
    """In the order in which they were asked for."""
    heads: list[tuple[str, ...]] = field(default_factory=list)
    """Line and headers of each request."""
    connections: set[int] = field(default_factory=set)
    under_way: int = 0
    most_at_once: int = 0
    """Requests under way at the same time."""


@contextmanager
def site(responses: Mapping[str, Response]) -> Iterator[Site]:
    """On a port of its own; other paths are 404."""

    counting = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            found.paths.append(self.path)
            lines = (f"{name}: {value}" for name, value in self.headers.items())
            found.heads.append((self.requestline, *lines))
            found.connections.add(self.client_address[1])
            response = responses.get(self.path.partition("?")[0], Response("gone", status=404))
            with counting:
                found.under_way += 1
                found.most_at_once = max(found.most_at_once, found.under_way)
            time.sleep(response.delay_s)
            with counting:
                found.under_way -= 1
            body = response.body.encode()
            self.send_response(response.status)
            self.send_header("Content-Type", response.kind)
            if response.location:
                self.send_header("Location", response.location)
            for line in response.more:
                self.send_header(*line)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with serving(Handler) as port:
        found = Site(port)
        yield found


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """The port of a server with a thread per connection, until the end of the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
