"""isolation: did server and client have their CPUs to themselves. Must not know which other processes run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from prony.evidence.host import CpuPartition, HostWindow
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, Share, check, owned
from prony.judge.finding import Finding, Status, unknown, worst
from prony.numbers import percent

CHECK = "isolation"
SOURCE = "disjoint processor sets, as in experiment E; krun for other processes"


class IsolationLimits(DeclaredLimits):
    isolation_steal: Share = 0.01
    """CPU time that the hypervisor gave to other guests, on any CPU of the trial."""
    isolation_others: Share = 0.05
    """CPU time of other processes on the server's or the client's CPUs."""
    isolation_throttled: Share = 0.01
    """Share of the window in which the CPU quota throttled the server."""
    isolation_invalid_factor: Annotated[float, Field(ge=1.0)] = 5.0
    """This many times those limits is invalid: the disturbance is as large as the effects measured."""


@check(IsolationLimits, order=40, essential=owned)
def isolation(evidence: Evidence, limits: IsolationLimits) -> Finding:
    """CPU sets, pinning, steal, other processes, CPU quota."""
    limit = (
        f"disjoint CPU sets, steal below {percent(limits.isolation_steal)}, other processes below "
        f"{percent(limits.isolation_others)}, throttled below {percent(limits.isolation_throttled)}"
    )
    own: list[Part | None]
    if not evidence.server.owned and (evidence.server_window is None or evidence.partition is None):
        reason = "not read: Prony did not launch this server, and its processes could not be read"
        if not evidence.hosts:
            return unknown(CHECK, reason, limit=limit, source=SOURCE)
        own = [(Status.UNKNOWN, f"the server's host: {reason}", None)]
    else:
        own = [
            _sets(evidence.partition) if evidence.server.owned else _where_it_may_run(evidence.partition),
            _services(evidence),
            _pinned(evidence),
            _quota(evidence, limits),
        ]
    outside = [*_neighbours(evidence, limits), _soft_interrupts(evidence, limits)]
    found = [part for part in (*own, *outside) if part is not None]
    status = worst(*(part[0] for part in found))
    said = [text for part_status, text, _ in found if part_status is not Status.VALID] or [
        t for _, t, _ in found
    ]
    shares = [share for _, _, share in found if share is not None]
    return Finding(
        check=CHECK,
        status=status,
        value=max(shares) if shares else None,
        limit=limit,
        reason="; ".join(said),
        advice=_advice(evidence, found) if status in {Status.INVALID, Status.SUSPECT} else _pin(evidence),
        source=SOURCE,
        outside=all(part[0] is not Status.INVALID for part in own if part is not None),
    )


Part = tuple[Status, str, float | None]


def _sets(partition: CpuPartition | None) -> Part:
    if partition is None:
        return Status.UNKNOWN, "CPU sets not known", None
    common = list(partition.common)
    if partition.shared or not partition.server or not partition.client:
        return (
            Status.SUSPECT,
            "client and server share CPUs: too few on this host to separate them",
            None,
        )
    if common:
        return Status.INVALID, f"client and server both run on CPU {', '.join(map(str, common))}", None
    return Status.VALID, f"server on {list(partition.server)}, client on {list(partition.client)}", None


def _where_it_may_run(partition: CpuPartition | None) -> Part | None:
    """A server that somebody else placed. On CPUs of the client it may disturb the measurement, or never run
    there: what the client misses is seen by `client`.
    """
    if partition is None:
        return None
    common = list(partition.common)
    if common:
        roams = "roams: it " if set(partition.server) - set(common) else ""
        text = f"the server {roams}may run on the client's CPU {', '.join(map(str, common))}"
        return Status.UNKNOWN, text, None
    return _sets(partition)


def _services(evidence: Evidence) -> Part | None:
    """Reported, not judged: a backing service on the server's CPUs is part of what is measured."""
    sharing = [service.name for service in evidence.services if service.shares_server_cpus]
    if sharing:
        return Status.VALID, f"{', '.join(sharing)} shares the server's CPUs: none was left for it", None
    placed = [f"{service.name} on {list(service.cpus)}" for service in evidence.services]
    return (Status.VALID, ", ".join(placed), None) if placed else None


