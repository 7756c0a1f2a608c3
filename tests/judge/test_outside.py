"""Which rejections say nothing about client and server."""

from __future__ import annotations

import pytest

from prony.evidence.server import CgroupThrottle
from prony.evidence.trial import Evidence
from prony.judge.checks.isolation import IsolationLimits, isolation
from prony.judge.finding import Judgement, Status
from prony.judge.outside import disturbed
from tests.judge import factory as f


def quota(evidence: Evidence) -> Evidence:
    throttle = CgroupThrottle(periods=100, throttled_periods=96, throttled_s=5.0)
    return f.part(evidence, "server_window", throttle=throttle)


def others(evidence: Evidence) -> Evidence:
    return f.part(evidence, "host_window", others_on_server_cpus=0.6)


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (others(f.healthy()), True),
        (quota(f.healthy()), False),
        (others(quota(f.healthy())), False),
    ],
    ids=["other processes", "quota of its own group", "both"],
)
def test_a_quota_depends_on_what_the_server_burns(evidence: Evidence, expected: bool) -> None:
    found = isolation(evidence, IsolationLimits())
    assert found.status is Status.INVALID
    assert disturbed(Judgement(verdict=Status.INVALID, findings=(found,)), None) is expected
