"""What one trial says about an objective, and whose fault a missed one is."""

from __future__ import annotations

import pytest

from prony.compare.capacity import (
    LONGEST_S,
    Outcome,
    lowest_rate,
    objectives_met,
    outcome_of,
    search_of,
    window_for,
)
from prony.evidence.trial import TrialRecord
from prony.judge.finding import Bias, Finding, Judgement
from prony.judge.times import headline_times, percentiles
from prony.plan.objective import objectives
from prony.plan.part import Search
from tests.report import factory
from tests.report.trial_evidence import histogram

NS = ("p50_ns", "p90_ns", "p99_ns", "max_ns")
SECONDS_MS = ((5, 8, 12, 20), (15, 25, 60, 140))
GOAL = objectives("p99<50ms")


def broken(check: str) -> Finding:
    return Finding(check=check, code="broken", conforms=False, reason="said so")


def late(check: str, share: float) -> Finding:
    """The load generator made this share of the p99."""
    return Finding(check=check, code="late", bias={"p99_ms": Bias(low=-share)}, reason="said so")


def judged(
    figures: dict[str, float], *findings: Finding, failure: str | None = None, blocked: int = 0
) -> Outcome:
    """How a trial with these figures and findings ends."""
    record = factory.record("spring-tomcat", failure=failure)
    if "p99_ms" in figures:
        record = factory.constant(record, figures["p99_ms"], blocked=blocked)
    elif failure is None:
        record = record.model_copy(update={"evidence": record.evidence.model_copy(update={"engine": None})})
    judgement = Judgement(conforms=all(one.conforms for one in findings), findings=findings)
    return outcome_of(record, judgement, figures, GOAL)[0]


SATURATED = Finding(check="client", code="saturated", reason="said so")


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (judged({"p99_ms": 49.0}), Outcome.MET),
        (judged({"p99_ms": 50.1}), Outcome.MISSED),
        (judged({}), Outcome.UNUSABLE),
        (judged({"p99_ms": 1.0}, broken("content")), Outcome.UNUSABLE),
        (judged({"p99_ms": 90.0}, late("client", 0.5)), Outcome.CLIENT),
        (judged({"p99_ms": 90.0}, late("client", 0.1)), Outcome.MISSED),
        (judged({"p99_ms": 90.0}, late("schedule", 0.3), late("client", 0.3)), Outcome.CLIENT),
        (judged({"p99_ms": 1.0}, broken("errors")), Outcome.MISSED),
        (judged({"p99_ms": 1.0}, broken("schedule")), Outcome.CLIENT),
        (judged({}, failure="the server ended under load"), Outcome.MISSED),
        (judged({"p99_ms": 1.0}, broken("schedule"), blocked=7), Outcome.MISSED),
        (judged({"p99_ms": 1.0}, broken("schedule"), SATURATED, blocked=7), Outcome.CLIENT),
    ],
)
def test_whose_fault_it_was(outcome: Outcome, expected: Outcome) -> None:
    assert outcome is expected


def test_a_load_generator_that_slept_is_no_limit() -> None:
    """Whatever it waited for: requests failed or were blocked while it had nothing to do."""
    for cpu_s, run_delay_s, expected in ((1.1, 5.4, Outcome.MISSED), (1.1, 7.9, Outcome.CLIENT)):
        record = factory.constant(factory.record("spring-tomcat"), 1.0, blocked=7)
        engine = record.evidence.engine
        assert engine is not None
        assert engine.window is not None
        threads = tuple(
            one.model_copy(update={"cpu_s": cpu_s, "run_delay_s": run_delay_s, "wall_s": 10.0})
            for one in engine.window.threads
        )
        assert threads
        window = engine.window.model_copy(update={"threads": threads})
        evidence = record.evidence.model_copy(update={"engine": engine.model_copy(update={"window": window})})
        found = (broken("schedule"), broken("errors"), SATURATED)
        judgement = Judgement(conforms=False, findings=found)
        asked = record.model_copy(update={"evidence": evidence})
        assert outcome_of(asked, judgement, {"p99_ms": 1.0}, GOAL)[0] is expected


def test_a_window_is_as_long_as_its_percentile_needs() -> None:
    assert window_for(GOAL, 1e4, 10.0) == 10.0
    longer = window_for(GOAL, 50.0, 10.0)
    assert 30 < longer < LONGEST_S
    assert lowest_rate(GOAL, longer) <= 50.0
    assert window_for(GOAL, 0.1, 10.0) == LONGEST_S


def test_no_rate_too_low_for_its_percentile() -> None:
    assert lowest_rate(GOAL, 10.0) >= 2.6 * 152.2, "ten seconds say little about correlation"
    assert lowest_rate(GOAL, 60.0) < 2.2 * 1522 / 60
    assert lowest_rate(objectives("p99.9<1s"), 10.0) >= 1535
    asked = Search(objectives="p99<50ms", highest_per_s=1000, resolution=0.05, most_trials=9)
    assert search_of(asked, 10.0).ask() == lowest_rate(GOAL, 10.0)
    assert search_of(asked, 10.0, 700.0).ask() == 700.0


