"""warm: what the JIT compiler took, and what still waits for it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from prony.evidence.trial import Evidence
from prony.judge.checks.warm import WarmLimits, warm
from prony.judge.effects import cpu_spent
from prony.judge.finding import NO_BIAS, Finding, Kind
from tests.judge import factory as f

USED_S = 9.6
"""Of 10 s, by the factory's server."""


def judged(evidence: Evidence) -> Finding:
    found = warm(evidence, WarmLimits())
    assert found is not None
    return found


def jit(seconds: float, classes: int = 0, ran_s: float | None = None) -> Evidence:
    """Compilations took so long, by the JVM's own count; its compilers ran for `ran_s` of it."""
    opened, closed = f.snapshot(40, 20.0), f.snapshot(50, 20.0 + seconds, classes=9000 + classes)
    if ran_s is not None:
        opened = opened.model_copy(update={"compilers_cpu_s": 7.0})
        closed = closed.model_copy(update={"compilers_cpu_s": 7.0 + ran_s})
    return f.part(f.healthy(), "server_window", jvm_open=opened, jvm_close=closed)


def busy(evidence: Evidence, used_s: float) -> Evidence:
    return f.part(evidence, "server_window", cpu_user_s=used_s, cpu_system_s=0.0)


def starved(gain: float = 1.0, **load: Any) -> Evidence:
    """Compilations waited for 5 s of 10 s; the server is `gain` times as fast as in its first seconds."""
    base = f.part(jit(5.0, ran_s=0.0), "load", **load)
    slow = [f.RATE / gain] * 10
    return f.engine(base, rows=f.rows([*slow, *[float(f.RATE)] * 42]))


class TestCompiling:
    def test_quiet(self) -> None:
        assert (judged(jit(0.0)).kind, judged(jit(0.0)).code) == (Kind.FINE, "ok")

    def test_a_busy_server_could_have_served_in_that_time(self) -> None:
        """0.96 of 9.6 s: with the CPU time for requests the rate is up to a ninth higher."""
        found = judged(busy(jit(1.0), 10.0))
        assert (found.kind, found.code) == (Kind.BUDGET, "compiling")
        assert found.value == pytest.approx(0.1)
        assert found.of("requests_per_s").high == pytest.approx(1 / 0.9 - 1)
        assert found.of("mean_ms").low == pytest.approx(-0.1)
        assert found.of("server_cpu_us_per_request").low == pytest.approx(-0.1)

    def test_of_a_server_that_waits_it_takes_little(self) -> None:
        """All of its worker threads wait: 1.06 s of 10 s are used, and 0.34 s of them are the compiler's."""
        found = judged(busy(jit(0.34), 1.06))
        assert found.of("requests_per_s").high == pytest.approx(1 / (1 - 0.034) - 1)
        assert found.of("server_cpu_us_per_request").low == pytest.approx(-0.34 / 1.06)

    def test_an_open_loop_keeps_its_rate(self) -> None:
        base = f.part(f.open_model(), "server_window", jvm_close=f.snapshot(50, 20.2))
        base = busy(f.part(base, "server_window", jvm_open=f.snapshot(40, 20.0)), 5.0)
        found = judged(base)
        assert found.of("requests_per_s") == NO_BIAS
        assert found.value == pytest.approx(0.04)
        assert found.of("mean_ms").low == pytest.approx(cpu_spent(base, 0.04)["mean_ms"].low)

    def test_the_jvm_counts_elapsed_time_which_may_be_more_than_the_cpu_time_there_was(self) -> None:
        found = judged(jit(40.0))
        assert found.value == 1.0
        assert found.of("server_cpu_us_per_request").low is None
        assert "at most" in found.reason
        assert "at most" not in judged(jit(2.0)).reason

    def test_the_compilers_cpu_time_counts_where_it_was_read(self) -> None:
        """Not the ten seconds in which a compilation waited for a CPU."""
        found = judged(jit(10.0, ran_s=0.3))
        assert found.value == pytest.approx(0.3 / USED_S)
        assert found.reason.startswith("0.3 s ")

    def test_loading_a_class_takes_0_3_ms(self) -> None:
        assert judged(jit(0.0, classes=500)).value == pytest.approx(0.15 / USED_S)

    def test_a_protocol_that_includes_the_warm_up_is_not_off_by_it(self) -> None:
        found = judged(f.part(jit(2.0), "load", claim="protocol"))
        assert (found.kind, found.code, found.bias) == (Kind.FINE, "compiling", {})
        assert found.advice != judged(jit(2.0)).advice, "a longer warm-up would be another protocol"

    def test_the_cpu_time_of_the_process_as_the_jvm_counts_it(self) -> None:
        found = judged(f.part(jit(0.95), "server_window", cpu_user_s=None))
        assert found.value == pytest.approx(0.1)


