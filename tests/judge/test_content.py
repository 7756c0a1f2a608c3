"""content and conformance: right responses."""

from __future__ import annotations

from typing import Any

import pytest

from prony.evidence.counts import BodyCount, ResponseCount
from prony.evidence.server import Probe
from prony.evidence.trial import ConformanceFacts, Evidence, Nonconformity
from prony.judge.checks.conformance import conformance
from prony.judge.checks.content import content
from prony.judge.checks.errors import errors
from prony.judge.finding import Finding, Kind
from prony.judge.limits import CheckLimits
from prony.plan.response import Expectation
from prony.plan.step import Step
from prony.plan.workload import Workload
from tests.judge import factory as f

LIMITS = CheckLimits()
RIGHT, OTHER = "0" * 16, "1" * 16
NOT_CONFORMING, BUDGET, PROVIDED, FINE = Kind


class TestContent:
    def declared(self, **window: Any) -> Evidence:
        return f.window(f.part(f.healthy(), "load", content_declared=True), **window)

    def test_quiet(self) -> None:
        for quiet in (f.healthy(), self.declared()):
            assert f.kind_code(content(quiet, LIMITS)) == (FINE, "ok")
            assert content(quiet, LIMITS).bias == {}

    @pytest.mark.parametrize(("wrong", "kind"), [(1, BUDGET), (800, BUDGET), (1600, NOT_CONFORMING)])
    def test_responses_that_miss_the_declaration(self, wrong: int, kind: Kind) -> None:
        finding = content(self.declared(failed=wrong, errors={"expect_body": wrong}), LIMITS)
        assert f.kind_code(finding) == (kind, "wrong_responses")
        assert finding.value == pytest.approx(wrong / 80_000)

    @pytest.mark.parametrize("wrong_ms", [1, 200])
    def test_right_ones_in_their_place_are_within_the_bound(self, wrong_ms: int) -> None:
        """One in a hundred had a wrong response, after 1 or 200 ms; the right ones take 51 to 149 ms."""
        right = [ms * 1_000_000 for ms in range(51, 150)]
        times = f.of_values([*right, wrong_ms * 1_000_000], 80_000)
        finding = content(self.declared(failed=800, errors={"expect_body": 800}, service_time=times), LIMITS)
        assert finding.kind is BUDGET
        rate, mean, p50 = (finding.bias[name] for name in ("requests_per_s", "mean_ms", "p50_ms"))
        # Without the wrong ones 99 % of the requests, with right ones in their place 1 ÷ 99 % at most.
        assert [rate.low, rate.high] == pytest.approx([-0.01, 1 / 0.99 - 1])
        assert times.mean_ns is not None
        for bias, measured, true in (
            (mean, times.mean_ns / 1e6, 100),
            (p50, 100 if wrong_ms > 100 else 99, 100),
        ):
            assert bias.low is not None
            assert bias.high is not None
            assert measured * (1 + bias.low) <= true * 1.002
            assert measured * (1 + bias.high) >= true * 0.998
            assert bias.size < 0.03
        assert errors(self.declared(failed=800, errors={"expect_body": 800}), LIMITS).bias == {}, "told once"

    def test_an_error_page_with_200_differs_from_the_probe(self) -> None:
        responses = (
            ResponseCount(status=200, body_bytes=f.BODY, count=79_200),
            ResponseCount(status=200, body_bytes=512, count=800),
        )
        finding = content(f.window(f.healthy(), answers=responses), LIMITS)
        assert f.kind_code(finding) == (PROVIDED, "differ")
        assert finding.value == pytest.approx(0.01)
        assert finding.bias == {}

    def test_responses_beyond_the_table_count_as_different(self) -> None:
        assert f.kind_code(content(f.window(f.healthy(), answers_other=5), LIMITS)) == (PROVIDED, "differ")

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
        assert f.kind_code(content(f.window(two, answers=responses), LIMITS)) == (FINE, "ok")

    @pytest.mark.parametrize(
        ("counts", "code"),
        [
            ({RIGHT: 1000}, "ok"),
            ({RIGHT: 999, OTHER: 1}, "other_body"),
            ({RIGHT: 500, OTHER: 500}, "other_body"),
            ({OTHER: 1000}, "changed_once"),
            ({OTHER: 9}, "ok"),  # too few
            ({OTHER: 500, "2" * 16: 500}, "ok"),  # changes with the time
            ({None: 900, RIGHT: 100}, "ok"),  # each is another
            ({None: 1000}, "ok"),
        ],
    )
    @pytest.mark.parametrize("declared", [True, False])
    def test_sampled_bodies_are_the_preflights_where_that_is_the_usual_one(
        self, counts: dict[str | None, int], code: str, declared: bool
    ) -> None:
        if code == "changed_once":
            code = "ok" if declared else "other_body"
        bodies = tuple(
            BodyCount(scenario="main", step="a", sha256=body, count=count) for body, count in counts.items()
        )
        (probe,) = f.healthy().probes
        known = probe.model_copy(update={"step": "a", "body_sha256": RIGHT})
        base = f.part(f.healthy(), "load", content_declared=declared, constant=True)
        base = f.window(base.model_copy(update={"probes": (known,)}), bodies=bodies)
        assert f.kind_code(content(base, LIMITS)) == (FINE if code == "ok" else PROVIDED, code)
        for without in (
            f.part(base, "load", constant=False),
            base.model_copy(update={"probes": (probe.model_copy(update={"step": "a"}),)}),
        ):
            assert content(without, LIMITS).code == "ok"

    def test_a_probe_that_was_redirected_proves_nothing(self) -> None:
        away = f.healthy().model_copy(
            update={"probes": (Probe(step="a", status=302, body_bytes=0, meets_expectation=True),)}
        )
        away = f.window(away, answers=(ResponseCount(status=302, body_bytes=0, count=80_000),))
        assert f.kind_code(content(away, LIMITS)) == (PROVIDED, "status")

    @pytest.mark.parametrize(("status", "code"), [(302, "ok"), (500, "status")])
    def test_without_a_request_before_the_load_the_most_frequent_response_is_the_usual_one(
        self, status: int, code: str
    ) -> None:
        usual = ResponseCount(status=status, body_bytes=0, count=79_000)
        alone = f.part(f.healthy().model_copy(update={"probes": ()}), "load", preflight=False)
        assert content(f.window(alone, answers=(usual,)), LIMITS).code == code
        odd = (usual, usual.model_copy(update={"status": 200, "count": 1000}))
        found = content(f.window(alone, answers=odd), LIMITS)
        assert f.kind_code(found) == (PROVIDED, "differ")
        assert found.value == pytest.approx(1 / 80)

    def test_a_wrong_probe_does_not_conform(self) -> None:
        wrong = f.healthy().model_copy(
            update={
                "probes": (
                    Probe(step="a", status=500, body_bytes=9, meets_expectation=False, why_not="status 500"),
                )
            }
        )
        assert f.kind_code(content(wrong, LIMITS)) == (NOT_CONFORMING, "preflight")

    def test_without_a_window_there_is_no_figure(self) -> None:
        finding = content(f.engine(f.healthy(), window=None), LIMITS)
        assert f.kind_code(finding) == (NOT_CONFORMING, "no_window")

    def test_without_probe_or_declaration_it_is_a_condition(self) -> None:
        nobody = f.healthy().model_copy(update={"probes": ()})
        for unread in (nobody, f.window(f.healthy(), answers=()), self.declared(completed=0, answers=())):
            assert f.kind_code(content(unread, LIMITS)) == (PROVIDED, "unread")


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
        assert f.kind_code(finding) == (FINE, "ok")
        assert finding is not None
        assert finding.value == "passed 3 of 3"

    def test_with_wrong_responses_no_figure_conforms(self) -> None:
        finding = self.found(failed=(self.WRONG,))
        assert finding is not None
        assert (finding.conforms, finding.code) == (False, "wrong_responses")

    def test_whatever_else_is_not_as_expected_is_a_condition(self) -> None:
        finding = self.found(failed=(self.CLOSES,))
        assert f.kind_code(finding) == (PROVIDED, "deviation")
        assert finding is not None
        assert self.CLOSES.found in finding.reason
        assert finding.advice

    def test_what_is_declared_is_reported_and_is_no_fault(self) -> None:
        finding = self.found(declared=(self.CLOSES,), passed=3)
        assert f.kind_code(finding) == (FINE, "ok")
        assert finding is not None
        assert self.CLOSES.found in finding.reason

    def test_nobody_asked(self) -> None:
        assert conformance(f.by_url(), LIMITS) is None


