"""The checks on loads other than users without think time: sessions, phases, whole runs, ramps."""

from __future__ import annotations

import numpy as np
import pytest

from prony.evidence.trial import Evidence
from prony.judge.checks.connections import connections
from prony.judge.checks.little import little
from prony.judge.checks.ports import forecast_ports
from prony.judge.checks.steady import steady
from prony.judge.checks.think import think
from prony.judge.drift import level_rows
from prony.judge.finding import Finding, Kind
from prony.judge.limits import CheckLimits
from prony.load.facts import load_facts
from prony.plan.load import ClosedLoad, Connections, OpenLoad, RatePhase
from prony.plan.think import Think
from prony.plan.workload import Workload
from tests.judge import factory as f

LIMITS = CheckLimits()
WALK = Workload.model_validate({"name": "w", "steps": [{"path": "/", "repeat": 50}]})


def found(finding: Finding | None) -> Finding:
    assert finding is not None
    return finding


def sessions(*, shared: bool = False) -> Evidence:
    """A hundred sessions a second of fifty requests, each on a connection of its own."""
    load = OpenLoad(phases=(RatePhase(duration_s=60, from_per_s=100, to_per_s=100),), session="user")
    facts = load_facts(load, WALK, Connections(shared=shared), claim="protocol")
    base = f.open_model().model_copy(update={"load": facts})
    cycles_s = 750.0 * f.WINDOW_S
    return f.totals(
        f.window(base, clipped_cycle_s=cycles_s, users_integral_s=cycles_s * 1.0005, users=750),
        sent=300_000,
        completed=300_000,
        connections_opened=6000,
        connections_closed_by_client=6000,
        connections_closed_by_server=0,
        sessions_begun=6000,
        sessions_completed=6000,
    )


class TestConnections:
    def test_a_connection_per_session_is_what_sessions_lead_to(self) -> None:
        finding = connections(sessions(), LIMITS)
        assert finding.kind is Kind.FINE
        assert finding.value == 1

    def test_a_connection_per_request_of_a_session_fires(self) -> None:
        broken = f.totals(sessions(), connections_opened=300_000, connections_closed_by_server=294_000)
        finding = connections(broken, LIMITS)
        assert (finding.conforms, finding.code) == (False, "extra")

    def test_an_open_loop_that_keeps_its_connections_is_quiet(self) -> None:
        kept = f.totals(f.open_model(), connections_opened=80)
        finding = connections(kept, LIMITS)
        assert finding.kind is Kind.FINE
        assert finding.value == 1

    def test_an_open_loop_whose_server_closes_after_each_response_fires(self) -> None:
        sent = f.RATE * 52
        broken = f.totals(f.open_model(), connections_opened=sent + 40, connections_closed_by_server=sent)
        finding = connections(broken, LIMITS)
        assert (finding.conforms, finding.code) == (False, "extra")
        assert finding.advice

    def test_connections_lost_with_failed_requests_are_no_second_fault(self) -> None:
        lost = f.totals(f.open_model(), connections_opened=90, connections_closed_by_client=10, failed=10)
        assert connections(lost, LIMITS).kind is Kind.FINE

    def test_a_wrong_response_closes_no_connection(self) -> None:
        """Errors below their limit made fifty connections be expected where eight were kept."""
        wrong = f.totals(f.open_model(), connections_opened=8, failed=50, errors={"expect_status": 50})
        finding = connections(wrong, LIMITS)
        assert (finding.conforms, finding.value) == (True, 1)


class TestPorts:
    def test_sessions_with_connections_of_their_own_need_a_port_each(self) -> None:
        limits = f.healthy().limits
        assert forecast_ports(sessions().load, limits).value == pytest.approx(6000 / 28_232)
        kept = forecast_ports(sessions(shared=True).load, limits)
        assert isinstance(kept.value, float)
        assert kept.value < 6000 / 28_232


class TestLittle:
    def test_sessions_that_walked_are_all_accounted_for(self) -> None:
        finding = little(sessions(), LIMITS)
        assert finding.kind is Kind.FINE
        assert finding.value == pytest.approx(750 / 750.375 - 1, abs=0.0002)

    def test_sessions_that_stood_still_fire(self) -> None:
        """Places were held for longer than requests and pauses explain."""
        broken = f.window(sessions(), users_integral_s=900.0 * f.WINDOW_S)
        assert (little(broken, LIMITS).conforms, little(broken, LIMITS).code) == (False, "users_missing")

    def test_users_of_a_ramp_are_counted_by_the_time_they_were_there(self) -> None:
        ramp = f.part(f.healthy(), "load", ramp_up_s=60.0)
        half = f.window(ramp, clipped_cycle_s=50.0, users_integral_s=50.2, in_flight_integral_s=50.0)
        half = f.window(half, service_time_sum_s=50.0)
        assert little(half, LIMITS).kind is Kind.FINE
        assert not little(f.window(half, clipped_cycle_s=45.0), LIMITS).conforms


