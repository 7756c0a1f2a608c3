"""Links of a trial on several hosts: utilisation, drops, interrupt load, round trips."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prony.evidence.hosts import HostEvidence
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, Share
from prony.judge.finding import Finding
from prony.numbers import milliseconds, number, percent


class LinkLimits(DeclaredLimits):
    network_link_max: Share = 0.90
    """Bits per second with framing ÷ link speed from which the link is full: TCP leaves gaps after losses."""
    network_softirq_max: Share = 0.90
    """Interrupt time ÷ wall time of a host's busiest CPU from which it can take hardly more packets."""


FRAMING_BYTES = 24
"""Per packet, not in the interface's byte count: preamble and start (8), checksum (4), inter-frame gap (12)
(IEEE 802.3). 2 % of full-sized frames, a fifth of small ones.
"""
LEAST_DROPPED = 10
"""Packets; a switch's own announcements are counted as dropped, too."""


def link_limit(limits: LinkLimits) -> str:
    return (
        f"links below {percent(limits.network_link_max)} of their speed, soft interrupts below "
        f"{percent(limits.network_softirq_max)} of a CPU, "
    )


@dataclass(frozen=True, slots=True)
class FullLink:
    host: str
    share: float
    text: str


def link_uses(evidence: Evidence) -> tuple[FullLink, ...]:
    """Fullest first."""
    uses = [use for host in evidence.hosts if (use := _use(host)) is not None]
    return tuple(sorted(uses, key=lambda use: -use.share))


def full_link(evidence: Evidence, limits: LinkLimits) -> FullLink | None:
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
    rates = [
        ((bytes_per_s + FRAMING_BYTES * packets_per_s) * 8, way)
        for way, bytes_per_s, packets_per_s in ways
        if bytes_per_s is not None and packets_per_s is not None
    ]
    if len(rates) < len(ways):
        return None
    bits_per_s, way = max(rates)
    share = bits_per_s / speed
    return FullLink(
        host.name, share, f"{host.name} {way} {rate(bits_per_s)} of {rate(speed)} ({percent(share)})"
    )


def link_parts(evidence: Evidence, limits: LinkLimits, finding: Callable[..., Finding]) -> list[Finding]:
    """Findings about the hosts' links, built by `finding`; empty on a single host."""
    parts: list[Finding] = []
    full = full_link(evidence, limits)
    if full is not None:
        reason, advice = f"the link is full: {full.text}", "use a faster link, or offer less"
        parts.append(finding(code="network", provided=OURS, reason=reason, advice=advice))
    parts += [
        part for host in evidence.hosts if (part := _soft_interrupts(host, limits, finding)) is not None
    ]
    unread = [host.name for host in evidence.hosts if host.lost is None and _use(host) is None]
    speeds = [host for host in evidence.hosts if host.link is not None and not host.link.speed_bits_per_s]
    if unread and len(speeds) == len(unread):
        names = ", ".join(f"{host.name}, {host.link.interface}" for host in speeds if host.link is not None)
        reason, advice = f"link speed unknown: {names}", "declare it in hosts.yaml (link: 10 Gbit/s)"
        parts.append(finding(code="unread", provided=NOT_FULL, reason=reason, advice=advice))
    elif unread:
        reason = f"traffic of the link not read: {', '.join(unread)}"
        parts.append(finding(code="unread", provided=NOT_FULL, reason=reason))
    return parts


OURS = "the link is part of what is measured"
NOT_FULL = "no link was full"


def dropped(evidence: Evidence) -> tuple[int, str]:
    lost, texts = 0, []
    for host in evidence.hosts:
        use = host.network
        counts = () if use is None else (use.dropped, use.errors, use.backlog_dropped)
        count = sum(count for count in counts if count is not None and count >= LEAST_DROPPED)
        if count:
            lost += count
            texts.append(f"{host.name} dropped {number(count)} packets")
    return lost, ", ".join(texts)


def _soft_interrupts(
    host: HostEvidence, limits: LinkLimits, finding: Callable[..., Finding]
) -> Finding | None:
    use = host.network
    if use is None or use.softirq_share is None or use.softirq_share < limits.network_softirq_max:
        return None
    text = f"{host.name}: interrupts took {percent(use.softirq_share)} of a CPU"
    if use.busiest_queue_share is not None and use.queues:
        share, cpus = percent(use.busiest_queue_share), number(use.queues)
        text += f", the busiest of {cpus} CPUs handled {share} of the packets"
    advice = "spread packets over more CPUs (RSS queues: ethtool -L; RPS)"
    return finding(code="soft_interrupts", provided=OURS, reason=text, advice=advice)


def most_retransmitted(evidence: Evidence) -> str:
    """Text naming the host with the largest share of retransmitted segments; empty on a single host."""
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
    texts = []
    for host in evidence.hosts:
        link = host.link
        if host.role != "load" or link is None or link.round_trip_idle_ms is None:
            continue
        text = f"round trip from {host.name} {milliseconds(link.round_trip_idle_ms)} idle"
        if link.round_trip_load_ms is not None:
            text += f", at most {milliseconds(link.round_trip_load_ms)} under load"
        texts.append(text)
    return texts


def rate(bits_per_s: float) -> str:
    for factor, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bits_per_s >= factor:
            return f"{number(bits_per_s / factor)} {unit}"
    return f"{number(bits_per_s)} bit/s"


def load_hosts(evidence: Evidence) -> tuple[HostEvidence, ...]:
    return tuple(host for host in evidence.hosts if host.role == "load")


def each_load_host(evidence: Evidence) -> tuple[tuple[HostEvidence, Evidence], ...]:
    """Each with its own engine's and host's evidence, without what covers all hosts together."""
    return tuple(
        (
            host,
            evidence.model_copy(
                update={
                    "engine": host.engine,
                    "host_window": host.host_window,
                    "host_rows": host.host_rows,
                    "hosts": (),
                    "calibration": None,
                    "scaling_probe": None,
                }
            ),
        )
        for host in load_hosts(evidence)
    )


def hosts_needed(shares: Sequence[float], limit: float) -> int:
    """Number of such hosts that keeps each below the limit with the busy time split evenly."""
    return max(1, math.floor(sum(shares) / limit) + 1)
