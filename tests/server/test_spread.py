"""How connections are spread over processes: real processes with real sockets."""

from __future__ import annotations

import multiprocessing
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection

import pytest

from prony.server import spread

HOST = "127.0.0.1"
PATIENCE_S = 20.0


def _serve(listener: socket.socket | None, port: int, accepts: int, told: Connection) -> None:
    """Accepts so many connections on a shared socket, or on one of its own, and holds them."""
    own = listener
    if own is None:
        own = socket.socket()
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        own.bind((HOST, port))
        own.listen()
    held = [own.accept()[0] for _ in range(accepts)]
    told.send(len(held))
    told.recv()


@contextmanager
def _process(listener: socket.socket | None, port: int, accepts: int) -> Iterator[tuple[int, Connection]]:
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("fork")
    process = context.Process(target=_serve, args=(listener, port, accepts, theirs))
    process.start()
    assert process.pid is not None
    try:
        yield process.pid, ours
    finally:
        process.kill()
        process.join()


def _told(ours: Connection) -> None:
    assert ours.poll(PATIENCE_S)
    ours.recv()


def test_a_primary_that_accepts_nothing_does_not_count() -> None:
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((HOST, 0)))
        port = listener.getsockname()[1]
        workers = [stack.enter_context(_process(listener, port, 2)) for _ in range(2)]
        for _ in range(4):
            stack.enter_context(socket.create_connection((HOST, port)))
        for _, ours in workers:
            _told(ours)
        # This process is the primary: it holds the listening socket, and the clients' ends.
        pids = [pid for pid, _ in workers]
        primary = stack.enter_context(_process(listener, port, 0))
        _told(primary[1])
        assert spread.connections_by_process([primary[0], *pids], HOST, port) == (2, 2)


def test_a_process_with_a_listening_socket_of_its_own_counts_without_connections() -> None:
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((HOST, 0))
        listener.listen()
        port = listener.getsockname()[1]
        busy = stack.enter_context(_process(listener, port, 3))
        for _ in range(3):
            stack.enter_context(socket.create_connection((HOST, port)))
        _told(busy[1])
        idle = stack.enter_context(_process(None, port, 0))
        _told(idle[1])
        assert spread.connections_by_process([busy[0], idle[0]], HOST, port) == (3, 0)


def test_too_many_descriptors_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "MOST_DESCRIPTORS", 1)
    assert spread.connections_by_process([os.getpid(), os.getppid()], HOST, 1) is None
