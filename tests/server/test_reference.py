"""The reference server as a server of the catalogue: the engine's binary, launched like any other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from prony.plan.workload import load
from prony.server.build import build
from prony.server.catalogue import Catalogue
from prony.server.launch import launch
from prony.server.probe import http_probe, status_probe
from prony.trial.preflight import probe_workload


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
        assert http_probe(server.host, server.port).body == b"Hello, World!"
        for workload in built.spec.workloads:
            probes = probe_workload(server.address, load(workload))
            assert probes is not None
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
            # Nothing within two seconds counts as no response: on a host that others keep busy, ask again.
            asked = (probe_workload(server.address, load(workload)) for _ in range(5))
            probes = next((found for found in asked if found is not None), None)
            assert probes is not None
            assert [probe.why_not for probe in probes] == [None] * len(probes), address
