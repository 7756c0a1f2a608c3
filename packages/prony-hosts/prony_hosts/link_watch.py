"""Network interfaces, and the use of a link over the window from readings at each sample of the host.

link = LinkWatch(interface_towards(address), port, here=False)
sampler.watch("link", link.sample)
...
link.use(open_s, close_s), link.round_trip_ms(open_s, close_s)
"""

from __future__ import annotations

import ctypes
import fcntl
import ipaddress
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from prony.evidence.base import Record
from prony.evidence.host import TcpCounts
from prony.evidence.hosts import Link, NetworkUse
from prony.host.net_counters import between, dropped_by_cpu, packets_by_cpu, rise, tcp_counts
from prony.host.proc import ROOT, CpuTicks, cpu_ticks, now_s, read_int, read_text
from prony.host.window import difference
from prony_hosts.round_trips import load_round_trip_ms

KEPT = 4000
COLUMNS = {
    "received_bytes": 0, "received_packets": 1, "received_errors": 2, "received_dropped": 3,
    "sent_bytes": 8, "sent_packets": 9, "sent_errors": 10, "sent_dropped": 11,
}  # fmt: skip
"""Columns of /proc/net/dev (net/core/net-procfs.c). Received drops include the hardware's."""

_SIOCGIFADDR, _SIOCETHTOOL = 0x8915, 0x8946
_ETHTOOL_GDRVINFO = 0x00000003
_DRIVER_INFO_BYTES = 196
"""struct ethtool_drvinfo: the command, then the driver's name in 32 bytes."""


class InterfaceCounts(Record):
    """Counters of a network interface since its creation."""

    received_bytes: int
    received_packets: int
    received_errors: int
    received_dropped: int
    sent_bytes: int
    sent_packets: int
    sent_errors: int
    sent_dropped: int


@dataclass(frozen=True, slots=True)
class LinkReading:
    """Counters at a moment of CLOCK_MONOTONIC; None: unread."""

    t_monotonic_s: float
    interface: InterfaceCounts | None = None
    packets: dict[int, int] | None = None
    backlog_dropped: dict[int, int] | None = None
    ticks: dict[int, CpuTicks] | None = None
    tcp: TcpCounts | None = None
    round_trip_ms: float | None = None


