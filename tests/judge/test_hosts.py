"""Several hosts: what is lost, late or different is named, and one saturated load host is not all of them."""

from __future__ import annotations

from prony.judge.verdict import judge

from prony.experiment.conclude import conclude
from prony.judge.checks.hosts import hosts
from prony.judge.finding import Status
from prony.judge.limits import CheckLimits
from tests.judge import factory as f
from tests.report import factory

VALID, SUSPECT, INVALID, UNKNOWN = Status.VALID, Status.SUSPECT, Status.INVALID, Status.UNKNOWN
THREE = f.on_hosts(3)
LIMITS = CheckLimits()


def test_healthy_hosts_are_valid() -> None:
    judged = judge(f.on_hosts(), LIMITS)
    assert judged.verdict is VALID, [(x.check, x.reason) for x in judged.findings if x.status is not VALID]
    assert hosts(f.healthy(), LIMITS) is None


def test_a_lost_host_is_the_cause_and_no_server_is_blamed() -> None:
    told = "load1 was lost: its worker has ended"
    gone = f.host(THREE, "load1", lost=told).model_copy(update={"engine": None})
    record = factory.record("reference", 0, 0).model_copy(update={"evidence": gone, "failure": told})
    ended = conclude(record).judgement
    assert ended.worst is not None
    assert (ended.worst.check, ended.worst.reason) == ("hosts", told)
    assert "identity" not in {finding.check for finding in ended.findings}
