"""Entry 19: somebody else answers on the port: before the server is started, while it starts, and beside it
while the load runs. Must not know how a port's owner is found.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from prony.errors import EnvironmentFault
from prony.plan.load import Connections
from prony.selftest.lies import shared_port
from prony.selftest.lies.model import Entry, Scene, Setup
from prony.selftest.lies.prove import Told, prove, with_
from prony.selftest.lies.stage import spec_of
from prony.server.build import Built
from prony.server.launch import launch
from prony.server.probe import status_probe
from prony.server.sockets import listeners

HOST = "127.0.0.1"
SHARED = (sys.executable, "-I", "-S", str(Path(shared_port.__file__).resolve()))
NEVER_LISTENS = (sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)")
PATIENCE_S = 20.0


@contextmanager
def stranger(port: int) -> Iterator[None]:
    """A process that nobody asked for answers on this port."""
    process = subprocess.Popen([*SHARED, HOST, str(port)])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _joins(scene: Scene) -> Iterator[None]:
    assert scene.port is not None
    with stranger(scene.port):
        yield


SHARES_ITS_PORT = Setup(
    command=(*SHARED, "{host}", "{port}", "works"), connections=Connections(keep_alive=False)
)
"""It works for each answer: a connection per request as fast as it goes would come near the end of the ports,
another lie.
"""
BESIDE = Entry(
    19,
    "another process answers",
    "a process that was not started for it answers in the server's place",
    Setup(
        command=SHARES_ITS_PORT.command,
        connections=SHARES_ITS_PORT.connections,
        trouble=contextmanager(_joins),
        in_window=True,
    ),
    ("identity",),
    SHARES_ITS_PORT,
    plain=False,
)
"""A listening socket for each process, between which the kernel deals new connections out."""


def another_process(_tools: bool) -> Told:
    """19: somebody else answers on the port."""
    before, at_start = _before(), _at_start()
    told = prove(BESIDE)
    faults = list(told.faults)
    if before is None:
        faults.append("a port on which yesterday's server answers was not refused")
    if at_start is None:
        faults.append("a stranger's answers were taken for those of a server that never listened")
    said = f"before: {before}; at the start: {at_start}; under load: {told.said}"
    return with_(told, said=said, faults=tuple(faults))


def _before() -> str | None:
    """A server is left over from yesterday, and the same port is asked for."""
    with launch(Built(spec_of(Setup()))) as old:
        old.wait_ready(status_probe(old.host, old.port), PATIENCE_S)
        said = refusal(lambda: launch(Built(spec_of(Setup())), port=old.port).stop())
    return said if said is not None and str(old.port) in said else None


def _at_start() -> str | None:
    """The started process never listens, and somebody else does."""
    silent = Setup(command=NEVER_LISTENS)
    with launch(Built(spec_of(silent))) as server, stranger(server.port):
        end_s = time.monotonic() + PATIENCE_S
        while not listeners(server.port, HOST) and time.monotonic() < end_s:
            time.sleep(0.02)
        so_far_s = time.monotonic() - server.started_monotonic_s
        probe = status_probe(server.host, server.port)
        said = refusal(lambda: server.wait_ready(probe, so_far_s + 0.5))
    return said.partition(" (log")[0] if said is not None and "taken by" in said else None


def refusal(start: Callable[[], object]) -> str | None:
    """What was refused, in Prony's words; None when it was not."""
    try:
        start()
    except EnvironmentFault as fault:
        return str(fault)
    return None
