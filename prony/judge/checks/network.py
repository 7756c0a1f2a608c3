"""network: did an accept queue, retransmissions, delayed acknowledgements or a link delay or bound requests.

TCP counters cover the network namespace; several hosts' are summed.
"""

from __future__ import annotations

import math
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
NOTHING_LOST = "no request waited for a TCP timer"
DELAYED_MS = (39.0, 58.0)
"""A delayed acknowledgement takes 40 ms (TCP_DELACK_MIN) and a tick of 4 ms; the rest is the server's."""
DELAYED_ACK_MS = 40.0
SYN_AGAIN_MS = 1000.0
"""Retransmission timeout of a SYN ..."""
TIMER_SHARE = 0.9
"""... give or take a tick: least share of a timer that a waiting request took."""
SEGMENT_AGAIN_MS = 200.0
"""Least retransmission timeout of a segment (TCP_RTO_MIN)."""
AT_ONCE_MS = 20.0
"""Longest preflight response of a server that does not need 40 ms itself."""
DELAYED_PER_RESPONSE = 0.5
"""Fewest delayed acknowledgements per delayed response: each waits for one."""
IDLE_SHARE = 0.7
"""Server CPU from which 40 ms may be its own queue, ..."""
QUICK_SHARE = 0.5
"""... unless it answers this share of its requests within AT_ONCE_MS."""


@check(LinkLimits, order=65)
def network(evidence: Evidence, limits: LinkLimits) -> Finding | None:
    """None for Unix sockets."""
    if evidence.load.transport == "unix":
        return None
    limit = (link_limit(limits) if evidence.hosts else "") + "no request waits for a TCP timer"
    window = measured(evidence)
    if window is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    finding = partial(Finding, check=CHECK, source=SOURCE)
    counts = _counts(evidence)
    parts = link_parts(evidence, limits, finding)
    share, text = 0.0, "nothing was lost"
    if counts is None:
        reason = "TCP's counters could not be read"
        parts.append(finding(code="unread", provided=NOTHING_LOST, reason=reason))
    else:
        share = counts.retransmitted / counts.segments_out if counts.segments_out else 0.0
        text = f"{number(counts.retransmitted)} of {number(counts.segments_out)} segments retransmitted"
    read = (
        None if counts is None else _accept_queue(evidence, window, counts, finding),
        _lost(evidence, window, counts, finding),
        None if counts is None else _delayed(evidence, window, counts, finding),
    )
    parts += [part for part in read if part is not None]
    whole = joined(parts or [finding(reason=text)])
    reason = "; ".join((whole.reason, *round_trips(evidence)))
    return whole.model_copy(update={"value": share, "limit": limit, "reason": reason})


def _waited(evidence: Evidence, requests: float, each_ms: float, completed: int) -> Biases:
    all_s = time_in_requests_s(evidence)
    share = requests * each_ms / 1000 / all_s if all_s > 0 else 1.0
    return user_time_lost(evidence, share, requests=min(1.0, requests / max(1, completed)))


def _took(times: Histogram | None, least_ms: float, most: float = math.inf) -> tuple[float, float] | None:
    """(count, sum in ms) of the times that a timer explains; of the `most` longest of them."""
    decoded = read(times)
    if decoded is None:
        return None
    long = decoded.high_ns >= TIMER_SHARE * least_ms * 1e6
    counts = decoded.counts[long]
    longer = np.cumsum(counts[::-1])[::-1] - counts
    counts = np.clip(most - longer, 0.0, counts)
    return float(counts.sum()), float((counts * decoded.high_ns[long]).sum()) / 1e6


def _counts(evidence: Evidence) -> TcpCounts | None:
    windows = [host.host_window for host in evidence.hosts] or [evidence.host_window]
    readings = [window.tcp for window in windows if window is not None and window.tcp is not None]
    if len(readings) < len(windows):
        return None
    return TcpCounts(
        **{name: sum(getattr(reading, name) for reading in readings) for name in TcpCounts.model_fields}
    )


def _accept_queue(
    evidence: Evidence, window: Window, counts: TcpCounts, finding: Callable[..., Finding]
) -> Finding | None:
    """Counts if connects took a SYN's retransmission or failed, as the counter covers the namespace."""
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
        reason += f", {number(counts.syn_retransmitted)} SYNs retransmitted after 1 s or more"
    return finding(
        code="accept_queue",
        bias=_waited(evidence, requests, all_ms / requests, window.completed),
        assumption="a repeated connection attempt costs its request only the wait",
        reason=reason,
        advice="raise the server's backlog and net.core.somaxconn, or keep connections open",
    )


def _lost(
    evidence: Evidence, window: Window, counts: TcpCounts | None, finding: Callable[..., Finding]
) -> Finding | None:
    """No more requests waited for a retransmission than took that long, TLS handshake included; each at most
    for all of its time, as timers double and segments are lost again.
    """
    again = 0 if counts is None else counts.retransmitted - counts.syn_retransmitted
    packets, text = dropped(evidence)
    took = [_took(times, SEGMENT_AGAIN_MS) for times in (window.service_time, window.tls_time)]
    long = sum(long_[0] for long_ in took if long_ is not None) + window.errors.get("timeout", 0)
    requests = max(again, packets) if took[0] is None else min(max(again, packets), long)
    if requests <= 0:
        return None
    waited_ms = requests * SEGMENT_AGAIN_MS
    if took[0] is not None:
        parts = [_took(times, SEGMENT_AGAIN_MS, requests) for times in (window.service_time, window.tls_time)]
        waited_ms = sum(part[1] for part in parts if part is not None)
        if "timeout" in window.errors:
            waited_ms += 1000 * (window.lost_time_sum_s or math.inf)
    if counts is not None and again:
        share = percent(again / counts.segments_out) if counts.segments_out else "some"
        text = f"{share} of the segments retransmitted{most_retransmitted(evidence)}" + f"; {text}" * bool(
            text
        )
    return finding(
        code="retransmitted" if again else "dropped",
        bias=_waited(evidence, requests, waited_ms / requests, window.completed),
        assumption="" if took[0] is not None else "a lost segment costs its request 200 ms",
        reason=f"{text}: up to {number(requests)} requests waited 200 ms or more for a retransmission",
        advice="find the loss (ss -ti, ethtool -S, nstat), or quote the figure with this network",
    )


def _delayed(
    evidence: Evidence, window: Window, counts: TcpCounts, finding: Callable[..., Finding]
) -> Finding | None:
    """Nagle's algorithm on the server holds the end of a response until the client's delayed acknowledgement
    (RFC 896, RFC 1122 4.2.3.2). A server that takes 40 ms itself differs in its preflight, its CPU and the
    times just below 40 ms, where the timer leaves a gap.
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
    return finding(
        code="delayed_acks",
        bias=_waited(evidence, held, DELAYED_ACK_MS, window.completed),
        reason=f"{percent(share)} of the responses took about 40 ms, the time of a delayed acknowledgement",
        advice="write head and body together in the server, or set TCP_NODELAY",
    )
