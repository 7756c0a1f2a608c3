"""descriptors: are there enough file descriptors for the users, on both sides. Must not know how limits
are raised."""

from __future__ import annotations

from prony.evidence.host import Limits
from prony.evidence.server import ServerIdentity
from prony.evidence.trial import Evidence, LoadFacts
from prony.judge.finding import Finding, Status
from prony.judge.limits import CheckLimits
from prony.judge.words import number, percent, unknown

CHECK = "descriptors"
SOURCE = "experiment B: Too many open files at ulimit 1024"
LIMIT = "one descriptor per connection and a reserve, on both sides"


def forecast_descriptors(
    load: LoadFacts, host: Limits | None, server: ServerIdentity | None, limits: CheckLimits | None = None
) -> Finding:
    """Before the run: users plus a reserve against the soft limit of each side. Invalid means: refuse."""
    limits = limits or CheckLimits()
    if load.users is None:
        return unknown(CHECK, "how many connections will be open is not known", limit=LIMIT, source=SOURCE)
    unread: list[str] = []
    fits: list[str] = []
    sides = (
        ("client", limits.descriptors_client_reserve, None if host is None else host.descriptors_soft),
        (
            "server",
            limits.descriptors_server_reserve,
            None if server is None else server.descriptor_limit_soft,
        ),
    )
    for side, reserve, soft in sides:
        need = load.users + reserve
        if soft is None:
            unread.append(side)
        elif need > soft:
            hard = host.descriptors_hard if side == "client" and host is not None else None
            return Finding(
                check=CHECK,
                status=Status.INVALID,
                value=float(need),
                limit=LIMIT,
                source=SOURCE,
                reason=f"the {side} needs {number(need)} descriptors and may open {number(soft)}",
                advice=_advice(need, hard),
            )
        else:
            fits.append(f"the {side} needs {number(need)} of {number(soft)}")
    if unread:
        fits.append(f"the limit of the {' and the '.join(unread)} could not be read")
    return Finding(
        check=CHECK,
        status=Status.UNKNOWN if unread else Status.VALID,
        value=float(load.users),
        limit=LIMIT,
        source=SOURCE,
        reason="; ".join(fits),
    )


def descriptors(evidence: Evidence, limits: CheckLimits) -> Finding:
    """During the run: EMFILE on the client, how full the server's table was, and the forecast once more."""
    report = evidence.engine
    if report is None:
        return unknown(CHECK, "the engine reported nothing", limit=LIMIT, source=SOURCE)
    refused = max(report.totals.emfile or 0, report.totals.errors.get("descriptors", 0))
    if refused > 0:
        return Finding(
            check=CHECK,
            status=Status.INVALID,
            value=float(refused),
            limit=LIMIT,
            source=SOURCE,
            reason=f"the client ran out of descriptors: refused {number(refused)} times (EMFILE)",
            advice=_advice((evidence.load.users or 0) + limits.descriptors_client_reserve, None),
        )
    used = evidence.server_window.descriptors_end if evidence.server_window is not None else None
    soft = evidence.server.descriptor_limit_soft
    if used is not None and soft and used > limits.descriptors_used_max * soft:
        return Finding(
            check=CHECK,
            status=Status.SUSPECT,
            value=used / soft,
            limit=LIMIT,
            source=SOURCE,
            reason=f"the server had {percent(used / soft)} of its {number(soft)} descriptors in use",
            advice=_advice(2 * used, None),
        )
    if report.totals.emfile is None:
        return unknown(CHECK, "refused descriptors were not counted", limit=LIMIT, source=SOURCE)
    # With a refusal counted the kernel has spoken; without one a forecast that fails did no harm to this run.
    load = evidence.load
    if load.users is None:
        at_once = max((row.connections_open or 0 for row in report.rows), default=0)
        load = load.model_copy(update={"users": at_once or None})
    forecast = forecast_descriptors(load, evidence.limits, evidence.server, limits)
    if forecast.status is Status.INVALID:
        return forecast.model_copy(
            update={"status": Status.SUSPECT, "reason": forecast.reason + ", yet nothing was refused"}
        )
    return forecast


def _advice(need: int, hard: int | None) -> str:
    if hard is not None and need <= hard:
        return f"ulimit -n {need} in this shell (the hard limit of {number(hard)} allows it)"
    limit = f"raise the hard limit to at least {number(need)}"
    return f"{limit} (limits.conf: nofile, systemd: LimitNOFILE), or fewer users"
