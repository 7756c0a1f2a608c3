"""The web servers for real: every one in every variant is built, started once, and asked for every page it
claims.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from prony.errors import EnvironmentFault
from prony.plan.workload import load
from prony.server.build import Built, build
from prony.server.catalogue import Catalogue, Settings
from prony.server.launch import RunningServer, launch
from prony.server.probe import status_probe
from tests.responses import answers
from tests.single import single

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("hasty_jvm")]

CATALOGUE = Catalogue.load([Path(__file__).resolve().parents[2] / "servers"])
SERVLETS = [name for name in ("tomcat", "jetty", "undertow") if name in CATALOGUE.names()]
NAMES = [name for name in (*SERVLETS, "vertx", "koa", "sanic") if name in CATALOGUE.names()]
WRONG_LENGTH_OF_HEAD = {("sanic", "static-image")}
"""Sanic's own handler for files answers HEAD with a length of 0."""


def tried(name: str) -> list[str]:
    """The server, each of its variants, and of the combinations the last one: `prony servers check` tries all
    of them. Those over HTTP/2 have tests of their own.
    """
    addresses = [
        address
        for address in CATALOGUE.resolve(name).addresses()
        if CATALOGUE.resolve(address).http_version != "2"
    ]
    combined = [address for address in addresses if "+" in address]
    return [address for address in addresses if "+" not in address] + combined[-1:]


ADDRESSES = [address for name in NAMES for address in tried(name)]
WAITING = 40
"""Requests that wait at once while the threads are counted."""


@cache
def built(address: str) -> Built:
    """From the cache of this user when it is there. Skips when this host has no JDK that will do."""
    try:
        return build([CATALOGUE.resolve(address)])[0]
    except EnvironmentFault as fault:
        if "JDK" in str(fault) and "installed" in str(fault):
            pytest.skip(f"{address}: {fault}")
        raise


def ready(server: RunningServer) -> None:
    server.wait_ready(status_probe(server.host, server.port, tls=server.address.tls), 120)


@pytest.mark.parametrize("address", ADDRESSES)
def test_it_answers_every_workload_that_it_claims(address: str) -> None:
    spec = CATALOGUE.resolve(address)
    assert spec.workloads
    with launch(built(address), cpus=[min(os.sched_getaffinity(0))]) as server:
        ready(server)
        secured = {"https", "openssl"} & set(spec.name.split(":")[-1].split("+"))
        assert server.address.tls is bool(secured)
        for workload in spec.workloads:
            probes = answers(server.url, load(workload), server.tls)
            assert [probe.why_not for probe in probes] == [None] * len(probes), workload
            assert all(probe.keeps_alive for probe in probes), workload
            for step, probe in zip(load(workload).all_steps, probes, strict=True):
                head = single(server.host, server.port, "HEAD", step.path, tls=server.address.tls)
                assert head.status == 200
                assert head.headers.get("content-type", probe.content_type) == probe.content_type
                length = head.headers.get("content-length", str(probe.body_bytes))
                assert length == str(probe.body_bytes) or (spec.base, workload) in WRONG_LENGTH_OF_HEAD
        assert server.identity.owns_port
        assert server.alive()
    assert server.clean


@pytest.mark.parametrize("name", NAMES)
def test_the_delay_is_the_requests_own(name: str) -> None:
    with launch(built(name)) as server:
        ready(server)

        def asked(query: str) -> int:
            return single(server.host, server.port, path=f"/delay{query}").status

        begun = time.monotonic()
        assert asked("?ms=400") == 200
        assert time.monotonic() - begun >= 0.4, "it may take longer, never less"
        assert [asked("?ms=0"), asked(""), asked("?ms=-1"), asked("?ms=soon"), asked("?ms=60001")] == [
            200, 200, 400, 400, 400,
        ]  # fmt: skip
        assert single(server.host, server.port, path="/nothing").status == 404


@pytest.mark.parametrize(
    "address", [address for address in ADDRESSES if address.endswith((":async", ":virtual"))]
)
def test_no_thread_waits(address: str) -> None:
    """On a host that stood still, all requests arrive in one burst, which needs threads for a moment: then
    a fresh server is asked again.
    """
    grown = [threads_for_waiting(address)]
    while grown[-1] >= WAITING / 2 and len(grown) < 3:
        grown.append(threads_for_waiting(address))
    assert min(grown) < WAITING / 2, grown


