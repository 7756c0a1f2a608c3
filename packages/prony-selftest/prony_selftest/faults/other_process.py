"""Entry 19: another process answers on the port: before and during the server's start, and under load."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from prony.plan.load import Connections
from prony.server.build import Built
from prony.server.launch import launch
from prony.server.probe import status_probe
from prony.server.sockets import listeners
from prony_selftest.faults import forwarder, shared_port
from prony_selftest.faults.disturbances import killed_after
from prony_selftest.faults.model import Entry, RunningSetup, Setup, coded
from prony_selftest.faults.single_trial import EntryResult, refusal, run_entry, with_
from prony_selftest.faults.trial import spec_of

HOST = "127.0.0.1"
SHARED = (sys.executable, "-I", "-S", str(Path(shared_port.__file__).resolve()))
NEVER_LISTENS = (sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)")
PATIENCE_S = 20.0


def other_process(port: int | None) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """A process answering on this port that Prony did not launch."""
    return killed_after([*SHARED, HOST, str(port)])


def _joins(running: RunningSetup) -> Iterator[None]:
    with other_process(running.port):
        yield


SHARES_ITS_PORT = Setup(
    command=(*SHARED, "{host}", "{port}", "works"), connections=Connections(keep_alive=False)
)
"""With work per response: connections per request at full speed would run out of ports."""
JOINED_PORT = Entry(
    19,
    "another process answers",
    "a process that Prony did not launch answers in the server's place",
    replace(SHARES_ITS_PORT, disturbance=contextmanager(_joins), in_window=True),
    ("identity",),
    SHARES_ITS_PORT,
    other_tools=False,
)
"""Each process has a listening socket; the kernel distributes connections."""
VISIT_S = 1.5
"""Longer than a second, the interval of the port checks."""


def _visits(running: RunningSetup) -> Iterator[None]:
    """Joins the port when the window opens, and leaves before it closes."""
    with other_process(running.port) as process:
        leaves = threading.Timer(VISIT_S, process.kill)
        leaves.start()
        try:
            yield
        finally:
            leaves.cancel()


FORWARDS = (sys.executable, "-I", "-S", str(Path(forwarder.__file__).resolve()))
BETWEEN = Entry(
    43,
    "a proxy in between",
    "the started process forwards every request to another process",
    Setup(command=(*FORWARDS, "{host}", "{port}")),
    ("identity",),
    Setup(command=(*SHARED, "{host}", "{port}", "works")),
    other_tools=False,
)


def _accepts(running: RunningSetup) -> Iterator[None]:
    with killed_after([*SHARED, HOST, str(running.port), "works", f"of={running.server_pid}"]):
        yield


IN_FRONT = Entry(
    49,
    "a cache in front of the server",
    "a process without a header Via accepts on the server's listening socket, so the server reads no request",
    Setup(
        command=(*SHARED, "{host}", "{port}", "idle"), disturbance=contextmanager(_accepts), needs=("root",)
    ),
    ("identity",),
    Setup(command=(*SHARED, "{host}", "{port}", "works")),
    partial(coded, "identity", "other_listener"),
    other_tools=False,
)

VISITED = Entry(
    42,
    "another process answers for a while",
    "a process joins the server's port within the window and has left when the load ends",
    replace(SHARES_ITS_PORT, disturbance=contextmanager(_visits), in_window=True),
    ("identity",),
    SHARES_ITS_PORT,
    other_tools=False,
)


def another_process(_tools: bool) -> EntryResult:
    """19: another process answers on the port."""
    before, at_start = _before(), _at_start()
    result = run_entry(JOINED_PORT)
    failures = list(result.failures)
    if before is None:
        failures.append("a port with an earlier server's listener was not refused")
    if at_start is None:
        failures.append("another process's responses were attributed to a server that never listened")
    reported = f"before: {before}; at the start: {at_start}; under load: {result.reported}"
    return with_(result, reported=reported, failures=tuple(failures))


def _before() -> str | None:
    """An earlier server still listens on the requested port."""
    with launch(Built(spec_of(Setup()))) as old:
        old.wait_ready(status_probe(old.host, old.port), PATIENCE_S)
        message = refusal(lambda: launch(Built(spec_of(Setup())), port=old.port).stop())
    return message if message is not None and str(old.port) in message else None


def _at_start() -> str | None:
    """The launched process never listens, another does."""
    silent = Setup(command=NEVER_LISTENS)
    with launch(Built(spec_of(silent))) as server, other_process(server.port):
        end_s = time.monotonic() + PATIENCE_S
        while not listeners(server.port, HOST) and time.monotonic() < end_s:
            time.sleep(0.02)
        so_far_s = time.monotonic() - server.started_monotonic_s
        probe = status_probe(server.host, server.port)
        message = refusal(lambda: server.wait_ready(probe, so_far_s + 0.5))
    return message.partition(" (log")[0] if message is not None and "taken by" in message else None
