"""client: what the load generator took of the users' time is a bound; two signals call it saturated."""

from __future__ import annotations

import re
from typing import Any

import pytest

from prony.evidence.counts import EngineThread
from prony.evidence.server import CgroupThrottle, ThreadUse
from prony.evidence.trial import Evidence
from prony.judge.checks.bound_by import BoundLimits, bound, bound_by
from prony.judge.checks.client import ClientLimits, client
from prony.judge.finding import NO_BIAS, PERCENTILES, Finding, Kind
from tests.judge import factory as f

LIMITS = BoundLimits()
ROOM = f.part(
    f.window(f.healthy(), users_integral_s=100.0, clipped_turnaround_s=0.0),
    "server_window",
    cpu_user_s=6.0,
    cpu_system_s=0.0,
)
"""Its server had 40 % of its CPU left, so that a faster client could have had two thirds more of it."""


def judged(evidence: Evidence) -> Finding:
    return client(evidence, LIMITS)


def of(**changes: Any) -> Finding:
    return judged(f.window(ROOM, **changes))


def thread(mean_us: float, p50_us: float, p99_us: float, **more: Any) -> EngineThread:
    """That looked at responses so long after their arrival."""
    values = {
        "cpu": 1,
        "cpu_s": 4.0,
        "wall_s": 10.0,
        "reads": 20_000,
        "reads_stamped": 1_250,
        "receive_delay_mean_ns": round(mean_us * 1000),
        "receive_delay_p50_ns": round(p50_us * 1000),
        "receive_delay_p99_ns": round(p99_us * 1000),
        "run_delay_s": 0.0,
        "timeslices": 1,
    }
    return EngineThread.model_validate(values | more)


def took(ms: float, count: int = 80_000) -> dict[str, Any]:
    times = f.of_values([int(ms * 1e6)] * count)
    return {"service_time": times, "service_time_sum_s": count * ms / 1000, "completed": count}


PROMPT = thread(3.2, 3, 9)
"""No later than an ordinary wake-up."""


class TestBias:
    def test_quiet(self) -> None:
        found = of(threads=(PROMPT,))
        assert (found.kind, found.code) == (Kind.FINE, "ok")

    def test_what_lies_between_a_response_and_the_next_request(self) -> None:
        """A tenth of the users' time: without it the rate would have been a ninth higher."""
        found = of(threads=(PROMPT,), clipped_turnaround_s=10.0)
        late = 0.2e-6 / (100 / 80_000)
        share = 0.1 + late
        assert found.of("requests_per_s").high == pytest.approx(share / (1 - share), rel=0.001)
        assert found.of("mean_ms").high == pytest.approx(1 / 0.9 - 1)

    def test_no_more_than_the_server_had_room_for(self) -> None:
        """64 users, an epoll server at 98 % of its CPU: 2 % more at most."""
        full = f.part(ROOM, "server_window", cpu_user_s=9.8)
        found = judged(f.window(full, threads=(PROMPT,), clipped_turnaround_s=10.0))
        assert found.of("requests_per_s").high == pytest.approx(1 / 0.98 - 1)

    @pytest.mark.parametrize(("mean_us", "p50_us"), [(60, 12), (60, 2)])
    def test_the_age_of_responses_is_in_every_time(self, mean_us: float, p50_us: float) -> None:
        """Of 1 ms a mean age of 60 µs, of which 10 µs, or the median if that is less, are a wake-up."""
        found = of(threads=(thread(mean_us, p50_us, 200),), **took(1.0))
        share = (mean_us - min(p50_us, 10)) / 1000
        assert found.of("mean_ms").low == pytest.approx(-share, rel=0.01)
        assert found.of("p50_ms").low == pytest.approx(-share, rel=0.02)
        assert -0.21 < (found.of("p95_ms").low or 0.0) < -0.99 * share
        assert found.of("requests_per_s").high == pytest.approx(share * 0.8 / (1 - share * 0.8), rel=0.01)

    def test_threads_count_by_what_they_read(self) -> None:
        late, prompt = thread(60, 10, 200), thread(10, 10, 200, reads=60_000)
        found = of(threads=(late, prompt), **took(1.0))
        assert found.of("mean_ms").low == pytest.approx(-0.05 / 4, rel=0.01)

    def test_one_in_a_hundred_may_be_later_than_any_that_is_known(self) -> None:
        """A thread that stands still for 50 ms every ten seconds: 0.5 % of the responses, of 1.25 ms."""
        times = f.of_values([1_250_000] * 79_600 + [25_000_000] * 400)
        found = of(threads=(thread(127, 3, 10),), service_time=times, completed=80_000)
        assert found.of("p999_ms").low == pytest.approx(1.25 / 25 - 1, abs=0.02)
        assert found.of("p50_ms").down < 0.12

    def test_without_time_stamps_loop_lag_and_waits_take_their_place(self) -> None:
        """60 µs and 4 % of the time that it waited for a CPU, of 1 ms."""
        plain = EngineThread(cpu_s=1, wall_s=10, loop_lag_p99_ns=60_000, run_delay_s=0.4, timeslices=1000)
        assert of(threads=(plain,), **took(1.0)).of("mean_ms").low == pytest.approx(-0.1)
        few = plain.model_copy(update={"reads": 20_000, "reads_stamped": 499, "receive_delay_p99_ns": 5})
        assert of(threads=(few,), **took(1.0)).of("mean_ms").low == pytest.approx(-0.1)

    def test_a_busy_client_without_time_stamps_is_bounded_by_the_server_alone(self) -> None:
        """How late it was is not known: two thirds more is what the server's CPU had left."""
        busy = f.threads(0.9)
        assert of(threads=busy).of("requests_per_s").high == pytest.approx(1 / 0.6 - 1)
        unread = judged(f.window(f.by_url(), threads=busy, users_integral_s=100.0))
        assert unread.of("requests_per_s").high is None
        assert unread.of("p50_ms").low is not None
        stamped = thread(8, 3, 9, cpu_s=9.0)
        assert of(threads=(stamped,)).of("requests_per_s").up < 0.01

    def test_an_open_loop_keeps_its_rate(self) -> None:
        found = judged(f.window(f.open_model(), threads=(thread(60, 10, 200),), clipped_turnaround_s=30.0))
        assert found.of("requests_per_s") == NO_BIAS
        assert found.of("mean_ms").low == pytest.approx(-0.05 / 1.25, rel=0.01)

    def test_a_single_user_waits_for_nobody_else(self) -> None:
        one = f.part(ROOM, "load", users=1)
        found = judged(f.window(one, threads=(thread(60, 10, 200),), clipped_turnaround_s=10.0))
        assert {found.of(name).high for name in ("mean_ms", *PERCENTILES)} == {0.0}

    def test_what_the_kernel_put_off_is_a_condition(self) -> None:
        found = of(threads=(PROMPT,), submissions_put_off=3)
        assert (found.code, bool(found.provided)) == ("busy", True)


