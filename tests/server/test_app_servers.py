"""The applications of experiments A, B and E for real: built by Maven, started, and every workload that they
claim asked once, its requests for conformance included.
"""

from __future__ import annotations

import os
import re
import signal
import time
import zipfile
from pathlib import Path

import pytest

from prony.load.contract import EngineLoad
from prony.load.engine import EngineRun
from prony.load.short import short_load, walk_once
from prony.plan.load import ClosedLoad
from prony.plan.step import Step
from prony.plan.target import TlsOptions
from prony.plan.workload import Workload, load
from prony.server import sockets
from prony.server.build import Built, build
from prony.server.catalogue import Catalogue
from prony.server.jdk import find_jdks
from prony.server.launch import RunningServer, launch
from tests.entries import requests
from tests.responses import answers
from tests.single import single

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("hasty_jvm")]

needs_memcached = pytest.mark.needs("memcached")
CATALOGUE = Catalogue.load([Path(__file__).resolve().parents[2] / "servers"])


def built(address: str) -> Built:
    """From the cache of this user when it is there."""
    return build([CATALOGUE.resolve(address)])[0]


def started(server: RunningServer) -> None:
    server.wait_ready(timeout_s=180)


def buildable(address: str) -> Built:
    """Skips the test, with the reason, where the JDK that a variant needs is not installed."""
    jdk = CATALOGUE.resolve(address).jdk
    if not any(jdk.holds(each.major) for each in find_jdks()):
        pytest.skip(f"{address} needs a JDK {jdk}, and none is installed")
    return built(address)


def why_not(server: RunningServer, steps: tuple[Step, ...]) -> list[str]:
    """What is wrong with the responses to these steps, in words."""
    probes = answers(server.url, Workload(name="test", steps=steps), server.tls)
    return [f"{probe.step}: {probe.why_not}" for probe in probes if not probe.meets_expectation]


def check_workloads(server: RunningServer, prepared: bool) -> None:
    """Every workload that the server claims: preparation, steps twice, requests for conformance, clean-up.
    `prepared`: also those that put a thousand people there first.
    """
    assert server.built.spec.workloads
    tls = TlsOptions(ca=server.ca)
    for name in server.built.spec.workloads:
        workload = load(name)
        if workload.prepare and not prepared:
            continue
        base = short_load(server.url, workload, tls=tls)
        assert walk_once(base, workload.prepare).wrong is None, name
        for steps in (requests(workload.steps), requests(workload.steps), workload.conformance):
            assert not steps or why_not(server, steps) == [], name
        assert walk_once(base, workload.cleanup).wrong is None, name


@pytest.mark.parametrize(
    ("address", "prepared"),
    [
        ("cxf", True),
        ("glassfish", True),
        ("glassfish:published", True),
        pytest.param("crud", True, marks=needs_memcached),
        pytest.param("crud:https", False, marks=needs_memcached),
        pytest.param("crud:openssl", False, marks=needs_memcached),
        ("crud:memory", False),
        ("crud:memory+openssl", True),
    ],
)
def test_every_workload_is_answered_as_declared(address: str, prepared: bool) -> None:
    """Of crud's combinations the last one, as of the web servers; `prony servers check` asks all of them."""
    with launch(buildable(address)) as server:
        started(server)
        check_workloads(server, prepared)
    assert server.clean


VERSIONS = {
    "cxf": {"cxf": "cxf-core", "jetty": "jetty-server"},
    "glassfish": {"glassfish": "glassfish-embedded-all"},
    "crud": {"spring-boot": "spring-boot", "tomcat": "tomcat-embed-core", "xmemcached": "xmemcached"},
}


@pytest.mark.parametrize("name", ["cxf", "glassfish", pytest.param("crud", marks=needs_memcached)])
def test_the_declared_versions_are_the_built_ones(name: str) -> None:
    made = built(name)
    assert made.artifact is not None
    if made.artifact.is_dir():
        libraries = {each.name for each in made.artifact.iterdir()}
    else:
        with zipfile.ZipFile(made.artifact) as jar:
            libraries = {Path(entry).name for entry in jar.namelist()}
    assert set(made.spec.versions) == set(VERSIONS[name])
    for what, version in made.spec.versions.items():
        assert f"{VERSIONS[name][what]}-{version}.jar" in libraries


def threads(server: RunningServer) -> list[str]:
    """The first 15 characters of the names of all its threads."""
    return [
        (task / "comm").read_text().strip()
        for pid in server.pids()
        for task in Path(f"/proc/{pid}/task").iterdir()
    ]


def workers_of(server: RunningServer) -> int:
    """Threads of GlassFish's listener."""
    return sum(re.match(r"http-listener\(\d", name) is not None for name in threads(server))


@pytest.mark.parametrize(("address", "workers"), [("glassfish", 5), ("glassfish:published", 20)])
def test_glassfish_has_the_declared_workers_and_is_on_loopback_alone(address: str, workers: int) -> None:
    with launch(built(address)) as server:
        assert server.built.spec.ceilings.workers(1) == workers
        seen: set[str] = set()
        deadline_s = time.monotonic() + 180
        while not (found := sockets.listeners(server.port, server.host)) and time.monotonic() < deadline_s:
            time.sleep(0.005)
        seen |= {str(each.address) for each in found}
        started(server)
        seen |= {str(each.address) for each in sockets.listeners(server.port, server.host)}
        assert seen == {"127.0.0.1"}
        busy = EngineLoad(
            url=server.url,
            workload=load("ping"),
            load=ClosedLoad(users=64),
            cpus=(min(os.sched_getaffinity(0)),),
            after_s=60.0,
        )
        run, deadline_s = EngineRun(busy), time.monotonic() + 50
        while workers_of(server) < workers and time.monotonic() < deadline_s:
            run.next_event(0.5)
        for _ in range(2):  # two rows later there are no more
            run.next_event(2.0)
        found_workers = workers_of(server)
        run.stop()
        assert found_workers == workers
    assert server.clean


def test_what_is_left_out_of_crud_is_left_out() -> None:
    """In memory nothing is started beside it; in both kinds the time to live is a setting."""
    assert CATALOGUE.resolve("crud").services == ("memcached",)
    assert CATALOGUE.resolve("crud:memory+https").services == ()
    with launch(built("crud:memory+ttl_s=1")) as server:
        started(server)
        person = '{"name":"Ada","email":"ada@example.org","age":36}'
        json = {"Content-Type": "application/json"}
        path = "/testbed/memcached"
        put = single(server.host, server.port, "PUT", path, json, person)
        assert put.status == 201
        assert put.headers["location"].endswith("/testbed/memcached?name=Ada")
        deadline_s = time.monotonic() + 30
        while single(server.host, server.port, path=f"{path}?name=Ada").status == 200:
            assert time.monotonic() < deadline_s, "it never leaves"
            time.sleep(0.05)
        assert single(server.host, server.port, "PUT", path, json, person).status == 201
        assert server.services == ()


@needs_memcached
def test_without_memcached_the_application_says_so() -> None:
    with launch(built("crud")) as server:
        started(server)
        os.kill(server.services[0].pid, signal.SIGKILL)
        deadline_s = time.monotonic() + 60
        while True:
            response = single(server.host, server.port, path="/testbed/memcached?name=a", timeout_s=30)
            if response.status != 404 or time.monotonic() > deadline_s:
                break
        assert response.status == 503
        assert b'"error"' in response.body
        while server.ended_service() is None and time.monotonic() < deadline_s:
            time.sleep(0.01)
        assert server.ended_service() == "memcached: killed by SIGKILL"