class LinkWatch:
    """An interface of this host and the load's connections. `here`: the server runs on this host."""

    def __init__(
        self,
        interface: str,
        port: int,
        *,
        here: bool,
        root: Path = ROOT,
        round_trip: Callable[[int, bool], float | None] = lambda port, here: load_round_trip_ms(
            port, here=here
        ),
    ) -> None:
        self.interface = interface
        self._port = port
        self._here = here
        self._root = root
        self._round_trip = round_trip
        self._readings: list[LinkReading] = []

    def sample(self) -> None:
        """Takes a reading: some 100 µs of CPU, more with tens of thousands of connections."""
        counts = interface_counts(self._root)
        self._readings.append(
            LinkReading(
                t_monotonic_s=now_s(),
                interface=None if counts is None else counts.get(self.interface),
                packets=packets_by_cpu(self._root),
                backlog_dropped=dropped_by_cpu(self._root),
                ticks=cpu_ticks(self._root),
                tcp=tcp_counts(self._root),
                round_trip_ms=self._round_trip(self._port, self._here),
            )
        )
        if len(self._readings) > KEPT:
            self._readings[: KEPT // 2] = self._readings[: KEPT // 2 : 2]

    def use(self, open_s: float, close_s: float) -> NetworkUse:
        return network_use(tuple(self._readings), open_s, close_s)

    def round_trip_ms(self, open_s: float, close_s: float) -> float | None:
        """Median within the window; None without connections."""
        times_ms = [
            reading.round_trip_ms
            for reading in tuple(self._readings)
            if open_s <= reading.t_monotonic_s <= close_s and reading.round_trip_ms is not None
        ]
        return median(times_ms) if times_ms else None


def network_use(readings: tuple[LinkReading, ...], open_s: float, close_s: float) -> NetworkUse:
    """Rates interpolated at the edges; rare events from the readings just outside. None without."""
    before = next((r for r in reversed(readings) if r.t_monotonic_s <= open_s), None)
    after = next((r for r in readings if r.t_monotonic_s >= close_s), None)
    if before is None or after is None or close_s <= open_s:
        return NetworkUse()

    def per_s(name: str) -> float | None:
        samples = [(r.t_monotonic_s, float(getattr(r.interface, name))) for r in readings if r.interface]
        rose = difference(samples, open_s, close_s)
        return None if rose is None else max(0.0, rose) / (close_s - open_s)

    def counted(*names: str) -> int | None:
        if before.interface is None or after.interface is None:
            return None
        return sum(int(getattr(after.interface, n)) - int(getattr(before.interface, n)) for n in names)

    tcp = between(before.tcp, after.tcp)
    packets = _rises(before.packets, after.packets)
    handled = sum(packets.values())
    dropped = _rises(before.backlog_dropped, after.backlog_dropped)
    return NetworkUse(
        received_bytes_per_s=per_s("received_bytes"),
        sent_bytes_per_s=per_s("sent_bytes"),
        received_packets_per_s=per_s("received_packets"),
        sent_packets_per_s=per_s("sent_packets"),
        dropped=counted("received_dropped", "sent_dropped"),
        errors=counted("received_errors", "sent_errors"),
        backlog_dropped=sum(dropped.values()) if dropped else None,
        segments_sent=None if tcp is None else tcp.segments_out,
        retransmitted=None if tcp is None else tcp.retransmitted,
        softirq_share=_softirq(before.ticks, after.ticks),
        busiest_queue_share=max(packets.values()) / handled if handled else None,
        queues=sum(1 for count in packets.values() if count) if packets else None,
    )


def _rises(before: dict[int, int] | None, after: dict[int, int] | None) -> dict[int, int]:
    rises = {cpu: rise(before, after, cpu) for cpu in after or ()}
    return {cpu: rose for cpu, rose in rises.items() if rose is not None}


def _softirq(before: dict[int, CpuTicks] | None, after: dict[int, CpuTicks] | None) -> float | None:
    shares = [
        (new.irq - old.irq) / (new.total - old.total)
        for cpu, new in (after or {}).items()
        if (old := (before or {}).get(cpu)) is not None and new.total > old.total
    ]
    return max(shares, default=None)


def interface_counts(root: Path = ROOT) -> dict[str, InterfaceCounts] | None:
    """Interface -> counters since its creation; None when unreadable."""
    text = read_text(root / "proc/net/dev")
    if text is None:
        return None
    counts: dict[str, InterfaceCounts] = {}
    for line in text.splitlines()[2:]:
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) > max(COLUMNS.values()) and all(word.isdecimal() for word in words):
            counts[name.strip()] = InterfaceCounts(**{key: int(words[at]) for key, at in COLUMNS.items()})
    return counts


def interface_towards(address: str) -> str | None:
    """By the route to a numeric address, without sending a packet; None: not known."""
    family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as way:
            way.connect((address, 9))
            source = str(way.getsockname()[0])
    except OSError:
        return None
    return interface_with(source)


def interface_with(address: str) -> str | None:
    wanted = ipaddress.ip_address(address.partition("%")[0])
    if wanted.version == 6:
        # The address in 32 digits, index, length, scope, flags, name.
        for line in (read_text("/proc/net/if_inet6") or "").splitlines():
            words = line.split()
            if len(words) == 6 and int(words[0], 16) == int(wanted):
                return words[5]
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode())
            with suppress(OSError):  # it has no IPv4 address
                reply = fcntl.ioctl(any_socket, _SIOCGIFADDR, request)
                if reply[20:24] == wanted.packed:
                    return name
    return "lo" if wanted.is_loopback else None


def read_link(interface: str, declared_bits_per_s: float | None = None, root: Path = ROOT) -> Link:
    """A declared speed comes first; that of an interface without hardware (veth) is ignored."""
    folder = root / "sys/class/net" / interface
    speed_mbit_per_s = read_int(folder / "speed") if (folder / "device").exists() else None
    read = speed_mbit_per_s * 1e6 if speed_mbit_per_s is not None and speed_mbit_per_s > 0 else None
    return Link(
        interface=interface,
        speed_bits_per_s=read if declared_bits_per_s is None else declared_bits_per_s,
        speed_declared=declared_bits_per_s is not None,
        mtu=read_int(folder / "mtu"),
        driver=_driver(interface) if root == ROOT else None,
    )


def _driver(interface: str) -> str | None:
    info = ctypes.create_string_buffer(struct.pack("=I", _ETHTOOL_GDRVINFO), _DRIVER_INFO_BYTES)
    request = struct.pack("16sP", interface.encode(), ctypes.addressof(info))
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, _SIOCETHTOOL, request)
    except OSError:
        return None
    return info.raw[4:36].split(b"\0")[0].decode(errors="replace") or None