class TestSignals:
    def test_one_is_not_enough(self) -> None:
        assert of(threads=f.threads(0.9)).code == "busy"
        assert of(threads=f.threads(0.4, lag_ms=1.5)).code == "busy"
        assert of(completed=490_000).code == "busy", "49,000 of 60,000 per second"
        assert of(threads=f.threads(0.4), clipped_turnaround_s=10.5).code == "busy"

    def test_watching_the_clock_is_not_work(self) -> None:
        watching = EngineThread(cpu=1, cpu_s=9.5, polled_s=4.0, wall_s=10.0, loop_lag_p99_ns=1000)
        assert watching.busy_share == pytest.approx(0.55)
        assert of(threads=(watching,)).code in {"ok", "overhead"}

    def test_two_call_it_saturated(self) -> None:
        found = of(threads=f.threads(0.93, lag_ms=3))
        assert (found.code, found.outside) == ("saturated", False)
        assert found.value == pytest.approx(0.93)
        assert bound(f.window(ROOM, threads=f.threads(0.93, lag_ms=3)), LIMITS).name == "client"

    def test_not_of_few_requests(self) -> None:
        """Of 19 requests they see the first ones, on cold caches."""
        busy = f.threads(0.93, lag_ms=3)
        assert of(threads=busy, completed=19).code == "busy"
        assert of(threads=busy, completed=60, failed=40).code == "saturated"

    def test_the_busiest_thread_counts_not_the_mean(self) -> None:
        found = of(threads=f.threads(0.1, 0.1, 0.95))
        assert found.code == "busy"
        assert found.value == pytest.approx(0.95)

    def test_one_that_can_be_read_is_too_few(self) -> None:
        blind = f.part(f.healthy().model_copy(update={"calibration": None}), "load", model="open")
        lag = judged(f.window(blind, threads=(EngineThread(cpu=1, loop_lag_p99_ns=50),)))
        assert (lag.kind, lag.code) == (Kind.PROVIDED, "unread")
        mixed = judged(f.window(blind, threads=(*f.threads(0.1), EngineThread(cpu=2))))
        assert mixed.code == "unread", "one thread that cannot be read may be the busiest"

    def test_a_server_without_cpu_left_is_what_the_claimed_rate_is_bound_by(self) -> None:
        full = f.part(ROOM, "server_window", cpu_user_s=9.8)
        late = f.window(full, threads=f.threads(0.93, lag_ms=3), clipped_turnaround_s=10.5)
        assert judged(late).code == "busy"
        assert bound(late, LIMITS).name == "server-cpu"
        latency = f.part(late, "load", claim="latency")
        assert judged(latency).code == "saturated"

    def test_the_busiest_thread_of_a_single_threaded_server_is_its_cpu(self) -> None:
        use = ThreadUse(pid=1, tid=1, name="node", cpu_s=9.9)
        koa = f.part(ROOM, "server_window", granted_cpus=4, cpu_user_s=10.0, busiest_thread=use)
        late = f.window(koa, threads=f.threads(0.8, lag_ms=0.2), clipped_turnaround_s=10.5)
        assert judged(late).of("requests_per_s").high == pytest.approx(1 / 0.99 - 1)
        assert bound_by(late, LIMITS).of("capacity_per_s").high == pytest.approx(1 / 0.99 - 1)
        idle = f.part(koa, "server_window", busiest_thread=None)
        assert judged(f.window(idle, threads=f.threads(0.93), clipped_turnaround_s=10.5)).code == "saturated"

    def test_a_busy_thread_beside_a_busy_client_may_have_polled(self) -> None:
        """It bounds nothing; where the rate did not rise with more users, it does."""
        use = ThreadUse(pid=1, tid=1, name="reactor-0", cpu_s=9.9)
        polls = f.part(ROOM, "server_window", granted_cpus=4, cpu_user_s=10.0, busiest_thread=use)
        busy = f.window(polls, threads=f.threads(0.93, lag_ms=3), clipped_turnaround_s=10.5)
        assert judged(busy).of("requests_per_s").high == pytest.approx(3.0), "the CPUs: 10 of 40 s"
        assert bound_by(busy, LIMITS).of("capacity_per_s").high is None
        level = f.probed(busy, 1.0)
        assert judged(level).of("requests_per_s").high == pytest.approx(1 / 0.99 - 1)
        assert bound_by(level, LIMITS).code == "server_thread"
        blocked = bound_by(f.probed(busy, 1.0, client_cpu=0.97), LIMITS)
        assert (blocked.code, blocked.of("capacity_per_s").high) == ("server_thread", None)

    def test_turnaround_convicts_only_where_the_server_was_seen_to_have_room(self) -> None:
        slow: dict[str, Any] = {"clipped_turnaround_s": 10.5, "threads": f.threads(0.93)}
        assert of(**slow).code == "saturated"
        assert judged(f.window(f.by_url(), users_integral_s=100.0, **slow)).code == "busy"

    def test_an_age_is_compared_with_what_the_responses_took(self) -> None:
        """1.45 ms at the p99: of 3.7 s (a server at its worker threads) 0.04 %, of 60 ms 2.4 %."""
        late = thread(30, 10, 1450)
        codes = [of(threads=(late,), **took(ms, 20_000)).code for ms in (3700, 80, 60)]
        assert codes == ["ok", "ok", "busy"]
        lagging = late.model_copy(update={"reads_stamped": 0, "loop_lag_p99_ns": 1_450_000})
        assert of(threads=(lagging,), **took(3700, 20_000)).code == "busy"

    def test_a_ceiling_that_was_not_the_clients_or_was_exceeded_accuses_nobody(self) -> None:
        def code(**changes: Any) -> str:
            quiet = f.window(ROOM, threads=(PROMPT,))
            return judged(f.part(quiet, "calibration", **changes)).code

        assert code(ceiling_per_s=8_100) == "busy"
        assert code(ceiling_per_s=8_100, client_cpu=0.4) == "ok"
        assert code(ceiling_per_s=8_100, client_cpu=None) == "ok"
        assert code(ceiling_per_s=1_500) == "ok"


