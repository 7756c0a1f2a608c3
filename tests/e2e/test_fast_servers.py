"""`prony load` against servers that Prony does not know: their processes are read, their bottleneck is named.

What the host is busy with decides no assertion: limits are lenient, and shares of CPU are not asserted.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import LENIENT, Lab
from tests.e2e.test_load_models import findings

pytestmark = pytest.mark.rarely

RESPONSE = r"b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain\r\n\r\nok'"
ASYNCIO = f"""
import asyncio

class Server(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.left = transport, b""

    def data_received(self, data):
        *whole, self.left = (self.left + data).split(b"\\r\\n\\r\\n")
        self.transport.write({RESPONSE} * len(whole))

async def main():
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""
EPOLL = f"""
import os, select, socket, sys

listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
print(listener.getsockname()[1], flush=True)
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        break
listener.setblocking(False)
poll, there = select.epoll(), {{}}
poll.register(listener, select.EPOLLIN | select.EPOLLEXCLUSIVE)
while True:
    for number, _ in poll.poll():
        if number == listener.fileno():
            try:
                one, _ = listener.accept()
            except BlockingIOError:
                continue
            there[one.fileno()] = one
            poll.register(one, select.EPOLLIN)
            continue
        data = there[number].recv(65536)
        if data:
            there[number].sendall({RESPONSE} * data.count(b"\\r\\n\\r\\n"))
        else:
            there.pop(number).close()
"""


@contextmanager
def served(folder: Path, source: str, *arguments: str) -> Iterator[tuple[str, int]]:
    """Its URL and its process."""
    file = folder / "server.py"
    file.write_text(source)
    command = [sys.executable, str(file), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/", process.pid
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # its workers as well


@pytest.fixture
def busy_limits(lab: Lab) -> tuple[str, str]:
    """A thread counts as busy however little of a CPU this host has left for it."""
    file = lab.folder / "busy.yaml"
    file.write_text(LENIENT.replace("bound_cpu_min: 0.001", "bound_cpu_min: 1") + "bound_thread_min: 0.001\n")
    return "--limits", str(file)


def measured(lab: Lab, url: str, users: int, limits: tuple[str, str], *more: str) -> dict[str, Any]:
    words = ("-c", str(users), "--warmup", "1s", "-d", "2s", *limits, *more)
    found = findings(lab.trial("load", url, *words))
    assert {name: one["reason"] for name, one in found.items() if not one["conforms"]} == {}
    return found


@pytest.mark.parametrize("source", [ASYNCIO, EPOLL], ids=["asyncio", "epoll"])
@pytest.mark.parametrize("users", [1, 16])
def test_a_single_threaded_server_is_bound_by_its_thread(
    lab: Lab, source: str, users: int, busy_limits: tuple[str, str]
) -> None:
    """It can use one CPU of several: it was said to describe the load generator, or nothing could be said."""
    with served(lab.folder, source, "0") as (url, pid):
        found = measured(lab, url, users, busy_limits)
    bound = found["bound_by"]
    assert bound["conforms"], bound
    assert str(bound["reason"]).startswith("server-thread: its thread ")
    assert f"(TID {pid})" in str(bound["reason"])
    assert f"granted to PID {pid} (" in str(bound["reason"])
    assert "could not be read" not in str(found["isolation"]["reason"])


def test_all_processes_that_share_a_socket_are_the_server(lab: Lab, busy_limits: tuple[str, str]) -> None:
    with served(lab.folder, EPOLL, "2") as (url, pid):
        found = measured(lab, url, 4, busy_limits, "--connection-per-request")
    assert f"PID {pid} (" in str(found["bound_by"]["reason"])
    assert "and 2 more processes" in str(found["bound_by"]["reason"])


def test_a_server_behind_a_forwarding_program_is_not_taken_for_it(
    lab: Lab, busy_limits: tuple[str, str]
) -> None:
    """The program that listens uses CPU and is not the server: what was read is said, nothing claimed."""
    docker_proxy = lab.folder / "docker-proxy"
    docker_proxy.symlink_to(sys.executable)
    file = lab.folder / "proxy.py"
    file.write_text(EPOLL)
    command = [str(docker_proxy), str(file), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = f"http://127.0.0.1:{int(process.stdout.readline())}/"
            found = measured(lab, url, 4, busy_limits)
        finally:
            process.kill()
    assert found["bound_by"]["code"] == "unknown"
    assert "(docker-proxy), which listens, forwards to another process" in str(found["bound_by"]["reason"])
