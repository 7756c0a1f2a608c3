"""stall: one thread of the client, or one part of the server, stands still while the rest goes on."""

from __future__ import annotations

from prony.evidence.engine import EngineThread, Gap, StepFigures
from prony.evidence.trial import Evidence
from prony.judge.checks.stall import stall
from prony.judge.finding import Status
from prony.judge.limits import CheckLimits
from prony.judge.verdict import judge
from tests.judge import factory as f

LIMITS = CheckLimits()
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


class TestOneThreadOfTheClient:
    STOOD = (gap(42, 50.4), gap(43, 50.1), gap(44, 50.2))

    def test_its_own_loop_lag_names_the_load_generator(self) -> None:
        finding = stall(with_threads(thread(*self.STOOD, lag_ms=50.3), thread()), LIMITS)
        assert finding.status is Status.SUSPECT
        assert finding.reason == (
            "thread 1 of the load generator's 2 stood still 3 times, 50.4 ms at most, while the others went "
            "on (loop lag 50.3 ms at most): its users' latency is the client's"
        )

    def test_it_need_not_be_ten_times_p99(self) -> None:
        slow = f.window(
            with_threads(thread(*self.STOOD, lag_ms=50.3), thread()), service_time=f.histogram(mean_ms=9.0)
        )
        assert stall(slow, LIMITS).status is Status.SUSPECT
        slower = f.window(slow, service_time=f.histogram(mean_ms=40.0))
        assert stall(slower, LIMITS).status is Status.VALID

    def test_so_does_its_run_delay(self) -> None:
        finding = stall(with_threads(thread(), thread(*self.STOOD, delay_s=0.25)), LIMITS)
        assert finding.status is Status.SUSPECT
        assert "thread 2 of the load generator's 2" in finding.reason
        assert "runnable and not running for 250 ms in all" in finding.reason

    def test_what_a_thread_waits_in_passing_explains_no_gap(self) -> None:
        """0.8 % of a minute is 480 ms, more than the one gap of 400 ms that the server caused."""
        minute = f.window(with_threads(thread(gap(42, 400), delay_s=0.48)), duration_s=60.0)
        alone = f.window(minute, gaps=(gap(42, 400, 10),))
        assert "load generator" not in stall(alone, LIMITS).reason
        waiting = (thread(gap(42, 400), delay_s=1.8), thread(delay_s=1.8))
        assert stall(f.window(minute, threads=waiting), LIMITS).status is Status.VALID

    def test_an_open_loop_does_not_forgive_it(self) -> None:
        stood = f.window(f.open_model(), threads=(thread(*self.STOOD, lag_ms=50.3), thread()))
        assert stall(stood, LIMITS).status is Status.SUSPECT

    def test_a_thread_that_waited_for_the_server_is_not_accused(self) -> None:
        assert stall(with_threads(thread(*self.STOOD), thread()), LIMITS).status is Status.VALID

    def test_gaps_below_the_floor_are_none(self) -> None:
        assert stall(with_threads(thread(gap(42, 45), lag_ms=45), thread()), LIMITS).status is Status.VALID

    def test_a_gap_of_all_is_told_once(self) -> None:
        both = (thread(gap(42, 100), lag_ms=0.5), thread(gap(42.01, 95), lag_ms=0.5))
        finding = stall(with_threads(*both, of_all=(gap(42.005, 95, 10),)), LIMITS)
        assert finding.status is Status.SUSPECT
        assert finding.reason == "1 stall (nothing completed for 95 ms at most), 0.95 % of the window"

    def test_a_gap_of_all_that_every_thread_explains_is_the_clients(self) -> None:
        alone = with_threads(thread(gap(42, 100), lag_ms=99), of_all=(gap(42, 100, 10),))
        finding = stall(alone, LIMITS)
        assert "the load generator itself stood still (loop lag 99 ms at most)" in finding.reason
        assert "--client-cpus" in finding.advice
        in_open = f.window(f.open_model(), threads=alone.engine.window.threads, gaps=(gap(42, 100, 10),))  # type: ignore[union-attr]
        assert stall(in_open, LIMITS).status is Status.SUSPECT

    def test_one_thread_that_cannot_explain_it_leaves_it_to_the_server(self) -> None:
        both = (thread(gap(42, 100), lag_ms=99), thread(gap(42, 100), lag_ms=0.5))
        finding = stall(with_threads(*both, of_all=(gap(42, 100, 10),)), LIMITS)
        assert "load generator" not in finding.reason