class TestKeptFromItsCpu:
    def test_a_thread_that_waited_for_a_cpu_although_its_loop_lag_is_low(self) -> None:
        """Measured beside nine busy processes: loop lag p99 0.18 ms, waiting for 59 % of the time."""
        waiting = EngineThread(
            cpu_s=0.45, wall_s=10, loop_lag_p99_ns=176_127, run_delay_s=5.9, timeslices=745
        )
        found = of(threads=(waiting,))
        assert (found.code, found.outside) == ("kept_from_cpu", True)
        share = 0.59 + 0.176127 / 1.25
        assert found.of("mean_ms").low == pytest.approx(-share, rel=0.001)
        assert found.of("requests_per_s").high == pytest.approx(1 / 0.6 - 1), "what the server had left"

    @pytest.mark.parametrize(
        ("ages_us", "took_us", "code"),
        [
            ((4, 3, 9), 1000, "overhead"),  # Koa, 10 users, 26,000 wake-ups a second that wait 1.2 µs each
            ((2.6, 2.4, 9), 25, "overhead"),  # one user of a very fast server: any client's wake-up
            ((25, 4, 9), 1000, "kept_from_cpu"),  # one wait of 50 ms in 2 s: few responses, each late
            ((50, 50, 60), 1000, "kept_from_cpu"),  # every wait 5 % of the mean
            ((10, 4, 900), 1000, "kept_from_cpu"),  # one response in fifty
        ],
    )
    def test_waits_are_compared_with_what_the_responses_took(
        self, ages_us: tuple[float, float, float], took_us: int, code: str
    ) -> None:
        """Their sum is 3.2 % of the window in each case."""
        waits = thread(*ages_us, run_delay_s=0.32, timeslices=260_000)
        assert of(threads=(waits,), **took(took_us / 1000)).code == code
        unstamped = waits.model_copy(update={"reads_stamped": 0, "loop_lag_p99_ns": 60_000})
        assert of(threads=(unstamped,), **took(took_us / 1000)).code == "kept_from_cpu"

    @pytest.mark.parametrize(
        ("throttled_s", "code"),
        [(0.0, "ok"), (0.1, "ok"), (0.3, "throttled"), (30.0, "throttled")],
    )
    def test_a_quota_of_its_own_group_is_named(self, throttled_s: float, code: str) -> None:
        held = CgroupThrottle(periods=100, throttled_periods=30, throttled_s=throttled_s)
        limited = f.window(ROOM, threads=(PROMPT,)).model_copy(update={"client_throttle": held})
        found = client(limited, ClientLimits())
        assert (found.code, found.outside) == (code, False)
        none = held.model_copy(update={"periods": 0})
        assert client(limited.model_copy(update={"client_throttle": none}), ClientLimits()).code == "ok"

    def test_a_wait_that_two_signals_show_counts_once(self) -> None:
        """What arrives while the thread waits lies in its socket: one cause."""
        waits = thread(30, 10, 3000, run_delay_s=0.5, timeslices=10_000)
        assert of(threads=(waits,)).code == "busy"
        # The loop lag has no wait for a CPU in it: with that the two are independent.
        lagging = waits.model_copy(update={"reads_stamped": 0, "loop_lag_p99_ns": 3_000_000})
        assert of(threads=(lagging,)).code == "saturated"

    def test_short_waits_beside_long_service_times_convict_nobody(self) -> None:
        """80 requests/s of 100 ms, each wake-up 2 ms late: 16 % of the window, 2 % of a service time."""
        waits = EngineThread(cpu_s=0.1, wall_s=10, loop_lag_p99_ns=50_000, run_delay_s=1.6, timeslices=800)
        slow = f.window(ROOM, threads=(waits,), service_time=f.histogram(800, mean_ms=100.0))
        assert bound(slow, LIMITS).name != "client"
        # The same where the 100 ms are a handshake: what is printed has it in it.
        times = {"service_time": f.histogram(), "response_time": f.histogram(800, mean_ms=100.0)}
        assert bound(f.window(slow, **times), LIMITS).name != "client"


