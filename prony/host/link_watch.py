"""Use of a link over the window, from readings at each sample of the host.

link = LinkWatch(interface_towards(address), port, here=False)
sampler.watch("link", link.sample)
...
link.use(open_s, close_s), link.round_trip_ms(open_s, close_s)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from prony.evidence.host import InterfaceCounts, TcpCounts
from prony.evidence.hosts import NetworkUse
from prony.host.interfaces import interface_counts
from prony.host.proc import ROOT, CpuTicks, cpu_ticks, now_s
from prony.host.round_trip import load_round_trip_ms
from prony.host.samples import difference
from prony.host.softnet import dropped_by_cpu, packets_by_cpu, rise
from prony.host.tcp_counters import between, tcp_counts

KEPT = 4000
"""Most readings; beyond, the older half is thinned, as in the sampler."""


@dataclass(frozen=True, slots=True)
class LinkReading:
    """Counters at a moment of CLOCK_MONOTONIC; None: unread."""

    t_monotonic_s: float
    interface: InterfaceCounts | None = None
    packets: dict[int, int] | None = None
    """Handled in soft interrupts, by CPU."""
    backlog_dropped: dict[int, int] | None = None
    ticks: dict[int, CpuTicks] | None = None
    tcp: TcpCounts | None = None
    round_trip_ms: float | None = None
    """Median of TCP's smoothed round trips of the load's connections."""


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
        """The link between two moments of CLOCK_MONOTONIC."""
        return network_use(tuple(self._readings), open_s, close_s)

    def round_trip_ms(self, open_s: float, close_s: float) -> float | None:
        """Median of the readings within the window; None without connections."""
        times_ms = [
            reading.round_trip_ms
            for reading in tuple(self._readings)
            if open_s <= reading.t_monotonic_s <= close_s and reading.round_trip_ms is not None
        ]
        return median(times_ms) if times_ms else None


def network_use(readings: tuple[LinkReading, ...], open_s: float, close_s: float) -> NetworkUse:
    """The link between two moments: rates interpolated at the edges, rare events between the readings just
    outside. None without a reading on either side.
    """
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
    """Rise by CPU, for CPUs in both readings."""
    rises = {cpu: rise(before, after, cpu) for cpu in after or ()}
    return {cpu: rose for cpu, rose in rises.items() if rose is not None}


def _softirq(before: dict[int, CpuTicks] | None, after: dict[int, CpuTicks] | None) -> float | None:
    """Interrupt share of the busiest CPU."""
    shares = [
        (new.irq - old.irq) / (new.total - old.total)
        for cpu, new in (after or {}).items()
        if (old := (before or {}).get(cpu)) is not None and new.total > old.total
    ]
    return max(shares, default=None)
