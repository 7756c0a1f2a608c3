"""Several hosts: what is lost, late or different is named, and one saturated load host is not all of them."""

from __future__ import annotations

import pytest

from prony.evidence.engine import EngineThread
from prony.evidence.trial import Evidence
from prony.experiment.conclude import conclude
from prony.judge.checks.bound_by import bound_by
from prony.judge.checks.client import client
from prony.judge.checks.host import host
from prony.judge.checks.hosts import hosts
from prony.judge.checks.isolation import isolation
from prony.judge.checks.network import network
from prony.judge.finding import Finding, Status
from prony.judge.limits import CheckLimits
from prony.judge.verdict import judge
from tests.judge import factory as f
from tests.report import factory

VALID, SUSPECT, INVALID, UNKNOWN = Status.VALID, Status.SUSPECT, Status.INVALID, Status.UNKNOWN
THREE = f.on_hosts(3)
LIMITS = CheckLimits()


def network_of(evidence: Evidence) -> Finding:
    found = network(evidence, LIMITS)
    assert found is not None
    return found


def busy(evidence: Evidence, name: str, cpu: float, lag_ms: float) -> Evidence:
    """The engine of this load host used so much of its CPU, its server had 40 % of its own left."""
    thread = EngineThread(cpu=1, cpu_s=cpu * 10, wall_s=10.0, loop_lag_p99_ns=int(lag_ms * 1e6))
    room = f.part(evidence, "server_window", cpu_user_s=6.0, cpu_system_s=0.0)
    return f.host_engine(room, name, threads=(thread,))


def test_healthy_hosts_are_valid() -> None:
    judged = judge(f.on_hosts(), LIMITS)
    assert judged.verdict is VALID, [(x.check, x.reason) for x in judged.findings if x.status is not VALID]
    assert hosts(f.healthy(), LIMITS) is None


def test_a_lost_host_is_the_cause_and_no_server_is_blamed() -> None:
    told = "load1 was lost: its worker has ended"
    gone = f.host(THREE, "load1", lost=told).model_copy(update={"engine": None})
    record = factory.record("reference", 0, 0).model_copy(update={"evidence": gone, "failure": told})
    ended = conclude(record).judgement
    assert ended.worst is not None
    assert (ended.worst.check, ended.worst.reason) == ("hosts", told)
    assert "identity" not in {finding.check for finding in ended.findings}


def test_one_saturated_load_host_of_three_is_suspect_with_how_many_it_takes() -> None:
    found = client(busy(THREE, "load2", 0.97, 5.0), LIMITS)
    assert found.status is SUSPECT
    assert "1 of 3 load hosts too busy: load2: load generator saturated" in found.reason
    assert found.advice == "3 load hosts are enough to stay below 85 % CPU: lower the weight of load2"
    all_busy = busy(busy(busy(THREE, "load1", 0.97, 5.0), "load2", 0.97, 5.0), "load3", 0.97, 5.0)
    worse = client(all_busy, LIMITS)
    assert worse.status is INVALID
    assert worse.advice == "use at least 4 load hosts like these, so that each stays below 85 % CPU"
    assert bound_by(all_busy, LIMITS).reason.startswith("client: ")
    assert not bound_by(busy(THREE, "load2", 0.97, 5.0), LIMITS).reason.startswith("client: ")


def test_a_full_link_is_the_bottleneck_whatever_the_cpu_did() -> None:
    full = f.host(THREE, "server", link={"speed_bits_per_s": 92e6, "speed_declared": True})
    found = bound_by(full, LIMITS)
    assert found.status is INVALID
    assert found.reason.startswith("network: link full: server sent 91.84 Mbit/s of 92 Mbit/s (99.8 %)")
    assert "this describes the link, not the server's capacity" in found.reason
    assert judge(full, LIMITS).bound_by == "network"
    seen = network_of(full)
    assert seen.status is SUSPECT
    assert "the link is the bound: server sent 91.84 Mbit/s" in seen.reason
    latency = f.part(full, "load", claim="latency")
    assert bound_by(latency, LIMITS).status is VALID
    assert network_of(latency).status is SUSPECT


def test_a_link_that_is_full_of_small_packets_is_full() -> None:
    # 1.488 million frames of 64 bytes, of which the interface counts 60, are all that 1 Gbit/s carries.
    use = {"sent_bytes_per_s": 60 * 1.488e6, "sent_packets_per_s": 1.488e6}
    small = f.host(THREE, "server", link={"speed_bits_per_s": 1e9}, network=use)
    assert "the link is the bound: server sent 999.9 Mbit/s of 1 Gbit/s" in network_of(small).reason
    untold = f.host(THREE, "server", network=use | {"sent_packets_per_s": None})
    assert network_of(untold).reason.startswith("traffic of the link not read: server")


