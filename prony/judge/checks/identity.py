"""identity: did the launched process send the responses, and did it survive. Must not know what the
responses$ were.
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
    """Owner of the listening socket, death in the window, clean stop. Left out for a server Prony did not
    start.
    """
    del limits
    server = evidence.server
    if not server.owned:
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
