"""client: a busy load generator is one only where it can have moved the figure."""

from __future__ import annotations

from typing import Any

import pytest

from prony.evidence.engine import EngineThread
from prony.evidence.server import ThreadUse
from prony.judge.checks.bound_by import bound_by
from prony.judge.checks.client import client
from prony.judge.finding import Status
from prony.judge.limits import CheckLimits
from tests.judge import factory as f

LIMITS = CheckLimits()


class TestClient:
    ROOM = f.part(
        f.window(f.healthy(), users_integral_s=100.0), "server_window", cpu_user_s=6.0, cpu_system_s=0.0
    )
    """Its server had 40 % of its CPU left, so that a faster client could have had more of it."""

    def status(self, **changes: Any) -> Status:
        return client(f.window(self.ROOM, **changes), LIMITS).status

    def test_quiet(self) -> None:
        assert client(f.healthy(), LIMITS).status is Status.VALID

    def test_one_signal_is_suspect(self) -> None:
        assert self.status(threads=f.threads(0.9)) is Status.SUSPECT
        assert self.status(threads=f.threads(0.4, lag_ms=1.5)) is Status.SUSPECT
        assert self.status(completed=490_000) is Status.SUSPECT  # 49,000/s of 60,000/s

    def test_a_kernel_that_puts_off_is_a_signal(self) -> None:
        assert self.status(submissions_put_off=0) is Status.VALID
        finding = client(f.window(self.ROOM, submissions_put_off=3), LIMITS)
        assert finding.status is Status.SUSPECT
        assert "put off what it sent, 3 times" in finding.reason

    def test_watching_the_clock_is_not_work(self) -> None:
        watching = EngineThread(cpu=1, cpu_s=9.5, polled_s=4.0, wall_s=10.0, loop_lag_p99_ns=60_000)
        assert watching.busy_share == pytest.approx(0.55)
        assert self.status(threads=(watching,)) is Status.VALID

    def test_two_signals_convict(self) -> None:
        assert self.status(threads=f.threads(0.93, lag_ms=3)) is Status.INVALID

    def test_two_signals_of_few_requests_are_suspect(self) -> None:
        """Of 19 requests they see the first ones, on cold caches."""
        busy = f.threads(0.93, lag_ms=3)
        assert self.status(threads=busy, completed=19) is Status.SUSPECT
        assert self.status(threads=busy, completed=60, failed=40) is Status.INVALID

    def test_the_busiest_thread_counts_not_the_mean(self) -> None:
        finding = client(f.window(self.ROOM, threads=f.threads(0.1, 0.1, 0.95)), LIMITS)
        assert finding.status is Status.SUSPECT
        assert finding.value == pytest.approx(0.95)

    def test_one_readable_signal_does_not_acquit(self) -> None:
        blind = f.healthy().model_copy(update={"calibration": None})
        lag_only = (EngineThread(cpu=1, loop_lag_p99_ns=50_000),)
        assert client(f.window(blind, threads=lag_only), LIMITS).status is Status.UNKNOWN

    def test_one_unreadable_thread_spoils_the_signal(self) -> None:
        blind = f.healthy().model_copy(update={"calibration": None})
        mixed = (*f.threads(0.1), EngineThread(cpu=2))
        assert client(f.window(blind, threads=mixed), LIMITS).status is Status.UNKNOWN

    def test_a_busy_client_cost_no_throughput_where_the_server_had_no_cpu_left(self) -> None:
        """64 users, an epoll server at 98 % of its CPU: the client at 93 % could have had 2 % more."""
        full = f.part(self.ROOM, "server_window", cpu_user_s=9.8, cpu_system_s=0.0)
        busy = f.window(full, threads=f.threads(0.93), clipped_turnaround_s=10.5)
        finding = client(busy, LIMITS)
        assert finding.status is Status.VALID
        assert "2.04 % at most: the server's CPU" in finding.reason
        late = client(f.window(busy, threads=f.threads(0.93, lag_ms=3)), LIMITS)
        assert late.status is Status.SUSPECT
        assert late.reason == "the load generator may have moved latency: loop lag p99 3 ms"

    def test_the_busiest_thread_of_a_single_threaded_server_is_its_cpu(self) -> None:
        use = ThreadUse(pid=1, tid=1, name="node", cpu_s=9.9)
        koa = f.part(
            self.ROOM,
            "server_window",
            granted_cpus=4,
            cpu_user_s=10.0,
            cpu_system_s=0.0,
            busiest_thread=use,
        )
        late = f.window(koa, threads=f.threads(0.8, lag_ms=0.2), clipped_turnaround_s=10.5)
        assert client(late, LIMITS).status is Status.VALID
        assert bound_by(late, LIMITS).status is Status.VALID
        idle = f.part(koa, "server_window", busiest_thread=None)
        assert client(f.window(idle, threads=f.threads(0.93), clipped_turnaround_s=10.5), LIMITS).status is (
            Status.INVALID
        )

    def test_a_busy_thread_beside_a_busy_client_may_have_polled(self) -> None:
        """It clears nobody, and as it may have served, nobody is convicted."""
        use = ThreadUse(pid=1, tid=1, name="reactor-0", cpu_s=9.9)
        polls = f.part(self.ROOM, "server_window", granted_cpus=4, cpu_user_s=10.0, busiest_thread=use)
        busy = f.window(polls, threads=f.threads(0.93, lag_ms=3), clipped_turnaround_s=10.5)
        finding = client(busy, LIMITS)
        assert finding.status is Status.SUSPECT
        assert finding.reason.startswith("the load generator may have moved throughput and latency")
        unknown = bound_by(busy, LIMITS)
        assert unknown.status is Status.UNKNOWN
        assert unknown.advice.startswith("give the client more CPUs")
        level = f.probed(busy, 1.0)
        assert client(level, LIMITS).reason.startswith("the load generator may have moved latency:")
        assert bound_by(level, LIMITS).status is Status.VALID
        blocked = f.probed(busy, 1.0, client_cpu=0.97)
        assert "throughput" in client(blocked, LIMITS).reason
        assert bound_by(blocked, LIMITS).status is Status.UNKNOWN

    def test_turnaround_is_named_with_its_share_of_user_time(self) -> None:
        finding = client(f.window(self.ROOM, clipped_turnaround_s=10.5), LIMITS)
        assert finding.status is Status.SUSPECT
        assert "may have moved throughput" in finding.reason
        assert "10.5 % of user time between a response and the next request" in finding.reason
        assert self.status(clipped_turnaround_s=4.0) is Status.VALID
        assert self.status(clipped_turnaround_s=None) is Status.VALID

    def test_the_p99_of_the_turnaround_stands_beside_its_share(self) -> None:
        """A few long ones or many short ones make the same share."""
        each = f.of_values([100_000] * 9800 + [5_000_000] * 200)
        finding = client(f.window(self.ROOM, clipped_turnaround_s=10.5, turnaround=each), LIMITS)
        assert "10.5 % of user time between a response and the next request (p99 5 ms each)" in finding.reason
        few = f.of_values([100_000] * 9)
        assert "p99 0" not in client(f.window(self.ROOM, turnaround=few), LIMITS).reason

    def test_turnaround_moves_no_latency_claim_and_no_open_loop(self) -> None:
        latency = f.part(self.ROOM, "load", claim="latency")
        slow = f.window(latency, clipped_turnaround_s=30.0, threads=f.threads(0.9))
        assert client(slow, LIMITS).status is Status.SUSPECT
        assert client(f.window(f.open_model(), clipped_turnaround_s=30.0), LIMITS).status is Status.VALID

    def test_turnaround_and_a_busy_thread_convict_only_where_the_server_was_seen_to_have_room(self) -> None:
        slow = {"clipped_turnaround_s": 10.5, "threads": f.threads(0.93)}
        assert client(f.window(self.ROOM, **slow), LIMITS).status is Status.INVALID
        unread = f.window(f.by_url(), users_integral_s=100.0, **slow)
        assert client(unread, LIMITS).status is Status.SUSPECT

    def test_a_thread_that_waited_for_a_cpu_is_named_although_its_loop_lag_is_low(self) -> None:
        """Measured beside nine busy processes: loop lag p99 0.18 ms, waiting for 59 % of the time."""
        waiting = EngineThread(
            cpu=1, cpu_s=0.45, wall_s=10.0, loop_lag_p99_ns=176_127, run_delay_s=5.9, timeslices=745
        )
        finding = client(f.window(self.ROOM, threads=(waiting,)), LIMITS)
        assert finding.status is Status.INVALID
        assert finding.reason.startswith(
            "the load generator was kept from its CPU: its thread was runnable and not running for 59 %"
        )
        assert finding.advice.startswith("keep other processes off the client's CPUs")
        assert "mean 7.92 ms per wake-up" in finding.reason

    def test_how_long_a_response_lay_in_its_socket_takes_the_place_of_the_loop_lag(self) -> None:
        """A thread that stands still for 50 ms once a second in an open loop: of its loops one in thousands
        is late, of the responses one in twenty.
        """
        thread = EngineThread(
            cpu=1,
            cpu_s=1.0,
            wall_s=10.0,
            loop_lag_p99_ns=60_000,
            reads=20_000,
            reads_stamped=1_250,
            receive_delay_p99_ns=41_000_000,
            run_delay_s=0.0,
            timeslices=1,
        )
        finding = client(f.window(self.ROOM, threads=(thread,)), LIMITS)
        assert finding.status is Status.SUSPECT
        assert (
            "p99 41 ms from arrival to the look at it (kernel time stamps, 1,250 of 20,000 reads)"
            in finding.reason
        )
        assert "loop lag" not in finding.reason
        quiet = thread.model_copy(update={"receive_delay_p99_ns": 90_000, "loop_lag_p99_ns": 3_000_000})
        found = client(f.window(self.ROOM, threads=(quiet,)), LIMITS)
        assert found.status is Status.VALID
        assert "p99 90 µs from arrival" in found.reason

    @pytest.mark.parametrize(
        ("took_ms", "status"), [(3_700, Status.VALID), (80, Status.VALID), (60, Status.SUSPECT)]
    )
    def test_an_age_is_held_against_what_the_responses_took(self, took_ms: int, status: Status) -> None:
        """1.45 ms at the p99: of 3.7 s (a server at its worker threads) 0.04 %, of 60 ms 2.4 %."""
        thread = EngineThread(
            cpu=1,
            cpu_s=0.5,
            wall_s=10.0,
            loop_lag_p99_ns=60_000,
            reads=20_000,
            reads_stamped=1_250,
            receive_delay_p50_ns=10_000,
            receive_delay_mean_ns=30_000,
            receive_delay_p99_ns=1_450_000,
            run_delay_s=0.0,
            timeslices=1,
        )
        took = f.of_values([took_ms * 1_000_000] * 20_000)
        finding = client(f.window(self.ROOM, threads=(thread,), service_time=took), LIMITS)
        assert finding.status is status, finding.reason
        assert "of what they took" in finding.reason
        unstamped = thread.model_copy(update={"reads_stamped": 0, "loop_lag_p99_ns": 1_450_000})
        lagging = f.window(self.ROOM, threads=(unstamped,), service_time=took)
        assert client(lagging, LIMITS).status is Status.SUSPECT

    @pytest.mark.parametrize("few", [0, 499, None])
    def test_with_few_stamped_reads_the_loop_lag_is_asked(self, few: int | None) -> None:
        thread = EngineThread(
            cpu=1,
            cpu_s=1.0,
            wall_s=10.0,
            loop_lag_p99_ns=60_000,
            reads=20_000,
            reads_stamped=few,
            receive_delay_p99_ns=None if not few else 41_000_000,
        )
        finding = client(f.window(self.ROOM, threads=(thread,)), LIMITS)
        assert finding.status is Status.VALID
        assert "loop lag p99 60 µs" in finding.reason

    @pytest.mark.parametrize(
        ("p50_us", "mean_us", "p99_us", "took_us", "status"),
        [
            # Koa, 10 users, 26,000 wake-ups a second that wait 1.2 µs each.
            (3, 4, 9, 1000, Status.VALID),
            # One user of a very fast server: its wake-up is a tenth of the round trip, and any client's.
            (2.4, 2.6, 9, 25, Status.VALID),
            # One wait of 50 ms in 2 s: few responses, each of them late.
            (4, 25, 9, 1000, Status.SUSPECT),
            # Every wait 5 % of the mean.
            (50, 50, 60, 1000, Status.SUSPECT),
            # One response in fifty.
            (4, 10, 900, 1000, Status.SUSPECT),
        ],
    )
    def test_waits_for_a_cpu_are_held_against_what_the_responses_took(
        self, p50_us: float, mean_us: float, p99_us: float, took_us: int, status: Status
    ) -> None:
        """Their sum is 3.2 % of the window in each case."""
        thread = EngineThread(
            cpu=1,
            cpu_s=4.0,
            wall_s=10.0,
            loop_lag_p99_ns=60_000,
            reads=200_000,
            reads_stamped=12_500,
            receive_delay_p50_ns=round(p50_us * 1000),
            receive_delay_mean_ns=round(mean_us * 1000),
            receive_delay_p99_ns=round(p99_us * 1000),
            run_delay_s=0.32,
            timeslices=260_000,
        )
        took = f.of_values([took_us * 1000] * 200_000)
        evidence = f.window(self.ROOM, threads=(thread,), service_time=took)
        finding = client(evidence, LIMITS)
        assert finding.status is status, finding.reason
        assert "runnable and not running for 3.2 % of the window" in finding.reason
        assert "of their time longer than a wake-up takes" in finding.reason
        unstamped = thread.model_copy(update={"reads_stamped": 0})
        assert client(f.window(evidence, threads=(unstamped,)), LIMITS).status is Status.SUSPECT

    def test_a_wait_for_a_cpu_that_two_signals_show_counts_once(self) -> None:
        """What arrives while the thread waits lies in its socket: one cause."""
        thread = EngineThread(
            cpu=1,
            cpu_s=1.0,
            wall_s=10.0,
            loop_lag_p99_ns=60_000,
            reads=20_000,
            reads_stamped=1_250,
            receive_delay_p99_ns=3_000_000,
            run_delay_s=0.5,
            timeslices=10_000,
        )
        assert client(f.window(self.ROOM, threads=(thread,)), LIMITS).status is Status.SUSPECT
        # The loop lag has no wait for a CPU in it: with that the two are independent.
        lagging = thread.model_copy(update={"reads_stamped": 0, "loop_lag_p99_ns": 3_000_000})
        assert client(f.window(self.ROOM, threads=(lagging,)), LIMITS).status is Status.INVALID

    def test_a_kernel_that_does_not_count_waiting_is_named(self) -> None:
        unread = client(f.window(self.ROOM, threads=f.threads(0.4)), LIMITS)
        assert unread.status is Status.VALID
        assert unread.reason.endswith("how long its threads waited for a CPU could not be read")
        assert "could not be read" not in client(f.healthy(), LIMITS).reason

    def test_short_waits_beside_long_service_times_convict_nobody(self) -> None:
        """80 requests/s of 100 ms, each wake-up 2 ms late: 16 % of the window, 2 % of a service time."""
        waiting = EngineThread(
            cpu=1, cpu_s=0.1, wall_s=10.0, loop_lag_p99_ns=50_000, run_delay_s=1.6, timeslices=800
        )
        slow = f.window(self.ROOM, threads=(waiting,), service_time=f.histogram(800, mean_ms=100.0))
        assert client(slow, LIMITS).status is Status.SUSPECT
        # The same where the 100 ms are a handshake: what is printed has it in it.
        handshakes = f.window(slow, service_time=f.histogram(), response_time=f.histogram(800, mean_ms=100.0))
        assert client(handshakes, LIMITS).status is Status.SUSPECT

    def test_one_thread_whose_waiting_cannot_be_read_is_no_pass_for_it(self) -> None:
        both = (EngineThread(cpu=1, cpu_s=1, wall_s=10, run_delay_s=0.0, timeslices=1), EngineThread(cpu=2))
        blind = f.healthy().model_copy(update={"calibration": None})
        unread = f.window(blind, threads=both, clipped_turnaround_s=None)
        assert client(unread, LIMITS).status is Status.UNKNOWN

    def test_a_ceiling_that_was_not_the_clients_or_was_exceeded_accuses_nobody(self) -> None:
        def with_ceiling(**changes: Any) -> Status:
            return client(f.part(self.ROOM, "calibration", **changes), LIMITS).status

        assert with_ceiling(ceiling_per_s=8_100) is Status.SUSPECT
        assert with_ceiling(ceiling_per_s=8_100, client_cpu=0.4) is Status.VALID
        assert with_ceiling(ceiling_per_s=8_100, client_cpu=None) is Status.VALID
        assert with_ceiling(ceiling_per_s=1_500) is Status.VALID
