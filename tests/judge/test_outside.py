"""Which trials are run again for what happened outside of client and server."""

from __future__ import annotations

import pytest

from prony.evidence.server import CgroupThrottle
from prony.evidence.trial import Evidence
from prony.judge.checks.isolation import IsolationLimits, isolation
from prony.judge.finding import Finding, Judgement
from prony.judge.outside import disturbed
from tests.judge import factory as f


def quota(evidence: Evidence) -> Evidence:
    throttle = CgroupThrottle(periods=100, throttled_periods=96, throttled_s=5.0)
    return f.part(evidence, "server_window", throttle=throttle)


def others(evidence: Evidence, share: float = 0.06) -> Evidence:
    return f.part(evidence, "host_window", others_on_server_cpus=share)


def judgement(evidence: Evidence, **limits: float) -> Judgement:
    found = isolation(evidence, IsolationLimits())
    return Judgement(conforms=True, findings=(found,), limits=limits)


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (f.healthy(), False),
        (others(f.healthy()), True),
        (others(f.healthy(), 0.04), False),
        (quota(f.healthy()), False),
        (others(quota(f.healthy())), False),
        (others(f.open_model(), 0.02), True),
    ],
    ids=["quiet", "other processes", "fewer", "quota of its own group", "both", "only its times are off"],
)
def test_it_is_run_again(evidence: Evidence, expected: bool) -> None:
    assert disturbed(judgement(evidence), None) is expected


def test_not_a_trial_that_failed_or_does_not_conform_or_is_asked_for_less() -> None:
    bad = judgement(others(f.healthy()))
    assert not disturbed(bad, "the server died")
    wrong = Finding(check="content", conforms=False, reason="wrong")
    assert not disturbed(bad.model_copy(update={"conforms": False, "findings": (*bad.findings, wrong)}), None)
    assert not disturbed(judgement(others(f.healthy()), isolation_repeat_min=0.1), None)
