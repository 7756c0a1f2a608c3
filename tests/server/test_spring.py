"""The three Spring Boot servers for real: built by Maven, run by a JVM, read by the agent."""

from __future__ import annotations

import json
import os
import time
import zipfile
from pathlib import Path

import pytest

from prony.plan.workload import load
from prony.server.build import Built, build
from prony.server.catalogue import Catalogue
from prony.server.launch import launch
from prony.server.probe import status_probe
from tests.responses import answers
from tests.server.affinity import cpus_of_threads
from tests.single import single

pytestmark = pytest.mark.e2e

JARS = {
    "spring-boot": "spring-boot",
    "tomcat": "tomcat-embed-core",
    "jetty": "jetty-server",
    "undertow": "undertow-core",
}
SERVERS = ("spring-tomcat", "spring-jetty", "spring-undertow")
FIGURES = {"jvm.memory.used", "jvm.classes.loaded", "jvm.threads.live"}


@pytest.fixture(scope="module")
def built() -> dict[str, Built]:
    """All three (from the cache of this user when they are there)."""
    catalogue = Catalogue.load([Path(__file__).resolve().parents[2] / "servers"])
    return {each.spec.name: each for each in build([catalogue.resolve(name) for name in SERVERS])}


@pytest.mark.parametrize("name", SERVERS)
def test_the_declared_versions_are_the_built_ones(built: dict[str, Built], name: str) -> None:
    artifact = built[name].artifact
    assert artifact is not None
    with zipfile.ZipFile(artifact) as jar:
        libraries = {Path(entry).name for entry in jar.namelist() if entry.startswith("BOOT-INF/lib/")}
    for what, version in built[name].spec.versions.items():
        assert f"{JARS[what]}-{version}.jar" in libraries
    others = {JARS[what] for what in ("tomcat", "jetty", "undertow")} - {JARS[name.removeprefix("spring-")]}
    assert not [each for each in libraries if each.rpartition("-")[0] in others], "one container only"


@pytest.mark.parametrize("name", SERVERS)
def test_it_answers_reports_and_is_read(built: dict[str, Built], name: str) -> None:
    cpu = min(os.sched_getaffinity(0))
    with launch(built[name], cpus=[cpu]) as server:
        start = server.wait_ready(status_probe(server.host, server.port, "/actuator/metrics"), 120)
        assert set(start.reported) == FIGURES
        assert all(value > 0 for value in start.reported.values())

        response = single(server.host, server.port, path="/actuator/metrics")
        assert set(json.loads(response.body)["names"]) >= FIGURES
        for workload in server.built.spec.workloads:
            probes = answers(server.url, load(workload), server.tls)
            assert [probe.why_not for probe in probes] == [None] * len(probes)
        health = single(server.host, server.port, path=server.built.spec.ready.path)
        assert json.loads(health.body) == {"status": "UP"}

        first = start.jvm
        assert first is not None
        assert "ActiveProcessorCount=1" in " ".join(server.command)
        assert first.gc_names == ("Copy", "MarkSweepCompact"), (
            "a JVM that was told of one CPU takes the serial collector"
        )
        assert first.classes_loaded >= start.reported["jvm.classes.loaded"] - 50
        assert 0 < first.heap_used_bytes <= first.heap_committed_bytes <= first.heap_max_bytes
        assert first.pools_used_bytes["Metaspace"] > 0
        assert first.jit_time_s is not None
        assert first.process_cpu_s is not None
        assert first.compilers_cpu_s is not None
        assert 0 < first.compilers_cpu_s < first.process_cpu_s
        earlier, sample, later = server.jvm(), server.sample(), server.jvm()
        assert earlier is not None
        assert sample is not None
        assert later is not None
        assert earlier.process_cpu_s is not None
        assert later.process_cpu_s is not None
        assert earlier.process_cpu_s - 0.1 <= sample.cpu_s <= later.process_cpu_s + 0.1  # ticks are 10 ms
        assert sample.threads > first.threads_live

        every = frozenset(os.sched_getaffinity(0))
        assert server.set_compiler_affinity(every)
        compilers = {
            thread.name[:2]: thread.cpus
            for thread in (server.thread_times() or {}).values()
            if thread.cpus != {cpu}
        }
        assert compilers == ({"C1": every, "C2": every} if len(every) > 1 else {})
        assert server.set_affinity([cpu])
        assert cpus_of_threads(server) == {frozenset([cpu])}
        time.sleep(0.05)
        second = server.jvm()
        assert second is not None
        assert second.uptime_s > first.uptime_s
        assert second.t_monotonic_s > first.t_monotonic_s
        assert second.threads_peak >= second.threads_live
        assert server.identity.owns_port
        assert server.identity.versions["jdk"]
    assert server.clean
    assert server.exit_description() == "exit code 143", "it ended by itself after SIGTERM"
    assert server.jvm() is None


def test_it_runs_without_the_agent(built: dict[str, Built]) -> None:
    with launch(built["spring-undertow"], agent=False) as server:
        start = server.wait_ready(status_probe(server.host, server.port, "/actuator/health"), 120)
        assert start.jvm is None
        assert set(start.reported) == FIGURES
        assert "-javaagent" not in " ".join(server.command)
