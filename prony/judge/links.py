"""The links of a trial on several hosts: how full they were, what they lost, what they cost the kernel, how
long the way takes. Must not know what follows from it: `network` says it, `bound_by` names the bottleneck.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from prony.evidence.hosts import HostEvidence
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, Share
from prony.numbers import milliseconds, number, percent


class LinkLimits(DeclaredLimits):
    network_link_max: Share = 0.90
    """Bits per second, with the framing of Ethernet, ÷ the link's speed from which the link is the bound: TCP
    leaves gaps after each loss that a full link brings.
    """
    network_dropped: Share = 0.0001
    """Packets dropped, or with an error, ÷ packets of a host's link, above which they are counted as lost: a
    request that loses one takes 200 ms or more, and with ten packets a request that is one in 1,000.
    """
    network_softirq_max: Share = 0.90
    """Interrupt and soft-interrupt time ÷ wall time of a host's busiest CPU from which its kernel handles
    hardly more packets.
    """


class LinkPart(NamedTuple):
    """One thing about a host's link."""

    code: str
    text: str
    advice: str = ""
    lost: int = 0
    """Packets."""
    provided: str = ""


FRAMING_BYTES = 24
"""Of each packet on the wire, not in the interface's count of bytes: preamble and start (8), checksum (4),
and the gap between two frames (12) (IEEE 802.3). Of full-sized frames 2 %, of small ones a fifth.
"""
LEAST_DROPPED = 10
"""Packets; fewer are no rate, and a switch's own announcements are counted as dropped, too."""


def link_limit(limits: LinkLimits) -> str:
    """The limits of links, as text that others follow."""
    return (
        f"links below {percent(limits.network_link_max)} of their speed, at most "
        f"{percent(limits.network_dropped)} of the packets dropped, soft interrupts below "
        f"{percent(limits.network_softirq_max)} of a CPU, "
    )


@dataclass(frozen=True, slots=True)
class FullLink:
    """The busier way of one host's link: share of its speed, and in words."""

    host: str
    share: float
    text: str


def link_uses(evidence: Evidence) -> tuple[FullLink, ...]:
    """Of each host whose link's speed and traffic are known, the fullest first."""
    uses = [use for host in evidence.hosts if (use := _use(host)) is not None]
    return tuple(sorted(uses, key=lambda use: -use.share))


def full_link(evidence: Evidence, limits: LinkLimits) -> FullLink | None:
    """The link that bounds the trial; None where none was seen to."""
    fullest = link_uses(evidence)[:1]
    return fullest[0] if fullest and fullest[0].share >= limits.network_link_max else None


def _use(host: HostEvidence) -> FullLink | None:
    speed = host.link.speed_bits_per_s if host.link is not None else None
    network = host.network
    if not speed or network is None:
        return None
    ways = [
        ("sent", network.sent_bytes_per_s, network.sent_packets_per_s),
        ("received", network.received_bytes_per_s, network.received_packets_per_s),
    ]
    known = [
        ((bytes_per_s + FRAMING_BYTES * packets_per_s) * 8, way)
        for way, bytes_per_s, packets_per_s in ways
        if bytes_per_s is not None and packets_per_s is not None
    ]
    if len(known) < len(ways):
        return None
    bits_per_s, way = max(known)
    share = bits_per_s / speed
    return FullLink(
        host.name, share, f"{host.name} {way} {rate(bits_per_s)} of {rate(speed)} ({percent(share)})"
    )


def link_parts(evidence: Evidence, limits: LinkLimits) -> list[LinkPart]:
    """What is wrong with the hosts' links, or was not read of them; empty on one host."""
    parts: list[LinkPart] = []
    full = full_link(evidence, limits)
    if full is not None:
        parts.append(LinkPart("link_full", f"the link is the bound: {full.text}", FULL, provided=FASTER))
    for host in evidence.hosts:
        parts += _lost_packets(host, limits)
        parts += _soft_interrupts(host, limits)
    unread = [host.name for host in evidence.hosts if host.lost is None and _use(host) is None]
    speeds = [host for host in evidence.hosts if host.link is not None and not host.link.speed_bits_per_s]
    if unread and len(speeds) == len(unread):
        names = ", ".join(f"{host.name} ({host.link.interface})" for host in speeds if host.link is not None)
        parts.append(LinkPart("unread", f"link speed unknown: {names}", DECLARE, provided=NOT_FULL))
    elif unread:
        parts.append(
            LinkPart("unread", f"traffic of the link not read: {', '.join(unread)}", provided=NOT_FULL)
        )
    return parts


