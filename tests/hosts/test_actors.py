"""What is under way on a host when the laboratory goes is not left over: builds, checks, what starts then."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from prony.errors import EnvironmentFault
from prony.evidence.host import CpuPartition
from prony.load.contract import EngineLoad
from prony.plan.load import ClosedLoad
from prony.plan.target import Launch, Url
from prony.plan.workload import from_url
from prony.server import proc, tool
from prony_conformance import suite
from prony_hosts import actors, server_host
from prony_hosts.actor import Abandoned
from prony_hosts.actors import LoadHost
from prony_hosts.network_path import is_own
from prony_hosts.server_host import ServerHost
from tests.load.test_engine import Reference

NEVER_S = 3600.0
PATIENCE_S = 30.0
ASKED = Launch(address="reference")


@pytest.fixture
def reference() -> Iterator[Reference]:
    server = Reference()
    yield server
    if server.process.poll() is None:
        server.finish()


class UnderWay:
    """A call in a thread of its own, and what it raised."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self.raised: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._call()
        except BaseException as fault:
            self.raised = fault

    def ended(self) -> BaseException | None:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        return self.raised


class Slow:
    """Starts when it is released, and notes that it was stopped: an engine, a server."""

    def __init__(self) -> None:
        self.begun, self.released = threading.Event(), threading.Event()
        self.stopped = False

    def start(self, *_args: object) -> Slow:
        self.begun.set()
        assert self.released.wait(PATIENCE_S)
        return self

    def stop(self) -> bool:
        self.stopped = True
        return True

    close = stop

    def prepare(self, *_args: object) -> None:
        self.start()

    @contextmanager
    def reference(self, *_args: object) -> Iterator[str]:
        self.start()
        yield "http://127.0.0.1:1"
        self.stop()


def abandoned_while(host: Any, slow: Slow, call: Callable[[], object]) -> BaseException | None:
    """The laboratory goes while the call is under way, which then goes on; what the call raised."""
    under_way = UnderWay(call)
    assert slow.begun.wait(PATIENCE_S)
    host.abandon()
    slow.released.set()
    return under_way.ended()


def test_an_engine_that_starts_after_the_lease_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    host, slow = LoadHost(NEVER_S), Slow()
    monkeypatch.setattr(actors, "EngineRun", slow.start)
    load = EngineLoad(url="http://127.0.0.1:1", workload=from_url("/"), load=ClosedLoad(users=1), cpus=())
    assert isinstance(abandoned_while(host, slow, lambda: host.start_engine(load, {})), Abandoned)
    assert slow.stopped


def test_a_server_whose_build_outlasts_the_lease_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    host, slow = ServerHost("127.0.0.1", NEVER_S), Slow()
    slow.built = object()  # type: ignore[attr-defined]
    monkeypatch.setattr(host, "_server", lambda _asked: slow)
    partition = CpuPartition(server=(0,), client=(0,))
    assert isinstance(abandoned_while(host, slow, lambda: host.start(ASKED, partition)), Abandoned)
    assert slow.stopped


def test_a_reference_server_that_starts_after_the_lease_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    host, slow = ServerHost("127.0.0.1", NEVER_S), Slow()
    monkeypatch.setattr(server_host, "reference_server", slow.reference)
    assert isinstance(abandoned_while(host, slow, lambda: host.start_reference([], (), None)), Abandoned)
    assert slow.stopped


def test_a_sampler_that_is_stopped_may_still_ask_for_the_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread is waited for: under the lock of the actor both would wait for each other for good."""
    asked: list[set[int]] = []

    class Asking:
        """A sampler whose thread is just about to ask when it is stopped."""

        def __init__(self, _server: object, _client: object, own_pids: Callable[[], set[int]]) -> None:
            self._own_pids = own_pids

        def start(self) -> Asking:
            return self

        def stop(self) -> None:
            thread = threading.Thread(target=lambda: asked.append(self._own_pids()), daemon=True)
            thread.start()
            thread.join(PATIENCE_S)
            assert not thread.is_alive()

    monkeypatch.setattr(actors, "HostSampler", Asking)
    host = LoadHost(NEVER_S)
    host.sample((0,), None, 80)
    host.stop_sampling()
    assert asked == [set()]
    host.end()


def test_a_server_that_somebody_else_started_is_read_and_left_alone(reference: Reference) -> None:
    host = ServerHost("127.0.0.1", NEVER_S)
    try:
        found = host.observe(Url(url=reference.url))
        assert (found.url, found.identity.pid) == (reference.url, reference.process.pid)
        assert not found.identity.owned
        assert found.cpus
        assert host.cpus() == found.cpus
        reading = host.reading()
        assert reading.process is not None
        assert reading.threads
        assert host.pulse().exit_description is None
        assert not host.set_affinity((0,))
        assert host.stop() is None
    finally:
        host.end()
    assert reference.process.poll() is None, "it is not ours to end"


def test_a_server_that_is_read_is_known_to_have_ended(reference: Reference) -> None:
    host = ServerHost("127.0.0.1", NEVER_S)
    try:
        host.observe(Url(url=reference.url))
        reference.finish()
        ended = host.pulse().exit_description
        assert ended is not None
        assert ended.endswith("has ended")
    finally:
        host.end()


def test_a_host_knows_its_own_addresses() -> None:
    assert not is_own("127.0.0.1"), "every host has it"
    assert not is_own("::1")
    assert not is_own("localhost")
    assert not is_own("192.0.2.1"), "of the documentation: nobody's"
    assert not is_own("no-such-name.invalid")
    assert not is_own("x" * 300)


def test_a_build_ends_with_the_lease(tmp_path: Path) -> None:
    host, mark = ServerHost("127.0.0.1", NEVER_S), tmp_path / "begun"
    program = f"import pathlib, time; pathlib.Path({str(mark)!r}).touch(); time.sleep({NEVER_S})"
    under_way = UnderWay(lambda: tool.run("x", [sys.executable, "-c", program], tmp_path, tmp_path / "log"))
    ends_s = time.monotonic() + PATIENCE_S
    while not mark.exists():
        assert time.monotonic() < ends_s
        time.sleep(0.02)
    host.abandon()
    raised = under_way.ended()
    assert isinstance(raised, EnvironmentFault)
    assert "exit code -9" in str(raised)


def test_a_server_that_is_checked_ends_with_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    host = ServerHost("127.0.0.1", NEVER_S)
    host.prepare(ASKED)
    started = host.start(ASKED, CpuPartition(server=tuple(os.sched_getaffinity(0)), client=()))
    assert started.identity.pid is not None
    began, go_on = threading.Event(), threading.Event()

    def endless(_subject: object) -> Any:
        began.set()
        go_on.wait(PATIENCE_S)
        raise EnvironmentFault("the server has ended")

    monkeypatch.setitem(suite.CHECKS, "head", endless)
    under_way = UnderWay(lambda: host.conformance(from_url("/"), ("head",), "1.1", {}))
    assert began.wait(PATIENCE_S), under_way.raised
    host.abandon()
    assert not proc.alive(started.identity.pid)
    go_on.set()
    under_way.ended()
