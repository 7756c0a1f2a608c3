"""What is said of a plan before anything starts."""

from __future__ import annotations

import re

from prony.evidence.host import CpuPartition, Limits
from prony.experiment import testbed
from prony.experiment.requirements import warnings
from prony.plan.load import ClosedLoad, Load, OpenLoad
from tests.experiment.conftest import FakeTarget, FakeTargets, cell, plan
from tests.store.store_samples import FINGERPRINT

TESTBED = testbed.Testbed(
    partition=CpuPartition(server=(0,), client=(1,)), limits=Limits(), fingerprint=FINGERPRINT
)


def about_connections(load: Load, accepts: int | None) -> list[str]:
    targets, target = FakeTargets(), FakeTarget()
    target.name, target.max_connections = "tomcat", accepts
    targets.known["tomcat"] = target
    found = warnings(plan(cell("tomcat", load=load)), targets, TESTBED)  # type: ignore[arg-type]
    return [one for one in found if "connections:" in one]


def test_more_users_than_a_server_takes_connections_are_announced() -> None:
    (said,) = about_connections(ClosedLoad(users=16_000), 8192)
    assert re.findall(r"[\d,]*\d", said.partition("connections: ")[2]) == ["16,000", "8,192"]


def test_nothing_is_reported_where_they_fit_or_where_unknown() -> None:
    assert about_connections(ClosedLoad(users=8192), 8192) == []
    assert about_connections(ClosedLoad(users=16_000), None) == []
    assert about_connections(OpenLoad(rate_per_s=1000), 8192) == []
