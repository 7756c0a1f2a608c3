"""streams: did HTTP/2 requests wait in the client for a stream or a flow-control window."""

from __future__ import annotations

from prony.evidence.counts import Http2Counts
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, Share, check
from prony.judge.effects import user_time_lost
from prony.judge.finding import Finding, no_window, unread
from prony.judge.parts import joined
from prony.judge.window import measured
from prony.numbers import milliseconds, number, percent

CHECK = "streams"
SOURCE = "RFC 9113, sections 5.1.2 and 5.2: both limits make the client wait"


class StreamsLimits(DeclaredLimits):
    streams_share_max: Share = 0.1
    """Time that requests waited in the client for a stream, or bodies for a window, ÷ the sum of service
    times, which includes it. Above it latencies are those of the client's queue.
    """


@check(StreamsLimits, order=142)
def streams(evidence: Evidence, limits: StreamsLimits) -> Finding | None:
    """None unless over HTTP/2."""
    if evidence.load.http_version != "2":
        return None
    limit = f"waits at most {percent(limits.streams_share_max)} of the service time"
    window = measured(evidence)
    if window is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    counts, shares = window.http2, waits(evidence)
    if counts is None or shares is None:
        provided = "no request waited in the client for a stream"
        return unread(CHECK, "streams were not counted", provided=provided, limit=limit, source=SOURCE)
    waited, blocked = shares
    beginning = waited >= blocked and only_at_the_start(evidence)
    requests = (counts.stream_waits + counts.send_blocks) / max(1, window.completed)
    finding = Finding(
        check=CHECK,
        code="first_settings" if beginning else "flow_control" if blocked > waited else "streams",
        conforms=beginning or max(shares) <= limits.streams_share_max,
        bias=user_time_lost(evidence, waited + blocked, requests=min(1.0, requests)),
        value=max(shares),
        limit=limit,
        reason=_reason(counts, waited, blocked, evidence),
        advice=_advice(counts, waited, blocked, beginning),
        source=SOURCE,
    )
    return joined([finding])


def waits(evidence: Evidence) -> tuple[float, float] | None:
    """(wait for a stream, for a flow-control window), each ÷ service time; None where not counted."""
    window = measured(evidence)
    if window is None or window.http2 is None or not window.service_time_sum_s:
        return None
    counts, whole_s = window.http2, window.service_time_sum_s
    return counts.stream_wait_sum_s / whole_s, counts.send_blocked_sum_s / whole_s


def only_at_the_start(evidence: Evidence) -> bool:
    """Whether requests waited only for the first SETTINGS, with a limit not below their streams."""
    shared, requested = evidence.load.shared_connections, evidence.load.streams_per_connection
    window = measured(evidence)
    counts = None if window is None else window.http2
    if counts is None or shared is None or requested is None:
        return False
    most = counts.max_concurrent_streams
    if most is not None and most < requested:
        return False
    return counts.stream_waits <= shared * (requested - 1)


def _reason(counts: Http2Counts, waited: float, blocked: float, evidence: Evidence) -> str:
    most = counts.max_concurrent_streams
    allowed = (
        "the server sets no limit of streams" if most is None else f"the server allows {number(most)} streams"
    )
    requested = evidence.load.streams_per_connection
    text = f"{number(counts.streams_opened)} streams opened; {allowed} at once per connection"
    if requested is not None:
        text += f", {number(requested)} requested"
    if counts.stream_waits:
        text += (
            f"; {number(counts.stream_waits)} requests waited for a stream, "
            f"up to {milliseconds(counts.stream_wait_max_ms)}, {percent(waited)} of the service time"
        )
    if counts.send_blocks:
        text += (
            f"; {number(counts.send_blocks)} bodies waited for the server's flow-control window, "
            f"{percent(blocked)} of the service time"
        )
    if counts.receive_window_used_up:
        text += f"; the client's window was exhausted {number(counts.receive_window_used_up)} times"
    if counts.streams_refused:
        text += f"; {number(counts.streams_refused)} streams refused"
    if counts.goaways_received:
        codes = ", ".join(f"{code} {number(times)}" for code, times in counts.goaways_received.items())
        text += f"; GOAWAY from the server: {codes}"
    sent, before = counts.header_block_bytes_sent, counts.header_list_bytes_sent
    if sent and before and counts.streams_opened:
        each = number(round(sent / counts.streams_opened))
        text += f"; {each} header bytes per request, {percent(sent / before)} of the header lists"
    return text


def _advice(counts: Http2Counts, waited: float, blocked: float, beginning: bool) -> str:
    if beginning:
        return (
            "these are waits for the server's first SETTINGS, as on every connection: measure longer, or "
            "with a warm-up"
        )
    if blocked > waited:
        return (
            "the server's window bounds uploads: raise its initial window, or quote the figure with "
            "this window"
        )
    most = counts.max_concurrent_streams
    if most is None:
        return "connections were replaced while requests waited: see connections"
    return (
        "requests queue in the client, so the latency is the client's: use "
        f"at most {number(most)} users per connection (--streams), or raise the server's limit of streams"
    )