def spread_times(median_ms: float, count: int = 4000, **counted: int) -> TrialRecord:
    """A trial whose times vary, so that its percentiles have an interval."""
    record = factory.constant(factory.record("spring-tomcat"), median_ms, **{"completed": count, **counted})
    engine = record.evidence.engine
    assert engine is not None
    assert engine.window is not None
    times = histogram(median_ms * 1e6, count, seed=1)
    window = engine.window.model_copy(update={"service_time": times})
    evidence = record.evidence.model_copy(update={"engine": engine.model_copy(update={"window": window})})
    return record.model_copy(update={"evidence": evidence})


def test_a_rate_holds_by_the_upper_end_of_the_interval_and_fails_by_the_lower() -> None:
    record = spread_times(10.0)
    p99 = percentiles(record.evidence)["p99_ms"]
    assert p99.low_ms < p99.value_ms < p99.high_ms
    said = {}
    for limit_ms in (p99.high_ms * 1.01, (p99.value_ms + p99.high_ms) / 2, p99.low_ms * 0.99):
        outcome, share = objectives_met(objectives(f"p99<{limit_ms:.6f}ms"), record, {})
        said[outcome] = share
    assert list(said) == [Outcome.MET, Outcome.UNDECIDED, Outcome.MISSED]
    share = said[Outcome.UNDECIDED]
    assert share is not None
    assert share < 1, "the point lies below the limit, which is not enough"


def test_failed_requests_miss_an_objective_that_the_responses_meet() -> None:
    figures = {"max_ms": 10.0}
    failing = factory.constant(factory.record("spring-tomcat"), 10.0, failed=600)  # 3 % of 20,600
    assert objectives_met(GOAL, failing, figures) == (Outcome.MISSED, None)
    some = factory.constant(factory.record("spring-tomcat"), 10.0, failed=20)  # 0.1 %
    assert objectives_met(GOAL, some, figures)[0] is Outcome.MET
    assert objectives_met(objectives("max<50ms"), some, figures) == (Outcome.MISSED, None)
    assert objectives_met(objectives("mean<50ms"), some, {"mean_ms": 10.0})[0] is Outcome.UNDECIDED
    borderline = factory.constant(factory.record("spring-tomcat"), 10.0, failed=202)  # 1 %
    assert objectives_met(GOAL, borderline, figures)[0] is Outcome.UNDECIDED


def test_nothing_that_can_be_printed_is_unusable() -> None:
    record = factory.record("spring-tomcat")
    few = record.model_copy(update={"evidence": record.evidence.model_copy(update={"engine": None})})
    assert objectives_met(GOAL, few, {}) == (Outcome.UNUSABLE, None)


def test_a_mean_holds_by_its_interval_and_not_by_its_point() -> None:
    record = spread_times(10.0)
    times = headline_times(record.evidence)
    assert times is not None
    low_ms, high_ms = times.mean_interval()
    assert low_ms < times.mean_ms < high_ms < 1.1 * times.mean_ms
    figures = {"mean_ms": times.mean_ms}
    said = [
        objectives_met(objectives(f"mean<{limit_ms:.6f}ms"), record, figures)[0]
        for limit_ms in (high_ms * 1.001, (times.mean_ms + high_ms) / 2, low_ms * 0.999)
    ]
    assert said == [Outcome.MET, Outcome.UNDECIDED, Outcome.MISSED]


def test_a_mean_without_seconds_has_no_interval() -> None:
    record = spread_times(10.0)
    engine = record.evidence.engine
    assert engine is not None
    rowless = record.evidence.model_copy(update={"engine": engine.model_copy(update={"rows": ()})})
    blind = record.model_copy(update={"evidence": rowless})
    assert objectives_met(objectives("mean<1s"), blind, {"mean_ms": 10.0}) == (Outcome.UNDECIDED, 0.01)


def test_no_maximum_is_shown_to_hold_by_the_requests_that_were_sent() -> None:
    record = spread_times(10.0)
    assert objectives_met(objectives("max<1s"), record, {"max_ms": 40.0}) == (Outcome.UNDECIDED, 0.04)
    assert objectives_met(objectives("max<30ms"), record, {"max_ms": 40.0})[0] is Outcome.MISSED


def test_seconds_that_differ_leave_a_wide_percentile_to_its_interval() -> None:
    """Worth too few to bound p99 from above, they still say what their interval says."""
    record = spread_times(10.0)
    engine = record.evidence.engine
    assert engine is not None
    fast, slow = ({name: ms * 1_000_000 for name, ms in zip(NS, each, strict=True)} for each in SECONDS_MS)
    apart = tuple(row.model_copy(update=slow if at % 2 else fast) for at, row in enumerate(engine.rows))
    evidence = record.evidence.model_copy(update={"engine": engine.model_copy(update={"rows": apart})})
    clustered = record.model_copy(update={"evidence": evidence})
    assert percentiles(evidence)["p99_ms"].open
    assert objectives_met(objectives("p99<10s"), clustered, {})[0] is Outcome.UNDECIDED
    assert objectives_met(objectives("p99<1ms"), clustered, {})[0] is Outcome.MISSED
