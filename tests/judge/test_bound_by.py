"""bound_by: what bounds a throughput, and when nothing on the server does."""

from __future__ import annotations

from typing import Any

import pytest

from prony.evidence.server import CgroupThrottle, ServiceUse, ThreadUse
from prony.evidence.trial import Ceiling, Evidence
from prony.judge.checks.bound_by import SERVER_THREAD, BoundLimits, bound, bound_by
from prony.judge.checks.isolation import isolation
from prony.judge.finding import Status
from prony.judge.limits import CheckLimits
from tests.judge import factory as f

LIMITS, BOUND = CheckLimits(), BoundLimits()
WORKERS = Ceiling(name="workers", per_s=1333.3, explanation="200 worker threads ÷ 0.15 s")


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

    @pytest.mark.parametrize(("wall_s", "status"), [(9.6, Status.VALID), (11.0, Status.INVALID)])
    def test_a_thread_is_as_busy_as_between_its_own_readings(self, wall_s: float, status: Status) -> None:
        """9.4 s of CPU are 94 % of the window: all but 2 % of 9.6 s, and 85 % of 11 s."""
        thread = ThreadUse(pid=200, tid=203, name="node", cpu_s=9.4, wall_s=wall_s)
        one = f.part(f.healthy(), "server_window", granted_cpus=4, busiest_thread=thread)
        assert bound_by(one, LIMITS).status is status

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
        assert "more users: rate up by 44.8 %" in rising.reason
        assert rising.reason.endswith("this describes the load, not the server's capacity")

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

    def test_an_idle_server_shows_no_capacity_and_accuses_nobody(self) -> None:
        """Too few users, or it waits for something: the load generator had CPU left."""
        finding = bound_by(idle_server(f.healthy()), LIMITS)
        assert finding.status is Status.INVALID
        assert finding.reason.endswith("nothing shows that this is the server's capacity")
        assert "load generator" not in finding.reason
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
        busy = f.window(idle_server(f.healthy()), threads=f.threads(0.97, lag_ms=4))
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
