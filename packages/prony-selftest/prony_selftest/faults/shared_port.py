"""A small web server that listens with SO_REUSEPORT, as servers with a socket per worker do, so that another
process can join its port. Run by its path with host, port and options: `patient` (never closes first),
`works` (1 ms of CPU per response), `halves` (half of the page in 2 % of the responses), `narrow` (a backlog
of 1), `apart` (head and body in two writes, with Nagle's algorithm), `leaks` (keeps 32 KiB per response),
`pair` (two processes), `late` (the second process listens 2 s after the first), `small` (50 µs of CPU per
response), `defers` (does that work when no request has come for 50 ms), `logs` (400 bytes per response to
stdout), `idle` (listens, and accepts nothing), `of=PID` (accepts on the listening socket of that process),
`forges` (another page of the same length in every fourth response), `dates` (a page with the time), `roams`
(sets its affinity to every CPU when a connection opens), `pins` (to those it has), `pages` (reads pages of a
mapped file of 64 MiB), `helper` (a process outside its tree and session burns CPU), `caches` (works for the
first request of each path only).
"""

from __future__ import annotations

import asyncio
import ctypes
import mmap
import os
import random
import socket
import sys
import time
from pathlib import Path
from typing import cast

BODY = b"x" * 64
HALF = BODY[:32] if "halves" in sys.argv else BODY
EVERY = 50
LEAK_BYTES = 32768 if "leaks" in sys.argv else 0
KEPT: list[bytearray] = []
APART = "apart" in sys.argv
BACKLOG = 1 if "narrow" in sys.argv else 1024
PATIENT = "patient" in sys.argv
WORK_S = 0.001 if "works" in sys.argv else 50e-6 if "small" in sys.argv else 0.0
DEFERS, LOGS = "defers" in sys.argv, "logs" in sys.argv
LINE = "x" * 399 + "\n"
PIDFD_GETFD = 438
"""Its number is the same on all architectures."""
PUT_OFF = [0, 0.0]
"""Responses whose work is due, and the time of the last one."""
QUIET_S = 0.05
FORGED, FORGED_EVERY = b"y" * 64, 4
FILE_BYTES, TOUCHED = 64 * 2**20, 10
PAGES: list[mmap.mmap] = []
END = b"\r\n\r\n"
CACHED: set[bytes] = set()
"""Paths that need no work any more."""


class SameResponse(asyncio.Protocol):
    """The same response to every request; requests have no body."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._read = b""
        self._count = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Stores the transport for responses."""
        self._transport = cast(asyncio.Transport, transport)
        if APART:
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
        if "roams" in sys.argv:
            os.sched_setaffinity(0, range(os.cpu_count() or 1))
        if "pins" in sys.argv:
            os.sched_setaffinity(0, os.sched_getaffinity(0))

    def data_received(self, data: bytes) -> None:
        """A request ends with an empty line."""
        assert self._transport is not None
        self._read += data
        while END in self._read:
            request, _, self._read = self._read.partition(END)
            path = request.split(b" ", 2)[1]
            if path not in CACHED:
                _put_off() if DEFERS else _work()
            if "caches" in sys.argv:
                CACHED.add(path)
            if LOGS:
                sys.stdout.write(LINE)
                sys.stdout.flush()
            closes = not PATIENT and b"connection: close" in request.lower()
            self._count += 1
            KEPT.append(bytearray(LEAK_BYTES)) if LEAK_BYTES else None
            body = HALF if self._count % EVERY == 0 else BODY
            if "forges" in sys.argv and self._count % FORGED_EVERY == 0:
                body = FORGED
            if "dates" in sys.argv:
                body = f"{time.time_ns():064}".encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n".encode()
            head += (b"Connection: close\r\n" if closes else b"") + b"\r\n"
            for part in (head, body) if APART else (head + body,):
                self._transport.write(part)
            if closes:
                self._transport.close()


def _work() -> None:
    end_s = time.perf_counter() + WORK_S
    while WORK_S and time.perf_counter() < end_s:
        pass
    for mapped in PAGES:
        for _ in range(TOUCHED):
            mapped[random.randrange(FILE_BYTES)]


def _map_file() -> None:
    with open("pages", "w+b") as file:  # noqa: PTH123 - in its own directory, removed with it
        for _ in range(0, FILE_BYTES, 2**20):
            file.write(os.urandom(2**20))
            os.fsync(file.fileno())  # clean pages can be dropped
        PAGES.append(mmap.mmap(file.fileno(), FILE_BYTES))
    PAGES[0].madvise(mmap.MADV_RANDOM)


def _help_apart() -> None:
    served = os.getpid()
    if (child := os.fork()) == 0:
        os.setsid()
        if os.fork() == 0:
            while os.path.exists(f"/proc/{served}"):  # noqa: PTH110 - it is to burn CPU, but not in pathlib
                end_s = time.monotonic() + 0.02
                while time.monotonic() < end_s:
                    pass
                time.sleep(0.02)
        os._exit(0)
    os.waitpid(child, 0)


def _put_off() -> None:
    PUT_OFF[0] += 1
    PUT_OFF[1] = time.monotonic()


async def _catch_up() -> None:
    while True:
        while PUT_OFF[0] and time.monotonic() - PUT_OFF[1] > QUIET_S:
            PUT_OFF[0] -= 1
            _work()
            await asyncio.sleep(0)
        await asyncio.sleep(QUIET_S / 2)


def listening(of: int) -> socket.socket:
    """The listening socket of a process, once it has one."""
    process = os.pidfd_open(of)
    while True:
        for name in Path(f"/proc/{of}/fd").iterdir():
            if str(name.readlink()).startswith("socket:"):
                copy = ctypes.CDLL(None, use_errno=True).syscall(PIDFD_GETFD, process, int(name.name), 0)
                if copy < 0:
                    raise OSError(ctypes.get_errno(), "pidfd_getfd")
                listener = socket.socket(fileno=copy)
                if listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    return listener
        time.sleep(0.01)


async def serve(host: str, port: int) -> None:
    """Serves until killed."""
    loop = asyncio.get_running_loop()
    of = next((word.partition("=")[2] for word in sys.argv if word.startswith("of=")), None)
    if of is None:
        server = await loop.create_server(SameResponse, host, port, reuse_port=True, backlog=BACKLOG)
    else:
        server = await loop.create_server(SameResponse, sock=listening(int(of)), backlog=BACKLOG)
    putting_off = loop.create_task(_catch_up()) if DEFERS else None
    await server.serve_forever()
    del putting_off


if __name__ == "__main__":
    if "idle" in sys.argv:
        unserved = socket.create_server((sys.argv[1], int(sys.argv[2])), backlog=BACKLOG)
        time.sleep(600)
    if ("pair" in sys.argv or "late" in sys.argv) and os.fork() == 0:
        time.sleep(2.0 if "late" in sys.argv else 0.0)
    if "pages" in sys.argv:
        _map_file()
    if "helper" in sys.argv:
        _help_apart()
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
