"""identity, client, bound_by, isolation, host: each fires on its trouble and keeps quiet without it."""

from __future__ import annotations

from typing import Any

import pytest

from prony.evidence.engine import EngineThread, ReadyThread
from prony.evidence.host import CpuUse, HostRow
from prony.evidence.server import CgroupThrottle, ServiceUse, ThreadUse
from prony.evidence.trial import Ceiling, Evidence
from prony.judge.checks.bound_by import SERVER_THREAD, BoundLimits, bound, bound_by
from prony.judge.checks.client import client
from prony.judge.checks.host import host
from prony.judge.checks.identity import identity
from prony.judge.checks.isolation import isolation
from prony.judge.checks.network import network
from prony.judge.finding import Finding, Status
from prony.judge.limits import CheckLimits
from tests.judge import factory as f

HEALTHY = f.healthy()
LIMITS, BOUND = CheckLimits(), BoundLimits()
WORKERS = Ceiling(name="workers", per_s=1333.3, explanation="200 worker threads ÷ 0.15 s")


def threads(*cpu_shares: float, lag_ms: float = 0.06) -> tuple[EngineThread, ...]:
    return tuple(
        EngineThread(cpu=1, cpu_s=share * 10, wall_s=10.0, loop_lag_p99_ns=int(lag_ms * 1e6))
        for share in cpu_shares
    )


def idle_server(evidence: Evidence, share: float = 0.3) -> Evidence:
    return f.part(evidence, "server_window", cpu_user_s=share * 10, cpu_system_s=0.0)


def service(cpu_s: float, *, shares: bool) -> ServiceUse:
    """memcached on one CPU over the factory's window of 10 s."""
    return ServiceUse(
        name="memcached",
        cpus=(0,) if shares else (2,),
        shares_server_cpus=shares,
        wall_s=10.0,
        cpu_user_s=cpu_s,
        cpu_system_s=0.0,
        peak_rss_bytes=64 * 2**20,
    )