def _pinned(evidence: Evidence) -> Part | None:
    """Where the engine's threads run; an unpinned thread may run anywhere."""
    if evidence.engine is None or evidence.partition is None or evidence.partition.shared:
        return None
    if not evidence.server.owned and evidence.partition.common:
        return None  # said already
    threads = evidence.engine.ready.threads
    if not threads or any(thread.pinned is None for thread in threads):
        return Status.UNKNOWN, "pinning of client threads was not reported", None
    loose = sum(not thread.pinned for thread in threads)
    if loose:
        return Status.SUSPECT, f"{loose} client threads could not be pinned", None
    theirs = () if evidence.partition.apart else evidence.partition.server
    strays = sorted({t.cpu for t in threads if t.cpu is not None and t.cpu in theirs})
    if strays:
        return Status.INVALID, f"client threads run on the server's CPU {', '.join(map(str, strays))}", None
    return None


def _neighbours(evidence: Evidence, limits: IsolationLimits) -> list[Part]:
    """What others took of the CPUs: of this host, or of each host of the trial."""
    partition = evidence.partition
    if not evidence.hosts:
        used = set(partition.server) | set(partition.client) if partition is not None else set()
        return _taken(evidence, evidence.host_window, used, ("server", "client"), limits)
    parts: list[Part] = []
    for host in evidence.hosts:
        used = set(partition.server) if partition is not None and host.role == "server" else set()
        side = "server" if host.role == "server" else "client"
        found = _taken(evidence, host.host_window, used, (side,), limits)
        parts += [(status, f"{host.name}: {text}", share) for status, text, share in found]
    return parts


def _taken(
    evidence: Evidence,
    host: HostWindow | None,
    used: set[int],
    sides: Sequence[str],
    limits: IsolationLimits,
) -> list[Part]:
    """Of one host: steal, and other processes on the CPUs of these sides. No `used`: all CPUs count."""
    if host is None:
        return [(Status.UNKNOWN, "the CPUs were not sampled", None)]
    parts: list[Part] = []
    steals = [cpu.steal for cpu in host.cpus if not used or cpu.cpu in used]
    if steals:
        parts.append(_graded(max(steals), limits.isolation_steal, limits, "steal took {} of a CPU"))
    else:
        parts.append((Status.UNKNOWN, "steal could not be read", None))
    whose = f" (most: {host.busiest_other})" if host.busiest_other else ""
    others = {"server": host.others_on_server_cpus, "client": host.others_on_client_cpus}
    for side in sides:
        share = others[side]
        if share is None:
            parts.append((Status.UNKNOWN, f"other processes on the {side}'s CPUs could not be read", None))
        else:
            text = "other processes took {} of the " + side + "'s CPUs" + whose
            part = _graded(share, limits.isolation_others, limits, text)
            if part[0] is Status.INVALID and not evidence.server.owned:
                # Its database, or what it forwards to, cannot be told from a disturbance.
                part = Status.SUSPECT, part[1] + ", unless they belong to the server", part[2]
            parts.append(part)
    return parts


SEGMENT_BYTES = 1400
"""Of payload in a packet, at least, but for the last one of a message."""
PACKETS_PER_REQUEST, PACKETS_PER_CONNECTION = 6, 12
"""Packets of the load in both directions beside full segments, at most: the ends of a request and of its
response, each once more as an acknowledgement and once more in a TLS record of its own; a handshake with TLS
and a close.
"""


