"""identity: did the launched process send the responses and survive the window."""

from __future__ import annotations

from functools import partial

from prony.evidence.engine import headers_of
from prony.evidence.server import ServerIdentity
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, check
from prony.judge.finding import Finding

CHECK = "identity"
SOURCE = "a server left over from an earlier run responds as well"
LIMIT = (
    "the launched process owns the listening socket until the load ends, survives the window and stops on "
    "request"
)
LIMIT_OF_URL = "the same processes, and no others, listen from the beginning to the end of the load"
FINDING = partial(Finding, check=CHECK, limit=LIMIT, source=SOURCE)
FINDING_OF_URL = partial(Finding, check=CHECK, limit=LIMIT_OF_URL, source=SOURCE)


@check(DeclaredLimits, order=20)
def identity(evidence: Evidence, limits: DeclaredLimits) -> Finding | None:
    """Launched: listener, proxies, death in the window, clean stop. Else: listeners and proxies."""
    del limits
    finding = _owned(evidence) if evidence.server.owned else _of_url(evidence.server)
    if not finding.conforms or (proxy := _proxy(evidence)) is None:
        return finding
    code, reason = proxy
    advice = "the figure covers both: send the load to the server itself"
    if evidence.server.owned:
        advice += ", or declare the proxy as the target (`forwards: true` in its server.yaml)"
    between = {"code": code, "reason": reason, "advice": advice}
    return finding.model_copy(update={**between, "provided": "the proxy is part of the server"})


def _owned(evidence: Evidence) -> Finding:
    server = evidence.server
    if server.owns_port is False:
        return FINDING(
            code="other_listener",
            conforms=False,
            reason=f"port {server.port} belongs to a process other than the launched server",
            advice="stop that process (`ss -ltnp` names it) or let Prony choose a free port",
        )
    if server.owns_port_at_end is False:
        return FINDING(
            code="other_listener",
            conforms=False,
            reason=f"another process listened on port {server.port} under load{_who(server)}",
            advice="it may have sent responses: stop it, or let Prony choose a free port",
        )
    if evidence.server_window is not None and evidence.server_window.died is not None:
        return FINDING(
            code="died",
            conforms=False,
            reason=f"the server died in the window: {evidence.server_window.died}",
            advice="see the end of the server's log; `dmesg` names an out-of-memory kill",
        )
    if server.listeners_gone:
        return _gone(server, FINDING)
    if server.owns_port is None:
        return FINDING(
            code="unread",
            provided="the launched process sent the responses",
            reason="the owner of the listening socket could not be read",
            advice="run Prony as the user who owns the server's processes",
        )
    if evidence.clean_stop is False:
        return FINDING(
            code="still_running",
            provided="the server ended before the next trial",
            reason="the server was still running after the request to stop",
            advice="stop it before the next trial: it takes CPU from its successor",
        )
    return FINDING(reason="the launched process owns the listening socket")


def _of_url(server: ServerIdentity) -> Finding:
    if server.owns_port_at_end is False:
        return FINDING_OF_URL(
            code="new_listener",
            provided="the new process on the port sent none of the responses",
            reason=f"a new process listened on port {server.port} under load{_who(server)}",
            advice="it may have sent responses, and its CPU is not counted: start all server processes first",
        )
    if server.listeners_gone:
        return _gone(server, FINDING_OF_URL)
    if server.owns_port_at_end is None:
        return FINDING_OF_URL(
            code="unread",
            provided="the same processes listened to the end",
            reason="listeners were not watched: the server is on another host or in another network "
            "namespace, or its processes may not be read",
            advice="" if server.pid is None else "run Prony as the user who owns the server's processes",
        )
    return FINDING_OF_URL(reason="the same processes listened from beginning to end")


def _who(server: ServerIdentity) -> str:
    return f": {server.other_listener}" if server.other_listener else ""


def _gone(server: ServerIdentity, finding: partial[Finding]) -> Finding:
    return finding(
        code="listeners_gone",
        provided="the lost workers did not change the server",
        reason=f"{server.listeners_gone} of {server.listeners} listening sockets were closed under load",
        advice="part of the window had fewer workers: look for a worker that ended",
    )


def _proxy(evidence: Evidence) -> tuple[str, str] | None:
    head = evidence.engine.totals.first_head if evidence.engine is not None else None
    headers = headers_of(head or "")
    via = next((probe.via for probe in evidence.probes if probe.via), headers.get("via"))
    # A declared proxy on its own port names itself.
    if via is not None and not (evidence.server.owned and evidence.server.forwards):
        return "proxy", f"responses came through a proxy (Via: {via})"
    before, under_load = {probe.server_header for probe in evidence.probes}, headers.get("server")
    if under_load is not None and before and None not in before and under_load not in before:
        names = ", ".join(sorted(str(name) for name in before))
        return "other_program", f"another program responds under load: {under_load}; before it {names}"
    return None