class TestStarved:
    def test_what_waits_is_as_slow_as_in_the_first_seconds(self) -> None:
        """Three times as fast as at first, and for half of the window something waits: 1 + 0.5 × 2."""
        found = judged(starved(3.0))
        assert (found.kind, found.code, bool(found.assumption)) == (Kind.BUDGET, "starved", True)
        assert found.of("requests_per_s").high == pytest.approx(1.0, rel=0.001)
        assert found.of("mean_ms").low == pytest.approx(-0.5, rel=0.001)
        assert found.of("server_cpu_us_per_request").low == pytest.approx(-0.5, rel=0.001)
        assert judged(starved(1.0)).of("requests_per_s").high == 0.0

    def test_without_its_first_seconds_it_is_not_bounded(self) -> None:
        at_once = f.window(starved(3.0), opened_ms=500.0)
        assert judged(at_once).of("requests_per_s").high is None

    def test_where_the_rate_is_given_the_median_shows_it(self) -> None:
        """Half of a cycle is thinking: what halves a response takes a quarter of the cycle."""
        thinking = starved(3.0, think_kind="constant", think_mean_ms=f.MEAN_MS)
        found = judged(f.window(thinking, service_time=f.of_values([int(f.MEAN_MS * 0.95e6)] * 80_000)))
        assert found.of("mean_ms").down > math.log(2) - 0.01
        assert 0.3 < (found.of("requests_per_s").high or 0.0) < 0.4

    def test_the_rate_of_an_open_loop_says_nothing_of_its_warm_up(self) -> None:
        """p50 was three times as long at first; of a window in which code waited for half: 1 + 0.5 × 2."""
        base, waits = f.open_model(), jit(5.0, ran_s=0.0).server_window
        assert base.engine is not None
        rows = [
            row.model_copy(update={"p50_ns": int(f.MEAN_MS * (3e6 if row.t_ms <= 10_000 else 1e6))})
            for row in base.engine.rows
        ]
        base = f.engine(base, rows=tuple(rows)).model_copy(update={"server_window": waits})
        found = judged(f.window(base, latency=f.of_values([int(f.MEAN_MS * 1e6)] * 80_000)))
        assert found.code == "starved"
        assert found.of("mean_ms").low == pytest.approx(-0.5, rel=0.001)
        assert found.of("requests_per_s") == NO_BIAS

    @pytest.mark.parametrize(
        ("seconds", "ran_s", "code"), [(5.0, 4.9, "compiling"), (5.0, 0.02, "starved"), (1.0, 0.0, "ok")]
    )
    def test_only_waiting_counts_and_not_now_and_then(self, seconds: float, ran_s: float, code: str) -> None:
        found = judged(jit(seconds, ran_s=ran_s))
        assert found.code == code
        assert ("closed_users" in found.advice) is (code == "starved")

    def test_where_a_few_users_came_first_it_says_for_longer(self) -> None:
        evidence = jit(5.0, ran_s=0.02)
        had = f.part(evidence, "warm_up", closed_users=4, closed_s=6.0)
        assert "for longer" in judged(had).advice
        assert "for longer" not in judged(evidence).advice


class TestUnread:
    def test_left_out_for_another_runtime(self) -> None:
        node = f.part(f.part(f.healthy(), "server", runtime="node"), "server_window", jvm_open=None)
        assert warm(f.part(node, "server_window", jvm_close=None), WarmLimits()) is None

    def test_an_unread_jvm_is_a_condition(self) -> None:
        untold = f.snapshot(50, 1).model_copy(update={"jit_time_s": None})
        for evidence in (
            f.part(f.healthy(), "server_window", jvm_open=None),
            f.by_url(),
            f.part(f.healthy(), "server_window", jvm_close=untold),
        ):
            found = judged(evidence)
            assert (found.kind, found.code, bool(found.provided)) == (Kind.PROVIDED, "unread", True)
