"""ports, descriptors, connections: forecast before the run, counted during it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from prony.evidence.counts import TlsAgreed
from prony.evidence.engine import TlsReady
from prony.evidence.host import HostRow, Limits, PortRange
from prony.evidence.server import ServerIdentity
from prony.evidence.trial import Evidence, LoadFacts
from prony.judge.checks.connections import connections
from prony.judge.checks.descriptors import descriptors, forecast_descriptors
from prony.judge.checks.ports import forecast_ports, ports
from prony.judge.finding import Finding, Kind
from prony.judge.limits import CheckLimits
from tests.judge import factory as f
from tests.judge.factory import kind_and_code as kind_code

LIMITS = CheckLimits()
NOT_CONFORMING, BUDGET, PROVIDED, FINE = Kind
DEFAULT_RANGE = Limits(ports=PortRange(low=32768, high=60999), time_wait_to_target=0)


def per_request(rate: float | None, **more: Any) -> LoadFacts:
    return LoadFacts(model="closed", users=16, keep_alive=False, expected_requests_per_s=rate, **more)


class TestPortForecast:
    def test_keep_alive_needs_one_port_per_user(self) -> None:
        finding = forecast_ports(LoadFacts(model="closed", users=1000), DEFAULT_RANGE)
        assert kind_code(finding) == (FINE, "ok")
        assert finding.value == pytest.approx(1000 / 28_232)

    @pytest.mark.parametrize(
        ("rate", "kind", "code"),
        [
            (370, FINE, "ok"),
            (380, PROVIDED, "near"),
            (480, NOT_CONFORMING, "too_few"),
            (60_000, NOT_CONFORMING, "too_few"),
        ],
    )
    def test_a_connection_per_request(self, rate: float, kind: Kind, code: str) -> None:
        """28,232 ports held for 60 s: 470 new connections a second at most (experiment B asked
        for 60,000).
        """
        assert kind_code(forecast_ports(per_request(rate), DEFAULT_RANGE)) == (kind, code)

    def test_all_three_remedies_are_named(self) -> None:
        advice = forecast_ports(per_request(60_000), DEFAULT_RANGE).advice
        assert "keep_alive" in advice
        assert "ip_local_port_range" in advice
        assert "160 source" in advice

    def test_a_short_run_does_not_fill_the_range(self) -> None:
        assert forecast_ports(per_request(2000, duration_s=10), DEFAULT_RANGE).kind is FINE
        assert forecast_ports(per_request(2000, duration_s=20), DEFAULT_RANGE).kind is NOT_CONFORMING

    def test_more_addresses_help(self) -> None:
        assert forecast_ports(per_request(2000, sources=6), DEFAULT_RANGE).kind is FINE
        assert forecast_ports(per_request(2000, sources=3, destinations=2), DEFAULT_RANGE).kind is FINE

    def test_a_unix_socket_takes_none(self) -> None:
        finding = forecast_ports(per_request(60_000, transport="unix"), DEFAULT_RANGE)
        assert (finding.kind, finding.value) == (FINE, 0)

    def test_a_kernel_that_reuses_ports_holds_them_for_a_second(self) -> None:
        reuse = DEFAULT_RANGE.model_copy(update={"time_wait_reuse": True, "time_wait_to_target": 20_000})
        assert forecast_ports(per_request(8000), reuse).kind is FINE
        assert forecast_ports(per_request(60_000), reuse).kind is NOT_CONFORMING

    def test_ports_that_wait_already_are_not_available(self) -> None:
        taken = DEFAULT_RANGE.model_copy(update={"time_wait_to_target": 20_000})
        assert forecast_ports(per_request(200), taken).kind is NOT_CONFORMING

    def test_a_server_that_closes_is_reckoned_with(self) -> None:
        load = LoadFacts(model="closed", users=16, expected_requests_per_s=60_000, server_closes_after=100)
        assert forecast_ports(load, DEFAULT_RANGE).kind is NOT_CONFORMING

    def test_more_users_than_ports_are_refused_though_the_server_closes_at_an_unknown_rate(self) -> None:
        load = LoadFacts(model="closed", users=40_000, server_closes_after=100)
        finding = forecast_ports(load, DEFAULT_RANGE)
        assert finding.kind is NOT_CONFORMING
        assert "fewer users" in finding.advice
        few = load.model_copy(update={"users": 1000})
        assert kind_code(forecast_ports(few, DEFAULT_RANGE)) == (PROVIDED, "unread")

    def test_an_unknown_rate_refuses_nothing_and_says_what_would_fit(self) -> None:
        finding = forecast_ports(per_request(None), DEFAULT_RANGE)
        assert kind_code(finding) == (PROVIDED, "unread")
        assert "376" in finding.reason
        assert kind_code(forecast_ports(per_request(10), None)) == (PROVIDED, "unread")


class TestPortsDuring:
    def test_quiet(self) -> None:
        assert ports(f.healthy(), LIMITS).kind is FINE

    @pytest.mark.parametrize("changes", [{"eaddrnotavail": 12}, {"errors": {"address_unavailable": 12}}])
    def test_the_kernel_refused(self, changes: dict[str, Any]) -> None:
        finding = ports(f.totals(f.healthy(), **changes), LIMITS)
        assert kind_code(finding) == (NOT_CONFORMING, "refused")
        assert finding.value == 12
        assert finding.advice

    def churn(self, **counters: Any) -> Evidence:
        seen = f.part(f.healthy(), "host_window", sockets_close={"TIME_WAIT": 26_990})
        return f.totals(seen, connections_opened=27_000, connect_attempts=27_000, **counters)

    @pytest.mark.parametrize("by_client", [26_990, None])
    def test_near_the_edge_is_a_condition(self, by_client: int | None) -> None:
        finding = ports(self.churn(connections_closed_by_client=by_client), LIMITS)
        assert kind_code(finding) == (PROVIDED, "near")
        assert (finding.bias, bool(finding.provided)) == ({}, True)

    def test_an_estimate_above_the_range_is_no_refusal(self) -> None:
        reuse = f.part(f.healthy(), "limits", time_wait_reuse=True)
        seen = f.part(reuse, "host_window", sockets_close={"TIME_WAIT": 43_604})
        counted = {"connections_opened": 10**7, "connect_attempts": 10**7}
        finding = ports(f.totals(seen, **counted, connections_closed_by_client=10**7), LIMITS)
        assert (kind_code(finding), finding.advice) == ((FINE, "ok"), "")
        short = f.engine(f.totals(seen, **counted, connections_closed_by_client=10**7), elapsed_ms=900.0)
        assert kind_code(ports(short, LIMITS)) == (PROVIDED, "near")

    def test_nobody_looked(self) -> None:
        blind = f.part(
            self.churn(connections_closed_by_client=26_990), "host_window", sockets_open={}, sockets_close={}
        )
        assert ports(blind, LIMITS).kind is PROVIDED

    def test_no_more_are_taken_than_the_kernel_counted(self) -> None:
        """Both sides closed at once, and the server kept TIME_WAIT: the client believes that it closed."""
        free = f.part(self.churn(connections_closed_by_client=26_990), "host_window", sockets_close={})
        assert ports(free, LIMITS).kind is FINE
        row = HostRow(t_ms=1000.0, duration_ms=1000.0, time_wait=26_900)
        assert ports(free.model_copy(update={"host_rows": (row,)}), LIMITS).kind is PROVIDED

    def test_connections_that_the_server_closed_cost_no_port(self) -> None:
        assert ports(self.churn(connections_closed_by_server=26_990), LIMITS).kind is FINE

    @pytest.mark.parametrize(("first", "kind"), [(26_990, FINE), (0, PROVIDED)])
    def test_an_end_that_the_server_only_announced_costs_a_port(self, first: int, kind: object) -> None:
        ended = {"connections_closed_by_server": 26_990, "connections_closed_by_client": 0}
        seen = self.churn(**ended, connections_closed_first_by_server=first)
        assert ports(seen, LIMITS).kind is kind

    def test_foreign_time_wait_is_not_ours(self) -> None:
        crowded = f.part(f.healthy(), "host_window", sockets_close={"TIME_WAIT": 28_000})
        assert ports(crowded, LIMITS).kind is FINE

    def test_uncounted_is_a_condition(self) -> None:
        for blind in (
            f.totals(f.healthy(), eaddrnotavail=None),
            f.healthy().model_copy(update={"limits": None}),
        ):
            assert kind_code(ports(blind, LIMITS)) == (PROVIDED, "unread")


class TestDescriptors:
    def forecast(
        self, users: int, soft: int | None, server_soft: int | None = 100_000, hard: int = 100_000
    ) -> Kind:
        return forecast_descriptors(
            LoadFacts(model="closed", users=users),
            Limits(descriptors_soft=soft, descriptors_hard=hard, io_uring=False),
            ServerIdentity(name="x", descriptor_limit_soft=server_soft),
        ).kind

    def test_enough(self) -> None:
        assert self.forecast(900, 1024) is FINE

    def test_ulimit_1024_refuses_a_thousand_users(self) -> None:
        finding = forecast_descriptors(
            LoadFacts(model="closed", users=1000),
            Limits(descriptors_soft=1024, descriptors_hard=4096, io_uring=False),
            ServerIdentity(name="x", descriptor_limit_soft=100_000),
        )
        assert kind_code(finding) == (NOT_CONFORMING, "too_few")
        assert finding.value == 1064
        assert self.forecast(1000, 1024, hard=1024) is NOT_CONFORMING

    def with_driver(self, driver: str, probed: bool | None, users: int = 60_000) -> Kind:
        return forecast_descriptors(
            LoadFacts.model_validate({"model": "closed", "users": users, "driver": driver}),
            Limits(descriptors_soft=20_000, descriptors_hard=20_000, io_uring=probed),
            ServerIdentity(name="x", descriptor_limit_soft=100_000),
        ).kind

    def test_io_uring_needs_none_per_connection(self) -> None:
        assert self.with_driver("io_uring", None) is FINE
        assert self.with_driver("auto", True) is FINE

    def test_epoll_needs_one_per_connection(self) -> None:
        assert self.with_driver("epoll", True) is NOT_CONFORMING
        assert self.with_driver("auto", False) is NOT_CONFORMING

    def test_branches_need_one_each_on_both_sides(self) -> None:
        load = LoadFacts(model="closed", users=1_000, driver="epoll", connections_per_user=6)
        limits = Limits(descriptors_soft=5_000, descriptors_hard=5_000)
        finding = forecast_descriptors(load, limits, ServerIdentity(name="x", descriptor_limit_soft=5_000))
        assert (finding.conforms, finding.value) == (False, 6064)

    def test_a_driver_that_was_not_probed_is_no_reason_to_refuse(self) -> None:
        assert self.with_driver("auto", None) is PROVIDED
        assert self.with_driver("auto", None, users=10_000) is FINE

    def test_rings_need_descriptors_too(self) -> None:
        """Tables of 64 entries each: 16 rings of 4 descriptors do not fit beside the reserve."""
        few = Limits(descriptors_soft=64, descriptors_hard=64, io_uring=True)
        load = LoadFacts(model="closed", users=1000)
        assert forecast_descriptors(load, few, None).kind is NOT_CONFORMING

    def test_during_it_counts_for_the_driver_that_was_taken(self) -> None:
        evidence = f.part(f.part(f.healthy(), "limits", descriptors_soft=500), "load", users=2_000)
        report = evidence.engine
        assert report is not None
        for driver, code in (("io_uring", "ok"), ("epoll", "near")):
            ready = report.ready.model_copy(update={"driver": driver})
            ran = evidence.model_copy(update={"engine": report.model_copy(update={"ready": ready})})
            assert (descriptors(ran, LIMITS).conforms, descriptors(ran, LIMITS).code) == (True, code)

    def test_the_server_needs_them_as_well(self) -> None:
        assert self.forecast(1000, 100_000, server_soft=1024) is NOT_CONFORMING

    def test_a_side_that_cannot_be_read_is_a_condition(self) -> None:
        assert self.forecast(10, None) is PROVIDED
        assert self.forecast(10, 1024, server_soft=None) is PROVIDED

    def open_forecast(self, most: int, soft: int, begins_with: int | None = None) -> Finding:
        return forecast_descriptors(
            LoadFacts(model="open", at_once=begins_with, most_at_once=most),
            Limits(descriptors_soft=soft, descriptors_hard=soft, io_uring=False),
            ServerIdentity(name="x", descriptor_limit_soft=100_000),
        )

    def test_an_open_load_is_doubted_for_what_it_may_open(self) -> None:
        assert self.open_forecast(6000, 20_000).kind is FINE
        assert kind_code(self.open_forecast(6000, 1024)) == (PROVIDED, "near")

    def test_an_open_load_is_refused_for_what_it_begins_with(self) -> None:
        assert self.open_forecast(6000, 1024, begins_with=10).kind is PROVIDED
        assert self.open_forecast(6000, 1024, begins_with=2000).kind is NOT_CONFORMING

    def test_during_quiet(self) -> None:
        assert descriptors(f.healthy(), LIMITS).kind is FINE

    def test_during_refused(self) -> None:
        for counted in ({"emfile": 3}, {"errors": {"descriptors": 1}}):
            finding = descriptors(f.totals(f.healthy(), **counted), LIMITS)
            assert kind_code(finding) == (NOT_CONFORMING, "refused")

    def test_during_uncounted_is_a_condition(self) -> None:
        assert kind_code(descriptors(f.totals(f.healthy(), emfile=None), LIMITS)) == (PROVIDED, "unread")

    def test_during_a_server_near_its_limit(self) -> None:
        finding = descriptors(f.part(f.healthy(), "server_window", descriptors_end=19_000), LIMITS)
        assert kind_code(finding) == (PROVIDED, "near")
        assert finding.value == pytest.approx(0.95)

    def test_during_a_wrong_forecast_does_not_convict(self) -> None:
        """The kernel counts what was refused; nothing was, so the run conforms whatever was forecast."""
        tight = f.part(f.healthy(), "limits", descriptors_soft=40)
        assert descriptors(tight, LIMITS).kind is PROVIDED

    def test_open_model_counts_what_was_open(self) -> None:
        assert descriptors(f.open_model(), LIMITS).kind is FINE


class TestConnections:
    def kind(self, opened: int, evidence: Evidence | None = None, **changes: Any) -> Kind:
        """With as many opened in the window as it may have had."""
        base = f.window(evidence or f.healthy(), connections_opened=None)
        return connections(f.totals(base, connections_opened=opened, **changes), LIMITS).kind

    def test_quiet(self) -> None:
        finding = connections(f.healthy(), LIMITS)
        assert (kind_code(finding), finding.bias, finding.advice) == ((FINE, "ok"), {}, "")
        assert finding.value == 1

    def test_every_response_closed_though_keep_alive_was_asked(self) -> None:
        broken = f.totals(f.healthy(), connections_opened=416_000, connections_closed_by_server=415_990)
        assert kind_code(connections(broken, LIMITS)) == (NOT_CONFORMING, "extra")

    def reconnecting(self, **window: Any) -> Evidence:
        """One request in a hundred (Tomcat's default) waited 5 ms for a connection: a mean of 1.3 ms in place
        of 1.25, and 10 ÷ 1.3 ms = 76,900 in 10 s in place of 80,000.
        """
        requests, extra = 76_900, 769
        times = f.of_values([1_250_000] * 99 + [6_250_000], requests)
        base = f.totals(f.healthy(), connections_opened=10 + 4000, sent=400_000, completed=400_000)
        given = {"connections_opened": extra, "connect_time": f.of_values([5_000_000] * extra)}
        return f.window(base, **f.counters(requests) | given | {"response_time": times} | window)

    def test_connections_that_are_opened_again_bound_what_they_cost(self) -> None:
        finding = connections(self.reconnecting(), LIMITS)
        assert kind_code(finding) == (BUDGET, "extra")
        rate, mean = finding.bias["requests_per_s"], finding.bias["mean_ms"]
        assert [rate.low, rate.high] == pytest.approx([0, 80_000 / 76_923 - 1], rel=0.001)
        assert [mean.low, mean.high] == pytest.approx([1.25 / 1.3 - 1, 0], rel=0.001)
        assert 6.25 * (1 + (finding.bias["p999_ms"].low or 0.0)) == pytest.approx(1.25, rel=0.01)
        # 769 × 5 ms of the server's 9.6 s of CPU at most.
        assert finding.bias["server_cpu_us_per_request"].low == pytest.approx(-3.845 / 9.6)

    def test_in_a_handshake_the_user_waits_too(self) -> None:
        tls = f.part(self.reconnecting(tls_time=f.of_values([10_000_000] * 769)), "load", tls=True)
        assert connections(tls, LIMITS).bias["mean_ms"].low == pytest.approx(-0.01 * 15 / 1.3, rel=0.001)
        assert kind_code(connections(f.window(tls, tls_time=None), LIMITS)) == (PROVIDED, "extra")

    def test_connections_outside_the_window_bend_nothing_in_it(self) -> None:
        finding = connections(self.reconnecting(connections_opened=0), LIMITS)
        assert (kind_code(finding), finding.advice) == ((FINE, "ok"), "")

    def test_where_it_is_not_known_how_long_they_took_it_is_a_condition(self) -> None:
        finding = connections(self.reconnecting(connect_time=None), LIMITS)
        assert kind_code(finding) == (PROVIDED, "extra")
        assert finding.provided

    def test_unless_the_server_says_so(self) -> None:
        declared = f.part(f.healthy(), "load", server_closes_after=100)
        assert self.kind(4165, declared) is FINE
        assert self.kind(8400, declared) is PROVIDED
        assert self.kind(416_000, declared) is NOT_CONFORMING

    def test_one_reconnection_among_many_requests_is_nothing(self) -> None:
        assert self.kind(11) is FINE

    def test_a_connection_per_request(self) -> None:
        load = f.part(f.healthy(), "load", keep_alive=False)
        assert self.kind(416_000, load) is FINE
        assert self.kind(350_000, load) is PROVIDED
        assert self.kind(10, load) is NOT_CONFORMING
        few = connections(f.totals(load, connections_opened=350_000), LIMITS)
        assert few.code == "too_few"
        assert few.value == pytest.approx(350 / 416)

    def test_n_requests_per_connection(self) -> None:
        load = f.part(f.healthy(), "load", max_requests_per_connection=10)
        assert self.kind(41_605, load) is FINE
        assert self.kind(208_000, load) is NOT_CONFORMING

    def test_branches_have_connections_of_their_own(self) -> None:
        many = f.part(f.healthy(), "load", users=200)
        assert self.kind(1_200, many) is PROVIDED
        side_by_side = f.part(many, "load", connections_per_user=6)
        assert self.kind(1_200, side_by_side) is FINE
        assert self.kind(200, side_by_side) is FINE
        assert self.kind(2_000, side_by_side) is PROVIDED

    def test_fewer_requests_than_users(self) -> None:
        few = f.part(f.healthy(), "load", users=50)
        assert self.kind(20, few, sent=20, completed=20) is FINE

    def test_handshakes_are_reported(self) -> None:
        tls = f.totals(f.part(f.healthy(), "load", tls=True), tls_handshakes=10, tls_resumptions=2)
        assert re.search(r"10 TLS .*\b2 ", connections(tls, LIMITS).reason)

    def test_what_was_agreed_and_an_unchecked_certificate_are_reported(self) -> None:
        agreed = TlsAgreed(version="1.3", cipher_suite="TLS13_AES_256_GCM_SHA384", count=10)
        tls = f.totals(
            f.part(f.healthy(), "load", tls=True),
            tls_handshakes=10,
            tls_agreed=(agreed,),
            tls_time=f.of_values([3_000_000] * 10),
        )
        quiet = connections(tls, LIMITS)
        assert "3 ms each (TLS 1.3, TLS13_AES_256_GCM_SHA384)" in quiet.reason
        assert "--insecure" not in quiet.reason
        assert tls.engine is not None
        ready = tls.engine.ready.model_copy(update={"tls": TlsReady(insecure=True, trust="any")})
        unchecked = connections(f.engine(tls, ready=ready), LIMITS)
        assert "--insecure" in unchecked.reason
        assert unchecked.kind is quiet.kind is FINE

    def test_uncounted_is_a_condition(self) -> None:
        finding = connections(f.totals(f.healthy(), connections_opened=None), LIMITS)
        assert kind_code(finding) == (PROVIDED, "unread")
