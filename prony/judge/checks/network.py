"""network: did the way itself delay or bound requests: an accept queue that overflowed, retransmissions,
delayed acknowledgements; between hosts also the links. Must not know what the server did with a request.

The counters of TCP are those of the network namespace: both ends where client and server share one. On
several hosts they are added up.
"""

from __future__ import annotations

from typing import NamedTuple

from prony.evidence.engine import Window
from prony.evidence.host import TcpCounts
from prony.evidence.trial import Evidence
from prony.judge.check import Share, check
from prony.judge.effects import user_time_lost
from prony.judge.finding import Bias, Finding, no_window, unread
from prony.judge.histogram import HistogramError, decode
from prony.judge.links import (
    LinkLimits,
    LinkPart,
    link_limit,
    link_parts,
    most_retransmitted,
    round_trips,
)
from prony.judge.parts import joined
from prony.judge.server_cpu import server_cpu_share
from prony.judge.times import headline
from prony.judge.window import measured
from prony.numbers import number, percent

CHECK = "network"
SOURCE = "tcp(7): an initial SYN timeout of 1 s, a least RTO of 200 ms, a delayed acknowledgement of 40 ms"
COUNTERS_UNREAD = "TCP's counters could not be read"
NO_TIMER = "no timer of TCP was waited for"
DELAYED_MS = (39.0, 46.0)
"""A delayed acknowledgement takes 40 ms (TCP_DELACK_MIN), and up to one tick of 4 ms more; the server's own
time is added.
"""
SYN_AGAIN_MS = 900.0
"""A SYN without a reply is sent again after 1 s."""
SEGMENT_AGAIN_MS = 200.0
"""A segment without an acknowledgement is sent again after this at the earliest (TCP_RTO_MIN)."""
LEAST_RETRANSMITTED = 10
"""Segments; fewer are no rate."""
AT_ONCE_MS = 20.0
"""A server that answers the preflight within this time does not need 40 ms."""
DELAYED_PER_RESPONSE = 0.5
"""Delayed acknowledgements per response of that length, at least: each waits for one."""
BELOW_SHARE = 0.2
"""At most this many responses between AT_ONCE_MS and 40 ms per one of 40 ms: the timer leaves a gap there."""
IDLE_SHARE = 0.7
"""Server CPU from which 40 ms may be its own queue."""


class NetworkLimits(LinkLimits):
    network_delayed: Share = 0.05
    """Share of responses of about 40 ms from which delayed acknowledgements are looked for."""


@check(NetworkLimits, order=65)
def network(evidence: Evidence, limits: NetworkLimits) -> Finding | None:
    """User time that TCP's timers took: connects that met a full accept queue, retransmissions, delayed
    acknowledgements, packets that a link dropped. Left out for Unix sockets.
    """
    if evidence.load.transport == "unix":
        return None
    limit = (link_limit(limits) if evidence.hosts else "") + "no full accept queue, no segment sent again"
    window = measured(evidence)
    if window is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    counts = _counts(evidence)
    parts = [_of_link(part, evidence) for part in link_parts(evidence, limits)]
    share = None
    if counts is None:
        parts.append(unread(CHECK, COUNTERS_UNREAD, provided=NO_TIMER))
    else:
        share = counts.retransmitted / counts.segments_out if counts.segments_out else 0.0
        said = f"{number(counts.retransmitted)} of {number(counts.segments_out)} segments retransmitted"
        lost_time = (
            _accept_queue(window, counts),
            _retransmitted(evidence, window, counts),
            _delayed(evidence, window, counts, limits),
        )
        parts += [_of_time(part, evidence) for part in lost_time if part is not None]
        parts = parts or [Finding(check=CHECK, reason=said)]
    found = joined(parts)
    return found.model_copy(
        update={
            "value": share,
            "limit": limit,
            "reason": "; ".join((found.reason, *round_trips(evidence))),
            "source": SOURCE,
        }
    )


class LostTime(NamedTuple):
    """Requests that a timer of TCP held, and for how long each."""

    code: str
    requests: float
    each_s: float
    text: str
    advice: str


def _of_time(part: LostTime, evidence: Evidence) -> Finding:
    """Its share of all user time in requests."""
    return Finding(
        check=CHECK,
        code=part.code,
        bias=_bias(evidence, part.requests, part.each_s),
        reason=part.text,
        assumption="each costs its request the timer's first interval",
        advice=part.advice,
    )


def _of_link(part: LinkPart, evidence: Evidence) -> Finding:
    return Finding(
        check=CHECK,
        code=part.code,
        bias=_bias(evidence, part.lost, SEGMENT_AGAIN_MS / 1000) if part.lost else {},
        provided=part.provided,
        reason=part.text,
        advice=part.advice,
    )