class TestStatusOnly:
    """Only the status is declared: a page that is cut short is still another page."""

    def judged(self, sizes: dict[int, int], wrong: int = 0, **load: bool) -> Finding:
        counts = tuple(
            ResponseCount(status=200, body_bytes=size, count=count) for size, count in sizes.items()
        )
        base = f.part(f.healthy(), "load", content_declared=True, **load)
        missed = {"failed": wrong, "errors": {"expect_status": wrong}}
        return content(f.window(base, answers=counts, **missed), LIMITS)

    def test_cut_pages_are_seen(self) -> None:
        sizes = {f.BODY: 9_800, f.BODY // 2: 200}
        assert f.kind_code(self.judged(sizes, length_from_preflight=True)) == (PROVIDED, "differ")
        assert f.kind_code(self.judged(sizes)) == (FINE, "ok"), "a body that is declared may have any length"
        both = self.judged(sizes, wrong=400, length_from_preflight=True)
        assert (both.kind, both.code, bool(both.provided)) == (BUDGET, "wrong_responses", True)
        assert both.bias["requests_per_s"].low == pytest.approx(-0.005)

    def test_whole_pages_pass(self) -> None:
        assert f.kind_code(self.judged({f.BODY: 10_000}, length_from_preflight=True)) == (FINE, "ok")

    def test_a_workload_knows_when_its_lengths_are_fixed(self) -> None:
        def one(**step: Any) -> bool:
            return Workload(name="w", steps=(Step(path="/", **step),)).length_from_preflight

        assert one(expect=Expectation(status=(200,)))
        assert not one(expect=Expectation(status=(200,), body_contains=("x",)))
        assert not one(expect=Expectation(status=(200, 304)))
        assert not one(expect=Expectation(status=(200,)), headers={"X": "${name}"})
        assert not one()
