"""identity: did the launched process send the responses, and did it survive. Must not know what the
responses were.
"""

from __future__ import annotations

from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, check, owned
from prony.judge.finding import Finding, Status

CHECK = "identity"
SOURCE = "a server left over from an earlier run answers just as well"
LIMIT = (
    "the launched process owns the listening socket from ready to the end of the load, lives to the window's "
    "end and stops when told"
)


@check(DeclaredLimits, order=20, essential=owned)
def identity(evidence: Evidence, limits: DeclaredLimits) -> Finding | None:
    """Owner of the listening socket, a proxy between, death in the window, clean stop. Of a server that Prony
    did not start only a proxy can be told.
    """
    del limits
    server = evidence.server
    proxy = _proxy(evidence)
    if not server.owned and proxy is None:
        return None
    died = evidence.server_window.died if evidence.server_window is not None else None
    status, advice = Status.VALID, ""
    if server.owns_port is False:
        status = Status.INVALID
        reason = f"another process than the launched one listens on port {server.port}"
        advice = "stop that process (`ss -ltnp` names it) or let Prony choose a free port"
    elif server.owns_port_at_end is False:
        status = Status.INVALID
        reason = f"another process listened on port {server.port} under load"
        if server.other_listener:
            reason += f": {server.other_listener}"
        advice = "it may have sent part of the responses: stop it, or let Prony choose a free port"
    elif died is not None:
        status = Status.INVALID
        reason = f"the server died in the window ({died})"
        advice = "see the end of the server's log; `dmesg` names an out-of-memory kill"
    elif proxy is not None:
        status = Status.SUSPECT
        reason = proxy
        advice = "the figure is that of both together: send the load to the server itself"
        if server.owned:
            advice += ", or declare that the proxy is what is measured (`forwards: true` in its server.yaml)"
    elif server.owns_port is None:
        status = Status.UNKNOWN
        reason = "the owner of the listening socket could not be read"
        advice = "run Prony as the user who owns the server's processes"
    elif evidence.clean_stop is False:
        status = Status.SUSPECT
        reason = "the server was still running after it was told to stop"
        advice = "stop it before the next trial: it shares the CPUs with its successor"
    else:
        reason = "the launched process owns the listening socket"
    return Finding(check=CHECK, status=status, limit=LIMIT, reason=reason, advice=advice, source=SOURCE)


def _proxy(evidence: Evidence) -> str | None:
    """Who stood between the load generator and the server, by what it says of itself; None: nobody is known
    to have.
    """
    head = evidence.engine.totals.first_head if evidence.engine is not None else None
    told = _headers(head or "")
    via = next((probe.via for probe in evidence.probes if probe.via), told.get("via"))
    # A declared proxy on a port that is its own names itself.
    if via is not None and not (evidence.server.owned and evidence.server.forwards):
        return f"responses came by way of a proxy (Via: {via})"
    before, under_load = {probe.server_header for probe in evidence.probes}, told.get("server")
    if under_load is not None and before and None not in before and under_load not in before:
        names = ", ".join(sorted(str(name) for name in before))
        return f"another program responds under load (Server: {under_load}) than before it ({names})"
    return None


def _headers(head: str) -> dict[str, str]:
    """Header name in lower case -> value, of a response's head as it came."""
    fields = (line.partition(":") for line in head.splitlines()[1:])
    return {name.strip().lower(): value.strip() for name, colon, value in fields if colon}