def test_a_full_link_is_the_bottleneck_also_of_a_busy_client() -> None:
    all_busy = busy(busy(busy(THREE, "load1", 0.97, 5.0), "load2", 0.97, 5.0), "load3", 0.97, 5.0)
    full = f.host(all_busy, "server", link={"speed_bits_per_s": 92e6})
    assert bound_by(full, LIMITS).reason.startswith("network: link full: server sent 91.84 Mbit/s")


def test_a_link_of_unknown_speed_is_unknown_and_says_where_to_declare_it() -> None:
    found = network_of(f.host(THREE, "load1", link={"speed_bits_per_s": None}))
    assert (found.status, found.reason.split(";")[0]) == (UNKNOWN, "link speed unknown: load1 (eth0)")
    assert "hosts.yaml" in found.advice
    blind = network_of(f.host(THREE, "load1", network=None))
    assert (blind.status, blind.reason.split(";")[0]) == (UNKNOWN, "traffic of the link not read: load1")


@pytest.mark.parametrize("what", ["dropped", "errors", "backlog_dropped"])
def test_lost_packets_are_named_with_their_host(what: str) -> None:
    # 100,000 packets went through the link of load1 in ten seconds.
    assert network_of(f.host(THREE, "load1", network={what: 9})).status is VALID
    found = network_of(f.host(THREE, "load1", network={what: 11}))
    assert found.status is SUSPECT
    assert found.reason.startswith("load1: 11 packets ")


def test_soft_interrupts_name_the_queues() -> None:
    use = {"softirq_share": 0.95, "busiest_queue_share": 0.9, "queues": 4}
    found = network_of(f.host(THREE, "server", network=use))
    assert found.status is SUSPECT
    assert "interrupts took 95 % of a CPU; the busiest of 4 CPUs handled 90 % of the packets" in found.reason


def test_retransmissions_of_all_hosts_count_and_the_worst_is_named() -> None:
    assert THREE.host_window is not None
    assert THREE.host_window.tcp is not None
    window = THREE.host_window.model_copy(
        update={"tcp": THREE.host_window.tcp.model_copy(update={"retransmitted": 5000})}
    )
    slow = f.window(THREE, service_time=f.of_values([1_200_000] * 9_999 + [210_000_000]))
    lossy = f.host(slow, "load2", host_window=window, network={"retransmitted": 5000})
    found = network_of(lossy)
    assert found.status is SUSPECT
    assert "(most by load2: 5 %)" in found.reason


def test_the_round_trip_stands_beside_every_latency() -> None:
    assert "round trip from load1 200 µs idle, at most 400 µs under load" in network_of(THREE).reason


def test_neighbours_of_a_load_host_are_seen() -> None:
    assert THREE.host_window is not None
    stolen = tuple(cpu.model_copy(update={"steal": 0.2}) for cpu in THREE.host_window.cpus)
    found = isolation(f.host(THREE, "load2", host_window={"cpus": stolen}), LIMITS)
    assert found.status is INVALID
    assert "load2: steal took 20 % of a CPU" in found.reason
    swapping = host(f.host(THREE, "load1", host_window={"swap_in_bytes": 2**21}), LIMITS)
    assert swapping.status is SUSPECT
    assert "load1: 2 MiB swapped in" in swapping.reason


def test_of_a_server_at_a_url_the_load_hosts_are_judged_all_the_same() -> None:
    loads = tuple(one for one in THREE.hosts if one.role == "load")
    theirs = THREE.server.model_copy(update={"owned": False})
    at_url = THREE.model_copy(
        update={"server": theirs, "server_window": None, "partition": None, "hosts": loads}
    )
    quiet = isolation(at_url, LIMITS)
    assert quiet.status is UNKNOWN
    assert "the server's host: not read" in quiet.reason
    busy = isolation(f.host(at_url, "load2", host_window={"others_on_client_cpus": 0.1}), LIMITS)
    assert busy.status is SUSPECT
    assert "load2: other processes took 10 % of the client's CPUs" in busy.reason


def test_cpus_of_different_hosts_are_not_the_same() -> None:
    assert THREE.partition is not None
    alike = THREE.partition.model_copy(update={"client": THREE.partition.server})
    assert isolation(THREE.model_copy(update={"partition": alike}), LIMITS).status is VALID
