"""Links: what they are, what went through them, and the round trip; of this host and of made-up files."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from prony.evidence.host import TcpCounts
from prony.evidence.hosts import NetworkUse
from prony.host.proc import CpuTicks, now_s
from prony_hosts import round_trips
from prony_hosts.link_watch import (
    InterfaceCounts,
    LinkReading,
    LinkWatch,
    interface_counts,
    interface_towards,
    interface_with,
    network_use,
    read_link,
)
from prony_hosts.round_trips import idle_round_trip_ms, load_round_trip_ms
from tests.host.conftest import Grow
from tests.ports import refusing

DEV = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 7 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0
  eth0:1000 10 1 2 0 0 0 0 2000 20 3 4 0 0 0 0
"""  # noqa: E501 - as the kernel writes it


@pytest.fixture
def connected() -> Iterator[tuple[str, int]]:
    """A listening socket, and an established connection to it that has carried a response."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        address, port = listener.getsockname()
        kept: list[socket.socket] = []

        def reply() -> None:
            while True:
                try:
                    taken, _ = listener.accept()
                except OSError:
                    return
                kept.append(taken)
                taken.sendall(taken.recv(10) or b"nothing")

        threading.Thread(target=reply, daemon=True).start()
        with socket.create_connection((address, port)) as client:
            client.sendall(b"hello")
            assert client.recv(10) == b"hello"
            yield address, port
        listener.shutdown(socket.SHUT_RDWR)


def test_counters_by_interface(tree: Grow) -> None:
    found = interface_counts(tree({"proc/net/dev": DEV}))
    assert found is not None
    assert found["eth0"] == InterfaceCounts(
        received_bytes=1000,
        received_packets=10,
        received_errors=1,
        received_dropped=2,
        sent_bytes=2000,
        sent_packets=20,
        sent_errors=3,
        sent_dropped=4,
    )
    assert sorted(found) == ["eth0", "lo"]
    assert interface_counts(tree({}) / "nowhere") is None


def test_the_interface_of_a_target() -> None:
    assert interface_towards("127.0.0.1") == "lo"
    assert interface_with("127.0.0.1") == "lo"
    assert interface_with("192.0.2.77") is None


@pytest.mark.parametrize(("speed", "expected"), [("25000", 25e9), ("-1", None), ("0", None)])
def test_the_speed_is_the_drivers(tree: Grow, speed: str, expected: float | None) -> None:
    root = tree({"sys/class/net/eth0/speed": speed, "sys/class/net/eth0/mtu": "9001"})
    (root / "sys/class/net/eth0/device").mkdir()
    link = read_link("eth0", root=root)
    assert (link.speed_bits_per_s, link.speed_declared, link.mtu) == (expected, False, 9001)
    declared = read_link("eth0", 1e9, root=root)
    assert (declared.speed_bits_per_s, declared.speed_declared) == (1e9, True)


def test_an_interface_without_hardware_has_no_speed(tree: Grow) -> None:
    # veth says 10 Gbit/s, whatever carries its packets.
    assert read_link("veth0", root=tree({"sys/class/net/veth0/speed": "10000"})).speed_bits_per_s is None
    assert read_link("lo").speed_bits_per_s is None


def test_round_trips_of_real_connections(connected: tuple[str, int]) -> None:
    address, port = connected
    idle_ms = idle_round_trip_ms(address, port)
    assert idle_ms is not None
    assert 0 < idle_ms < 1000
    for here in (True, False):
        load_ms = load_round_trip_ms(port, here=here)
        assert load_ms is not None
        assert 0 < load_ms < 1000


def test_without_a_connection_there_is_no_round_trip(monkeypatch: pytest.MonkeyPatch) -> None:
    with refusing() as port:
        assert idle_round_trip_ms("127.0.0.1", port) is None
        assert load_round_trip_ms(port, here=False) is None
    for times_us, median_ms in ((None, None), ([0, 2000, 4000, 9000], 4)):
        monkeypatch.setattr(round_trips, "smoothed_round_trips_us", lambda _, here, found=times_us: found)  # noqa: ARG005
        assert load_round_trip_ms(port, here=False) == median_ms


def reading(t_s: float, **values: object) -> LinkReading:
    counts = dict.fromkeys(InterfaceCounts.model_fields, 0) | {
        "received_bytes": int(1000 * t_s),
        "sent_bytes": int(9000 * t_s),
        "received_packets": int(10 * t_s),
        "sent_packets": int(20 * t_s),
    }
    return LinkReading(
        t_monotonic_s=t_s,
        interface=InterfaceCounts.model_validate(counts | values),
        packets={0: int(30 * t_s), 1: int(10 * t_s), 2: 5},
        backlog_dropped={0: 2**32 - 1 if t_s < 5 else 1, 1: 0},  # a counter that wraps
        ticks={0: CpuTicks(0, 0, int(60 * t_s), int(40 * t_s), 0), 1: CpuTicks(0, 0, int(100 * t_s), 0, 0)},
        tcp=TcpCounts(
            segments_out=int(20 * t_s),
            retransmitted=int(t_s),
            syn_retransmitted=0,
            listen_overflows=0,
            listen_drops=0,
            delayed_acks=0,
        ),
    )


def test_what_went_through_a_link_in_the_window() -> None:
    found = network_use(tuple(reading(t) for t in range(0, 21)), 2.5, 12.5)
    assert found.received_bytes_per_s == pytest.approx(1000)
    assert found.sent_bytes_per_s == pytest.approx(9000)
    assert (found.received_packets_per_s, found.sent_packets_per_s) == pytest.approx((10, 20))
    assert (found.dropped, found.errors, found.backlog_dropped) == (0, 0, 2)
    assert (found.segments_sent, found.retransmitted) == (220, 11)  # the readings around the window
    assert found.softirq_share == pytest.approx(0.4)
    assert found.busiest_queue_share == pytest.approx(0.75)
    assert found.queues == 2


def test_drops_and_errors_are_of_both_ways() -> None:
    broken = reading(20, received_dropped=3, sent_dropped=4, received_errors=1, sent_errors=1)
    found = network_use((reading(0), broken), 1, 19)
    assert (found.dropped, found.errors) == (7, 2)


def test_what_was_not_read_around_the_window_is_unknown() -> None:
    nothing = NetworkUse()
    assert network_use((), 1, 2) == nothing
    assert network_use((reading(0), reading(1)), 0.5, 3) == nothing
    blind = network_use((LinkReading(0), LinkReading(10)), 1, 9)
    assert blind == nothing


def test_a_watch_of_this_hosts_loopback(connected: tuple[str, int]) -> None:
    address, port = connected
    watch = LinkWatch("lo", port, here=False)
    watch.sample()
    opened_s = now_s()
    for _ in range(20):
        with socket.create_connection((address, port)) as client:
            client.sendall(b"x" * 10)
            client.recv(10)
    time.sleep(0.05)  # CPU time is counted in ticks: in less than one no share is known
    watch.sample()
    watch.sample()
    closed_s = now_s()
    watch.sample()
    found = watch.use(opened_s, closed_s)
    assert found.sent_bytes_per_s is not None
    assert found.sent_bytes_per_s > 0
    assert found.softirq_share is not None
    assert watch.round_trip_ms(opened_s, closed_s) is not None
    assert watch.round_trip_ms(closed_s + 1, closed_s + 2) is None
