"""descriptors: are there enough file descriptors for the users in client and server."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import Field

from prony.evidence.host import Limits
from prony.evidence.server import ServerIdentity
from prony.evidence.trial import Evidence, LoadFacts
from prony.judge.check import DeclaredLimits, Share, check
from prony.judge.finding import Finding, unread
from prony.numbers import number, percent

CHECK = "descriptors"
SOURCE = "experiment B: Too many open files at ulimit 1024"
LIMIT = "one descriptor per connection (in the client with epoll only) plus a reserve, on both sides"
ENOUGH = "client and server had enough descriptors"
UNREAD = partial(unread, CHECK, provided=ENOUGH, limit=LIMIT, source=SOURCE)
FINDING = partial(Finding, check=CHECK, limit=LIMIT, source=SOURCE)


class DescriptorsLimits(DeclaredLimits):
    descriptors_client_reserve: Annotated[int, Field(ge=0)] = 64
    """Descriptors that the client needs on top of its connections (rings, timers, pipes)."""
    descriptors_ring: Annotated[int, Field(ge=1)] = 4
    """Descriptors of an io_uring ring with its eventfds. A ring holds connections without descriptors: as
    many as the process may open files, at most 65,536 (docs/engine.md).
    """
    descriptors_ring_connections: Annotated[int, Field(ge=1)] = 65_536
    descriptors_server_reserve: Annotated[int, Field(ge=0)] = 256
    """Descriptors that a server needs on top of its connections (jars, logs, selectors)."""
    descriptors_used_max: Share = 0.90
    """Descriptors in use ÷ limit at the window's end."""


def forecast_descriptors(
    load: LoadFacts,
    host: Limits | None,
    server: ServerIdentity | None,
    limits: DescriptorsLimits | None = None,
) -> Finding:
    """Before the run: each side's need compared with its soft limit. Not conforming: refuse the run.

    A descriptor per connection in the server and in a client with epoll; a few per ring with io_uring.
    """
    limits = limits or DescriptorsLimits()
    if load.users is None and load.most_at_once is not None:
        return _forecast_open(load, load.most_at_once, host, server, limits)
    if load.users is None:
        return UNREAD("the number of open connections is not known")
    unread_sides: list[str] = []
    fits: list[str] = []
    client_soft = None if host is None else host.descriptors_soft
    direct = _direct(load, host)
    connections = load.users * load.most_connections_per_user
    sides = (
        ("client", _client_need(connections, bool(direct), client_soft, limits), client_soft),
        (
            "server",
            load.users * load.connections_per_user + limits.descriptors_server_reserve,
            None if server is None else server.descriptor_limit_soft,
        ),
    )
    for side, need, soft in sides:
        if soft is None:
            unread_sides.append(side)
        elif need > soft and side == "client" and direct is None:
            return UNREAD(
                f"the client needs {number(need)} descriptors with epoll, limit {number(soft)}; io_uring "
                "would need none per connection, but the driver was not probed"
            )
        elif need > soft:
            hard = host.descriptors_hard if side == "client" and host is not None else None
            return FINDING(
                code="too_few",
                conforms=False,
                value=float(need),
                reason=f"the {side} needs {number(need)} descriptors, limit {number(soft)}",
                advice=_advice(need, hard),
            )
        else:
            fits.append(f"the {side} needs {number(need)} of {number(soft)}")
    if unread_sides:
        fits.append(f"the limit of the {' and the '.join(unread_sides)} could not be read")
    finding = UNREAD if unread_sides else FINDING
    return finding(reason="; ".join(fits)).model_copy(update={"value": float(load.users)})


def _forecast_open(
    load: LoadFacts, most: int, host: Limits | None, server: ServerIdentity | None, limits: DescriptorsLimits
) -> Finding:
    highest = forecast_descriptors(load.model_copy(update={"users": most}), host, server, limits)
    if highest.conforms:
        return highest
    if load.at_once is not None:
        first = forecast_descriptors(load.model_copy(update={"users": load.at_once}), host, server, limits)
        if not first.conforms:
            return first
    return _doubted(highest, f"with up to {number(most)} in flight {highest.reason}")


def _doubted(forecast: Finding, reason: str) -> Finding:
    update = {"code": "near", "conforms": True, "provided": ENOUGH, "reason": reason}
    return forecast.model_copy(update=update)


def _direct(load: LoadFacts, host: Limits | None) -> bool | None:
    if load.driver != "auto":
        return load.driver == "io_uring"
    return None if host is None else host.io_uring


def _client_need(users: int, direct: bool, soft: int | None, limits: DescriptorsLimits) -> int:
    if not direct:
        return users + limits.descriptors_client_reserve
    per_ring = max(1, min(soft or limits.descriptors_ring_connections, limits.descriptors_ring_connections))
    return -(-users // per_ring) * limits.descriptors_ring + limits.descriptors_client_reserve


@check(DescriptorsLimits, order=70)
def descriptors(evidence: Evidence, limits: DescriptorsLimits) -> Finding:
    report = evidence.engine
    if report is None:
        return UNREAD("the engine reported nothing")
    refused = max(report.totals.emfile or 0, report.totals.errors.get("descriptors", 0))
    if refused > 0:
        return FINDING(
            code="refused",
            conforms=False,
            value=float(refused),
            reason=f"the client ran out of descriptors: {number(refused)} × EMFILE",
            advice=_advice((evidence.load.users or 0) + limits.descriptors_client_reserve, None),
        )
    used = evidence.server_window.descriptors_end if evidence.server_window is not None else None
    soft = evidence.server.descriptor_limit_soft
    if used is not None and soft and used > limits.descriptors_used_max * soft:
        return FINDING(
            code="near",
            provided=ENOUGH,
            value=used / soft,
            reason=f"the server used {percent(used / soft)} of its {number(soft)} descriptors",
            advice=_advice(2 * used, None),
        )
    if report.totals.emfile is None:
        return UNREAD("EMFILE was not counted")
    # No refusals were counted: a failed forecast did no harm to this run.
    load = evidence.load
    if load.users is None:
        at_once = max((row.connections_open or 0 for row in report.rows), default=0)
        load = load.model_copy(update={"users": at_once or None, "connections_per_user": 1})
    if report.ready.driver in ("io_uring", "epoll"):
        load = load.model_copy(update={"driver": report.ready.driver})
    forecast = forecast_descriptors(load, evidence.limits, evidence.server, limits)
    return forecast if forecast.conforms else _doubted(forecast, f"{forecast.reason}, but none was refused")


def _advice(need: int, hard: int | None) -> str:
    if hard is not None and need <= hard:
        return f"ulimit -n {need} in this shell (the hard limit is {number(hard)})"
    limit = f"raise the hard limit to at least {number(need)}"
    return f"{limit} (limits.conf: nofile, systemd: LimitNOFILE) or use fewer users"
