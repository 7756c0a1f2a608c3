"""Which trials are worth repeating: those that something outside of client and server bent."""

from __future__ import annotations

import pytest

from prony.judge.finding import Bias, Finding, Judgement
from prony.judge.judging import disturbed


def judgement(high: float | None, *, outside: bool = True, conforms: bool = True) -> Judgement:
    found = Finding(
        check="isolation",
        code="other_processes",
        bias={"requests_per_s": Bias(high=high)},
        outside=outside,
        reason="said so",
    )
    return Judgement(conforms=conforms, findings=(found,))


@pytest.mark.parametrize(
    ("found", "failure", "expected"),
    [
        (judgement(0.3), None, True),
        (judgement(None), None, True),
        (judgement(0.02), None, False),
        (judgement(0.3, outside=False), None, False),
        (judgement(0.3, conforms=False), None, False),
        (judgement(0.3), "the server died", False),
    ],
    ids=["much", "not bounded", "little", "its own quota", "not conforming", "failed"],
)
def test_only_what_came_from_outside_and_matters(
    found: Judgement, failure: str | None, expected: bool
) -> None:
    assert disturbed(found, failure) is expected
