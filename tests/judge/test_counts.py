"""The server as a witness: its count against the client's."""

import pytest

from prony.evidence.trial import Evidence, ServerCount
from prony.judge.checks.counts import counts
from prony.judge.finding import Kind
from prony.judge.limits import CheckLimits
from tests.judge.factory import healthy, totals

LIMITS = CheckLimits()


def counted(requests: int, **changes: int) -> Evidence:
    found = totals(healthy(), **{"sent": 1000, "failed": 0, "abandoned": 0} | changes)
    return found.model_copy(update={"server_count": ServerCount(requests=requests)})


@pytest.mark.parametrize(
    ("requests", "changes"),
    [(1000, {}), (990, {"abandoned": 10}), (995, {"abandoned": 10}), (980, {"failed": 10, "abandoned": 10})],
)
def test_quiet_when_both_counted_the_same(requests: int, changes: dict[str, int]) -> None:
    finding = counts(counted(requests, **changes), LIMITS)
    assert finding is not None
    assert (finding.kind, finding.code) == (Kind.FINE, "ok")


def test_more_than_were_sent_is_a_hidden_retry_or_another_client() -> None:
    finding = counts(counted(1001), LIMITS)
    assert finding is not None
    assert (finding.conforms, finding.code) == (False, "more_than_sent")
    assert finding.value == pytest.approx(1.001)
    assert finding.advice


def test_fewer_than_were_answered_came_from_elsewhere() -> None:
    finding = counts(counted(900, failed=10, abandoned=10), LIMITS)
    assert finding is not None
    assert (finding.conforms, finding.code) == (False, "fewer_than_answered")
    assert finding.value == pytest.approx(0.9)
    assert finding.advice


def test_left_out_for_a_server_that_does_not_count() -> None:
    assert counts(healthy(), LIMITS) is None