class TestIdentity:
    def status(self, evidence: Evidence) -> Status:
        finding = identity(evidence, LIMITS)
        assert finding is not None
        return finding.status

    def test_quiet(self) -> None:
        assert self.status(f.healthy()) is Status.VALID

    def test_of_a_foreign_server_that_cannot_be_read_nothing_is_known(self) -> None:
        finding = identity(f.by_url(), LIMITS)
        assert finding is not None
        assert finding.status is Status.UNKNOWN
        assert "was not watched" in finding.reason
        assert not identity.essential(f.by_url())

    def test_listeners_of_a_foreign_server_that_come_or_go_are_suspect(self) -> None:
        watched = f.part(f.by_url(), "server", owns_port_at_end=True, listeners=4, listeners_gone=0)
        assert self.status(watched) is Status.VALID
        joined = identity(
            f.part(watched, "server", owns_port_at_end=False, other_listener="PID 7 (x)"), LIMITS
        )
        assert joined is not None
        assert joined.status is Status.SUSPECT
        assert joined.reason.endswith("listened on port 8080 under load: PID 7 (x)")
        left = identity(f.part(watched, "server", listeners_gone=1), LIMITS)
        assert left is not None
        assert left.status is Status.SUSPECT
        assert left.reason == "1 of 4 listening sockets were closed under load"

    def test_a_worker_of_our_own_that_left_is_suspect(self) -> None:
        assert self.status(f.part(f.healthy(), "server", listeners=4, listeners_gone=2)) is Status.SUSPECT

    def test_another_process_on_the_port(self) -> None:
        assert self.status(f.part(f.healthy(), "server", owns_port=False)) is Status.INVALID

    def test_death_in_the_window(self) -> None:
        assert self.status(f.part(f.healthy(), "server_window", died="signal 9")) is Status.INVALID

    def test_not_readable(self) -> None:
        assert self.status(f.part(f.healthy(), "server", owns_port=None)) is Status.UNKNOWN

    def test_still_there_after_the_stop(self) -> None:
        assert self.status(f.healthy().model_copy(update={"clean_stop": False})) is Status.SUSPECT


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
        assert self.status(threads=threads(0.9)) is Status.SUSPECT
        assert self.status(threads=threads(0.4, lag_ms=1.5)) is Status.SUSPECT
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
        assert self.status(threads=threads(0.93, lag_ms=3)) is Status.INVALID

    def test_the_busiest_thread_counts_not_the_mean(self) -> None:
        finding = client(f.window(self.ROOM, threads=threads(0.1, 0.1, 0.95)), LIMITS)
        assert finding.status is Status.SUSPECT
        assert finding.value == pytest.approx(0.95)

    def test_one_readable_signal_does_not_acquit(self) -> None:
        blind = f.healthy().model_copy(update={"calibration": None})
        lag_only = (EngineThread(cpu=1, loop_lag_p99_ns=50_000),)
        assert client(f.window(blind, threads=lag_only), LIMITS).status is Status.UNKNOWN

    def test_one_unreadable_thread_spoils_the_signal(self) -> None:
        blind = f.healthy().model_copy(update={"calibration": None})
        mixed = (*threads(0.1), EngineThread(cpu=2))
        assert client(f.window(blind, threads=mixed), LIMITS).status is Status.UNKNOWN

    def test_a_busy_client_cost_no_throughput_where_the_server_had_no_cpu_left(self) -> None:
        """64 users, an epoll server at 98 % of its CPU: the client at 93 % could have had 2 % more."""
        full = f.part(self.ROOM, "server_window", cpu_user_s=9.8, cpu_system_s=0.0)
        busy = f.window(full, threads=threads(0.93), clipped_turnaround_s=10.5)
        finding = client(busy, LIMITS)
        assert finding.status is Status.VALID
        assert "2.04 % at most: the server's CPU" in finding.reason
        late = client(f.window(busy, threads=threads(0.93, lag_ms=3)), LIMITS)
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
        late = f.window(koa, threads=threads(0.8, lag_ms=0.2), clipped_turnaround_s=10.5)
        assert client(late, LIMITS).status is Status.VALID
        assert bound_by(late, LIMITS).status is Status.VALID
        idle = f.part(koa, "server_window", busiest_thread=None)
        assert client(f.window(idle, threads=threads(0.93), clipped_turnaround_s=10.5), LIMITS).status is (
            Status.INVALID
        )

    def test_a_busy_thread_beside_a_busy_client_may_have_polled(self) -> None:
        """It clears nobody, and as it may have served, nobody is convicted."""
        use = ThreadUse(pid=1, tid=1, name="reactor-0", cpu_s=9.9)
        polls = f.part(self.ROOM, "server_window", granted_cpus=4, cpu_user_s=10.0, busiest_thread=use)
        busy = f.window(polls, threads=threads(0.93, lag_ms=3), clipped_turnaround_s=10.5)
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
        slow = f.window(latency, clipped_turnaround_s=30.0, threads=threads(0.9))
        assert client(slow, LIMITS).status is Status.SUSPECT
        assert client(f.window(f.open_model(), clipped_turnaround_s=30.0), LIMITS).status is Status.VALID

    def test_turnaround_and_a_busy_thread_convict_only_where_the_server_was_seen_to_have_room(self) -> None:
        slow = {"clipped_turnaround_s": 10.5, "threads": threads(0.93)}
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

    def test_a_kernel_that_does_not_count_waiting_is_named(self) -> None:
        unread = client(f.window(self.ROOM, threads=threads(0.4)), LIMITS)
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


