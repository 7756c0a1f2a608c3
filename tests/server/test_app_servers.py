"""The applications of experiments A, B and E for real: built by Maven, started, and every workload that they
claim asked once, its requests for conformance included.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.plan.workload import Step, Workload, load
from prony.server.build import Built, build
from prony.server.catalogue import Catalogue
from prony.server.launch import RunningServer, launch
from prony.server.probe import status_probe
from prony.trial.probing import probe_workload

pytestmark = pytest.mark.e2e

CATALOGUE = Catalogue.load([Path(__file__).resolve().parents[2] / "servers"])


def built(address: str) -> Built:
    """From the cache of this user when it is there."""
    return build([CATALOGUE.resolve(address)])[0]


def started(server: RunningServer) -> None:
    ready = server.built.spec.ready
    probe = status_probe(server.host, server.port, ready.path, ready.status, tls=server.scheme == "https")
    server.wait_ready(probe, 180)


def why_not(server: RunningServer, steps: tuple[Step, ...]) -> list[str]:
    """What is wrong with the answers to these steps, in words."""
    probes = probe_workload(
        server.host, server.port, Workload(name="test", steps=steps), tls=server.scheme == "https"
    )
    assert probes is not None, server.last_lines()
    return [f"{probe.step}: {probe.why_not}" for probe in probes if not probe.meets_expectation]


def check_workloads(server: RunningServer) -> None:
    """Every workload that the server claims: preparation, steps twice, requests for conformance, clean-up."""
    assert server.built.spec.workloads
    for name in server.built.spec.workloads:
        workload = load(name)
        for steps in (
            workload.prepare,
            workload.steps,
            workload.steps,
            workload.conformance,
            workload.cleanup,
        ):
            assert not steps or why_not(server, steps) == [], name


@pytest.mark.parametrize("address", ["cxf", "glassfish", "glassfish:published"])
def test_every_workload_is_answered_as_declared(address: str) -> None:
    with launch(built(address)) as server:
        started(server)
        check_workloads(server)
    assert server.clean
