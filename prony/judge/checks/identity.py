"""identity: did the launched process send the responses, and did it survive. Must not know what the
responses were.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from prony.evidence.server import ServerIdentity
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, check, owned
from prony.judge.finding import Finding, Status

CHECK = "identity"
SOURCE = "a server left over from an earlier run answers just as well"
LIMIT = (
    "the launched process owns the listening socket from ready to the end of the load, lives to the window's "
    "end and stops when told"
)
LIMIT_OF_URL = "the processes that listened at the beginning, and no others, listen to the end of the load"


@check(DeclaredLimits, order=20, essential=owned)
def identity(evidence: Evidence, limits: DeclaredLimits) -> Finding | None:
    """Owner of the listening socket, a proxy between, listeners that come or go under load, death in the
    window, clean stop. Of a server that Prony did not start: listeners and a proxy.
    """
    del limits
    server = evidence.server
    told = _owned(evidence) if server.owned else _of_url(server)
    proxy = _proxy(evidence)
    if proxy is not None and told.status is not Status.INVALID:
        advice = "the figure is that of both together: send the load to the server itself"
        if server.owned:
            advice += ", or declare that the proxy is what is measured (`forwards: true` in its server.yaml)"
        told = Told(Status.SUSPECT, proxy, advice)
    return Finding(
        check=CHECK,
        status=told.status,
        limit=LIMIT if server.owned else LIMIT_OF_URL,
        reason=told.reason,
        advice=told.advice,
        source=SOURCE,
    )


class Told(NamedTuple):
    """A status with its words."""

    status: Status
    reason: str
    advice: str = ""


def _owned(evidence: Evidence) -> Told:
    """Of a server that Prony launched."""
    server = evidence.server
    died = evidence.server_window.died if evidence.server_window is not None else None
    if server.owns_port is False:
        return Told(
            Status.INVALID,
            f"another process than the launched one listens on port {server.port}",
            "stop that process (`ss -ltnp` names it) or let Prony choose a free port",
        )
    if server.owns_port_at_end is False:
        who = f": {server.other_listener}" if server.other_listener else ""
        return Told(
            Status.INVALID,
            f"another process listened on port {server.port} under load{who}",
            "it may have sent part of the responses: stop it, or let Prony choose a free port",
        )
    if died is not None:
        return Told(
            Status.INVALID,
            f"the server died in the window ({died})",
            "see the end of the server's log; `dmesg` names an out-of-memory kill",
        )
    if server.listeners_gone:
        return _gone(server)
    if server.owns_port is None:
        return Told(
            Status.UNKNOWN,
            "the owner of the listening socket could not be read",
            "run Prony as the user who owns the server's processes",
        )
    if evidence.clean_stop is False:
        return Told(
            Status.SUSPECT,
            "the server was still running after it was told to stop",
            "stop it before the next trial: it shares the CPUs with its successor",
        )
    return Told(Status.VALID, "the launched process owns the listening socket")


def _of_url(server: ServerIdentity) -> Told:
    """Of a server that somebody else started."""
    if server.owns_port_at_end is False:
        who = f": {server.other_listener}" if server.other_listener else ""
        return Told(
            Status.SUSPECT,
            f"a process that was not there at the beginning listened on port {server.port} under load{who}",
            "it may have sent part of the responses, and its CPU is not counted: start all of the server's "
            "processes before the load",
        )
    if server.listeners_gone:
        return _gone(server)
    if server.owns_port_at_end is None:
        return Told(
            Status.UNKNOWN,
            "who listens there was not watched: it is on another host or in another network namespace, or "
            "its processes may not be read",
            "" if server.pid is None else "run Prony as the user who owns the server's processes",
        )
    return Told(Status.VALID, "the processes that listened at the beginning listened to the end")


def _gone(server: ServerIdentity) -> Told:
    return Told(
        Status.SUSPECT,
        f"{server.listeners_gone} of {server.listeners} listening sockets were closed under load",
        "the figure is that of two servers, one with fewer workers: look for a worker that ended",
    )


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
    """Header name in lower case -> value, of a response's head as it came; as the preflight reads them, those
    of a repeated header are joined.
    """
    found: dict[str, str] = {}
    for line in re.sub(r"\r?\n[ \t]+", " ", head).split("\n")[1:]:
        name, colon, value = line.strip(" \t\r").partition(":")
        name, value = name.rstrip(" \t").lower(), value.lstrip(" \t")
        if colon:
            found[name] = f"{found[name]}, {value}" if name in found else value
    return found