class TestSeveralLoadHosts:
    THREE = f.on_hosts(3)

    def busy(self, *names: str) -> Evidence:
        """The engines of these used 97 % of their CPU, and were 5 ms late; the server had room."""
        evidence = f.part(self.THREE, "server_window", cpu_user_s=6.0, cpu_system_s=0.0)
        late = EngineThread(cpu=1, cpu_s=9.7, wall_s=10.0, loop_lag_p99_ns=5_000_000)
        for name in names:
            evidence = f.host_engine(evidence, name, threads=(late,))
        return evidence

    def test_one_of_three_is_named_and_bounds_nothing(self) -> None:
        one = judged(self.busy("load2"))
        assert one.code == "saturated"
        assert one.value == pytest.approx(0.97)
        assert one.reason.startswith("1 of 3 ")
        assert ("85 %" in one.advice, one.advice.endswith(" load2")) == (True, True)
        assert bound(self.busy("load2"), LIMITS).name != "client"

    def test_all_of_them_are_the_bottleneck(self) -> None:
        every = self.busy("load1", "load2", "load3")
        found = judged(every)
        assert found.code == "saturated"
        assert re.findall(r"\d+", found.advice) == ["4", "85"]
        assert bound(every, LIMITS).name == "client"
        assert bound_by(every, LIMITS).code == "client"

    def test_their_bounds_are_those_of_all_requests(self) -> None:
        late, prompt = thread(60, 10, 200), thread(10, 10, 200)
        threads = f.window(self.THREE, threads=(late, prompt, prompt), **took(1.0))
        assert judged(threads).of("mean_ms").low == pytest.approx(-0.05 / 3, rel=0.01)


def test_no_window() -> None:
    gone = f.healthy().model_copy(update={"engine": None})
    assert (client(gone, ClientLimits()).conforms, client(gone, ClientLimits()).code) == (False, "no_window")
