"""What one trial says about an objective, and whose fault a missed one is."""

from __future__ import annotations

import pytest

from prony.compare.capacity import Outcome
from prony.compare.outcome import lowest_rate, outcome_of, search_of
from prony.judge.finding import Finding, Judgement, Status
from prony.plan.objective import objectives
from prony.plan.plan import Search
from tests.report import factory

GOAL = objectives("p99<50ms")
ORDER = (Status.INVALID, Status.SUSPECT, Status.UNKNOWN, Status.VALID)


def found(check: str, status: Status) -> Finding:
    return Finding(check=check, status=status, reason="said so")


def judged(
    figures: dict[str, float], *findings: Finding, failure: str | None = None, blocked: int = 0
) -> Outcome:
    """How a trial with these figures and findings ends."""
    record = factory.record("spring-tomcat", failure=failure)
    engine = record.evidence.engine
    assert engine is not None
    assert engine.window is not None
    window = engine.window.model_copy(update={"blocked": blocked})
    evidence = record.evidence.model_copy(update={"engine": engine.model_copy(update={"window": window})})
    verdict = min((f.status for f in findings), key=ORDER.index, default=Status.VALID)
    judgement = Judgement(verdict=verdict, findings=findings)
    return outcome_of(record.model_copy(update={"evidence": evidence}), judgement, figures, GOAL)[0]


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (judged({"p99_ms": 49.0}), Outcome.MET),
        (judged({"p99_ms": 50.0}), Outcome.MISSED),
        (judged({}), Outcome.UNUSABLE),
        (judged({"p99_ms": 1.0}, found("host", Status.INVALID)), Outcome.UNUSABLE),
        (judged({"p99_ms": 1.0}, found("client", Status.INVALID)), Outcome.CLIENT),
        (judged({"p99_ms": 90.0}, found("schedule", Status.SUSPECT)), Outcome.CLIENT),
        (judged({"p99_ms": 1.0}, found("errors", Status.INVALID)), Outcome.MISSED),
        (judged({}, failure="the server ended under load"), Outcome.MISSED),
        (judged({"p99_ms": 1.0}, found("schedule", Status.INVALID), blocked=7), Outcome.MISSED),
        (
            judged(
                {"p99_ms": 1.0}, found("schedule", Status.INVALID), found("client", Status.SUSPECT), blocked=7
            ),
            Outcome.CLIENT,
        ),
    ],
)
def test_whose_fault_it_was(outcome: Outcome, expected: Outcome) -> None:
    assert outcome is expected


def test_no_rate_too_low_for_its_percentile() -> None:
    assert lowest_rate(GOAL, 10.0) >= 45.9
    assert lowest_rate(objectives("p99.9<1s"), 10.0) >= 460
    asked = Search(objectives="p99<50ms", highest_per_s=1000, resolution=0.05, most_trials=9)
    assert search_of(asked, 10.0).ask() == lowest_rate(GOAL, 10.0)
    assert search_of(asked, 10.0, 700.0).ask() == 700.0