def _bias(evidence: Evidence, requests: float, each_s: float) -> dict[str, Bias]:
    window = measured(evidence)
    times = None if window is None else headline(window, evidence.load.model)
    if times is None or not times.mean_ns or not times.count:
        return {}
    all_s = times.mean_ns * 1e-9 * times.count
    return user_time_lost(
        evidence, min(1.0, requests * each_s / all_s), requests=min(1.0, requests / times.count)
    )


def _counts(evidence: Evidence) -> TcpCounts | None:
    """Of both sides of the load; None where one of them could not be read."""
    windows = [host.host_window for host in evidence.hosts] or [evidence.host_window]
    known = [window.tcp for window in windows if window is not None and window.tcp is not None]
    if len(known) < len(windows):
        return None
    return TcpCounts(**{name: sum(getattr(one, name) for one in known) for name in TcpCounts.model_fields})


def _accept_queue(window: Window, counts: TcpCounts) -> LostTime | None:
    """The counter is every listener's of the namespace; that it was this one shows in the connects."""
    refused = max(counts.listen_overflows, counts.listen_drops)
    if refused <= 0 or not _waited_for_syn(window):
        return None
    text = f"accept queue overflow: {number(refused)} connection attempts met a full queue"
    if counts.syn_retransmitted:
        text += f", {number(counts.syn_retransmitted)} SYNs were sent again, each after 1 s or more"
    advice = "raise the server's backlog and net.core.somaxconn, or keep connections open"
    return LostTime("accept_queue", max(refused, counts.syn_retransmitted), 1.0, text, advice)


def _waited_for_syn(window: Window) -> bool:
    """Whether a connect took as long as a SYN that is sent again, or came to nothing; also where that was not
    read.
    """
    if any(window.errors.get(kind) for kind in ("connect_timeout", "connect_refused")):
        return True
    if window.connect_time is None or window.connect_time.max_ns is None:
        return bool(window.connect_attempts or window.connections_opened)
    return window.connect_time.max_ns >= SYN_AGAIN_MS * 1e6


def _retransmitted(evidence: Evidence, window: Window, counts: TcpCounts) -> LostTime | None:
    """The counter is of the whole namespace; that the load's segments were among them shows in responses that
    took as long as a lost one costs.
    """
    data = counts.retransmitted - counts.syn_retransmitted
    if data < LEAST_RETRANSMITTED or not _waited_for_segment(window):
        return None
    share = percent(data / counts.segments_out)
    text = f"retransmissions: {share} of the segments were sent again{most_retransmitted(evidence)}"
    advice = "find the loss (ss -ti, ethtool -S, nstat), or say that the figure is one of this network"
    return LostTime("retransmissions", data, SEGMENT_AGAIN_MS / 1000, text, advice)


def _waited_for_segment(window: Window) -> bool:
    """Whether a response or a TLS handshake took as long as a segment that is sent again, or timed out; also
    where that was not read.
    """
    if window.errors.get("timeout") or window.service_time is None or window.service_time.max_ns is None:
        return True
    # The time to connect is left out: a SYN that is sent again is counted apart.
    every = (window.service_time, window.tls_time)
    return any(times is not None and (times.max_ns or 0) >= SEGMENT_AGAIN_MS * 1e6 for times in every)


def _delayed(evidence: Evidence, window: Window, counts: TcpCounts, limits: NetworkLimits) -> LostTime | None:
    """Nagle's algorithm on the server holds the end of a response until the client's delayed acknowledgement
    (RFC 896, RFC 1122 4.2.3.2). Told from a server that takes 40 ms by its preflight and its CPU.
    """
    alone = [probe.elapsed_ms for probe in evidence.probes if probe.elapsed_ms is not None]
    if window.service_time is None or not alone or max(alone) > AT_ONCE_MS:
        return None
    try:
        times = decode(window.service_time)
    except HistogramError:
        return None
    at_ms, own_ms = times.middle_ns / 1e6, max(alone)

    def between(low_ms: float, high_ms: float) -> float:
        return float(times.counts[(at_ms >= low_ms) & (at_ms < high_ms)].sum())

    held = between(DELAYED_MS[0], DELAYED_MS[1] + 2 * own_ms)
    share = held / times.count if times.count else 0.0
    # A server that itself takes so long has times below, too, and it may be busy.
    apart = between(AT_ONCE_MS, DELAYED_MS[0]) <= BELOW_SHARE * held
    acknowledged = counts.delayed_acks >= DELAYED_PER_RESPONSE * held
    busy = server_cpu_share(evidence)
    if share < limits.network_delayed or not (apart and acknowledged) or (busy or 0.0) >= IDLE_SHARE:
        return None
    text = f"delayed acknowledgements: {percent(share)} of the responses took about 40 ms"
    advice = "let the server write head and body together, or set TCP_NODELAY"
    return LostTime("delayed_acks", held, DELAYED_MS[0] / 1000, text, advice)
