"""network: what requests of this load waited for timers of TCP, and what the links of several hosts did."""

from __future__ import annotations

import re
from typing import Any

import pytest

from prony.evidence.trial import Evidence
from prony.judge.checks.network import network
from prony.judge.finding import Finding, Kind
from prony.judge.links import LinkLimits
from tests.judge import factory as f

HEALTHY = f.healthy()
THREE = f.on_hosts(3)
USERS_S = 100.0
"""What the requests of the factory's window took together."""


def judged(evidence: Evidence) -> Finding:
    found = network(evidence, LinkLimits())
    assert found is not None
    return found


def counted(evidence: Evidence, **tcp: int) -> Evidence:
    """With these counters of TCP."""
    assert HEALTHY.host_window is not None
    assert HEALTHY.host_window.tcp is not None
    return f.part(evidence, "host_window", tcp=HEALTHY.host_window.tcp.model_copy(update=tcp))


def took(*values_ms: float, count: int = 80_000, **window: Any) -> Evidence:
    """Service times: the first of `count` requests took so long, the others 1.2 ms."""
    times = f.of_values([int(ms * 1e6) for ms in values_ms] + [1_200_000] * (count - len(values_ms)))
    return f.window(HEALTHY, service_time=times, completed=count, **window)


def test_quiet() -> None:
    assert (judged(HEALTHY).kind, judged(HEALTHY).code) == (Kind.FINE, "ok")
    assert network(f.part(HEALTHY, "load", transport="unix"), LinkLimits()) is None
    assert judged(HEALTHY.model_copy(update={"engine": None})).code == "no_window"


def test_counters_that_could_not_be_read_are_a_condition() -> None:
    found = judged(f.part(HEALTHY, "host_window", tcp=None))
    assert (found.kind, found.code, bool(found.provided)) == (Kind.PROVIDED, "unread", True)


class TestAcceptQueue:
    def refused(self, *connects_ms: float, **window: Any) -> Finding:
        """900 connection attempts met a full queue; of 40,000 these took so long, the others 0.1 ms."""
        times = f.of_values([100_000] * 100 + [int(ms * 1e6) for ms in connects_ms])
        connecting = f.window(HEALTHY, **{"connect_attempts": 40_000, "connect_time": times} | window)
        return judged(counted(connecting, listen_overflows=900))

    def test_of_another_server_is_not_compared_with_this_one(self) -> None:
        assert self.refused().kind is Kind.FINE

    def test_what_the_connects_waited_is_user_time(self) -> None:
        """Two of 1 s, and one of 3 s: 5 of 100 user-seconds, of 3 of 80,000 requests."""
        found = self.refused(1000.0, 1000.0, 3000.0)
        assert (found.kind, found.code) == (Kind.BUDGET, "accept_queue")
        assert found.of("requests_per_s").high == pytest.approx(0.05 / 0.95, rel=0.001)
        assert found.of("mean_ms").low == pytest.approx(-0.05, rel=0.001)
        assert found.of("p99_ms").down < 0.001

    @pytest.mark.parametrize("kind", ["connect_timeout", "connect_refused"])
    def test_a_connect_that_came_to_nothing_shows_whose_queue_was_full(self, kind: str) -> None:
        found = self.refused(errors={kind: 40})
        assert found.code == "accept_queue"
        assert found.of("mean_ms").low is None, "900 times a second, of 100 user-seconds"

    def test_connects_that_were_not_timed(self) -> None:
        assert self.refused(connect_time=None).of("mean_ms").low is None


class TestRetransmissions:
    @pytest.mark.parametrize(("again", "waited_s"), [(900, 1.57), (3, 1.36), (1, 0.9)])
    def test_no_more_waited_than_took_so_long_and_for_no_longer(self, again: int, waited_s: float) -> None:
        """The longest so many of four, of the 100 user-seconds: timers double."""
        found = judged(counted(took(210, 210, 250, 900), retransmitted=again))
        assert (found.kind, found.code) == (Kind.BUDGET, "retransmitted")
        assert found.of("mean_ms").low == pytest.approx(-waited_s / USERS_S, rel=0.001)
        assert found.of("p50_ms").down < 0.001

    def test_nobody_waited(self) -> None:
        assert judged(counted(took(3.0), retransmitted=900)).kind is Kind.FINE

    def test_requests_that_timed_out_and_handshakes_waited_too(self) -> None:
        handshake = f.of_values([220_000_000, 1_000_000])
        timed = took(errors={"timeout": 2}, tls_time=handshake, lost_time_sum_s=2.0)
        found = judged(counted(timed, retransmitted=900))
        assert found.of("mean_ms").low == pytest.approx(-2.22 / (USERS_S + 2), rel=0.001)
        untold = judged(counted(f.window(timed, lost_time_sum_s=None), retransmitted=900))
        assert untold.of("mean_ms").low is None

    def test_syns_are_counted_apart(self) -> None:
        assert judged(counted(took(210), retransmitted=5, syn_retransmitted=5)).kind is Kind.FINE

    def test_times_that_were_not_read(self) -> None:
        blind = f.window(HEALTHY, service_time=None)
        assert judged(counted(blind, retransmitted=10)).of("mean_ms").low == pytest.approx(-0.02)

    def test_of_all_hosts_they_count_and_the_worst_is_named(self) -> None:
        assert THREE.host_window is not None
        lossy = counted(THREE, retransmitted=5000).host_window
        slow = f.window(THREE, service_time=f.of_values([1_200_000] * 9_999 + [210_000_000]))
        found = judged(f.host(slow, "load2", host_window=lossy, network={"retransmitted": 5000}))
        assert found.code == "retransmitted"
        assert re.search(r"load2 \w+ 5 %", found.reason)


