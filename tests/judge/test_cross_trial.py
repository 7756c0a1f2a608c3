"""What trials say about each other: clock and responses."""

from __future__ import annotations

from typing import Any

import pytest

from prony.evidence.host import HostRow
from prony.evidence.server import Probe
from prony.evidence.trial import Evidence
from prony.judge.checks.host import HostLimits, host
from prony.judge.cross_trial import JudgedTrial, clock, responses
from prony.judge.finding import Kind
from tests.judge import factory as f


def with_clock(*mhz: float) -> Evidence:
    """Window rows of a second each with these clocks, full clock at both edges."""
    rows = tuple(
        HostRow(t_ms=f.OPENED_MS + 1000 * (n + 1), duration_ms=1000.0, mhz=value)
        for n, value in enumerate(mhz)
    )
    return f.healthy().model_copy(update={"host_rows": rows})


def with_response(
    status: int = 200, size: int = 64, digest: str = "a", media: str = "text/plain"
) -> Evidence:
    probe = Probe(
        step="hello",
        status=status,
        body_bytes=size,
        content_type=media,
        meets_expectation=True,
        body_digest=digest,
    )
    return f.healthy().model_copy(update={"probes": (probe,)})


def trials(**servers: tuple[Evidence, ...]) -> list[JudgedTrial]:
    return [JudgedTrial(s, block, e) for s, each in servers.items() for block, e in enumerate(each)]


class TestClock:
    def test_a_dip_inside_the_window_is_seen_though_both_edges_are_full(self) -> None:
        found = host(with_clock(2600, 2600, 1800, 1800, 1800, 2600), HostLimits())
        assert found.code == "slower_clock"
        assert found.value == pytest.approx(1 - 1800 / 2600)
        cycles = 1 - 0.5 * (1 - 1800 / 2600)  # of a level clock, for half of the window
        assert found.of("requests_per_s").high == pytest.approx(1 / cycles - 1)

    def test_one_low_second_is_a_reading_between_requests(self) -> None:
        assert host(with_clock(*[2600] * 9, 1800), HostLimits()).kind is Kind.FINE

    def test_a_trial_with_a_lower_clock_than_the_others_is_named(self) -> None:
        found = clock(trials(a=(with_clock(2600, 2600), with_clock(2600, 2590)), b=(with_clock(2000, 2000),)))
        assert found is not None
        assert (f.kind_code(found), found.outside) == ((Kind.BUDGET, "slower"), True)
        assert found.value == pytest.approx(6 / 26)
        assert "b in block 1" in found.reason
        assert found.advice

    def test_the_bias_of_the_slower_trial_is_what_its_clock_lacks(self) -> None:
        """A million cycles take 385 µs at 2,600 MHz and 500 µs at 2,000: 2,600 or 2,000 requests a second."""
        found = clock(trials(a=(with_clock(2600),), b=(with_clock(2000),)))
        assert found is not None
        rate = found.bias["requests_per_s"]
        assert [rate.low, rate.high] == pytest.approx([0, 2600 / 2000 - 1])
        for name in ("mean_ms", "p50_ms", "p99_ms", "server_cpu_us_per_request"):
            assert [found.bias[name].low, found.bias[name].high] == pytest.approx([2000 / 2600 - 1, 0])

    def test_equal_clocks_are_no_finding_and_unread_ones_none(self) -> None:
        level = clock(trials(a=(with_clock(2600),), b=(with_clock(2580),)))
        assert level is not None
        assert (f.kind_code(level), level.bias, level.outside) == ((Kind.FINE, "ok"), {}, False)
        assert clock(trials(a=(f.healthy(),), b=(f.healthy(),))) is None


class TestResponses:
    def test_equal_ones_pass_whatever_the_charset(self) -> None:
        found = responses(trials(a=(with_response(),), b=(with_response(media="text/plain;charset=UTF-8"),)))
        assert f.kind_code(found) == (Kind.FINE, "ok")

    @pytest.mark.parametrize(
        ("other", "kind", "code"),
        [
            (with_response(status=404), Kind.NOT_CONFORMING, "status"),
            (with_response(size=32), Kind.NOT_CONFORMING, "length"),
            (with_response(media="text/html"), Kind.PROVIDED, "media_type"),
            (with_response(digest="b"), Kind.PROVIDED, "content"),
            (with_response(size=60, digest="b"), Kind.PROVIDED, "content"),
        ],
    )
    def test_another_status_or_length_is_other_work_and_other_content_may_be(
        self, other: Evidence, kind: Kind, code: str
    ) -> None:
        found = responses(trials(a=(with_response(),) * 2, b=(other,) * 2))
        assert f.kind_code(found) == (kind, code)
        assert found is not None
        assert (found.bias, bool(found.advice)) == ({}, True)

    @pytest.mark.parametrize(
        ("other", "kind", "code"),
        [
            (with_response(size=32, digest="b"), Kind.PROVIDED, "length"),
            (with_response(digest="b"), Kind.FINE, "ok"),
            (with_response(status=404), Kind.NOT_CONFORMING, "status"),
        ],
    )
    def test_where_the_question_makes_them_differ_the_rest_still_holds(
        self, other: Evidence, kind: Kind, code: str
    ) -> None:
        why = "each lists its own metrics"
        found = responses(trials(a=(with_response(),), b=(other,)), why)
        assert f.kind_code(found) == (kind, code)
        assert found is not None
        assert found.reason.endswith(why) == (code != "ok")

    def test_of_a_declared_difference_nobody_is_to_make_the_servers_equal(self) -> None:
        pair = trials(a=(with_response(),), b=(with_response(size=32),))
        told_so, undeclared = responses(pair, "each lists its own metrics"), responses(pair)
        assert told_so is not None
        assert undeclared is not None
        assert told_so.advice != undeclared.advice

    def test_the_gravest_of_several_steps_is_the_code(self) -> None:
        def two_steps(**second: Any) -> Evidence:
            (probe,), (other,) = (
                with_response(digest=second.get("digest", "a")).probes,
                with_response().probes,
            )
            return f.healthy().model_copy(
                update={"probes": (probe, other.model_copy(update={"step": "page", **second}))}
            )

        found = responses(trials(a=(two_steps(),), b=(two_steps(status=500, digest="b"),)))
        assert found is not None
        assert (found.conforms, found.code) == (False, "status")
        assert found.provided, "for the other step"

    def test_what_one_servers_own_trials_differ_in_is_not_compared(self) -> None:
        dated = (with_response(digest="mon"), with_response(digest="tue"))
        found = responses(trials(a=dated, b=(with_response(digest="wed"), with_response(digest="thu"))))
        assert f.kind_code(found) == (Kind.FINE, "ok")

    def test_one_server_has_nobody_to_differ_from_and_no_probe_is_a_condition(self) -> None:
        assert responses(trials(a=(with_response(),))) is None
        silent = f.healthy().model_copy(update={"probes": ()})
        assert f.kind_code(responses(trials(a=(silent,), b=(silent,)))) == (Kind.PROVIDED, "unread")
