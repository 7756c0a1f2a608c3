"""The reference server as a server of the catalogue: the engine's binary, launched like any other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from prony.plan.workload import load
from prony.server.build import build
from prony.server.catalogue import Catalogue
from prony.server.launch import launch
from prony.server.probe import status_probe
from tests.responses import answers
from tests.single import single


@pytest.mark.e2e
@pytest.mark.usefixtures("cache")
@pytest.mark.everyday
def test_the_reference_server_is_a_server_like_any_other() -> None:
    cpus = sorted(os.sched_getaffinity(0))[:2]
    (built,) = build([Catalogue.load([Path(__file__).resolve().parents[2] / "servers"]).resolve("reference")])
    assert (built.artifact, built.jdk, built.agent) == (None, None, None)
    with launch(built, cpus=cpus) as server:
        server.wait_ready(status_probe(server.host, server.port), 30)
        assert f"--cpus={','.join(map(str, cpus))}" in server.command
        assert single(server.host, server.port).body == b"Hello, World!"
        for workload in built.spec.workloads:
            probes = answers(server.url, load(workload), server.tls)
            assert [probe.why_not for probe in probes] == [None] * len(probes)
        assert server.identity.owns_port
        assert server.jvm() is None
    assert server.clean
    assert server.exit_description() == "exit code 0"


@pytest.mark.e2e
@pytest.mark.usefixtures("cache")
@pytest.mark.everyday
def test_every_page_of_the_reference_server_is_right() -> None:
    catalogue = Catalogue.load([Path(__file__).resolve().parents[2] / "servers"])
    for address in catalogue.resolve("reference").addresses():
        spec = catalogue.resolve(address)
        with launch(build([spec])[0]) as server:
            tls = server.address.tls
            server.wait_ready(status_probe(server.host, server.port, tls=tls), 30)
            (workload,) = spec.workloads
            probes = answers(server.url, load(workload), server.tls)
            assert [probe.why_not for probe in probes] == [None] * len(probes), address
