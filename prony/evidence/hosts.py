"""What each host of a trial on several hosts left behind.

All instants are on the laboratory's clock, and `t_ms` counts from the start of the merged run, as everywhere
in the evidence. What could not be read is None, never a made-up zero.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from prony.evidence.base import Record
from prony.evidence.engine import EngineReport
from prony.evidence.host import Fingerprint, HostRow, HostWindow


class Clock(Record):
    """The host's CLOCK_MONOTONIC beside the laboratory's, by round trips over the whole run."""

    offset_s: float
    """Host minus laboratory, in the middle of the round trips."""
    uncertainty_s: float
    """Half of the shortest round trip: the way there and the way back need not take equally long."""
    drift_per_s: float = 0.0
    """Change of the offset, in seconds per second."""
    round_trips: int
    skew_s: float = 0.0
    """Error at most of an instant of this host on the laboratory's clock: the offset that was used against
    the one found over the whole run, and the uncertainty.
    """


class Link(Record):
    """The way from this host to the other side of the load: its interface, and the round trip."""

    interface: str
    speed_bits_per_s: float | None = None
    speed_declared: bool = False
    """The speed is what hosts.yaml says; otherwise the driver's."""
    mtu: int | None = None
    driver: str | None = None
    round_trip_idle_ms: float | None = None
    """Smallest of a few, before the load."""
    round_trip_load_ms: float | None = None
    """TCP's smoothed round trip of the load's own connections (TCP_INFO), their median in the window."""


class NetworkUse(Record):
    """The link over the window; per second where the name says so, otherwise counted."""

    received_bytes_per_s: float | None = None
    sent_bytes_per_s: float | None = None
    received_packets_per_s: float | None = None
    sent_packets_per_s: float | None = None
    dropped: int | None = None
    """Packets that the interface dropped, both ways; what a queueing discipline drops shows as retransmitted.
    """
    errors: int | None = None
    """Packets with an error, both ways."""
    backlog_dropped: int | None = None
    """Packets that a CPU's backlog had no room for (softnet_stat), of the whole host."""
    segments_sent: int | None = None
    retransmitted: int | None = None
    """TCP segments that were sent again, of this network namespace."""
    softirq_share: float | None = None
    """Interrupt and soft-interrupt time of the busiest CPU ÷ wall time."""
    busiest_queue_share: float | None = None
    """Packets of the busiest CPU ÷ packets of all CPUs (softnet_stat)."""
    queues: int | None = None
    """CPUs that handled packets."""


class HostEvidence(Record):
    """One host of the trial. The merged values stand in `Evidence` itself; these stay visible beside them."""

    name: str
    """As hosts.yaml calls it."""
    role: Literal["server", "load"]
    weight: float = Field(default=1.0, gt=0)
    """Of a load host: its part of the load is weight ÷ sum of all weights."""
    fingerprint: Fingerprint | None = None
    """None where the host was lost before it told."""
    engine: EngineReport | None = None
    """Of a load host: what its own engine said."""
    host_window: HostWindow | None = None
    host_rows: tuple[HostRow, ...] = ()
    clock: Clock | None = None
    link: Link | None = None
    network: NetworkUse | None = None
    lost: str | None = None
    """One sentence when the host was lost during the trial."""
    opened_late_s: float | None = None
    """How long after the agreed instant its window opened."""
    row_late_max_s: float | None = None
    """How long after its end a row of the window reached the laboratory, at most; None without one."""
