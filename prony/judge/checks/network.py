"""network: did the way itself delay or bound requests: an accept queue that overflowed, retransmissions,
delayed acknowledgements; between hosts also the links.

The counters of TCP are those of the network namespace: both ends where client and server share one. On
several hosts they are added up.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from prony.evidence.engine import Histogram, Window
from prony.evidence.host import TcpCounts
from prony.evidence.trial import Evidence
from prony.judge.check import check
from prony.judge.effects import Biases, time_in_requests_s, user_time_lost
from prony.judge.finding import Finding, no_window
from prony.judge.histogram import read
from prony.judge.links import LinkLimits, dropped, link_limit, link_parts, most_retransmitted, round_trips
from prony.judge.parts import joined
from prony.judge.server_cpu import server_cpu_share
from prony.judge.window import measured
from prony.numbers import number, percent

CHECK = "network"
SOURCE = "tcp(7): an initial SYN timeout of 1 s, a least RTO of 200 ms, a delayed acknowledgement of 40 ms"
NOTHING_LOST = "no request waited for a timer of TCP"
DELAYED_MS = (39.0, 58.0)
"""A delayed acknowledgement takes 40 ms (TCP_DELACK_MIN), and up to one tick of 4 ms more; the rest is for
the server's own time.
"""
DELAYED_ACK_MS = 40.0
SYN_AGAIN_MS = 1000.0
"""A SYN without a reply is sent again after this ..."""
TIMER_SHARE = 0.9
"""... give or take a tick: who waited for a timer took this share of it at least."""
SEGMENT_AGAIN_MS = 200.0
"""A segment without an acknowledgement is sent again after this at the earliest (TCP_RTO_MIN)."""
AT_ONCE_MS = 20.0
"""A server that answers the preflight within this time does not need 40 ms."""
DELAYED_PER_RESPONSE = 0.5
"""Delayed acknowledgements per response of that length, at least: each waits for one."""
IDLE_SHARE = 0.7
"""Server CPU from which 40 ms may be its own queue, ..."""
QUICK_SHARE = 0.5
"""... but not of a server that answers this share of its requests within AT_ONCE_MS."""


@check(LinkLimits, order=65)
def network(evidence: Evidence, limits: LinkLimits) -> Finding | None:
    """Overflow of the accept queue, retransmissions, delayed acknowledgements. Left out for Unix sockets."""
    if evidence.load.transport == "unix":
        return None
    limit = (link_limit(limits) if evidence.hosts else "") + "no request waits for a timer of TCP"
    window = measured(evidence)
    if window is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    found = partial(Finding, check=CHECK, source=SOURCE)
    counts = _counts(evidence)
    parts = link_parts(evidence, limits, found)
    share, said = 0.0, "nothing was lost"
    if counts is None:
        reason = "TCP's counters could not be read"
        parts.append(found(code="unread", provided=NOTHING_LOST, reason=reason))
    else:
        share = counts.retransmitted / counts.segments_out if counts.segments_out else 0.0
        said = f"{number(counts.retransmitted)} of {number(counts.segments_out)} segments retransmitted"
    read = (
        None if counts is None else _accept_queue(evidence, window, counts, found),
        _lost(evidence, window, counts, found),
        None if counts is None else _delayed(evidence, window, counts, found),
    )
    parts += [part for part in read if part is not None]
    whole = joined(parts or [found(reason=said)])
    reason = "; ".join((whole.reason, *round_trips(evidence)))
    return whole.model_copy(update={"value": share, "limit": limit, "reason": reason})


def _waited(evidence: Evidence, requests: float, each_ms: float, completed: int) -> Biases:
    """What it did that so many requests waited so long for a timer."""
    all_s = time_in_requests_s(evidence)
    share = requests * each_ms / 1000 / all_s if all_s > 0 else 1.0
    return user_time_lost(evidence, share, requests=min(1.0, requests / max(1, completed)))


def _took(times: Histogram | None, least_ms: float) -> tuple[float, float] | None:
    """How many took so long at least, and what they took together (ms); None where that was not read."""
    decoded = read(times)
    if decoded is None:
        return None
    long = decoded.high_ns >= TIMER_SHARE * least_ms * 1e6
    counts = decoded.counts[long]
    return float(counts.sum()), float((counts * decoded.high_ns[long]).sum()) / 1e6


def _counts(evidence: Evidence) -> TcpCounts | None:
    """Of both sides of the load; None where one of them could not be read."""
    windows = [host.host_window for host in evidence.hosts] or [evidence.host_window]
    known = [window.tcp for window in windows if window is not None and window.tcp is not None]
    if len(known) < len(windows):
        return None
    return TcpCounts(**{name: sum(getattr(one, name) for one in known) for name in TcpCounts.model_fields})


def _accept_queue(
    evidence: Evidence, window: Window, counts: TcpCounts, found: Callable[..., Finding]
) -> Finding | None:
    """The counter is every listener's of the namespace; that it was this one shows in the connects, which
    took as long as a SYN that is sent again, or came to nothing; also where that was not read.
    """
    refused = max(counts.listen_overflows, counts.listen_drops)
    failed = sum(window.errors.get(kind, 0) for kind in ("connect_timeout", "connect_refused"))
    if refused <= 0 or not (failed or window.connect_attempts or window.connections_opened):
        return None
    waited, again = _took(window.connect_time, SYN_AGAIN_MS), max(refused, counts.syn_retransmitted)
    if waited is not None and not waited[0] and not failed:
        return None
    requests, all_ms = (again, again * SYN_AGAIN_MS) if waited is None or not waited[0] else waited
    reason = f"{number(refused)} connection attempts met a full accept queue"
    if counts.syn_retransmitted:
        reason += f", {number(counts.syn_retransmitted)} SYNs were sent again after 1 s or more"
    return found(
        code="accept_queue",
        bias=_waited(evidence, requests, all_ms / requests, window.completed),
        assumption="a connection attempt that is repeated costs its request the wait, and nothing else",
        reason=reason,
        advice="raise the server's backlog and net.core.somaxconn, or keep connections open",
    )


def _lost(
    evidence: Evidence, window: Window, counts: TcpCounts | None, found: Callable[..., Finding]
) -> Finding | None:
    """Segments that were sent again, or packets that a link dropped, of whatever connection: no more requests
    waited for one than took as long as that costs, a TLS handshake included.
    """
    again = 0 if counts is None else counts.retransmitted - counts.syn_retransmitted
    packets, said = dropped(evidence)
    took = [_took(times, SEGMENT_AGAIN_MS) for times in (window.service_time, window.tls_time)]
    long = sum(one[0] for one in took if one is not None) + window.errors.get("timeout", 0)
    requests = max(again, packets) if took[0] is None else min(max(again, packets), long)
    if requests <= 0:
        return None
    if counts is not None and again:
        share = percent(again / counts.segments_out) if counts.segments_out else "some"
        said = f"{share} of the segments were sent again{most_retransmitted(evidence)}" + f"; {said}" * bool(
            said
        )
    return found(
        code="retransmitted" if again else "dropped",
        bias=_waited(evidence, requests, SEGMENT_AGAIN_MS, window.completed),
        assumption="a lost segment costs its request 200 ms",
        reason=f"{said}: up to {number(requests)} requests waited 200 ms for one",
        advice="find the loss (ss -ti, ethtool -S, nstat), or say that the figure is one of this network",
    )


def _delayed(
    evidence: Evidence, window: Window, counts: TcpCounts, found: Callable[..., Finding]
) -> Finding | None:
    """Nagle's algorithm on the server holds the end of a response until the client's delayed acknowledgement
    (RFC 896, RFC 1122 4.2.3.2). Told from a server that takes 40 ms by its preflight, its CPU and the times
    just below, of which a tail that falls has more: the timer leaves a gap there.
    """
    alone = [probe.elapsed_ms for probe in evidence.probes if probe.elapsed_ms is not None]
    times = read(window.service_time)
    if times is None or not times.count or not alone or max(alone) > AT_ONCE_MS:
        return None
    ends = np.searchsorted(times.middle_ns / 1e6, (AT_ONCE_MS, *DELAYED_MS))
    quick, below, held, _ = (float(part.sum()) for part in np.split(times.counts, ends))
    share, busy = held / times.count, server_cpu_share(evidence) or 0.0
    itself = below > held or (busy >= IDLE_SHARE and quick < QUICK_SHARE * times.count)
    if not held or itself or counts.delayed_acks < DELAYED_PER_RESPONSE * held:
        return None
    return found(
        code="delayed_acks",
        bias=_waited(evidence, held, DELAYED_ACK_MS, window.completed),
        reason=f"{percent(share)} of the responses took about 40 ms, as after a delayed acknowledgement",
        advice="let the server write head and body together, or set TCP_NODELAY",
    )
