"""How connections are spread over processes: real processes with real sockets."""

from __future__ import annotations

import multiprocessing
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection

import pytest

from prony.plan.target import Url
from prony.server import listening as watched
from prony.server import sockets
from prony.server.listening import ListenerWatch, connections_by_process
from prony.targets import RunningExternal

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


def listening(port: int) -> set[int]:
    return {one.inode for one in sockets.listeners(port, HOST)}


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
        assert connections_by_process([primary[0], *pids], listening(port), (port,)) == (2, 2)


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
        assert connections_by_process([busy[0], idle[0]], listening(port), (port,)) == (3, 0)


def test_a_process_that_accepts_on_the_servers_own_listening_socket_is_another_listener() -> None:
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((HOST, 0)))
        port = listener.getsockname()[1]
        for _ in range(3):
            stack.enter_context(socket.create_connection((HOST, port)))
        other, ours = stack.enter_context(_process(listener, port, 2))
        _told(ours)
        watch = ListenerWatch(lambda: frozenset(listening(port)), lambda: [os.getpid()])
        watch.look()
        assert watch.owned is True  # the listening socket is the server's, too
        watch.look_at_connections(port)
        assert watch.owned is False
        assert (watch.other or "").startswith(f"PID {other} ")
        assert (watch.other or "").endswith("has 2 of 2 connections")  # the third waits in the queue


def test_the_listeners_of_a_url_are_watched_and_their_connections_counted() -> None:
    """Two workers of somebody else's, each with a socket of its own; a third joins, then one leaves."""
    with ExitStack() as stack:
        held = stack.enter_context(socket.socket())
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind((HOST, 0))  # keeps the port; it does not listen
        port = held.getsockname()[1]
        leaves = ExitStack()
        for _ in range(2):
            _told(leaves.enter_context(_process(None, port, 0))[1])
        seen = RunningExternal(Url(url=f"http://{HOST}:{port}"))
        for _ in range(6):
            stack.enter_context(socket.create_connection((HOST, port)))
        seen.look()
        assert (seen.identity.owns_port_at_end, seen.identity.listeners, seen.identity.listeners_gone) == (
            True,
            2,
            0,
        )
        # The workers accept nothing: their connections belong to no process yet.
        assert seen.connections_by_process() == (0, 0)
        joined, ours = stack.enter_context(_process(None, port, 0))
        _told(ours)
        seen.look()
        assert seen.identity.owns_port_at_end is False
        assert (seen.identity.other_listener or "").startswith(f"PID {joined}")
        leaves.close()
        for gone in (0, 2):  # at two looks: at one, a reading may have been taken between a close and an open
            seen.look()
            assert (seen.identity.listeners, seen.identity.listeners_gone) == (3, gone)


def test_of_several_addresses_only_the_one_that_leaves_is_gone() -> None:
    with ExitStack() as stack:
        held = [stack.enter_context(socket.create_server((HOST, 0))) for _ in range(3)]
        first, *others = (f"{HOST}:{one.getsockname()[1]}" for one in held)
        seen = RunningExternal(Url(url=f"http://{first}", addresses=(first, *others)))
        seen.look()
        held[1].close()
        seen.look()
        seen.look()
        assert (seen.identity.listeners, seen.identity.listeners_gone) == (3, 1)


@pytest.mark.parametrize("fault", [PermissionError, OSError])
def test_a_table_that_cannot_be_read_is_no_listener_that_left(
    fault: type[OSError], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(rows: object) -> Iterator[sockets.Listener]:
        raise fault(f"{rows} cannot be read")

    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
        of_url = RunningExternal(Url(url=f"http://{HOST}:{port}"))
        launched = ListenerWatch(lambda: sockets.listening_inodes(port, HOST), lambda: (os.getpid(),))
        for watch in (of_url, launched):
            watch.look()
            with monkeypatch.context() as broken:
                broken.setattr(sockets, "_listening", unreadable)
                watch.look()
                watch.look()
            watch.look()
        assert (of_url.identity.listeners, of_url.identity.listeners_gone) == (1, 0)
        assert (launched.most, launched.gone, launched.owned) == (1, 0, True)


def test_connections_of_somebody_elses_workers_are_counted() -> None:
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((HOST, 0)))
        port = listener.getsockname()[1]
        workers = [stack.enter_context(_process(listener, port, accepts)) for accepts in (3, 1)]
        seen = RunningExternal(Url(url=f"http://{HOST}:{port}"))
        for _ in range(4):
            stack.enter_context(socket.create_connection((HOST, port)))
        for _, ours in workers:
            _told(ours)
        # This process holds the socket, too, and runs the tests: it is never taken for the server.
        assert seen.connections_by_process() is None
        assert connections_by_process([pid for pid, _ in workers], listening(port), (port,)) == (
            3,
            1,
        )


def test_too_many_processes_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "MOST_PROCESSES", 1)
    assert connections_by_process([os.getpid(), os.getppid()], set(), (1,)) is None


def test_too_many_descriptors_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "MOST_DESCRIPTORS", 1)
    assert connections_by_process([os.getpid(), os.getppid()], set(), (1,)) is None
