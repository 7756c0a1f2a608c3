"""identity: did the launched process send the responses, and did it survive."""

from __future__ import annotations

from functools import partial

from prony.evidence.engine import headers_of
from prony.evidence.server import ServerIdentity
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, check
from prony.judge.finding import Finding

CHECK = "identity"
SOURCE = "a server left over from an earlier run answers just as well"
LIMIT = (
    "the launched process owns the listening socket from ready to the end of the load, lives to the window's "
    "end and stops when told"
)
LIMIT_OF_URL = "the processes that listened at the beginning, and no others, listen to the end of the load"
TOLD = partial(Finding, check=CHECK, limit=LIMIT, source=SOURCE)
TOLD_OF_URL = partial(Finding, check=CHECK, limit=LIMIT_OF_URL, source=SOURCE)


@check(DeclaredLimits, order=20)
def identity(evidence: Evidence, limits: DeclaredLimits) -> Finding | None:
    """Owner of the listening socket, a proxy between, listeners that come or go under load, death in the
    window, clean stop. Of a server that Prony did not start: listeners and a proxy.
    """
    del limits
    found = _owned(evidence) if evidence.server.owned else _of_url(evidence.server)
    if not found.conforms or (proxy := _proxy(evidence)) is None:
        return found
    code, reason = proxy
    advice = "the figure is that of both together: send the load to the server itself"
    if evidence.server.owned:
        advice += ", or declare that the proxy is what is measured (`forwards: true` in its server.yaml)"
    between = {"code": code, "reason": reason, "advice": advice}
    return found.model_copy(update={**between, "provided": "what stands between is part of the server"})


def _owned(evidence: Evidence) -> Finding:
    """Of a server that Prony launched."""
    server = evidence.server
    if server.owns_port is False:
        return TOLD(
            code="other_listener",
            conforms=False,
            reason=f"another process than the launched one listens on port {server.port}",
            advice="stop that process (`ss -ltnp` names it) or let Prony choose a free port",
        )
    if server.owns_port_at_end is False:
        return TOLD(
            code="other_listener",
            conforms=False,
            reason=f"another process listened on port {server.port} under load{_who(server)}",
            advice="it may have sent part of the responses: stop it, or let Prony choose a free port",
        )
    if evidence.server_window is not None and evidence.server_window.died is not None:
        return TOLD(
            code="died",
            conforms=False,
            reason=f"the server died in the window: {evidence.server_window.died}",
            advice="see the end of the server's log; `dmesg` names an out-of-memory kill",
        )
    if server.listeners_gone:
        return _gone(server, TOLD)
    if server.owns_port is None:
        return TOLD(
            code="unread",
            provided="the launched process sent the responses",
            reason="the owner of the listening socket could not be read",
            advice="run Prony as the user who owns the server's processes",
        )
    if evidence.clean_stop is False:
        return TOLD(
            code="still_running",
            provided="the server ended before the next trial",
            reason="the server was still running after it was told to stop",
            advice="stop it before the next trial: it shares the CPUs with its successor",
        )
    return TOLD(reason="the launched process owns the listening socket")


def _of_url(server: ServerIdentity) -> Finding:
    """Of a server that somebody else started."""
    if server.owns_port_at_end is False:
        return TOLD_OF_URL(
            code="new_listener",
            provided="the new process on the port sent none of the responses",
            reason=f"a new process listened on port {server.port} under load{_who(server)}",
            advice="it may have sent part of the responses, and its CPU is not counted: start all of the "
            "server's processes before the load",
        )
    if server.listeners_gone:
        return _gone(server, TOLD_OF_URL)
    if server.owns_port_at_end is None:
        return TOLD_OF_URL(
            code="unread",
            provided="the same processes listened to the end",
            reason="who listens there was not watched: it is on another host or in another network "
            "namespace, or its processes may not be read",
            advice="" if server.pid is None else "run Prony as the user who owns the server's processes",
        )
    return TOLD_OF_URL(reason="the processes that listened at the beginning listened to the end")


def _who(server: ServerIdentity) -> str:
    return f": {server.other_listener}" if server.other_listener else ""


def _gone(server: ServerIdentity, told: partial[Finding]) -> Finding:
    return told(
        code="listeners_gone",
        provided="the workers that left did not change the server",
        reason=f"{server.listeners_gone} of {server.listeners} listening sockets were closed under load",
        advice="the figure is that of two servers, one with fewer workers: look for a worker that ended",
    )


def _proxy(evidence: Evidence) -> tuple[str, str] | None:
    """Code and reason: who stood between the load generator and the server, by what it says of itself; None:
    nobody is known to have.
    """
    head = evidence.engine.totals.first_head if evidence.engine is not None else None
    told = headers_of(head or "")
    via = next((probe.via for probe in evidence.probes if probe.via), told.get("via"))
    # A declared proxy on a port that is its own names itself.
    if via is not None and not (evidence.server.owned and evidence.server.forwards):
        return "proxy", f"responses came by way of a proxy (Via: {via})"
    before, under_load = {probe.server_header for probe in evidence.probes}, told.get("server")
    if under_load is not None and before and None not in before and under_load not in before:
        names = ", ".join(sorted(str(name) for name in before))
        return "other_program", f"another program responds under load: {under_load}, before it {names}"
    return None
