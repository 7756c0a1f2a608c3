"""stall: everybody waits, or one thread of the client, or one part of the server stands still while the rest
goes on.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from prony.evidence.counts import EngineThread, Gap
from prony.evidence.engine import StepFigures
from prony.evidence.trial import Evidence
from prony.judge.checks.stall import StallLimits, stall
from prony.judge.effects import longest
from prony.judge.finding import NO_BIAS, Finding, Kind
from prony.judge.histogram import decode
from tests.judge import factory as f

USUAL_NS = int(f.MEAN_MS * 1e6)


def gap(start_s: float, ms: float, in_flight: int = 5) -> Gap:
    return Gap(start_ms=start_s * 1000, duration_ms=ms, in_flight=in_flight)


def thread(*gaps: Gap, lag_ms: float = 0.9, delay_s: float = 0.02) -> EngineThread:
    return EngineThread(
        cpu_s=4.0,
        wall_s=10.0,
        loop_lag_p99_ns=60_000,
        loop_lag_max_ns=int(lag_ms * 1e6),
        run_delay_s=delay_s,
        timeslices=1000,
        gaps=gaps,
        gaps_total=len(gaps),
    )


def with_threads(*threads: EngineThread, of_all: tuple[Gap, ...] = ()) -> Evidence:
    return f.window(f.healthy(), threads=threads, gaps=of_all, gaps_total=len(of_all))


def judged(evidence: Evidence) -> Finding:
    return stall(evidence, StallLimits())


class TestOneThreadOfTheClient:
    STOOD = (gap(42, 50.4), gap(43, 50.1), gap(44, 50.2))
    """Five requests in flight each time, of 80,000 of 1.25 ms."""

    def test_its_own_loop_lag_names_the_load_generator(self) -> None:
        """150.7 ms of half of the users' ten seconds; 15 requests were late."""
        found = judged(with_threads(thread(*self.STOOD, lag_ms=50.3), thread()))
        assert (found.kind, found.code) == (Kind.BUDGET, "client_stall")
        assert found.of("requests_per_s").high == pytest.approx(0.1507 / 20 / (1 - 0.1507 / 20))
        assert found.of("p50_ms").down < 0.001
        assert re.findall(r"[\d.]+", found.reason)[:4] == ["1", "2", "3", "50.4"]

    def test_it_need_not_be_ten_times_p99(self) -> None:
        stood = with_threads(thread(*self.STOOD, lag_ms=50.3), thread())
        assert judged(f.window(stood, service_time=f.histogram(mean_ms=9.0))).code == "client_stall"
        assert judged(f.window(stood, service_time=f.histogram(mean_ms=40.0))).kind is Kind.FINE

    def test_so_does_its_run_delay(self) -> None:
        found = judged(with_threads(thread(), thread(*self.STOOD, delay_s=0.25)))
        assert found.code == "client_stall"
        assert found.reason.startswith("thread 2 ")

    def test_what_a_thread_waits_in_passing_explains_no_gap(self) -> None:
        """0.8 % of a minute is 480 ms, more than the one gap of 400 ms that the server caused."""
        minute = f.window(with_threads(thread(gap(42, 400), delay_s=0.48)), duration_s=60.0)
        assert judged(f.window(minute, gaps=(gap(42, 400, 10),))).code == "stall"
        waiting = (thread(gap(42, 400), delay_s=1.8), thread(delay_s=1.8))
        assert judged(f.window(minute, threads=waiting)).kind is Kind.FINE

    def test_an_open_loop_does_not_forgive_it(self) -> None:
        """Besides, of each thread half of the requests that were due were late; the rate is given."""
        stood = f.window(f.open_model(), threads=(thread(*self.STOOD, lag_ms=50.3), thread()))
        found = judged(stood)
        assert (found.code, found.of("requests_per_s")) == ("client_stall", NO_BIAS)
        share = 15 / 80_000 + 0.1507 / 20
        assert found.bias == longest(stood, share)

    def test_a_thread_that_waited_for_the_server_is_not_accused(self) -> None:
        assert judged(with_threads(thread(*self.STOOD), thread())).kind is Kind.FINE

    def test_gaps_below_the_floor_are_none(self) -> None:
        assert judged(with_threads(thread(gap(42, 45), lag_ms=45), thread())).kind is Kind.FINE

    def test_a_gap_of_all_is_told_once(self) -> None:
        both = (thread(gap(42, 100), lag_ms=0.5), thread(gap(42.01, 95), lag_ms=0.5))
        found = judged(with_threads(*both, of_all=(gap(42.005, 95, 10),)))
        assert (found.code, re.findall(r"[\d.]+", found.reason)) == ("stall", ["1", "95", "0.95"])

    def test_a_gap_of_all_that_every_thread_explains_is_the_clients(self) -> None:
        alone = with_threads(thread(gap(42, 100), lag_ms=99), of_all=(gap(42, 100, 10),))
        found = judged(alone)
        assert found.code == "client_stall"
        assert found.of("requests_per_s").high == pytest.approx(0.01 / 0.99)
        assert found.of("p99_ms").high == 0.0
        assert alone.engine is not None
        assert alone.engine.window is not None
        opened = f.window(f.open_model(), threads=alone.engine.window.threads, gaps=(gap(42, 100, 10),))
        assert judged(opened).code == "client_stall"

    def test_one_thread_that_cannot_explain_it_leaves_it_to_the_server(self) -> None:
        both = (thread(gap(42, 100), lag_ms=99), thread(gap(42, 100), lag_ms=0.5))
        assert judged(with_threads(*both, of_all=(gap(42, 100, 10),))).code == "stall"


