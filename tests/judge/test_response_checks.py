"""samples: enough responses."""

from __future__ import annotations

import numpy as np
import pytest

from prony.evidence.trial import Evidence
from prony.judge.checks.samples import SamplesLimits, samples
from prony.judge.figures import figures
from prony.judge.finding import Status
from prony.judge.histogram import decode
from prony.judge.limits import CheckLimits
from prony.judge.verdict import judge
from prony.selftest.percentile_coverage import rows_of
from tests.judge import factory as f

LIMITS = CheckLimits()


def with_samples(count: int) -> Evidence:
    return f.window(f.healthy(), completed=count, service_time=f.histogram(count=count))


class TestSamples:
    def test_quiet(self) -> None:
        assert samples(f.healthy(), LIMITS).status is Status.VALID

    @pytest.mark.parametrize(
        ("count", "status"),
        [(16_000, Status.VALID), (1522, Status.VALID), (1521, Status.UNKNOWN), (4, Status.UNKNOWN)],
    )
    def test_enough_for_the_percentile_that_was_asked_for(self, count: int, status: Status) -> None:
        assert samples(with_samples(count), LIMITS).status is status

    def test_requests_that_share_a_pause_are_worth_fewer_and_both_numbers_are_said(self) -> None:
        evidence = with_samples(3000)
        p99_ns = decode(f.histogram(count=3000)).percentile_ns(99.0)
        evidence = f.window(evidence, duration_s=30.0)
        times = np.full(3000, 0.5 * (p99_ns or 0.0))
        times[500:530] *= 4  # one in a hundred, all in one second
        assert samples(evidence, LIMITS).status is Status.VALID
        rows = tuple(row.model_copy(update={"t_ms": row.t_ms + f.OPENED_MS}) for row in rows_of(times))
        found = samples(f.engine(evidence, rows=rows), LIMITS)
        assert found.status is Status.UNKNOWN
        assert found.reason.startswith("3,000 requests, which count as ")
        assert "independent ones for p99 because the seconds differ by more than chance" in found.reason
        assert "no useful upper bound for p99 (needs 1,522 independent ones, has " in found.reason
        assert "go by the interval, or measure longer" in found.reason

    def test_a_run_that_is_too_small_is_unknown_and_keeps_the_figures_it_has(self) -> None:
        assert (
            judge(f.healthy(), CheckLimits.model_validate({"samples_required_percentile": 99.999})).verdict
            is Status.UNKNOWN
        )
        few = with_samples(19)
        found = figures(few)
        assert (found.p50_ms is None, found.p99_ms) == (False, None)
        assert found.mean_ms is not None
        assert found.requests_per_s is not None

    def test_p999_of_2000_samples_is_not_printed_and_that_is_said(self) -> None:
        evidence = with_samples(2000)
        assert figures(evidence).p99_ms is not None
        assert figures(evidence).p999_ms is None
        assert "p99.9 (needs 15,351)" in samples(evidence, LIMITS).reason
        asked = SamplesLimits(samples_required_percentile=99.9)
        assert samples(evidence, asked).status is Status.UNKNOWN

    def test_a_window_that_was_cut_short(self) -> None:
        assert samples(f.window(f.healthy(), complete=False), LIMITS).status is Status.SUSPECT

    def test_a_histogram_that_lost_samples(self) -> None:
        assert samples(f.window(f.healthy(), completed=90_000), LIMITS).status is Status.INVALID

    def test_timeouts_may_be_in_the_histogram(self) -> None:
        some = f.window(f.healthy(), completed=78_000, failed=2000, errors={"timeout": 2000})
        assert samples(some, LIMITS).status is Status.VALID

    def test_no_histogram_is_unknown(self) -> None:
        assert samples(f.window(f.healthy(), service_time=None), LIMITS).status is Status.UNKNOWN
