"""The HTTP listener of --metrics: GET /metrics, on its own thread."""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prony.errors import EnvironmentFault, UsageError
from prony_serve.metrics.exposition import Family, classic, negotiated, openmetrics

PATIENCE_S = 5.0
"""Timeout for a silent scraper."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 16


def address(text: str) -> tuple[str, int]:
    """Host and port of `--metrics`, such as 127.0.0.1:9400 or [::1]:9400. Raises UsageError."""
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]]+)):(\d{1,5})", text.strip())
    port = int(match[3]) if match else 0
    if match is None or not 0 <= port <= 65535:
        raise UsageError(f"--metrics is '{text}'; expected HOST:PORT, such as 127.0.0.1:9400")
    host = match[1] or match[2]
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise UsageError(
            f"--metrics is '{text}'; expected a loopback address, such as 127.0.0.1:{port}: there is no "
            "password (from another host use a proxy or ssh -L)"
        )
    return host, port


@contextmanager
def served(host: str, port: int, families: Callable[[], tuple[Family, ...]]) -> Iterator[tuple[str, int]]:
    """Serves `families`; the bound address (port 0: any free). Raises EnvironmentFault if unavailable."""

    class Handler(BaseHTTPRequestHandler):
        timeout = PATIENCE_S
        server_version = "prony"
        sys_version = ""

        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                self._answer(404, "text/plain; charset=utf-8", b"the metrics are at /metrics\n")
                return
            kind, wanted = negotiated(self.headers.get("Accept", ""))
            text = "".join((openmetrics if wanted else classic)(families()))
            self._answer(200, kind, text.encode())

        def _answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None: ...

    class Server(_Server):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Scrapers disconnect at any time: not an error."""

    try:
        server = Server((host, port), Handler)
    except OSError as fault:
        raise EnvironmentFault(f"--metrics {host}:{port}: {fault.strerror}; choose another port") from fault
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.5}, daemon=True)
    thread.start()
    try:
        yield server.server_address[0], int(server.server_address[1])  # type: ignore[misc]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE_S)
