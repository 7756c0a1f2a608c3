"""Evidence of each host of a trial on several hosts.

Instants are on the laboratory's clock, `t_ms` from the start of the merged run. Unread values are None.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from prony.evidence.base import Record
from prony.evidence.engine import EngineReport
from prony.evidence.host import Fingerprint, HostRow, HostWindow


class Clock(Record):
    """The host's CLOCK_MONOTONIC compared with the laboratory's, by round trips over the whole run."""

    offset_s: float
    """Host minus laboratory, in the middle of the round trips."""
    uncertainty_s: float
    """Half of the shortest round trip: its two directions may differ."""
    drift_per_s: float = 0.0
    """Change of the offset, in seconds per second."""
    round_trips: int
    skew_s: float = 0.0
    """Largest error of an instant on the laboratory's clock: |used - whole-run offset| + uncertainty."""


class Link(Record):
    """Network path from this host to the other side of the load: interface and round trip."""

    interface: str
    speed_bits_per_s: float | None = None
    speed_declared: bool = False
    """Whether the speed is from hosts.yaml; else from the driver."""
    mtu: int | None = None
    driver: str | None = None
    round_trip_idle_ms: float | None = None
    """Smallest of a few, before the load."""
    round_trip_load_ms: float | None = None
    """Median smoothed round trip of the load's connections in the window (TCP_INFO)."""


class NetworkUse(Record):
    """The link over the window: rates and counts."""

    received_bytes_per_s: float | None = None
    sent_bytes_per_s: float | None = None
    received_packets_per_s: float | None = None
    sent_packets_per_s: float | None = None
    dropped: int | None = None
    """Packets dropped by the interface, both directions; qdisc drops show as retransmitted."""
    errors: int | None = None
    """Packets with an error, both directions."""
    backlog_dropped: int | None = None
    """Packets dropped by full CPU backlogs (softnet_stat), of the whole host."""
    segments_sent: int | None = None
    retransmitted: int | None = None
    """Retransmitted TCP segments of this network namespace."""
    softirq_share: float | None = None
    """Interrupt and soft-interrupt time of the busiest CPU ÷ wall time."""
    busiest_queue_share: float | None = None
    """Packets of the busiest CPU ÷ packets of all CPUs (softnet_stat)."""
    queues: int | None = None
    """CPUs that handled packets."""


class HostEvidence(Record):
    """A host of the trial; merged values are in `Evidence`."""

    name: str
    """Name in hosts.yaml."""
    role: Literal["server", "load"]
    weight: float = Field(default=1.0, gt=0)
    """Load host: its part of the load is weight ÷ sum of weights."""
    fingerprint: Fingerprint | None = None
    """None where the host was lost before."""
    engine: EngineReport | None = None
    """Load host: report of its own engine."""
    host_window: HostWindow | None = None
    host_rows: tuple[HostRow, ...] = ()
    clock: Clock | None = None
    link: Link | None = None
    network: NetworkUse | None = None
    lost: str | None = None
    """Why the host was lost during the trial, in a sentence."""
    opened_late_s: float | None = None
    """Delay of its window after the agreed instant."""
    row_late_max_s: float | None = None
    """Latest arrival of a row of the window at the laboratory, after its end; None without rows."""