class TestOnePartOfTheServer:
    def frozen(self, requests: int, ms: float = 500.0, base: Evidence | None = None) -> Evidence:
        values = [USUAL_NS] * (80_000 - requests) + [int(ms * 1e6)] * requests
        return f.window(base or f.healthy(), service_time=f.of_values(values))

    def test_a_user_who_comes_at_random_meets_them_more_often(self) -> None:
        """8 requests of 500 ms among 80,000 of 1.25 ms: 4 of 104 user-seconds, one request in ten thousand.
        Weighted by time p99 and p99.9 are 500 ms, of which requests as such show nothing.
        """
        found = judged(self.frozen(8))
        assert (found.kind, found.code) == (Kind.BUDGET, "part_stalled")
        assert found.of("p99_ms").high == pytest.approx(500 / 1.25 - 1, rel=0.01)
        assert found.of("p999_ms").high == pytest.approx(500 / 1.25 - 1, rel=0.01)
        assert found.of("p50_ms") == NO_BIAS
        assert re.findall(r"[\d.]+", found.reason)[:2] == ["3.85", "8"]

    def test_a_few_long_requests_are_a_tail_not_a_stall(self) -> None:
        found = judged(self.frozen(1))
        assert found.kind is Kind.FINE
        assert re.search(r"0\.498 % .* 50 ms", found.reason)

    def test_heavy_tails_that_p99_knows_of_are_not_accused(self) -> None:
        """Log-normal with sigma 1.5: the longest of 80,000 takes 700 times the median, 21 times p99."""
        wide = f.window(f.healthy(), service_time=f.histogram(mean_ms=20.0, sigma=1.5))
        assert judged(wide).kind is Kind.FINE

    def test_an_open_loop_counts_arrivals_and_hides_nothing(self) -> None:
        assert judged(self.frozen(8, base=f.open_model())).kind is Kind.FINE

    def test_a_stall_of_all_users_is_not_told_as_one_of_a_part(self) -> None:
        of_all = f.window(f.healthy(), gaps=(gap(42, 500, 10),))
        found = judged(self.frozen(10, base=of_all))
        assert found.code == "stall"

    def mixed(self, slow_rows: int) -> Evidence:
        """0.5 % of requests to a report of 2 s beside 2 ms ones: in every second, or in some."""
        quick, slow = 2_000_000, 2_000_000_000
        base = f.window(f.healthy(), service_time=f.of_values([quick] * 1990 + [slow] * 10))
        assert base.engine is not None
        rows = [
            row.model_copy(update={"max_ns": slow if at % 10 < slow_rows else quick})
            for at, row in enumerate(base.engine.rows)
        ]
        return f.engine(base, rows=tuple(rows))

    def test_a_frequent_kind_of_work_is_not_told_from_a_regular_freeze(self) -> None:
        """A worker of four that stops for 100 ms in every second holds as many requests as slow work does."""
        found = judged(self.mixed(10))
        assert (found.kind, found.code) == (Kind.PROVIDED, "frequent")
        assert found.advice
        assert judged(self.mixed(3)).code == "part_stalled", "the same in bursts is one"

    def test_where_connections_are_opened_their_times_count(self) -> None:
        """Eight connects of a second among 80,000 requests, as of a full accept queue: 7 % of user time."""
        slow_connects = f.of_values([USUAL_NS] * 79_992 + [1_000_000_000] * 8)
        found = judged(f.window(f.healthy(), response_time=slow_connects))
        assert found.code == "part_stalled"
        assert found.of("p99_ms").high == pytest.approx(1000 / 1.25 - 1, rel=0.01)
        step = StepFigures(
            scenario="main",
            name="1",
            service_time=f.of_values([USUAL_NS] * 80_000),
            response_time=slow_connects,
        )
        of_step = f.window(f.healthy(), steps=(step,), response_time=slow_connects)
        assert judged(of_step).code == "part_stalled"

    def test_a_gap_is_compared_with_the_times_that_are_printed(self) -> None:
        """Handshakes of 30 ms: a pause of 200 ms is not ten times the p99 that users see."""
        paused = f.window(f.healthy(), gaps=(gap(42, 200, 10),))
        assert judged(paused).code == "stall"
        connecting = f.window(paused, response_time=f.histogram(count=3000, mean_ms=30, sigma=0.02))
        assert judged(connecting).kind is Kind.FINE

    def test_each_step_is_compared_with_its_own_p99(self) -> None:
        quick, slow = [2_000_000] * 79_960, [2_000_000_000] * 40
        whole = f.window(f.healthy(), service_time=f.of_values(quick + slow))
        assert judged(whole).code == "part_stalled"
        steps = tuple(
            StepFigures(scenario="shop", name=name, completed=len(ns), service_time=f.of_values(ns))
            for name, ns in (("page", quick), ("report", slow))
        )
        assert judged(f.window(whole, steps=steps)).kind is Kind.FINE

    def test_a_gap_takes_the_time_of_all_who_waited_in_it(self) -> None:
        """Ten users who think: 500 ms of 10 s are 5 % of the window, and 40 % of the time in requests."""
        base = f.window(f.healthy(), gaps=(gap(42, 500, 10),))
        values = [USUAL_NS] * 6_000 + [500_000_000] * 10
        assert judged(f.window(base, service_time=f.of_values(values))).code == "stall"