class TestThink:
    def test_users_of_sessions_think_too(self) -> None:
        thinking = f.window(
            f.part(sessions(), "load", think_kind="uniform", think_mean_ms=100.0),
            think_count=1000,
            think_drawn_sum_s=100.0,
            think_actual_sum_s=100.1,
            think_overshoot=f.histogram(1000, 0.1),
        )
        assert found(think(thinking, LIMITS)).kind is Kind.FINE
        late = f.window(thinking, think_actual_sum_s=110.0)
        assert not found(think(late, LIMITS)).conforms


class TestSteady:
    def test_the_throughput_of_an_open_load_is_the_schedules(self) -> None:
        """Poisson sessions make bursts that look like levels; the server's own time stays what it was."""
        level = np.where(np.arange(52) % 20 < 10, 1.0, 1.3)
        made = tuple(
            row.model_copy(update={"completed": round(row.completed * by), "p50_ns": 1_000_000})
            for row, by in zip(f.rows([8000.0] * 52), level, strict=True)
        )
        finding = found(steady(f.engine(f.open_model(), rows=made), LIMITS))
        assert finding.code == "level"
        assert "requests_per_s" not in finding.plateau
        assert finding.plateau["p50_ms"].bias.size < 0.005

    @pytest.mark.parametrize(("claim", "code"), [("protocol", "protocol"), ("latency", "stepped")])
    def test_a_protocol_that_includes_the_warm_up_claims_no_plateau(self, claim: str, code: str) -> None:
        made = f.rows([*f.noisy(3000, 20, 0.01), *f.noisy(8000, 20, 0.01)])
        whole = f.window(f.engine(f.healthy(), rows=made), opened_ms=0.0, duration_s=40.0)
        finding = found(steady(f.part(whole, "load", claim=claim), LIMITS))
        assert finding.code == code
        assert bool(finding.plateau) == (claim == "latency")

    def test_users_who_come_and_go_change_the_rate_and_nothing_else(self) -> None:
        """The 20 rows with all ten users are level, but for the first: not all were there at its begin."""
        coming = [8000.0 * n / 10 for n in range(1, 10)]
        there = f.noisy(8000, 20, 0.001)
        made = [
            row.model_copy(update={"users": round(users)})
            for row, users in zip(
                f.rows([*coming, *there, *reversed(coming)]),
                [*range(1, 10), *[10] * 20, *range(9, 0, -1)],
                strict=True,
            )
        ]
        whole = f.window(f.engine(f.healthy(), rows=tuple(made)), opened_ms=0.0, duration_s=38.0)
        ramps = f.part(whole, "load", ramp_up_s=9.0, ramp_down_s=9.0)
        assert ramps.engine is not None
        assert len(level_rows(ramps.engine.rows, ramps.load)) == 19
        assert found(steady(ramps, LIMITS)).code == "level"


class TestFacts:
    def test_of_a_closed_load(self) -> None:
        load = ClosedLoad(users=7, think=Think(kind="constant", ms=5), ramp_up_s=3, ramp_down_s=2)
        facts = load_facts(load, WALK, Connections())
        assert (facts.users, facts.at_once, facts.ramp_up_s, facts.ramp_down_s) == (7, 7, 3, 2)
        assert (facts.think_kind, facts.think_mean_ms, facts.claim) == ("constant", 5, "latency")
        assert not facts.own_connections

    def test_of_sessions(self) -> None:
        facts = sessions().load
        assert (facts.offered_per_s, facts.sessions_per_s, facts.arrivals_end_s) == (5000, 100, 60)
        assert (facts.phased, facts.varies, facts.own_connections, facts.claim) == (
            False,
            True,
            True,
            "protocol",
        )
        assert not sessions(shared=True).load.own_connections

    def test_a_ramp_is_a_change_of_rate(self) -> None:
        phases = (RatePhase(duration_s=5, from_per_s=0, to_per_s=9),)
        assert load_facts(OpenLoad(phases=phases), WALK, Connections()).phased
