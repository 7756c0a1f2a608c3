"""What is said of a plan before anything starts."""

from __future__ import annotations

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
    assert "16,000 will be opened and tomcat accepts 8,192 at a time; the others time out" in said


def test_nothing_is_said_where_they_fit_or_where_nobody_knows() -> None:
    assert about_connections(ClosedLoad(users=8192), 8192) == []
    assert about_connections(ClosedLoad(users=16_000), None) == []
    assert about_connections(OpenLoad(rate_per_s=1000), 8192) == []
