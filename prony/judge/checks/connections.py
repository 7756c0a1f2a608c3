"""connections: was keep-alive on or off as planned, over the whole run, as connections precede the window."""

from __future__ import annotations

from prony.evidence.engine import Counters, Window
from prony.evidence.trial import Evidence, LoadFacts
from prony.judge.check import DeclaredLimits, Positive, Share, check
from prony.judge.effects import Biases, both, lost, together, user_time_lost
from prony.judge.finding import CPU, NEGLIGIBLE, Finding, unread
from prony.judge.parts import joined
from prony.judge.times import headline
from prony.judge.window import expectations_missed, measured
from prony.numbers import milliseconds, number, percent

CHECK = "connections"
SOURCE = "experiment A: keep-alive silently off over HTTPS for weeks"


TOO_FEW = 0.99
"""Opened ÷ fewest expected, below which a condition is added."""


class ConnectionsLimits(DeclaredLimits):
    connections_ratio_max: Positive = 2.0
    """Opened ÷ expected, and its inverse where fewer were opened ..."""
    connections_share_max: Share = 0.05
    """... and unexpected connections ÷ requests: beyond both, fewer than 20 requests per connection."""


def expected_connections(load: LoadFacts, sent: int, totals: Counters) -> tuple[float, float] | None:
    """(fewest, most) connections of the whole run; None when the plan does not determine it.

    A user who closes after n requests may leave one unfinished. Each open-loop session has its own; where
    arrivals reuse idle connections, those open at the end were enough.
    """
    if not load.keep_alive:
        return float(sent), float(sent)
    users = _kept(load, sent, totals)
    if users is None:
        return None
    each = min(
        (n for n in (load.max_requests_per_connection, load.server_closes_after) if n and n > 0), default=None
    )
    if each is None:
        return users, min(users * load.most_connections_per_user, max(users, float(sent)))
    return max(users, sent / each), users * load.most_connections_per_user + sent / each


def _kept(load: LoadFacts, sent: int, totals: Counters) -> float | None:
    if load.shared_connections is not None and load.model == "closed":
        return float(min(load.shared_connections, sent))
    if load.users:
        return float(min(load.users, sent))
    if load.own_connections:
        return None if totals.sessions_begun is None else float(totals.sessions_begun)
    opened, by_server = totals.connections_opened, totals.connections_closed_by_server
    by_client = totals.connections_closed_by_client
    if load.model != "open" or opened is None or by_server is None or by_client is None:
        return None
    # A request without a response closes its connection (judged by `errors`); a wrong response does not.
    broken = totals.failed - expectations_missed(totals)
    return float(max(1, opened - by_server - by_client + broken))


@check(ConnectionsLimits, order=140)
def connections(evidence: Evidence, limits: ConnectionsLimits) -> Finding:
    limit = (
        f"opened ÷ expected at most {limits.connections_ratio_max:g}, or the excess at most "
        f"{percent(limits.connections_share_max)} of the requests"
    )
    report = evidence.engine
    provided = "connections were kept and opened as planned"
    if report is None or report.totals.connections_opened is None:
        reason = "opened connections were not counted"
        return unread(CHECK, reason, provided=provided, limit=limit, source=SOURCE)
    totals = report.totals
    opened, sent = totals.connections_opened, max(totals.sent, totals.completed)
    expected = expected_connections(evidence.load, sent, totals)
    if opened is None or expected is None or sent == 0 or min(expected) <= 0:
        reason = "the expected number of connections is not known"
        return unread(CHECK, reason, provided=provided, limit=limit, source=SOURCE)
    fewest, most = expected
    wanted = (
        f"{number(round(most))} expected" if most - fewest < 1 else f"{fewest:,.0f} to {most:,.0f} expected"
    )
    in_window = report.window.connections_opened if report.window is not None else None
    text = f"{number(opened)} opened for {number(sent)} requests, {wanted}"
    if in_window or (in_window is not None and opened > most):
        text += f" ({number(in_window)} within the window)"
    extra = max(0.0, opened - most)
    bias = _bias(evidence, measured(evidence), extra)
    if extra > 0:
        many = opened > limits.connections_ratio_max * most
        code, conforms = "extra", not many or extra <= limits.connections_share_max * sent
        provided = "connecting cost next to nothing" if bias is None and extra > NEGLIGIBLE * sent else ""
        advice = _advice(totals, evidence, opened, sent)
    else:
        code, conforms = "too_few", opened * limits.connections_ratio_max >= fewest
        provided = "fewer connections carried the same load" if opened < TOO_FEW * fewest else ""
        advice = "connections were reused, or never opened: see errors, and `connection` in the plan"
    finding = Finding(
        check=CHECK,
        code=code,
        conforms=conforms,
        bias=bias or {},
        provided=provided,
        assumption="a connection costs the server no more time than its user" if bias else "",
        value=opened / most if opened >= most else opened / fewest,
        limit=limit,
        reason=text + _tls(totals, evidence),
        advice=advice,
        source=SOURCE,
    )
    return joined([finding])


def _bias(evidence: Evidence, window: Window | None, extra: float) -> Biases | None:
    if window is not None and window.connections_opened is not None:
        extra = min(extra, window.connections_opened)
    if extra <= 0:
        return {}
    times = None if window is None else headline(window, evidence.load.model)
    if window is None or evidence.engine is None or times is None or not times.mean_ns:
        return None
    totals = evidence.engine.totals
    waits = [window.connect_time or totals.connect_time]
    if evidence.load.tls:
        waits.append(window.tls_time or totals.tls_time)
    means_ns = [wait.mean_ns for wait in waits if wait is not None and wait.mean_ns is not None]
    if len(means_ns) < len(waits):
        return None
    extra_ns = extra * sum(means_ns)
    share = extra_ns / (times.mean_ns * times.count)
    bias = user_time_lost(evidence, share, requests=min(1.0, extra / times.count))
    server = evidence.server_window
    if server is not None and server.cpu_s:
        bias = together(bias, both(CPU, down=lost(extra_ns * 1e-9 / server.cpu_s)))
    return bias


def _tls(totals: Counters, evidence: Evidence) -> str:
    if not evidence.load.tls or totals.tls_handshakes is None or not totals.connections_opened:
        return ""
    resumed = "" if totals.tls_resumptions is None else f", {number(totals.tls_resumptions)} of them resumed"
    text = f"; {number(totals.tls_handshakes)} TLS handshakes{resumed}"
    if totals.tls_time is not None and totals.tls_time.mean_ns is not None:
        text += f", {milliseconds(totals.tls_time.mean_ns / 1e6)} each"
    agreed = max(totals.tls_agreed, key=lambda agreed: agreed.count, default=None)
    if agreed is not None:
        text += f" (TLS {agreed.version}, {agreed.cipher_suite})"
    ready = evidence.engine.ready.tls if evidence.engine is not None else None
    if ready is not None and ready.insecure:
        text += "; certificate not verified (--insecure)"
    return text


def _advice(totals: Counters, evidence: Evidence, opened: int, sent: int) -> str:
    if not evidence.load.keep_alive:
        return "more connections than requests: see errors"
    each = sent / opened
    by_server, by_client = totals.connections_closed_by_server, totals.connections_closed_by_client
    whose = "one side"
    if by_server is not None and by_client is not None:
        whose = "the server" if by_server >= by_client else "the client"
    return (
        f"{whose} closed connections after about {number(max(1.0, round(each)))} requests each "
        f"({percent(opened / sent)} of the requests opened a new one): turn keep-alive on there, or, if "
        "intended, declare `closes_after` in its server.yaml"
    )
