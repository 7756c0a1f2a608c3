"""bound_by: what bounds a throughput, and when nothing on the server does."""

from __future__ import annotations

import math
from typing import Any

import pytest

from prony.evidence.server import CgroupThrottle, ServiceUse, ThreadUse
from prony.evidence.trial import Ceiling, Evidence
from prony.judge.checks.bound_by import SERVER_THREAD, BoundLimits, bound, bound_by
from prony.judge.finding import Finding
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


def room(finding: Finding) -> float:
    """How much more the server may carry with more users, as a share; infinite where nothing bounds it."""
    bias = finding.of("capacity_per_s")
    return math.inf if bias.high is None else bias.high


class TestBoundBy:
    def test_a_cpu_bound_server_can_give_what_is_left_of_its_cpu(self) -> None:
        finding = bound_by(f.healthy(), LIMITS)
        assert (finding.code, finding.conforms) == ("server_cpu", True)
        assert finding.value == pytest.approx(0.96)
        assert room(finding) == pytest.approx(1 / 0.96 - 1)
        assert not finding.provided

    def test_no_figure_of_the_window_is_bent(self) -> None:
        idle = bound_by(idle_server(f.healthy()), LIMITS)
        assert set(idle.bias) == {"capacity_per_s"}
        assert idle.conforms

    def test_granted_cpus_count(self) -> None:
        two = f.part(f.healthy(), "server_window", granted_cpus=2)
        assert bound_by(two, LIMITS).code == "unknown"
        assert room(bound_by(two, LIMITS)) == math.inf

    @pytest.mark.parametrize(("others", "code"), [(0.67, "server_cpu"), (0.3, "unknown"), (0.99, "unknown")])
    def test_what_neighbours_took_was_not_the_servers(self, others: float, code: str) -> None:
        crowded = f.part(idle_server(f.healthy()), "host_window", others_on_server_cpus=others)
        assert bound_by(crowded, LIMITS).code == code

    @pytest.mark.parametrize(("busy_s", "code"), [(9.6, "server_thread"), (8.0, "unknown")])
    def test_one_busy_thread_bounds_a_server_on_several_cpus(self, busy_s: float, code: str) -> None:
        """A single-threaded server on four CPUs uses a quarter of them and is exhausted."""
        thread = ThreadUse(pid=200, tid=203, name="node", cpu_s=busy_s)
        one = f.part(f.healthy(), "server_window", granted_cpus=4, busiest_thread=thread)
        finding = bound_by(one, LIMITS)
        assert finding.code == code
        assert (bound(one, BOUND).name == SERVER_THREAD) is (code == "server_thread")
        if code == "server_thread":
            assert room(finding) == pytest.approx(1 / 0.96 - 1)

    @pytest.mark.parametrize(("wall_s", "code"), [(9.6, "server_thread"), (11.0, "unknown")])
    def test_a_thread_is_as_busy_as_between_its_own_readings(self, wall_s: float, code: str) -> None:
        """9.4 s of CPU are 94 % of the window: all but 2 % of 9.6 s, and 85 % of 11 s."""
        thread = ThreadUse(pid=200, tid=203, name="node", cpu_s=9.4, wall_s=wall_s)
        one = f.part(f.healthy(), "server_window", granted_cpus=4, busiest_thread=thread)
        assert bound_by(one, LIMITS).code == code

    @pytest.mark.parametrize("share", [0.3, 0.8, 0.97])
    def test_a_probe_bounds_what_more_users_bring(self, share: float) -> None:
        busy = idle_server(f.healthy(), share)
        level = bound_by(f.probed(busy, 1.01), LIMITS)
        assert 0.01 < room(level) < 0.05
        assert not level.provided
        rising = bound_by(f.probed(busy, 1.2), LIMITS)
        assert 0.2 < room(rising) < 0.25
        assert rising.provided

    @pytest.mark.parametrize(
        ("ratio", "changes"),
        [
            (1.05, {"cv": 0.15}),
            (1.01, {"failed_share": 0.1}),
            (1.01, {"rates_per_s": ()}),
        ],
    )
    def test_a_probe_that_cannot_tell_leaves_it_to_the_cpu(
        self, ratio: float, changes: dict[str, Any]
    ) -> None:
        half = idle_server(f.healthy(), 0.8)
        cv = changes.pop("cv", 0.01)
        probe = f.probed(half, ratio, cv=cv).scaling_probe
        assert probe is not None
        update = {"scaling_probe": probe.model_copy(update=changes)}
        assert room(bound_by(half.model_copy(update=update), LIMITS)) == pytest.approx(0.25)

    @pytest.mark.parametrize("share", [0.8, 0.97])
    def test_a_probe_by_a_busy_client_bounds_nothing_however_busy_the_server(self, share: float) -> None:
        """A server that polls is at 100 % without a request, and the client could not have sent more."""
        finding = bound_by(f.probed(idle_server(f.healthy(), share), 1.01, client_cpu=0.95), LIMITS)
        assert room(finding) == math.inf
        assert finding.provided

    def test_a_fixed_protocol_and_a_latency_claim_no_capacity(self) -> None:
        for claim in ("protocol", "latency"):
            finding = bound_by(f.part(idle_server(f.healthy(), 0.8), "load", claim=claim), LIMITS)
            assert not finding.bias
            assert not finding.provided

    @pytest.mark.parametrize(("program", "cpu_s"), [("docker-proxy", 8.0), ("nginx", 0.02)])
    def test_a_process_that_forwards_is_not_the_server(self, program: str, cpu_s: float) -> None:
        foreign = f.part(f.healthy(), "server", owned=False, runtime=program)
        foreign = f.part(foreign, "server_window", cpu_user_s=cpu_s, cpu_system_s=0.0)
        finding = bound_by(foreign, LIMITS)
        assert (finding.code, finding.value) == ("unknown", None)
        assert room(finding) == math.inf

    def test_a_declared_ceiling_explains_an_idle_server(self) -> None:
        slow = f.window(idle_server(f.healthy()), completed=12_950)
        explained = slow.model_copy(update={"ceilings": (WORKERS,)})
        finding = bound_by(explained, LIMITS)
        assert finding.code == "workers"
        assert room(finding) == pytest.approx(0.05)

    @pytest.mark.parametrize("completed", [12_000, 15_000])
    def test_a_ceiling_that_is_not_near_explains_nothing(self, completed: int) -> None:
        slow = f.window(idle_server(f.healthy()), completed=completed)
        far = slow.model_copy(update={"ceilings": (WORKERS,)})
        assert bound_by(far, LIMITS).code == "unknown"

    def test_users_over_service_time_is_no_excuse(self) -> None:
        """In a closed loop users ÷ mean service time equals the rate whatever bound it; nothing declared, no
        bound.
        """
        few = f.part(idle_server(f.healthy()), "load", users=1)
        assert bound_by(few, LIMITS).code == "unknown"

    def test_thinking_users_are_an_offered_load(self) -> None:
        load = f.part(idle_server(f.healthy()), "load", think_kind="constant", think_mean_ms=100)
        assert bound(load, BOUND).name == "offered-load"
        assert room(bound_by(load, LIMITS)) == math.inf

    def test_open_load_that_was_met(self) -> None:
        met = idle_server(f.open_model())
        assert bound(met, BOUND).name == "offered-load"
        assert not bound_by(met, LIMITS).bias

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
        assert room(bound_by(busy, LIMITS)) == math.inf

    def test_a_quota_is_a_cpu_bound(self) -> None:
        throttle = CgroupThrottle(periods=100, throttled_periods=96, throttled_s=4)
        held = f.part(idle_server(f.healthy(), 0.5), "server_window", throttle=throttle)
        assert bound(held, BOUND).name == "server-cpu"
        assert room(bound_by(held, LIMITS)) == 0

    def test_unread_cpu_bounds_nothing(self) -> None:
        for blind in (f.by_url(), f.part(f.healthy(), "server_window", cpu_user_s=None)):
            finding = bound_by(blind, LIMITS)
            assert room(finding) == math.inf
            assert finding.provided

    def test_a_service_that_shares_the_cpu_fills_it_with_the_server(self) -> None:
        half = idle_server(f.healthy(), 0.6)
        assert bound_by(half, LIMITS).code == "unknown"
        full = half.model_copy(update={"services": (service(2.5, shares=True),)})
        assert bound_by(full, LIMITS).code == "server_cpu"
        light = half.model_copy(update={"services": (service(0.5, shares=True),)})
        assert bound_by(light, LIMITS).code == "unknown"

    def test_a_service_on_its_own_cpu_may_be_the_bound(self) -> None:
        half = idle_server(f.healthy(), 0.6)
        busy = half.model_copy(update={"services": (service(9.0, shares=False),)})
        assert bound_by(busy, LIMITS).code == "service_cpu"
        idle = half.model_copy(update={"services": (service(2.5, shares=False),)})
        assert bound_by(idle, LIMITS).code == "unknown", "its CPU is not the server's"

    def test_a_service_that_could_not_be_read_excuses_nothing(self) -> None:
        unread = idle_server(f.healthy(), 0.6).model_copy(update={"services": (ServiceUse(name="x"),)})
        assert bound_by(unread, LIMITS).code == "unknown"

    def test_no_window(self) -> None:
        assert not bound_by(f.engine(f.healthy(), window=None), LIMITS).conforms