class TestEverybody:
    def test_quiet(self) -> None:
        assert (judged(f.healthy()).kind, judged(f.healthy()).code) == (Kind.FINE, "ok")

    def test_a_frozen_second_and_what_it_hid(self) -> None:
        """8,000 of 88,000 filled-in waits are spread over (0, 1 s]: 1 % of all are above 890 ms."""
        frozen = f.window(f.healthy(), gaps=(gap(45, 1000, 10),), gaps_total=1)
        found = judged(frozen)
        assert (found.kind, found.code, found.value) == (Kind.BUDGET, "stall", 1000)
        times = decode(f.histogram())
        p99_ms = (times.percentile_ns(99) or 0.0) / 1e6
        assert found.of("p99_ms").high == pytest.approx(890 / p99_ms - 1, rel=0.01)
        assert found.of("p99_ms").low == 0.0

    @pytest.mark.parametrize("gap_ms", [45.0, 20.5])
    def test_short_gaps_are_life(self, gap_ms: float) -> None:
        assert judged(f.window(f.healthy(), gaps=(gap(45, gap_ms, 10),))).kind is Kind.FINE

    def test_a_slow_server_has_long_gaps_by_nature(self) -> None:
        slow = f.window(f.healthy(), service_time=f.histogram(count=660, mean_ms=150, sigma=0.02))
        assert judged(f.window(slow, gaps=(gap(45, 149, 10),))).kind is Kind.FINE

    def test_an_open_loop_shows_it_by_itself(self) -> None:
        found = judged(f.window(f.open_model(), gaps=(gap(45, 1000, 10),)))
        assert found.kind is Kind.FINE
        assert "intended send" in found.reason

    @pytest.mark.parametrize(
        "window",
        [
            {"service_time": f.histogram().model_copy(update={"v2": "HISTFAAA!!"})},
            {"service_time": None},
            {"gaps_total": None},
        ],
    )
    def test_what_was_not_read_is_a_condition(self, window: dict[str, Any]) -> None:
        found = judged(f.window(f.healthy(), **window))
        assert (found.kind, found.code, bool(found.provided)) == (Kind.PROVIDED, "unread", True)
