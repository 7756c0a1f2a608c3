"""ports: will or did the client run out of ephemeral ports."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from prony.evidence.engine import Counters
from prony.evidence.host import Limits
from prony.evidence.trial import Evidence, LoadFacts
from prony.judge.check import DeclaredLimits, Positive, check
from prony.judge.finding import Finding, unread
from prony.numbers import number, percent

CHECK = "ports"
SOURCE = "experiment B ran out of ports"
WIDEST_RANGE = (1024, 65535)
ENOUGH = "the client had enough ports"


class PortsLimits(DeclaredLimits):
    ports_warn_share: Positive = 0.80
    """Ports needed ÷ ports available per (source, destination), above which a condition is added ..."""
    ports_refuse_share: Positive = 1.0
    """... and above which a load is refused before it starts."""
    ports_hold_s: Positive = 60.0
    """How long a closed connection holds its port: Linux's TCP_TIMEWAIT_LEN, not configurable."""
    ports_hold_reused_s: Positive = 1.0
    """The same where the kernel may reuse a port in TIME_WAIT (net.ipv4.tcp_tw_reuse)."""


@dataclass(frozen=True, slots=True)
class Need:
    ports: float
    available: float
    hold_s: float

    @property
    def share(self) -> float:
        return self.ports / self.available if self.available > 0 else math.inf


def forecast_ports(load: LoadFacts, host: Limits | None, limits: PortsLimits | None = None) -> Finding:
    """Before the run: open connections plus those in TIME_WAIT ÷ ports. Not conforming: refuse the run."""
    limits = limits or PortsLimits()
    unread_ports = _unread(limits)
    if load.transport == "unix":
        return _no_ports(limits)
    if host is None or host.ports is None:
        return unread_ports("the range of ephemeral ports could not be read")
    hold_s = _hold_s(host, limits)
    available = _available(load, host)
    rate = connections_per_s(load)
    held = load.shared_connections or load.users or load.at_once
    held = held if held is None else held * load.most_connections_per_user
    if rate is None and held is not None and held > available * limits.ports_warn_share:
        rate = 0.0  # the open connections alone are too many at any rate of new ones
    if rate is None:
        most = available * limits.ports_warn_share / hold_s
        return unread_ports(f"unknown rate of new connections; up to {most:,.0f}/s fit")
    if held is None and rate == 0:
        return unread_ports("the number of open connections is not known")
    spell_s = hold_s if load.duration_s is None else min(hold_s, load.duration_s)
    need = Need(rate * spell_s + (held or 0), available, hold_s)
    new = (
        f"{number(rate)} new connections/s, each holding its port for {number(spell_s)} s"
        if rate > 0
        else f"{number(held or 0)} connections stay open"
    )
    return _judged(need, load, host, limits, f"{number(need.ports)} ports needed ({new})")


def connections_per_s(load: LoadFacts) -> float | None:
    """Planned new connections per second; None when they depend on an unknown rate."""
    if load.own_connections and load.keep_alive and load.max_requests_per_connection is None:
        return load.sessions_per_s
    per_connection = (
        1 if not load.keep_alive else _smallest(load.max_requests_per_connection, load.server_closes_after)
    )
    if per_connection is None:
        return 0.0
    rate = load.expected_requests_per_s if load.expected_requests_per_s is not None else load.offered_per_s
    return None if rate is None else rate / per_connection


@check(PortsLimits, order=60)
def ports(evidence: Evidence, limits: PortsLimits) -> Finding:
    """During the run: only EADDRNOTAVAIL makes a trial not conforming."""
    unread_ports = _unread(limits)
    report = evidence.engine
    if report is None:
        return unread_ports("the engine reported nothing")
    if report.ready.transport == "unix":
        return _no_ports(limits)
    totals = report.totals
    refused = max(totals.eaddrnotavail or 0, totals.errors.get("address_unavailable", 0))
    host = evidence.limits
    if refused > 0:
        return Finding(
            check=CHECK,
            code="refused",
            conforms=False,
            value=float(refused),
            limit=_limit(limits),
            source=SOURCE,
            reason=f"the client ran out of ports: {number(refused)} × EADDRNOTAVAIL",
            advice=_remedies(evidence.load, host, None),
        )
    if totals.eaddrnotavail is None or totals.connections_opened is None or report.elapsed_ms < 1:
        return unread_ports("connections and EADDRNOTAVAIL were not counted")
    if host is None or host.ports is None:
        return unread_ports("the range of ephemeral ports could not be read")
    elapsed_s = report.elapsed_ms / 1000
    need = _used(evidence, host, limits, totals, elapsed_s)
    estimate = _judged(need, evidence.load, host, limits, f"about {number(need.ports)} ports in use at once")
    if estimate.code == "ok":
        return estimate
    reason = f"{estimate.reason} (estimate); the kernel refused none"
    update = {"code": "near", "conforms": True, "provided": ENOUGH}
    if elapsed_s >= need.hold_s:
        reason += f"; a port is held for {number(need.hold_s)} s, the run took {number(elapsed_s)} s"
        update = {"code": "ok", "conforms": True, "provided": "", "advice": ""}
    else:
        reason += ", but a longer run would need more"
    return estimate.model_copy(update={"reason": reason, **update})


