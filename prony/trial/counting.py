"""What a server that counts its requests says, before the engine starts and after it has stopped.

Must not be asked while a window is open.
"""

from __future__ import annotations

import json

from prony.evidence.trial import ServerCount
from prony.plan.workload import at_pointer
from prony.server.probe import http_probe
from prony.server.running import RunningServer


def request_count(server: RunningServer) -> int | None:
    """The requests that it has read so far; None when it does not count, or cannot be asked."""
    keys = server.built.spec.counts
    if keys is None:
        return None
    try:
        answer = http_probe(server.host, server.port, path=keys.path, tls=server.scheme == "https")
        found = at_pointer(json.loads(answer.body), keys.pointer)
    except (OSError, ValueError, LookupError):
        return None
    return found if isinstance(found, int) else None


def counted_since(server: RunningServer, before: int | None) -> ServerCount | None:
    """What it has counted since then."""
    after = None if before is None else request_count(server)
    return None if before is None or after is None else ServerCount(requests=after - before)
