"""samples and content: enough responses, and right ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from prony.evidence.engine import ResponseCount
from prony.evidence.server import Probe
from prony.evidence.trial import ConformanceFacts, Evidence, Nonconformity
from prony.judge.checks.conformance import conformance
from prony.judge.checks.content import content
from prony.judge.checks.samples import SamplesLimits, samples
from prony.judge.figures import figures
from prony.judge.finding import Finding, Status
from prony.judge.histogram import decode
from prony.judge.limits import CheckLimits
from prony.judge.verdict import judge
from prony.plan.response import Expectation
from prony.plan.step import Step
from prony.plan.workload import Workload
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


class TestContent:
    def declared(self, **window: Any) -> Evidence:
        return f.window(f.part(f.healthy(), "load", content_declared=True), **window)

    def test_quiet(self) -> None:
        assert content(f.healthy(), LIMITS).status is Status.VALID
        assert content(self.declared(), LIMITS).status is Status.VALID

    @pytest.mark.parametrize(("wrong", "status"), [(1, Status.SUSPECT), (1600, Status.INVALID)])
    def test_responses_that_miss_the_declaration(self, wrong: int, status: Status) -> None:
        finding = content(self.declared(failed=wrong, errors={"expect_body": wrong}), LIMITS)
        assert finding.status is status
        assert "expect_body" in finding.reason

    def test_an_error_page_with_200_differs_from_the_probe(self) -> None:
        responses = (
            ResponseCount(status=200, body_bytes=f.BODY, count=79_200),
            ResponseCount(status=200, body_bytes=512, count=800),
        )
        finding = content(f.window(f.healthy(), answers=responses), LIMITS)
        assert finding.status is Status.SUSPECT
        assert finding.value == pytest.approx(0.01)
        assert "512 bytes" in finding.reason
        assert "expect" in finding.advice

    def test_responses_beyond_the_table_count_as_different(self) -> None:
        assert content(f.window(f.healthy(), answers_other=5), LIMITS).status is Status.SUSPECT

    def test_each_step_has_its_own_probe(self) -> None:
        two = f.healthy().model_copy(
            update={
                "probes": (
                    Probe(step="a", status=200, body_bytes=f.BODY, meets_expectation=True),
                    Probe(step="b", status=201, body_bytes=20, meets_expectation=True),
                )
            }
        )
        responses = (
            ResponseCount(status=200, body_bytes=f.BODY, count=40_000),
            ResponseCount(status=201, body_bytes=20, count=40_000),
        )
        assert content(f.window(two, answers=responses), LIMITS).status is Status.VALID

    def test_a_probe_that_was_redirected_proves_nothing(self) -> None:
        away = f.healthy().model_copy(
            update={"probes": (Probe(step="a", status=302, body_bytes=0, meets_expectation=True),)}
        )
        away = f.window(away, answers=(ResponseCount(status=302, body_bytes=0, count=80_000),))
        assert content(away, LIMITS).status is Status.SUSPECT

    def test_a_wrong_probe_is_invalid(self) -> None:
        wrong = f.healthy().model_copy(
            update={
                "probes": (
                    Probe(step="a", status=500, body_bytes=9, meets_expectation=False, why_not="status 500"),
                )
            }
        )
        finding = content(wrong, LIMITS)
        assert finding.status is Status.INVALID
        assert "status 500" in finding.reason

    def test_without_probe_or_declaration_unknown(self) -> None:
        assert content(f.healthy().model_copy(update={"probes": ()}), LIMITS).status is Status.UNKNOWN
        assert content(f.window(f.healthy(), answers=()), LIMITS).status is Status.UNKNOWN


class TestConformance:
    """What was found before the first trial stands in every trial."""

    WRONG = Nonconformity(check="answers", found="hello: status 500, expected 200", expected="as declared")
    CLOSES = Nonconformity(
        check="keep-alive", found="20 responses on 20 connections", expected="1 connection"
    )

    def found(self, **facts: object) -> Finding | None:
        known = ConformanceFacts.model_validate({"passed": 2, "checks": 3, **facts})
        return conformance(f.healthy().model_copy(update={"conformance": known}), LIMITS)

    def test_quiet(self) -> None:
        finding = conformance(f.healthy(), LIMITS)
        assert finding is not None
        assert finding.status is Status.VALID
        assert finding.reason.startswith("passed 3 of 3")

    def test_wrong_responses_make_every_figure_invalid(self) -> None:
        finding = self.found(failed=(self.WRONG,))
        assert finding is not None
        assert finding.status is Status.INVALID
        assert "hello: status 500" in finding.reason
        assert "prony servers check spring-tomcat" in finding.advice

    def test_whatever_else_is_not_as_expected_is_suspect(self) -> None:
        finding = self.found(failed=(self.CLOSES,))
        assert finding is not None
        assert finding.status is Status.SUSPECT
        assert "20 responses on 20 connections, expected 1 connection" in finding.reason

    def test_what_is_declared_is_said_and_is_no_fault(self) -> None:
        finding = self.found(declared=(self.CLOSES,), passed=3)
        assert finding is not None
        assert finding.status is Status.VALID
        assert "as declared: keep-alive" in finding.reason

    def test_nobody_asked(self) -> None:
        assert conformance(f.by_url(), LIMITS) is None


class TestStatusOnly:
    """Only the status is declared: a page that is cut short is still another page."""

    def judged(self, sizes: dict[int, int], **load: bool) -> Status:
        counts = tuple(
            ResponseCount(status=200, body_bytes=size, count=count) for size, count in sizes.items()
        )
        base = f.part(f.healthy(), "load", content_declared=True, **load)
        found = content(f.window(base, answers=counts), LIMITS)
        assert found is not None
        return found.status

    def test_cut_pages_are_seen(self) -> None:
        sizes = {f.BODY: 9_800, f.BODY // 2: 200}
        assert self.judged(sizes, length_from_preflight=True) is Status.SUSPECT
        assert self.judged(sizes) is Status.VALID, "a body that is declared may have any length"

    def test_whole_pages_pass(self) -> None:
        assert self.judged({f.BODY: 10_000}, length_from_preflight=True) is Status.VALID

    def test_a_workload_knows_when_its_lengths_are_fixed(self) -> None:
        def one(**step: Any) -> bool:
            return Workload(name="w", steps=(Step(path="/", **step),)).length_from_preflight

        assert one(expect=Expectation(status=(200,)))
        assert not one(expect=Expectation(status=(200,), body_contains=("x",)))
        assert not one(expect=Expectation(status=(200, 304)))
        assert not one(expect=Expectation(status=(200,)), headers={"X": "${name}"})
        assert not one()