def _unread(limits: PortsLimits) -> partial[Finding]:
    return partial(unread, CHECK, provided=ENOUGH, limit=_limit(limits), source=SOURCE)


def _no_ports(limits: PortsLimits) -> Finding:
    reason = "connections to a Unix socket use no ports"
    return Finding(check=CHECK, value=0.0, limit=_limit(limits), reason=reason, source=SOURCE)


def _used(evidence: Evidence, host: Limits, limits: PortsLimits, totals: Counters, elapsed_s: float) -> Need:
    """Open connections plus those that the client closed within the hold time.

    The side that closes first holds the port: capped by the kernel's TIME_WAIT, and that by this run's
    connections.
    """
    hold_s = _hold_s(host, limits)
    opened = totals.connections_opened or 0
    ended, first = totals.connections_closed_by_server or 0, totals.connections_closed_first_by_server
    by_server = min(opened, ended if first is None else first)
    closed = totals.connections_closed_by_client
    if closed is not None and first is not None:
        closed += max(0, ended - by_server)
    by_client = opened - by_server if closed is None else min(opened - by_server, closed)
    seen = _seen_waiting(evidence)
    left = by_client * min(1.0, hold_s / elapsed_s)
    if seen is not None:
        left = min(left, seen)
    waiting = 0 if seen is None or host.time_wait_reuse else min(seen, opened - by_server)
    held = max(opened - by_server - by_client + left, float(waiting))
    return Need(held, _available(evidence.load, host), hold_s)


def _seen_waiting(evidence: Evidence) -> int | None:
    seen = [row.time_wait for row in evidence.host_rows if row.time_wait is not None]
    if evidence.host_window is not None:
        borders = (evidence.host_window.sockets_open, evidence.host_window.sockets_close)
        seen += [_time_wait(states) for states in borders if states]
    return max(seen, default=None)


def _judged(need: Need, load: LoadFacts, host: Limits, limits: PortsLimits, text: str) -> Finding:
    too_many, many = need.share > limits.ports_refuse_share, need.share > limits.ports_warn_share
    return Finding(
        check=CHECK,
        code="too_few" if too_many else "near" if many else "ok",
        conforms=not too_many,
        provided=ENOUGH if many else "",
        value=need.share if math.isfinite(need.share) else None,
        limit=_limit(limits),
        source=SOURCE,
        reason=f"{text} of {number(need.available)}",
        advice=_remedies(load, host, need) if too_many or many else "",
    )


def _limit(limits: PortsLimits) -> str:
    return (
        f"none refused; a condition above {percent(limits.ports_warn_share)} of the ports, no start "
        f"above {percent(limits.ports_refuse_share)}"
    )


def _hold_s(host: Limits, limits: PortsLimits) -> float:
    return limits.ports_hold_reused_s if host.time_wait_reuse else limits.ports_hold_s


def _available(load: LoadFacts, host: Limits) -> float:
    size = host.ports.size if host.ports is not None else 0
    taken = 0 if host.time_wait_reuse else host.time_wait_to_target or 0
    return max(0.0, float(size * max(1, load.sources) * max(1, load.destinations) - taken))


def _smallest(*numbers: int | None) -> int | None:
    return min((n for n in numbers if n is not None and n > 0), default=None)


def _time_wait(sockets: dict[str, int]) -> int:
    return sum(
        count
        for state, count in sockets.items()
        if state.lower().replace("-", "_") in {"time_wait", "timewait"}
    )


MORE_HOSTS = "more load hosts (docs/hosts.md)"


def _remedies(load: LoadFacts, host: Limits | None, need: Need | None) -> str:
    size = host.ports.size if host is not None and host.ports is not None else None
    keep = "1. find why connections are not reused (see connections)"
    if need is not None and (load.users or load.at_once or 0) > 0.8 * need.available:
        keep = "1. use fewer users"
    elif not load.keep_alive:
        keep = "1. keep connections alive (reuse: keep_alive)"
    widest = WIDEST_RANGE[1] - WIDEST_RANGE[0] + 1
    wider = (
        f'2. widen the range: sysctl -w net.ipv4.ip_local_port_range="{WIDEST_RANGE[0]} {WIDEST_RANGE[1]}"'
    )
    if size is not None and size >= widest:
        wider = "2. lower the rate (the port range is at its maximum)"
    addresses = f"3. use more source addresses (127.0.0.2, ... on loopback), or {MORE_HOSTS}"
    if need is not None and size:
        least = math.ceil(need.ports / (0.8 * size))
        addresses = f"3. use at least {least} source addresses (127.0.0.2, ... on loopback), or {MORE_HOSTS}"
    return f"{keep}; {wider}; {addresses}"