class TestDelayedAcknowledgements:
    """Of 10,000 responses so many took 41 ms, with a delayed acknowledgement each; the preflight 1 ms."""

    def held(
        self,
        count: int,
        *,
        acks: int | None = None,
        alone_ms: float = 1.0,
        cpu_s: float = 1.5,
        below: int = 0,
    ) -> Finding:
        quick = HEALTHY.probes[0].model_copy(update={"elapsed_ms": alone_ms})
        slow = took(
            *[41.0] * count,
            *[30.0] * below,
            count=10_000,
            service_time_sum_s=12.0 - 1.2e-3 * count + 0.041 * count,
        )
        slow = f.part(slow, "server_window", cpu_user_s=cpu_s, cpu_system_s=0.0)
        evidence = counted(slow, delayed_acks=count if acks is None else acks)
        return judged(evidence.model_copy(update={"probes": (quick,)}))

    def test_each_costs_40_ms(self) -> None:
        """50 × 40 ms of 9,950 × 1.2 ms and 50 × 41 ms."""
        found = self.held(50)
        assert (found.kind, found.code) == (Kind.BUDGET, "delayed_acks")
        assert found.of("mean_ms").low == pytest.approx(-2 / 13.99)
        assert found.of("p999_ms").low == pytest.approx(1.2 / 41 - 1, abs=0.01)

    def test_a_server_that_takes_as_long_by_itself(self) -> None:
        assert self.held(500, acks=0).kind is Kind.FINE, "nobody waited for an acknowledgement"
        assert self.held(500, alone_ms=40.0).kind is Kind.FINE, "so did the preflight"
        assert self.held(500, below=501).kind is Kind.FINE, "it has a tail that falls"
        assert self.held(9000, cpu_s=9.0).kind is Kind.FINE, "a busy server has a queue"

    def test_a_busy_server_whose_others_are_quick(self) -> None:
        assert self.held(500, cpu_s=9.0).of("mean_ms").low == pytest.approx(-20 / 31.9, abs=0.01)


class TestLinks:
    def test_a_full_link_is_part_of_what_is_measured(self) -> None:
        found = judged(f.host(THREE, "server", link={"speed_bits_per_s": 92e6, "speed_declared": True}))
        assert (found.kind, found.code) == (Kind.PROVIDED, "network")
        assert "server sent 91.84 Mbit/s" in found.reason

    def test_full_of_small_packets(self) -> None:
        # 1.488 million frames of 64 bytes, of which the interface counts 60, are all that 1 Gbit/s carries.
        use = {"sent_bytes_per_s": 60 * 1.488e6, "sent_packets_per_s": 1.488e6}
        small = f.host(THREE, "server", link={"speed_bits_per_s": 1e9}, network=use)
        assert "999.9 Mbit/s of 1 Gbit/s" in judged(small).reason
        untold = f.host(THREE, "server", network=use | {"sent_packets_per_s": None})
        assert (judged(untold).kind, judged(untold).code) == (Kind.PROVIDED, "unread")

    def test_what_is_not_known_of_a_link_is_a_condition(self) -> None:
        speed = judged(f.host(THREE, "load1", link={"speed_bits_per_s": None}))
        assert (speed.kind, speed.code) == (Kind.PROVIDED, "unread")
        assert "hosts.yaml" in speed.advice
        assert judged(f.host(THREE, "load1", network=None)).code == "unread"

    @pytest.mark.parametrize("what", ["dropped", "errors", "backlog_dropped"])
    def test_lost_packets_cost_what_a_segment_costs(self, what: str) -> None:
        slow = f.window(THREE, service_time=f.of_values([1_200_000] * 79_980 + [210_000_000] * 20))
        found = judged(f.host(slow, "load1", network={what: 11}))
        assert (found.kind, found.code) == (Kind.BUDGET, "dropped")
        assert found.reason.startswith("load1 dropped 11 packets")
        assert found.of("mean_ms").low == pytest.approx(-11 * 0.21 / USERS_S, rel=0.001)
        assert judged(f.host(slow, "load1", network={what: 9})).kind is Kind.FINE, "fewer are no rate"
        assert judged(f.host(THREE, "load1", network={what: 11})).kind is Kind.FINE, "nobody waited"

    def test_soft_interrupts_name_the_queues(self) -> None:
        use = {"softirq_share": 0.95, "busiest_queue_share": 0.9, "queues": 4}
        found = judged(f.host(THREE, "server", network=use))
        assert (found.kind, found.code) == (Kind.PROVIDED, "soft_interrupts")
        assert re.search(r"of 4 CPUs .*90 %", found.reason)

    def test_the_round_trip_stands_beside_every_latency(self) -> None:
        assert re.search(r"load1 200 µs .*400 µs", judged(THREE).reason)
