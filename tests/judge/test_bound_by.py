"""bound_by: what bounds a throughput, and how much more the server could carry."""

from __future__ import annotations

from typing import Any

import pytest

from prony.evidence.engine import EngineThread
from prony.evidence.server import CgroupThrottle, ServiceUse, ThreadUse
from prony.evidence.trial import Ceiling, Evidence
from prony.judge.checks.bound_by import SERVER_THREAD, BoundLimits, bound, bound_by
from prony.judge.finding import Finding, Kind
from tests.judge import factory as f

LIMITS = BoundLimits()
WORKERS = Ceiling(name="workers", per_s=1333.3, explanation="200 worker threads ÷ 0.15 s")


def idle_server(evidence: Evidence, share: float = 0.3) -> Evidence:
    return f.part(evidence, "server_window", cpu_user_s=share * 10, cpu_system_s=0.0)


def judged(evidence: Evidence) -> Finding:
    return bound_by(evidence, LIMITS)


def name(evidence: Evidence) -> str:
    return bound(evidence, LIMITS).name


def more(evidence: Evidence) -> float | None:
    """By how much the server could carry more, at most."""
    return judged(evidence).of("capacity_per_s").high


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


class TestWhatBounds:
    def test_cpu_bound_server(self) -> None:
        found = judged(f.healthy())
        assert found.value == pytest.approx(0.96)
        assert name(f.healthy()) == "server-cpu"

    def test_granted_cpus_count(self) -> None:
        assert name(f.part(f.healthy(), "server_window", granted_cpus=2)) == "unknown"

    @pytest.mark.parametrize(
        ("share", "others", "expected"),
        [(0.3, 0.67, "server-cpu"), (0.3, 0.3, "unknown"), (0.3, 0.99, "unknown"), (0.02, 0.75, "unknown")],
    )
    def test_what_neighbours_took_was_not_the_servers(
        self, share: float, others: float, expected: str
    ) -> None:
        crowded = f.part(idle_server(f.healthy(), share), "host_window", others_on_server_cpus=others)
        assert name(crowded) == expected
        if expected != "unknown":
            assert more(crowded) == pytest.approx((1 - others) / share - 1)

    @pytest.mark.parametrize(
        ("busy_s", "wall_s", "expected"),
        [
            (9.6, None, SERVER_THREAD),
            (8.0, None, "unknown"),
            (9.4, 9.6, SERVER_THREAD),
            (9.4, 11.0, "unknown"),
        ],
    )
    def test_one_busy_thread_bounds_a_server_on_several_cpus(
        self, busy_s: float, wall_s: float | None, expected: str
    ) -> None:
        """A single-threaded server on four CPUs uses a quarter of them and is exhausted; a thread is as busy
        as between its own readings.
        """
        thread = ThreadUse(pid=200, tid=203, name="node", cpu_s=busy_s, wall_s=wall_s)
        one = f.part(f.healthy(), "server_window", granted_cpus=4, busiest_thread=thread)
        assert name(one) == expected
        if expected == SERVER_THREAD:
            assert more(one) == pytest.approx((wall_s or 10.0) / busy_s - 1)

    @pytest.mark.parametrize(("program", "cpu_s"), [("docker-proxy", 8.0), ("nginx", 0.02)])
    def test_a_process_that_forwards_is_not_the_server(self, program: str, cpu_s: float) -> None:
        foreign = f.part(f.healthy(), "server", owned=False, runtime=program)
        foreign = f.part(foreign, "server_window", cpu_user_s=cpu_s, cpu_system_s=0.0)
        assert (name(foreign), judged(foreign).code, judged(foreign).value) == ("unknown", "unread", None)

    def test_what_was_read_of_a_foreign_server_is_named(self) -> None:
        foreign = f.part(f.healthy(), "server", owned=False, runtime="python3")
        foreign = f.part(foreign, "server_window", processes=3)
        assert "to PID 200 (python3) and 2 more processes" in judged(foreign).reason

    @pytest.mark.parametrize(
        ("completed", "expected"), [(12_950, "workers"), (12_000, "unknown"), (15_000, "unknown")]
    )
    def test_a_declared_ceiling_explains_an_idle_server_that_is_near(
        self, completed: int, expected: str
    ) -> None:
        slow = f.window(idle_server(f.healthy()), completed=completed)
        slow = slow.model_copy(update={"ceilings": (WORKERS,)})
        assert name(slow) == expected
        assert more(slow) == (None if expected == "unknown" else pytest.approx(1333.3 / 1295 - 1))

    def test_users_over_service_time_is_no_excuse(self) -> None:
        """In a closed loop users ÷ mean service time equals the rate whatever bound it; nothing declared, no
        bound.
        """
        assert name(f.part(idle_server(f.healthy()), "load", users=1)) == "unknown"

    def test_thinking_users_are_an_offered_load(self) -> None:
        load = f.part(idle_server(f.healthy()), "load", think_kind="constant", think_mean_ms=100)
        assert name(load) == "offered-load"
        assert (judged(load).code, more(load)) == ("offered_load", None)

    def test_open_load_that_was_met(self) -> None:
        met = idle_server(f.open_model())
        assert name(met) == "offered-load"
        assert judged(met).kind is Kind.FINE, "it claims no capacity"
        assert more(f.part(met, "load", claim="capacity")) is None

    def test_sessions_that_all_came_are_an_offered_load_though_the_first_and_last_are_alone(self) -> None:
        met = f.part(idle_server(f.open_model()), "load", varies=True)
        assert met.engine is not None
        met = f.engine(met, rows=tuple(r.model_copy(update={"in_window": True}) for r in met.engine.rows))
        assert met.engine is not None
        assert met.engine.window is not None
        slower = f.window(met, duration_s=met.engine.window.duration_s * 1.3)
        assert name(slower) == "offered-load"
        assert name(f.part(slower, "load", varies=False)) == "unknown", "one rate must be met all along"
        late = tuple(row.model_copy(update={"completed": row.completed // 2}) for row in met.engine.rows)
        assert name(f.engine(slower, rows=late)) == "unknown"

    def test_saturated_client(self) -> None:
        busy = f.window(idle_server(f.healthy()), threads=f.threads(0.97, lag_ms=4))
        assert (name(busy), judged(busy).code, more(busy)) == ("client", "client", None)

    def test_a_quota_is_a_cpu_bound(self) -> None:
        throttle = CgroupThrottle(periods=100, throttled_periods=96, throttled_s=4)
        held = f.part(idle_server(f.healthy(), 0.5), "server_window", throttle=throttle)
        assert name(held) == "server-cpu"
        assert more(held) == pytest.approx(1 / 0.96 - 1)

    @pytest.mark.parametrize(
        ("cpu_s", "shares", "expected", "used"),
        [
            (2.5, True, "server-cpu", 0.85),
            (0.5, True, "unknown", None),
            (9.0, False, "service-cpu", 0.9),
            (2.5, False, "unknown", None),
        ],
        ids=["fills its CPU with it", "light", "its own CPU is full", "its CPU is not the server's"],
    )
    def test_a_service(self, cpu_s: float, shares: bool, expected: str, used: float | None) -> None:
        """Beside a server that uses 60 % of its CPU."""
        half = idle_server(f.healthy(), 0.6)
        beside = half.model_copy(update={"services": (service(cpu_s, shares=shares),)})
        assert name(beside) == expected
        assert more(beside) == (None if used is None else pytest.approx(1 / used - 1))

    def test_a_service_that_could_not_be_read_excuses_nothing(self) -> None:
        unread = idle_server(f.healthy(), 0.6).model_copy(update={"services": (ServiceUse(name="x"),)})
        assert more(unread) is None


class TestHowMuchMore:
    @pytest.mark.parametrize("share", [0.8, 0.97])
    def test_a_probe_that_is_level_bounds_the_capacity(self, share: float) -> None:
        """75 % of the CPU alone are no capacity: the rate under half as many users again decides."""
        level = judged(f.probed(idle_server(f.healthy(), share), 1.01))
        assert level.code == "ok"
        assert 0.01 < (level.of("capacity_per_s").high or 0.0) < 0.05

    def test_a_rate_that_rises_may_go_on_as_far_as_there_is_cpu_time(self) -> None:
        rising = judged(f.probed(idle_server(f.healthy(), 0.8), 1.2))
        assert rising.code == "rising"
        assert rising.of("capacity_per_s").high == pytest.approx(0.25, abs=0.03)
        assert more(f.probed(idle_server(f.healthy()), 1.45)) is None, "of an idle server that is not known"

    @pytest.mark.parametrize("changes", [{"cv": 0.15}, {"failed_share": 0.1}, {"rates_per_s": ()}])
    def test_a_probe_that_cannot_tell_leaves_the_cpu_time(self, changes: dict[str, Any]) -> None:
        """Too noisy, requests failed, too short."""
        half = idle_server(f.healthy(), 0.8)
        probe = f.probed(half, 1.01, cv=changes.get("cv", 0.01)).scaling_probe
        assert probe is not None
        there = probe.model_copy(update={key: value for key, value in changes.items() if key != "cv"})
        found = judged(half.model_copy(update={"scaling_probe": there}))
        assert found.code == "cpu_left"
        assert found.of("capacity_per_s").high == pytest.approx(0.25)

    def test_a_probe_by_a_busy_client_shows_nothing(self) -> None:
        """A server that polls is at 100 % without a request; where the client of the window had CPU left,
        that is a condition.
        """
        found = judged(f.probed(idle_server(f.healthy(), 0.97), 1.01, client_cpu=0.95))
        assert (found.code, bool(found.provided)) == ("client_busy", True)
        assert found.of("capacity_per_s").high == pytest.approx(1 / 0.97 - 1)
        busy = f.window(idle_server(f.healthy(), 0.97), threads=f.threads(0.9))
        assert more(f.probed(busy, 1.01, client_cpu=0.95)) is None

    def test_an_idle_server_whose_rate_does_not_rise_waits_for_something(self) -> None:
        """It is its capacity, and nobody knows why."""
        found = judged(f.probed(idle_server(f.healthy()), 1.0))
        assert found.code == "undeclared"
        assert (found.of("capacity_per_s").high or 1.0) < 0.05

    @pytest.mark.parametrize("share", [0.8, 0.92])
    def test_without_a_probe_the_cpu_time_that_is_left(self, share: float) -> None:
        found = judged(idle_server(f.healthy(), share))
        assert found.code == "cpu_left"
        assert found.of("capacity_per_s").high == pytest.approx(1 / share - 1)

    def test_an_idle_server_shows_no_capacity_and_accuses_nobody(self) -> None:
        found = judged(idle_server(f.healthy()))
        assert (found.code, more(idle_server(f.healthy()))) == ("unknown", None)
        assert "load generator" not in found.reason

    @pytest.mark.parametrize("claim", ["latency", "protocol"])
    def test_where_no_capacity_is_claimed_nothing_is_bounded(self, claim: str) -> None:
        found = judged(f.part(idle_server(f.healthy(), 0.8), "load", claim=claim))
        assert (found.kind, found.code, found.bias) == (Kind.FINE, "ok", {})

    def test_what_cannot_be_read_is_a_condition(self) -> None:
        blind = f.part(f.healthy(), "server_window", cpu_user_s=None)
        foreign = idle_server(f.part(f.healthy(), "server", owned=False))
        for evidence in (f.by_url(), blind, foreign):
            found = judged(evidence)
            assert (found.kind, found.code) == (Kind.PROVIDED, "unread")
        assert name(f.part(f.healthy(), "server", owned=False)) == "server-cpu", "a busy one is proof"

    def test_no_window(self) -> None:
        assert judged(f.healthy().model_copy(update={"engine": None})).code == "no_window"


class TestLink:
    FULL = f.host(f.on_hosts(3), "server", link={"speed_bits_per_s": 92e6, "speed_declared": True})

    def test_a_full_link_is_the_bottleneck_whatever_the_cpu_did(self) -> None:
        found = judged(self.FULL)
        assert (found.code, name(self.FULL), more(self.FULL)) == ("network", "network", None)
        assert found.reason.startswith("network: link full: server sent 91.84 Mbit/s of 92 Mbit/s (99.8 %)")
        assert judged(f.part(self.FULL, "load", claim="latency")).kind is Kind.FINE

    def test_also_of_a_busy_client(self) -> None:
        late = EngineThread(cpu=1, cpu_s=9.7, wall_s=10.0, loop_lag_p99_ns=5_000_000)
        busy = f.part(self.FULL, "server_window", cpu_user_s=6.0, cpu_system_s=0.0)
        for one in ("load1", "load2", "load3"):
            busy = f.host_engine(busy, one, threads=(late,))
        assert name(busy) == "network"