FULL = "use a faster link, or offer less"
FASTER = "this link is part of what is compared"
NOT_FULL = "no link was full"
SPREAD_OUT = "handling packets cost no more CPU than was there"
DECLARE = "declare the speed of the link in hosts.yaml (link: 10 Gbit/s)"


def _lost_packets(host: HostEvidence, limits: LinkLimits) -> list[LinkPart]:
    """Dropped by the interface or by a CPU's backlog, or broken."""
    use = host.network
    if use is None:
        return []
    lost = {
        "dropped by the interface": use.dropped,
        "with an error": use.errors,
        "dropped by the backlog": use.backlog_dropped,
    }
    packets = _packets(host)
    found = [
        (count, f"{number(count)} packets {what}")
        for what, count in lost.items()
        if count is not None
        and count >= LEAST_DROPPED
        and (packets is None or count > limits.network_dropped * packets)
    ]
    advice = (
        "look for the cause with ethtool -S and nstat: ring sizes, net.core.netdev_max_backlog, the cable"
    )
    if not found:
        return []
    texts = ", ".join(text for _, text in found)
    return [LinkPart("dropped", f"{host.name}: {texts}", advice, sum(count for count, _ in found))]


def _packets(host: HostEvidence) -> float | None:
    """That went through the link in the window, both ways."""
    use, window = host.network, host.host_window
    if use is None or window is None:
        return None
    if use.received_packets_per_s is None or use.sent_packets_per_s is None:
        return None
    return (use.received_packets_per_s + use.sent_packets_per_s) * window.wall_s


def _soft_interrupts(host: HostEvidence, limits: LinkLimits) -> list[LinkPart]:
    use = host.network
    if use is None or use.softirq_share is None or use.softirq_share < limits.network_softirq_max:
        return []
    text = f"{host.name}: interrupts took {percent(use.softirq_share)} of a CPU"
    if use.busiest_queue_share is not None and use.queues:
        share, cpus = percent(use.busiest_queue_share), number(use.queues)
        text += f"; the busiest of {cpus} CPUs handled {share} of the packets"
    advice = "spread packets over more CPUs (RSS queues: ethtool -L; RPS)"
    return [LinkPart("soft_interrupts", text, advice, provided=SPREAD_OUT)]


def most_retransmitted(evidence: Evidence) -> str:
    """The host that sent the largest share of its segments again; empty on one host."""
    shares = [
        (host.network.retransmitted / host.network.segments_sent, host.name)
        for host in evidence.hosts
        if host.network is not None and host.network.segments_sent and host.network.retransmitted is not None
    ]
    if not shares or max(shares)[0] == 0:
        return ""
    share, name = max(shares)
    return f" (most by {name}: {percent(share)})"


def round_trips(evidence: Evidence) -> list[str]:
    """The round trip of each load host, idle and under the load, so that a latency can be read with the way
    and without it.
    """
    said = []
    for host in evidence.hosts:
        link = host.link
        if host.role != "load" or link is None or link.round_trip_idle_ms is None:
            continue
        text = f"round trip from {host.name} {milliseconds(link.round_trip_idle_ms)} idle"
        if link.round_trip_load_ms is not None:
            text += f", at most {milliseconds(link.round_trip_load_ms)} under load"
        said.append(text)
    return said


def rate(bits_per_s: float) -> str:
    """In the unit that a link is named with."""
    for factor, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bits_per_s >= factor:
            return f"{number(bits_per_s / factor)} {unit}"
    return f"{number(bits_per_s)} bit/s"