def threads_for_waiting(address: str) -> int:
    """How many threads a fresh server starts for `WAITING` requests that wait at once."""
    with launch(built(address), cpus=[min(os.sched_getaffinity(0))]) as server, ExitStack() as connections:
        ready(server)
        assert single(server.host, server.port, path="/delay?ms=1").status == 200
        before = server.sample()
        for _ in range(WAITING):
            connection = connections.enter_context(socket.create_connection((server.host, server.port)))
            connection.sendall(b"GET /delay?ms=30000 HTTP/1.1\r\nHost: x\r\n\r\n")
            time.sleep(0.01)  # one after the other
        after = server.sample()
        assert before is not None
        assert after is not None
        return after.threads - before.threads


@pytest.mark.parametrize("name", [name for name in ("koa", "sanic") if name in NAMES])
def test_workers_are_processes_and_can_be_set(name: str) -> None:
    counts = []
    for address in (name, f"{name}:workers=3"):
        with launch(built(address)) as server:
            ready(server)
            counts.append(len(server.pids()))
            assert f"--workers={3 if 'workers' in address else 1}" in server.command
            assert single(server.host, server.port).status == 200
    assert counts[1] >= counts[0] + 2
    runtime = {"koa": "node", "sanic": "python"}[name]
    assert runtime in server.identity.versions


def test_the_event_loops_of_vertx_can_be_set() -> None:
    with launch(built("vertx:workers"), cpus=sorted(os.sched_getaffinity(0))) as server:
        ready(server)
        assert f"--instances={len(os.sched_getaffinity(0))}" in server.command


def test_heap_and_jdk_of_an_address_reach_the_jvm() -> None:
    one = built("tomcat")
    assert one.jdk is not None
    asked = CATALOGUE.resolve(f"tomcat:heap=64m+jdk={one.jdk.major}", Settings(jvm_flags=("-Dasked=yes",)))
    with launch(build([asked])[0]) as server:
        ready(server)
        assert {"-Xms64m", "-Xmx64m", "-Dasked=yes"} <= set(server.command)
        figures = server.jvm()
        assert figures is not None
        assert 48 << 20 < figures.heap_max_bytes <= 64 << 20
        assert server.identity.versions["jdk"] == one.jdk.version
        assert server.identity.name == f"tomcat:heap=64m+jdk={one.jdk.major}"


@pytest.mark.parametrize("name", SERVLETS)
def test_the_declared_versions_are_the_built_ones(name: str) -> None:
    artifact = built(name).artifact
    assert artifact is not None
    jars = {jar.name for jar in artifact.iterdir()}
    core = {"tomcat": "tomcat-embed-core", "jetty": "jetty-server", "undertow": "undertow-core"}[name]
    assert f"{core}-{CATALOGUE.resolve(name).versions[name]}.jar" in jars
    if name == "tomcat":
        versions = CATALOGUE.resolve("tomcat:openssl").versions
        assert f"tomcat-coyote-ffm-{versions['tomcat-coyote-ffm']}.jar" in jars


def test_published_tomcat_has_twenty_workers() -> None:
    spec = CATALOGUE.resolve("tomcat:published")
    assert spec.ceilings.workers(2) == 20
    with launch(built("tomcat:published")) as server, ExitStack() as connections:
        ready(server)
        before = server.sample()
        for _ in range(WAITING):
            connection = connections.enter_context(socket.create_connection((server.host, server.port)))
            connection.sendall(b"GET /delay?ms=30000 HTTP/1.1\r\nHost: x\r\n\r\n")
        deadline = time.monotonic() + 20
        while not busy(server):
            assert time.monotonic() < deadline, "more than twenty requests were taken at once"
        after = server.sample()
        assert before is not None
        assert after is not None
        assert after.threads - before.threads < 20


def test_published_tomcat_takes_more_connections_than_its_default() -> None:
    most = CATALOGUE.resolve("tomcat").ceilings.max_connections
    assert most == 8192
    assert CATALOGUE.resolve("tomcat:published").ceilings.max_connections == 20_000
    with launch(built("tomcat:published")) as server, ExitStack() as connections:
        ready(server)
        for _ in range(most + 200):  # beyond the queue of the kernel, too
            connection = connections.enter_context(
                socket.create_connection((server.host, server.port), timeout=20)
            )
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(64).startswith(b"HTTP/1.1 200")


def busy(server: RunningServer) -> bool:
    """Whether a further request finds no worker."""
    try:
        single(server.host, server.port, timeout_s=1.0)
    except OSError:
        return True
    return False
