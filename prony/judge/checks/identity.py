"""identity: did the process that was started give the answers, and did it live. Must not know what the
answers were."""

from __future__ import annotations

from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, check, owned
from prony.judge.finding import Finding, Status

CHECK = "identity"
SOURCE = "a port left over from an earlier run answers just as well"
LIMIT = (
    "the listening socket belongs to the started process, from ready to the end of the load; it lives to the "
    "window's end and stops when told"
)


@check(DeclaredLimits, order=20, essential=owned)
def identity(evidence: Evidence, limits: DeclaredLimits) -> Finding | None:
    """Owner of the listening socket, death in the window, clean stop. Left out for a server Prony did not
    start."""
    del limits
    server = evidence.server
    if not server.owned:
        return None
    died = evidence.server_window.died if evidence.server_window is not None else None
    status, advice = Status.VALID, ""
    if server.owns_port is False:
        status = Status.INVALID
        reason = f"port {server.port} is held by another process than the one that was started"
        advice = "stop the other process (`ss -ltnp` names it) or let Prony choose a free port"
    elif server.owns_port_at_end is False:
        status = Status.INVALID
        reason = f"another process came to listen on port {server.port} while the load ran"
        advice = "part of the answers may be its own: stop it, or let Prony choose a free port"
    elif died is not None:
        status = Status.INVALID
        reason = f"the server died inside the window ({died})"
        advice = "read the end of the server's log; the kernel's log names a kill for lack of memory"
    elif server.owns_port is None:
        status = Status.UNKNOWN
        reason = "whose listening socket it was could not be read"
        advice = "run Prony as the user who owns the server's processes"
    elif evidence.clean_stop is False:
        status = Status.SUSPECT
        reason = "the server was still there after it was told to stop"
        advice = "end it by hand before the next trial: it shares the CPUs with its successor"
    else:
        reason = "the listening socket belongs to the process that was started"
    return Finding(check=CHECK, status=status, limit=LIMIT, reason=reason, advice=advice, source=SOURCE)
