"""An HTTP server that does what its arguments say: `toy.py HOST PORT [--status N] [--silent] …`."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

parser = argparse.ArgumentParser()
parser.add_argument("host")
parser.add_argument("port", type=int)
parser.add_argument("--status", type=int, default=200)
parser.add_argument("--exit", type=int, help="print a reason and end at once")
parser.add_argument("--silent", action="store_true", help="never listen")
parser.add_argument("--workers", type=int, default=0, help="processes that share the listening socket")
parser.add_argument("--detached", action="store_true", help="start a process in a session of its own")
parser.add_argument("--stubborn", action="store_true", help="take no notice of SIGTERM")
parser.add_argument("--report", help="a line to print when listening")
parser.add_argument("--threads", type=int, default=0)
args = parser.parse_args()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = str(os.getpid()).encode()
        self.send_response(args.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


if args.exit is not None:
    print("the toy is broken", file=sys.stderr)
    sys.exit(args.exit)
if args.stubborn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if args.silent:
    time.sleep(600)
for _ in range(args.threads):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
if args.detached and os.fork() == 0:
    os.setsid()
    time.sleep(600)
server = HTTPServer((args.host, args.port), Handler)
server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if args.report:
    print(args.report, flush=True)
for _ in range(args.workers):
    if os.fork() == 0:
        break
server.serve_forever()
