"""connections: was keep-alive on or off as the plan says. Must not know HTTP.

Counts are of the whole run: keep-alive connections are opened before the window.
"""

from __future__ import annotations

from prony.evidence.engine import Counters
from prony.evidence.trial import Evidence, LoadFacts
from prony.judge.check import DeclaredLimits, Positive, Share, check
from prony.judge.finding import Finding, Status, unknown
from prony.numbers import milliseconds, number, percent

CHECK = "connections"
SOURCE = "experiment A: keep-alive silently off over HTTPS for weeks"


class ConnectionsLimits(DeclaredLimits):
    connections_suspect_ratio: Positive = 1.01
    """Opened ÷ expected."""
    connections_invalid_ratio: Positive = 2.0
    connections_extra_share: Share = 0.001
    """... as long as the unexpected connections are more than this share of the requests: one reconnection in
    80,000 requests does not bend a figure.
    """
    connections_invalid_share: Share = 0.05
    """Unexpected connections ÷ requests from which keep-alive is as good as off (fewer than 20 requests
    each).
    """


def expected_connections(load: LoadFacts, sent: int, totals: Counters) -> tuple[float, float] | None:
    """(fewest, most) connections expected over the whole run; None when the plan does not determine it.

    A user may ask one of several servers, or all of them. One who closes after n requests may have one
    started connection left over. In an open load each user of
    a session has its own connection; where arrivals reuse idle connections, those still open at the end were
    enough, and all others are extra.
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
    """Connections that would be enough if none were closed early."""
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
    # A failed request closes its connection: that is for `errors` to judge.
    return float(max(1, opened - by_server - by_client + totals.failed))


@check(ConnectionsLimits, order=140)
def connections(evidence: Evidence, limits: ConnectionsLimits) -> Finding:
    """Opened ÷ expected, and the extra ones ÷ requests."""
    limit = (
        f"opened ÷ expected above {limits.connections_suspect_ratio:g} suspect, "
        f"above {limits.connections_invalid_ratio:g} invalid"
    )
    report = evidence.engine
    if report is None or report.totals.connections_opened is None:
        return unknown(CHECK, "opened connections were not counted", limit=limit, source=SOURCE)
    totals = report.totals
    opened, sent = report.totals.connections_opened, max(totals.sent, totals.completed)
    expected = expected_connections(evidence.load, sent, totals)
    if expected is None or sent == 0 or min(expected) <= 0:
        return unknown(CHECK, "the expected number of connections is not known", limit=limit, source=SOURCE)
    fewest, most = expected
    in_window = report.window.connections_opened if report.window is not None else None
    text = f"{number(opened)} opened for {number(sent)} requests, {_expected(fewest, most)}"
    if in_window:
        text += f" ({number(in_window)} within the window)"
    text += _tls(totals, evidence)
    ratio = opened / most if opened >= most else opened / fewest
    status, advice = _status(opened, fewest, most, sent, limits)
    if status is not Status.VALID:
        advice = advice or _advice(totals, evidence, opened, sent)
    return Finding(
        check=CHECK, status=status, value=ratio, limit=limit, reason=text, advice=advice, source=SOURCE
    )


def _expected(fewest: float, most: float) -> str:
    return (
        f"{number(round(most))} expected" if most - fewest < 1 else f"{fewest:,.0f} to {most:,.0f} expected"
    )


def _status(
    opened: int, fewest: float, most: float, sent: int, limits: ConnectionsLimits
) -> tuple[Status, str]:
    extra_share = (opened - most) / sent
    if opened / most > limits.connections_invalid_ratio and extra_share > limits.connections_invalid_share:
        return Status.INVALID, ""
    if opened / most > limits.connections_suspect_ratio and extra_share > limits.connections_extra_share:
        return Status.SUSPECT, ""
    few = opened / fewest
    if few < 1 / limits.connections_suspect_ratio:
        status = Status.INVALID if few < 1 / limits.connections_invalid_ratio else Status.SUSPECT
        return status, "connections were reused or never opened: see errors, and `connection` in the plan"
    return Status.VALID, ""


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
        f"({percent(opened / sent)} of the requests opened a new one): turn keep-alive on there, or, if it "
        "is meant to, declare `closes_after` in its server.yaml"
    )