def _soft_interrupts(evidence: Evidence, limits: IsolationLimits) -> Part | None:
    """Soft interrupts for other traffic than the load's. It belongs to no process, so `others` lacks it.

    The load's own packets are counted from above: what its CPUs handled beyond that is foreign, and took
    its share of the time. Left out where a backing service's packets cannot be told from them.
    """
    host, sides, engine = evidence.host_window, evidence.partition, evidence.engine
    window = engine.window if engine is not None else None
    if host is None or sides is None or window is None or evidence.services or not sides.server:
        return None
    own = [cpu for cpu in host.cpus if cpu.cpu in sides.server]
    handled = [cpu.packets for cpu in own]
    irq = sum(cpu.irq for cpu in own) / max(1, len(sides.server))
    known = [n for n in handled if n is not None]
    if not own or len(known) < len(own) or window.bytes_sent is None or window.bytes_received is None:
        if irq < limits.isolation_others:
            return None  # too little to matter, whoever caused it
        return Status.UNKNOWN, "whose soft interrupts ran on the server's CPUs could not be read", None
    load = (window.bytes_sent + window.bytes_received) / SEGMENT_BYTES
    load += PACKETS_PER_REQUEST * (window.completed + window.failed)
    load += PACKETS_PER_CONNECTION * (window.connect_attempts or window.connections_opened or 0)
    packets = sum(known)
    if packets <= load or irq <= 0:
        return None
    text = "soft interrupts for other traffic (network) took {} of the server's CPUs"
    found = _graded(irq * (1 - load / packets), limits.isolation_others, limits, text)
    if found[0] is Status.INVALID and not evidence.server.owned:
        # Packets to its database, or to what it forwards to, are its work.
        found = Status.SUSPECT, found[1] + ", unless they belong to the server", found[2]
    return None if found[0] is Status.VALID else found


def _quota(evidence: Evidence, limits: IsolationLimits) -> Part | None:
    window = evidence.server_window
    if window is None or window.wall_s <= 0:
        return None  # no window: said by every other check
    if window.throttle is None:
        return Status.UNKNOWN, "whether a CPU quota throttled the server could not be read", None
    share = window.throttle.throttled_s / window.wall_s
    return _graded(
        share, limits.isolation_throttled, limits, "a CPU quota throttled the server for {} of the window"
    )


def _graded(share: float, limit: float, limits: IsolationLimits, text: str) -> Part:
    status = Status.VALID
    if share >= limit * limits.isolation_invalid_factor:
        status = Status.INVALID
    elif share >= limit:
        status = Status.SUSPECT
    return status, text.format(percent(share)), share


def _pin(evidence: Evidence) -> str:
    """How a server that somebody else placed gets CPUs of its own; empty where it has them."""
    sides, pid = evidence.partition, evidence.server.pid
    if evidence.server.owned or sides is None or not sides.common or pid is None:
        return ""
    theirs = sorted(set(sides.server) - set(sides.common))
    return f"pin the server: taskset -apc {','.join(map(str, theirs))} {pid}" if theirs else ""


def _advice(evidence: Evidence, parts: list[Part]) -> str:
    bad = " ".join(text for status, text, _ in parts if status in {Status.INVALID, Status.SUSPECT})
    if "quota" in bad:
        return "measure without the quota, or tell Prony the granted CPUs"
    if "steal" in bad:
        return "the hypervisor gave CPU time to other guests: repeat, or use a dedicated host"
    if "soft interrupts" in bad:
        return "keep other traffic off these CPUs (interrupt affinity, RPS), then repeat"
    if "other processes" in bad:
        name = evidence.host_window.busiest_other if evidence.host_window is not None else None
        return "stop the other load and repeat" + (f"; the busiest was {name}" if name else "")
    if evidence.hosts:
        return "take hosts that are machines of their own, or give each CPUs of its own (cpus: in hosts.yaml)"
    if "too few" in bad:
        return "use a host with two or more CPUs"
    return "give client and server separate CPU sets (--server-cpus, --client-cpus)"