class TestBoundBy:
    def test_cpu_bound_server(self) -> None:
        finding = bound_by(f.healthy(), LIMITS)
        assert finding.status is Status.VALID
        assert finding.value == pytest.approx(0.96)
        assert bound(f.healthy(), BOUND).name == "server-cpu"

    def test_granted_cpus_count(self) -> None:
        two = f.part(f.healthy(), "server_window", granted_cpus=2)
        assert bound_by(two, LIMITS).status is Status.INVALID

    @pytest.mark.parametrize(
        ("others", "status"), [(0.67, Status.VALID), (0.3, Status.INVALID), (0.99, Status.INVALID)]
    )
    def test_what_neighbours_took_was_not_the_servers(self, others: float, status: Status) -> None:
        crowded = f.part(idle_server(f.healthy()), "host_window", others_on_server_cpus=others)
        assert bound_by(crowded, LIMITS).status is status

    def test_an_idle_server_beside_a_neighbour_is_idle(self) -> None:
        crowded = f.part(idle_server(f.healthy(), 0.02), "host_window", others_on_server_cpus=0.75)
        assert bound_by(crowded, LIMITS).status is Status.INVALID

    @pytest.mark.parametrize(("busy_s", "status"), [(9.6, Status.VALID), (8.0, Status.INVALID)])
    def test_one_busy_thread_bounds_a_server_on_several_cpus(self, busy_s: float, status: Status) -> None:
        """A single-threaded server on four CPUs uses a quarter of them and is exhausted."""
        thread = ThreadUse(pid=200, tid=203, name="node", cpu_s=busy_s)
        one = f.part(f.healthy(), "server_window", granted_cpus=4, busiest_thread=thread)
        assert bound_by(one, LIMITS).status is status
        assert (bound(one, BOUND).name == SERVER_THREAD) is (status is Status.VALID)
        if status is Status.VALID:
            assert "its thread node (TID 203) was 96 % busy" in bound_by(one, LIMITS).reason

    @pytest.mark.parametrize("share", [0.8, 0.97])
    def test_a_probe_shows_a_capacity_or_that_it_is_none(self, share: float) -> None:
        """75 % of the CPU alone are no capacity: the rate under half as many users again decides."""
        busy = idle_server(f.healthy(), share)
        level = bound_by(f.probed(busy, 1.01), LIMITS)
        assert level.status is Status.VALID
        assert "50 % more users: rate up by" in level.reason
        rising = bound_by(f.probed(busy, 1.2), LIMITS)
        assert rising.status is Status.SUSPECT
        assert rising.advice.startswith("offer more users")

    @pytest.mark.parametrize(
        ("ratio", "changes"),
        [
            (1.05, {"cv": 0.15}),
            (1.01, {"failed_share": 0.1}),
            (1.01, {"rates_per_s": ()}),
        ],
    )
    def test_a_probe_that_cannot_tell_is_no_proof(self, ratio: float, changes: dict[str, Any]) -> None:
        """Too noisy, the load generator exhausted, requests failed: then the CPU time left decides."""
        half = idle_server(f.healthy(), 0.8)
        cv = changes.pop("cv", 0.01)
        probe = f.probed(half, ratio, cv=cv).scaling_probe
        assert probe is not None
        update = {"scaling_probe": probe.model_copy(update=changes)}
        finding = bound_by(half.model_copy(update=update), LIMITS)
        assert finding.status is Status.UNKNOWN
        assert "CPU time for up to 25 % more is left" in finding.reason
        assert bound_by(f.healthy().model_copy(update=update), LIMITS).status is Status.VALID

    @pytest.mark.parametrize("share", [0.8, 0.97])
    def test_a_probe_by_a_busy_client_is_unknown_however_busy_the_server(self, share: float) -> None:
        """A server that polls is at 100 % without a request, and the client could not have sent more."""
        finding = bound_by(f.probed(idle_server(f.healthy(), share), 1.01, client_cpu=0.95), LIMITS)
        assert finding.status is Status.UNKNOWN
        assert "with the load generator at 95 % CPU: it could not have shown more" in finding.reason

    def test_an_idle_server_whose_rate_does_not_rise_waits_for_something(self) -> None:
        """It is its capacity, and nobody knows why: no word of the load generator."""
        idle = idle_server(f.healthy())
        finding = bound_by(f.probed(idle, 1.0), LIMITS)
        assert finding.status is Status.SUSPECT
        assert "it waits for something that is not declared" in finding.reason
        assert finding.advice.startswith("declare what it waits for")
        rising = bound_by(f.probed(idle, 1.45), LIMITS)
        assert rising.status is Status.INVALID
        assert "this describes the load generator" in rising.reason

    def test_without_a_probe_a_capacity_needs_a_full_cpu(self) -> None:
        assert bound_by(idle_server(f.healthy(), 0.8), LIMITS).status is Status.UNKNOWN
        assert bound_by(idle_server(f.healthy(), 0.92), LIMITS).status is Status.VALID
        protocol = f.part(idle_server(f.healthy(), 0.8), "load", claim="protocol")
        assert bound_by(protocol, LIMITS).status is Status.VALID

    def test_what_was_read_of_a_foreign_server_is_named(self) -> None:
        foreign = f.part(f.healthy(), "server", owned=False, runtime="python3")
        foreign = f.part(foreign, "server_window", processes=3)
        assert "to PID 200 (python3) and 2 more processes" in bound_by(foreign, LIMITS).reason

    @pytest.mark.parametrize(("program", "cpu_s"), [("docker-proxy", 8.0), ("nginx", 0.02)])
    def test_a_process_that_forwards_is_not_the_server(self, program: str, cpu_s: float) -> None:
        foreign = f.part(f.healthy(), "server", owned=False, runtime=program)
        foreign = f.part(foreign, "server_window", cpu_user_s=cpu_s, cpu_system_s=0.0)
        finding = bound_by(foreign, LIMITS)
        assert finding.status is Status.UNKNOWN
        assert f"PID 200 ({program}), which listens" in finding.reason
        assert finding.value is None

    def test_idle_server_describes_the_load_generator(self) -> None:
        finding = bound_by(idle_server(f.healthy()), LIMITS)
        assert finding.status is Status.INVALID
        assert "this describes the load generator" in finding.reason
        assert bound(idle_server(f.healthy()), BOUND).name == "unknown"

    def test_a_declared_ceiling_explains_an_idle_server(self) -> None:
        slow = f.window(idle_server(f.healthy()), completed=12_950)
        explained = slow.model_copy(update={"ceilings": (WORKERS,)})
        finding = bound_by(explained, LIMITS)
        assert finding.status is Status.VALID
        assert "200 worker threads" in finding.reason
        assert bound(explained, BOUND).name == "workers"

    @pytest.mark.parametrize("completed", [12_000, 15_000])
    def test_a_ceiling_that_is_not_near_explains_nothing(self, completed: int) -> None:
        slow = f.window(idle_server(f.healthy()), completed=completed)
        far = slow.model_copy(update={"ceilings": (WORKERS,)})
        assert bound_by(far, LIMITS).status is Status.INVALID

    def test_an_idle_server_that_is_not_ours_is_unknown_a_busy_one_is_proof(self) -> None:
        foreign = f.part(f.healthy(), "server", owned=False)
        assert bound_by(idle_server(foreign), LIMITS).status is Status.UNKNOWN
        assert "declare" not in bound_by(idle_server(foreign), LIMITS).advice
        assert bound_by(foreign, LIMITS).status is Status.VALID

    def test_users_over_service_time_is_no_excuse(self) -> None:
        """In a closed loop users ÷ mean service time equals the rate whatever bound it; nothing declared, no
        bound.
        """
        few = f.part(idle_server(f.healthy()), "load", users=1)
        assert bound_by(few, LIMITS).status is Status.INVALID

    def test_thinking_users_are_an_offered_load(self) -> None:
        load = f.part(idle_server(f.healthy()), "load", think_kind="constant", think_mean_ms=100)
        assert bound(load, BOUND).name == "offered-load"
        assert bound_by(load, LIMITS).status is Status.INVALID
        latency = f.part(load, "load", claim="latency")
        assert bound_by(latency, LIMITS).status is Status.VALID

    def test_open_load_that_was_met(self) -> None:
        met = idle_server(f.open_model())
        assert bound(met, BOUND).name == "offered-load"
        assert bound_by(met, LIMITS).status is Status.VALID
        assert bound_by(f.part(met, "load", claim="capacity"), LIMITS).status is Status.INVALID

    def test_sessions_that_all_came_are_an_offered_load_though_the_first_and_last_are_alone(self) -> None:
        met = f.part(idle_server(f.open_model()), "load", varies=True)
        assert met.engine is not None
        met = f.engine(met, rows=tuple(r.model_copy(update={"in_window": True}) for r in met.engine.rows))
        assert met.engine is not None
        assert met.engine.window is not None
        slower = f.window(met, duration_s=met.engine.window.duration_s * 1.3)
        assert bound(slower, BOUND).name == "offered-load"
        level = f.part(slower, "load", varies=False)
        assert bound(level, BOUND).name == "unknown", "one rate all along must be met all along"
        late = tuple(row.model_copy(update={"completed": row.completed // 2}) for row in met.engine.rows)
        assert bound(f.engine(slower, rows=late), BOUND).name == "unknown"

    def test_saturated_client(self) -> None:
        busy = f.window(idle_server(f.healthy()), threads=threads(0.97, lag_ms=4))
        assert bound(busy, BOUND).name == "client"
        assert bound_by(busy, LIMITS).status is Status.INVALID

    def test_a_quota_is_a_cpu_bound(self) -> None:
        throttle = CgroupThrottle(periods=100, throttled_periods=96, throttled_s=4)
        held = f.part(idle_server(f.healthy(), 0.5), "server_window", throttle=throttle)
        assert bound(held, BOUND).name == "server-cpu"
        assert bound_by(held, LIMITS).status is Status.VALID
        assert isolation(held, LIMITS).status is Status.INVALID  # and it is said that something held it back

    def test_unread_cpu_is_unknown(self) -> None:
        assert bound_by(f.by_url(), LIMITS).status is Status.UNKNOWN
        blind = f.part(f.healthy(), "server_window", cpu_user_s=None)
        assert bound_by(blind, LIMITS).status is Status.UNKNOWN

    def test_a_service_that_shares_the_cpu_fills_it_with_the_server(self) -> None:
        """60 % by the server alone describe the load generator; with 25 % by its database the CPU is full."""
        half = idle_server(f.healthy(), 0.6)
        assert bound_by(half, LIMITS).status is Status.INVALID
        full = half.model_copy(update={"services": (service(2.5, shares=True),)})
        finding = bound_by(full, LIMITS)
        assert finding.status is Status.VALID
        assert "memcached on the same CPUs 25" in finding.reason
        assert bound(full, BOUND).name == "server-cpu"
        light = half.model_copy(update={"services": (service(0.5, shares=True),)})
        assert bound_by(light, LIMITS).status is Status.INVALID

    def test_a_service_on_its_own_cpu_may_be_the_bound(self) -> None:
        half = idle_server(f.healthy(), 0.6)
        busy = half.model_copy(update={"services": (service(9.0, shares=False),)})
        assert bound(busy, BOUND).name == "service-cpu"
        assert bound_by(busy, LIMITS).status is Status.VALID
        idle = half.model_copy(update={"services": (service(2.5, shares=False),)})
        assert bound_by(idle, LIMITS).status is Status.INVALID, "its CPU is not the server's"

    def test_a_service_that_could_not_be_read_excuses_nothing(self) -> None:
        unread = idle_server(f.healthy(), 0.6).model_copy(update={"services": (ServiceUse(name="x"),)})
        assert bound_by(unread, LIMITS).status is Status.INVALID

    def test_a_fixed_protocol_claims_no_capacity(self) -> None:
        protocol = f.part(idle_server(f.healthy()), "load", claim="protocol")
        assert bound_by(protocol, LIMITS).status is Status.VALID


class TestIsolation:
    def status(self, part: str, **changes: Any) -> Status:
        return isolation(f.part(f.healthy(), part, **changes), LIMITS).status

    def test_quiet(self) -> None:
        assert isolation(f.healthy(), LIMITS).status is Status.VALID

    def test_one_cpu_is_suspect(self) -> None:
        assert self.status("partition", server=(0,), client=(0,), shared=True) is Status.SUSPECT

    def test_overlap_that_could_have_been_avoided_is_invalid(self) -> None:
        assert self.status("partition", server=(0, 1), client=(1,)) is Status.INVALID

    @pytest.mark.parametrize(("steal", "status"), [(0.02, Status.SUSPECT), (0.2, Status.INVALID)])
    def test_steal(self, steal: float, status: Status) -> None:
        assert self.status("host_window", cpus=(CpuUse(cpu=0, busy=0.9, steal=steal),)) is status

    def test_a_foreign_server_is_read_and_not_blamed_for_where_it_runs(self) -> None:
        foreign = f.part(f.healthy(), "server", owned=False)
        assert isolation(foreign, LIMITS).status is Status.VALID
        anywhere = f.part(foreign, "partition", server=(0, 1), client=(1,))
        finding = isolation(anywhere, LIMITS)
        assert finding.status is Status.UNKNOWN
        assert "the server may run on the client's CPU 1" in finding.reason
        crowded = f.part(foreign, "host_window", others_on_server_cpus=0.6)
        assert isolation(crowded, LIMITS).status is Status.SUSPECT
        assert "unless they belong to the server" in isolation(crowded, LIMITS).reason
        assert isolation(f.by_url(), LIMITS).status is Status.UNKNOWN

    def test_steal_on_a_cpu_that_is_not_ours_is_nobodys_business(self) -> None:
        cpus = (
            CpuUse(cpu=0, busy=0.9, steal=0),
            CpuUse(cpu=1, busy=0.5, steal=0),
            CpuUse(cpu=7, busy=1, steal=0.5),
        )
        assert self.status("host_window", cpus=cpus) is Status.VALID

    @pytest.mark.parametrize("side", ["others_on_server_cpus", "others_on_client_cpus"])
    def test_a_neighbour(self, side: str) -> None:
        assert self.status("host_window", **{side: 0.12}) is Status.SUSPECT
        assert self.status("host_window", **{side: 0.5}) is Status.INVALID
        assert self.status("host_window", **{side: None}) is Status.UNKNOWN

    def test_the_neighbour_is_named(self) -> None:
        busy = f.part(f.healthy(), "host_window", others_on_server_cpus=0.3, busiest_other="yes (4711)")
        assert "yes (4711)" in isolation(busy, LIMITS).advice

    def test_a_client_thread_that_is_not_pinned(self) -> None:
        evidence = f.healthy()
        assert evidence.engine is not None
        for thread, status in (
            (ReadyThread(cpu=1, pinned=False), Status.SUSPECT),
            (ReadyThread(cpu=0, pinned=True), Status.INVALID),
            (ReadyThread(cpu=1), Status.UNKNOWN),
        ):
            ready = evidence.engine.ready.model_copy(update={"threads": (thread,)})
            assert isolation(f.engine(evidence, ready=ready), LIMITS).status is status

    def test_a_foreign_server_is_unknown(self) -> None:
        assert isolation(f.by_url(), LIMITS).status is Status.UNKNOWN


class TestHost:
    def status(self, **changes: Any) -> Status:
        return host(f.part(f.healthy(), "host_window", **changes), LIMITS).status

    def test_quiet(self) -> None:
        assert host(f.healthy(), LIMITS).status is Status.VALID

    @pytest.mark.parametrize(
        "changes",
        [
            {"mhz_close": 2000.0},
            {"swap_in_bytes": 4096},
            {"kernel_log_lines": 2},
            {"sysctls_changed": ("vm.swappiness",)},
        ],
    )
    def test_fires(self, changes: dict[str, Any]) -> None:
        assert self.status(**changes) is Status.SUSPECT

    def test_the_clock_of_an_idle_cpu_says_nothing(self) -> None:
        """Powersave at 20 % load: the clock is whatever it was when last somebody asked."""

        def at(busy: float) -> Evidence:
            clock = [3400.0, 1200.0] * 5
            rows = [
                HostRow(t_ms=f.OPENED_MS + 1000 * (n + 1), duration_ms=1000, mhz=mhz, server_cpus_busy=busy)
                for n, mhz in enumerate(clock)
            ]
            edges = f.part(f.healthy(), "host_window", mhz_close=1200.0)
            return edges.model_copy(update={"host_rows": tuple(rows)})

        assert host(at(0.97), LIMITS).status is Status.SUSPECT
        idle = host(at(0.2), LIMITS)
        assert idle.status is Status.UNKNOWN
        assert "not readable: CPU clock under load" in idle.reason

    def test_a_clock_that_rises_is_fine(self) -> None:
        assert self.status(mhz_close=3600.0) is Status.VALID

    @pytest.mark.parametrize("name", ["mhz_open", "swap_in_bytes", "kernel_log_lines", "sysctls_changed"])
    def test_unread_is_unknown(self, name: str) -> None:
        assert self.status(**{name: None}) is Status.UNKNOWN


class TestProxy:
    """A proxy says so by Via; another program under load by its Server header."""

    def reason(self, *, via: str | None = None, head: str | None = None, owned: bool = True) -> str | None:
        probe = f.healthy().probes[0].model_copy(update={"via": via, "server_header": "Jetty"})
        base = f.totals(f.part(f.healthy(), "server", owned=owned), first_head=head)
        found = identity(base.model_copy(update={"probes": (probe,)}), LIMITS)
        return found.reason if found is not None and found.status is Status.SUSPECT else None

    def test_it_names_itself(self) -> None:
        assert "Via: 1.1 nginx" in str(self.reason(via="1.1 nginx"))
        assert "Via: 1.1 nginx" in str(self.reason(via="1.1 nginx", owned=False))
        assert "Via: 2 edge" in str(self.reason(head="HTTP/1.1 200 OK\r\nVia: 2 edge\r\n\r\n"))

    def test_a_declared_proxy_is_what_is_measured(self) -> None:
        probe = f.healthy().probes[0].model_copy(update={"via": "1.1 varnish"})
        proxy = f.healthy().model_copy(update={"probes": (probe,)})
        found = identity(proxy, LIMITS)
        assert found is not None
        assert found.status is Status.SUSPECT
        assert "`forwards: true`" in found.advice
        declared = identity(f.part(proxy, "server", forwards=True), LIMITS)
        assert declared is not None
        assert declared.status is Status.VALID
        other = identity(f.part(proxy, "server", forwards=True, owns_port_at_end=False), LIMITS)
        assert other is not None
        assert other.status is Status.INVALID

    def test_another_program_responds_under_load(self) -> None:
        assert "Server: nginx" in str(self.reason(head="HTTP/1.1 200 OK\r\nServer: nginx\r\n\r\n"))

    def test_the_same_program_is_left_alone(self) -> None:
        assert self.reason(head="HTTP/1.1 200 OK\r\nserver: Jetty\r\n\r\n") is None
        assert self.reason() is None


class TestSoftInterrupts:
    """Packets beyond what the load can have sent are somebody else's."""

    def judged(
        self, *, irq: float, packets: int | None, services: bool = False, owned: bool = True
    ) -> Finding:
        base = f.window(f.healthy(), bytes_sent=8_000_000, bytes_received=14_000_000, completed=80_000)
        own = CpuUse(cpu=0, busy=0.97, steal=0.0, irq=irq, packets=packets)
        base = f.part(base, "host_window", cpus=(own, CpuUse(cpu=1, busy=0.4, steal=0.0)))
        base = f.part(base, "server", owned=owned)
        if services:
            base = base.model_copy(update={"services": (ServiceUse(name="db"),)})
        found = isolation(base, LIMITS)
        assert found is not None
        return found

    def test_the_load_s_own_packets_are_nobody_else_s(self) -> None:
        assert self.judged(irq=0.3, packets=400_000).status is Status.VALID

    def test_more_packets_than_the_load_can_have_sent(self) -> None:
        found = self.judged(irq=0.2, packets=5_000_000)
        assert found.status is Status.SUSPECT
        assert "soft interrupts for other traffic (network) took 18" in found.reason

    def test_of_a_foreign_server_they_may_be_its_own(self) -> None:
        found = self.judged(irq=0.4, packets=5_000_000)
        assert found.status is Status.INVALID
        found = self.judged(irq=0.4, packets=5_000_000, owned=False)
        assert found.status is Status.SUSPECT
        assert "unless they belong to the server" in found.reason

    def test_many_soft_interrupts_that_cannot_be_read_are_unknown_and_few_do_not_matter(self) -> None:
        assert self.judged(irq=0.2, packets=None).status is Status.UNKNOWN
        assert self.judged(irq=0.02, packets=None).status is Status.VALID

    def test_packets_of_a_backing_service_cannot_be_told_apart(self) -> None:
        assert self.judged(irq=0.2, packets=5_000_000, services=True).status is Status.VALID


def test_a_quota_that_cannot_be_read_is_no_pass() -> None:
    found = isolation(f.part(f.healthy(), "server_window", throttle=None), LIMITS)
    assert found is not None
    assert found.status is Status.UNKNOWN


def test_an_accept_queue_of_another_server_is_not_held_against_this_one() -> None:
    assert HEALTHY.host_window is not None
    assert HEALTHY.host_window.tcp is not None
    full = HEALTHY.host_window.tcp.model_copy(update={"listen_overflows": 900})
    quick = f.window(HEALTHY, connect_attempts=40_000, connect_time=f.of_values([100_000] * 100))
    found = network(f.part(quick, "host_window", tcp=full), LIMITS)
    assert found is not None
    assert found.status is Status.VALID


def test_a_connect_that_came_to_nothing_shows_whose_accept_queue_was_full() -> None:
    assert HEALTHY.host_window is not None
    assert HEALTHY.host_window.tcp is not None
    full = HEALTHY.host_window.tcp.model_copy(update={"listen_overflows": 900})
    quick = f.window(HEALTHY, connect_attempts=40_000, connect_time=f.of_values([100_000] * 100))
    for kind in ("connect_timeout", "connect_refused"):
        failed = f.window(quick, errors={kind: 40})
        found = network(f.part(failed, "host_window", tcp=full), LIMITS)
        assert found is not None
        assert found.status is Status.INVALID


@pytest.mark.parametrize(
    ("segments_out", "again", "longest_ms", "status"),
    [
        (100_000, 900, 210, Status.SUSPECT),
        (100_000, 900, 3, Status.VALID),
        (2_000, 9, 210, Status.VALID),
    ],
    ids=["of the load", "nobody waited", "too few"],
)
def test_retransmissions_need_a_witness(
    segments_out: int, again: int, longest_ms: int, status: Status
) -> None:
    assert HEALTHY.host_window is not None
    assert HEALTHY.host_window.tcp is not None
    lost = {"segments_out": segments_out, "retransmitted": again}
    counted = HEALTHY.host_window.tcp.model_copy(update=lost)
    waited = f.window(HEALTHY, service_time=f.of_values([1_200_000] * 9_999 + [longest_ms * 1_000_000]))
    found = network(f.part(waited, "host_window", tcp=counted), LIMITS)
    assert found is not None
    assert found.status is status
