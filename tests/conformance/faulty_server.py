"""An HTTP server, correct but for the faults it is given: `faulty_server.py HOST PORT [--wrong-body] …`."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

parser = argparse.ArgumentParser()
parser.add_argument("host")
parser.add_argument("port", type=int)
for fault in (
    "wrong-body",
    "wrong-type",
    "any-path",
    "no-head",
    "head-with-body",
    "head-without-type",
    "close-each",
    "ignore-close",
    "chunks-for-all",
    "accept-all-headers",
    "die-of-headers",
    "silent-about-headers",
    "drop-second",
    "read-only",
    "any-accept",
):
    parser.add_argument(f"--{fault}", action="store_true")
parser.add_argument("--at-once", type=int, default=1000, help="more requests at once get a 503")
parser.add_argument("--close-after", type=int, help="of so many requests on a connection the last one")
parser.add_argument("--delay-ms", type=float, default=0.0)
args = parser.parse_args()

if args.accept_all_headers:
    http.client._MAXLINE = 1 << 30  # type: ignore[attr-defined]
people: dict[str, bytes] = {}
under_way = threading.Semaphore(args.at_once)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    answered = 0

    def do_GET(self) -> None:
        if not under_way.acquire(blocking=False):
            self.answer(503, b"busy")
            return
        try:
            if args.delay_ms or args.at_once < 1000:
                time.sleep(max(args.delay_ms / 1000, 0.02 if args.at_once < 1000 else 0))
            self.get()
        finally:
            under_way.release()

    def get(self) -> None:
        if self.path == "/" or args.any_path:
            if self.headers.get("Accept") == "image/x-none" and not args.any_accept:
                self.answer(406, b"")
            else:
                self.answer(200, b"Hello, World?" if args.wrong_body else b"Hello, World!")
        elif self.path in people:
            self.answer(200, people[self.path], "application/json")
        else:
            self.answer(404, b"nothing here")

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if args.read_only:
            self.answer(405, b"")
        elif self.path in people:
            self.answer(406, json.dumps({"error": "exists"}).encode(), "application/json")
        else:
            people[self.path] = body
            self.answer(201, body, "application/json")

    def do_DELETE(self) -> None:
        self.answer(200 if people.pop(self.path, None) is not None else 404, b"")

    def answer(self, status: int, body: bytes, kind: str = "text/plain") -> None:
        self.answered += 1
        head = self.command == "HEAD"
        if head and args.no_head:
            status, body = 405, b""
        self.send_response(status)
        if not (head and args.head_without_type):
            self.send_header("Content-Type", "text/html" if args.wrong_type else kind)
        chunked = args.chunks_for_all and not head
        self.send_header(
            *(("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(len(body))))
        )
        if args.close_each or self.answered == args.close_after or (args.drop_second and self.answered == 2):
            self.send_header("Connection", "close")
        elif args.ignore_close:
            self.close_connection = False
        if status == 201:
            self.send_header("Location", self.path[1:])
        self.end_headers()
        if chunked:
            body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n"
        if not head or args.head_with_body:
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        if args.die_of_headers:
            os._exit(3)
        if args.silent_about_headers:
            self.close_connection = True
            return
        super().send_error(code, message, explain)

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True


Server((args.host, args.port), Handler).serve_forever()