class TestOnePartOfTheServer:
    def frozen(self, requests: int, ms: float = 500.0, base: Evidence | None = None) -> Evidence:
        values = [USUAL_NS] * (80_000 - requests) + [int(ms * 1e6)] * requests
        return f.window(base or f.healthy(), service_time=f.of_values(values))

    def test_user_time_in_requests_far_above_p99_is_named(self) -> None:
        # 8 requests of 500 ms among 80,000 of 1.25 ms: 4 of 104 user-seconds, one request in ten thousand.
        finding = stall(self.frozen(8), LIMITS)
        assert finding.status is Status.SUSPECT
        assert "3.85 % of user time was spent in 8 requests far above p99 (longest 500 ms)" in finding.reason
        assert "one of several workers" in finding.reason
        assert "workers" in finding.advice

    def test_a_few_long_requests_are_a_tail_not_a_stall(self) -> None:
        finding = stall(self.frozen(1), LIMITS)
        assert finding.status is Status.VALID
        assert "0.498 % of user time in requests above 50 ms" in finding.reason

    def test_heavy_tails_that_p99_knows_of_are_not_accused(self) -> None:
        """Log-normal with sigma 1.5: the longest of 80,000 takes 700 times the median, 21 times p99."""
        wide = f.window(f.healthy(), service_time=f.histogram(mean_ms=20.0, sigma=1.5))
        assert stall(wide, LIMITS).status is Status.VALID

    def test_an_open_loop_counts_arrivals_and_hides_nothing(self) -> None:
        assert stall(self.frozen(8, base=f.open_model()), LIMITS).status is Status.VALID

    def test_a_stall_of_all_users_is_not_told_as_one_of_a_part(self) -> None:
        of_all = f.window(f.healthy(), gaps=(gap(42, 500, 10),))
        finding = stall(self.frozen(10, base=of_all), LIMITS)
        assert finding.reason.startswith("1 stall")
        assert "while others were answered" not in finding.reason

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
        finding = stall(self.mixed(10), LIMITS)
        assert finding.status is Status.UNKNOWN
        assert (
            "0.5 % of all requests, in most seconds: a kind of work, or a part of the server that freezes"
            in (finding.reason)
        )
        assert "a step of their own" in finding.advice

    def test_that_decides_where_latency_is_claimed(self) -> None:
        """A throughput has the freezes in it; the finding stands beside it."""
        for claim, decides in (("capacity", False), ("latency", True)):
            judged = judge(f.part(self.mixed(10), "load", claim=claim), LIMITS)
            (told,) = (finding for finding in judged.findings if finding.check == "stall")
            assert (told.status, told.essential) == (Status.UNKNOWN, decides)

    def test_where_connections_are_opened_their_times_count(self) -> None:
        """Eight connects of a second among 80,000 requests, as of a full accept queue: 7 % of user time."""
        slow_connects = f.of_values([USUAL_NS] * 79_992 + [1_000_000_000] * 8)
        finding = stall(f.window(f.healthy(), response_time=slow_connects), LIMITS)
        assert finding.status is Status.SUSPECT
        assert "spent in 8 requests far above p99 (longest 1 s)" in finding.reason
        step = StepFigures(
            scenario="main",
            name="1",
            service_time=f.of_values([USUAL_NS] * 80_000),
            response_time=slow_connects,
        )
        of_step = f.window(f.healthy(), steps=(step,), response_time=slow_connects)
        assert stall(of_step, LIMITS).status is Status.SUSPECT

    def test_a_gap_is_held_against_the_times_that_are_printed(self) -> None:
        """Handshakes of 30 ms: a pause of 200 ms is not ten times the p99 that users see."""
        paused = f.window(f.healthy(), gaps=(gap(42, 200, 10),))
        assert stall(paused, LIMITS).status is Status.SUSPECT
        connecting = f.window(paused, response_time=f.histogram(count=3000, mean_ms=30, sigma=0.02))
        assert stall(connecting, LIMITS).status is Status.VALID

    def test_the_same_in_bursts_is_one(self) -> None:
        assert stall(self.mixed(3), LIMITS).status is Status.SUSPECT

    def test_each_step_is_held_against_its_own_p99(self) -> None:
        quick, slow = [2_000_000] * 79_960, [2_000_000_000] * 40
        whole = f.window(f.healthy(), service_time=f.of_values(quick + slow))
        assert stall(whole, LIMITS).status is Status.SUSPECT
        steps = tuple(
            StepFigures(scenario="shop", name=name, completed=len(ns), service_time=f.of_values(ns))
            for name, ns in (("page", quick), ("report", slow))
        )
        assert stall(f.window(whole, steps=steps), LIMITS).status is Status.VALID

    def test_a_gap_takes_the_time_of_all_who_waited_in_it(self) -> None:
        """Ten users who think: 500 ms of 10 s are 5 % of the window, and 40 % of the time in requests."""
        base = f.window(f.healthy(), gaps=(gap(42, 500, 10),))
        values = [USUAL_NS] * 6_000 + [500_000_000] * 10
        finding = stall(f.window(base, service_time=f.of_values(values)), LIMITS)
        assert finding.reason.startswith("1 stall")
        assert "while others were answered" not in finding.reason
