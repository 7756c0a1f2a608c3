"""The links of a trial on several hosts: how full they were, what they lost, what they cost the kernel, how
long the way takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from prony.evidence.hosts import HostEvidence
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, Share
from prony.judge.finding import Finding
from prony.numbers import milliseconds, number, percent


class LinkLimits(DeclaredLimits):
    network_link_max: Share = 0.90
    """Bits per second, with the framing of Ethernet, ÷ the link's speed from which the link is the bound: TCP
    leaves gaps after each loss that a full link brings.
    """
    network_softirq_max: Share = 0.90
    """Interrupt and soft-interrupt time ÷ wall time of a host's busiest CPU from which its kernel handles
    hardly more packets.
    """


FRAMING_BYTES = 24
"""Of each packet on the wire, not in the interface's count of bytes: preamble and start (8), checksum (4),
and the gap between two frames (12) (IEEE 802.3). Of full-sized frames 2 %, of small ones a fifth.
"""
LEAST_DROPPED = 10
"""Packets; fewer are no rate, and a switch's own announcements are counted as dropped, too."""


def link_limit(limits: LinkLimits) -> str:
    """The limits of links, as text that others follow."""
    return (
        f"links below {percent(limits.network_link_max)} of their speed, soft interrupts below "
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


def link_parts(evidence: Evidence, limits: LinkLimits, found: Callable[..., Finding]) -> list[Finding]:
    """What figures rest on of the hosts' links, made by `found`; empty on one host."""
    parts: list[Finding] = []
    full = full_link(evidence, limits)
    if full is not None:
        reason, advice = f"the link is full: {full.text}", "use a faster link, or offer less"
        parts.append(found(code="network", provided=OURS, reason=reason, advice=advice))
    parts += [part for host in evidence.hosts if (part := _soft_interrupts(host, limits, found)) is not None]
    unread = [host.name for host in evidence.hosts if host.lost is None and _use(host) is None]
    speeds = [host for host in evidence.hosts if host.link is not None and not host.link.speed_bits_per_s]
    if unread and len(speeds) == len(unread):
        names = ", ".join(f"{host.name}, {host.link.interface}" for host in speeds if host.link is not None)
        reason, advice = f"link speed unknown: {names}", "declare it in hosts.yaml (link: 10 Gbit/s)"
        parts.append(found(code="unread", provided=NOT_FULL, reason=reason, advice=advice))
    elif unread:
        reason = f"traffic of the link not read: {', '.join(unread)}"
        parts.append(found(code="unread", provided=NOT_FULL, reason=reason))
    return parts


OURS = "the link is part of what is measured"
NOT_FULL = "no link was full"


def dropped(evidence: Evidence) -> tuple[int, str]:
    """Packets that the hosts' links dropped, or broke: how many, and in words."""
    lost, said = 0, []
    for host in evidence.hosts:
        use = host.network
        counts = () if use is None else (use.dropped, use.errors, use.backlog_dropped)
        count = sum(count for count in counts if count is not None and count >= LEAST_DROPPED)
        if count:
            lost += count
            said.append(f"{host.name} dropped {number(count)} packets")
    return lost, ", ".join(said)


def _soft_interrupts(host: HostEvidence, limits: LinkLimits, found: Callable[..., Finding]) -> Finding | None:
    use = host.network
    if use is None or use.softirq_share is None or use.softirq_share < limits.network_softirq_max:
        return None
    text = f"{host.name}: interrupts took {percent(use.softirq_share)} of a CPU"
    if use.busiest_queue_share is not None and use.queues:
        share, cpus = percent(use.busiest_queue_share), number(use.queues)
        text += f", the busiest of {cpus} CPUs handled {share} of the packets"
    advice = "spread packets over more CPUs (RSS queues: ethtool -L; RPS)"
    return found(code="soft_interrupts", provided=OURS, reason=text, advice=advice)


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
    return f", most by {name} with {percent(share)}"


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
