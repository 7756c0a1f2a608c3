"""samples: enough responses, and none of them lost."""

from __future__ import annotations

import numpy as np
import pytest

from prony.evidence.trial import Evidence
from prony.judge.checks.samples import SamplesLimits, samples
from prony.judge.figures import figures
from prony.judge.finding import Finding, Kind
from prony.judge.histogram import decode
from prony_selftest.percentile_coverage import rows_of
from tests.judge import factory as f


def judged(evidence: Evidence, limits: SamplesLimits | None = None) -> Finding:
    return samples(evidence, limits or SamplesLimits())


def with_samples(count: int) -> Evidence:
    return f.window(f.healthy(), completed=count, service_time=f.histogram(count=count))


def test_quiet() -> None:
    assert (judged(f.healthy()).kind, judged(f.healthy()).code) == (Kind.FINE, "ok")


@pytest.mark.parametrize(("count", "code"), [(16_000, "ok"), (1522, "ok"), (1521, "few"), (4, "few")])
def test_enough_for_the_percentile_that_was_asked_for(count: int, code: str) -> None:
    """Too few widen the interval of a percentile; they bend nothing."""
    found = judged(with_samples(count))
    assert (found.kind, found.code) == (Kind.FINE, code)
    assert bool(found.advice) is (code == "few")


def test_requests_that_share_a_pause_are_worth_fewer_and_both_numbers_are_reported() -> None:
    evidence = with_samples(3000)
    p99_ns = decode(f.histogram(count=3000)).percentile_ns(99.0)
    evidence = f.window(evidence, duration_s=30.0)
    times = np.full(3000, 0.5 * (p99_ns or 0.0))
    times[500:530] *= 4  # one in a hundred, all in one second
    assert judged(evidence).code == "ok"
    rows = tuple(row.model_copy(update={"t_ms": row.t_ms + f.OPENED_MS}) for row in rows_of(times))
    found = judged(f.engine(evidence, rows=rows))
    assert found.code == "few"
    assert found.reason.startswith("3,000 requests")


def test_a_run_that_is_too_small_keeps_the_figures_it_has() -> None:
    found = figures(with_samples(19))
    assert (found.p50_ms is None, found.p99_ms) == (False, None)
    assert found.mean_ms is not None
    assert found.requests_per_s is not None


def test_p999_of_2000_samples_is_not_printed_and_that_is_reported() -> None:
    evidence = with_samples(2000)
    assert figures(evidence).p99_ms is not None
    assert figures(evidence).p999_ms is None
    assert "15,351" in judged(evidence).reason
    assert judged(evidence, SamplesLimits(samples_required_percentile=99.9)).code == "few"


def test_a_window_that_was_cut_short_is_a_condition() -> None:
    found = judged(f.window(f.healthy(), complete=False))
    assert (found.kind, found.code, bool(found.provided)) == (Kind.PROVIDED, "cut_short", True)


@pytest.mark.parametrize(("reason", "code"), [("schedule", "ok"), ("stopped", "cut_short")])
def test_a_whole_run_that_somebody_ended_is_not_the_protocol(reason: str, code: str) -> None:
    ended = f.engine(f.part(f.healthy(), "load", claim="protocol"), reason=reason)
    assert judged(ended).code == code


def test_a_histogram_that_lost_samples_does_not_conform() -> None:
    found = judged(f.window(f.healthy(), completed=90_000))
    assert (found.kind, found.code) == (Kind.NOT_CONFORMING, "samples_lost")


def test_timeouts_may_be_in_the_histogram() -> None:
    some = f.window(f.healthy(), completed=78_000, failed=2000, errors={"timeout": 2000})
    assert judged(some).code == "ok"


def test_what_was_not_read_and_no_window() -> None:
    blind = judged(f.window(f.healthy(), service_time=None))
    assert (blind.kind, blind.code, bool(blind.provided)) == (Kind.PROVIDED, "unread", True)
    gone = judged(f.healthy().model_copy(update={"engine": None}))
    assert (gone.kind, gone.code) == (Kind.NOT_CONFORMING, "no_window")
