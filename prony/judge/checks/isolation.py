"""isolation: did the server have its CPUs to itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from prony.evidence.server import ServerWindow
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, Share, check
from prony.judge.effects import both, cpu_lost, lost, together
from prony.judge.finding import CPU, Finding, unread
from prony.judge.server_cpu import server_cpu_used, server_cpus
from prony.judge.window import measured
from prony.numbers import percent

CHECK = "isolation"
SOURCE = "disjoint processor sets, as in experiment E; krun for other processes"
NOTHING_ELSE = "nothing else ran on the server's CPUs"
THEIRS = "the other processes did not belong to the server"
ASSUMPTION = (
    "a lost CPU second cost only the requests that it could have served; bursts begin whenever the server is "
    "busy"
)
RIVALS = frozenset({"other_processes", "shared_cpus"})
SHARED_CORE = 0.5
"""Most of a core's speed that a busy hardware thread takes from its sibling."""
LONGEST_PERIOD_S = 1.0
"""Of a CPU quota, by the kernel."""
CERTAIN_IRQ = 0.05
"""Share of soft interrupts of unknown origin that is reported."""
SEGMENT_BYTES = 1400
"""Least payload of a packet, except the last of a message."""
PACKETS_PER_REQUEST, PACKETS_PER_CONNECTION = 6, 12
"""Most packets of the load in both directions in addition to full segments: the end of a request and of its
response, each with an acknowledgement and a TLS record of its own; a TLS handshake and a close.
"""


class IsolationLimits(DeclaredLimits):
    isolation_repeat_min: Share = 0.05
    """Bias of the rate or the median by other load, from which the trial is repeated: a typical effect."""


class Taken(NamedTuple):
    code: str
    share: float
    text: str
    advice: str


@check(IsolationLimits, order=40)
def isolation(evidence: Evidence, limits: IsolationLimits) -> Finding:
    limit = f"repeated from a possible bias of {percent(limits.isolation_repeat_min)}"
    if evidence.server_window is None and not evidence.server.owned:
        reason = "the server's CPUs are not known: Prony did not launch it"
        return unread(CHECK, reason, provided=NOTHING_ELSE, limit=limit, source=SOURCE)
    if evidence.server_window is not None and evidence.server_window.outside_cpus:
        return _elsewhere(evidence.server_window, limit)
    readings = (
        _steal(evidence),
        _siblings(evidence),
        _others(evidence),
        _soft_interrupts(evidence),
        _throttled(evidence),
        _client(evidence),
    )
    taken = sorted(_while_busy(evidence, readings), key=lambda reading: -reading.share)
    unreadable = [reading for reading in readings if isinstance(reading, str)]
    bias = cpu_lost(evidence, sum(reading.share for reading in taken))
    stolen = sum(reading.share for reading in taken if reading.code in {"steal", "siblings"})
    used = server_cpu_used(evidence) or 0.0
    if stolen and used:
        # Both are charged to the process: time that the guest did not run, and that its core was shared.
        bias = together(bias, both(CPU, down=lost(stolen / used)))
    bends = any(reading.counts for reading in bias.values())
    provided = NOTHING_ELSE if unreadable else ""
    if not evidence.server.owned and any(
        reading.code in {"other_processes", "soft_interrupts"} for reading in taken
    ):
        provided = provided or THEIRS
    placed = [_placed(evidence)] if not (bends or unreadable) else []
    return Finding(
        check=CHECK,
        code=taken[0].code if bends else "unread" if unreadable else "ok",
        bias=bias,
        provided=provided,
        assumption=ASSUMPTION if bends else "",
        value=sum(reading.share for reading in taken),
        limit=limit,
        reason="; ".join((*(reading.text for reading in taken if bends), *unreadable, *placed)),
        advice=taken[0].advice if bends else "",
        source=SOURCE,
        outside=bends and not any(reading.code in {"throttled", "shared_cpus"} for reading in taken),
    )


def _while_busy(evidence: Evidence, readings: Iterable[Taken | str | None]) -> list[Taken]:
    """What took something. What competed with the server's threads cost together at most the time that they
    were runnable without a CPU; what ran while they had nothing to do cost nothing.
    """
    taken = [reading for reading in readings if isinstance(reading, Taken) and reading.share > 0]
    server, rivals = evidence.server_window, sum(r.share for r in taken if r.code in RIVALS)
    if server is None or server.run_delay_s is None or server.wall_s <= 0 or evidence.services:
        return taken
    waited = server.run_delay_s / server.wall_s / server_cpus(evidence)
    if waited >= rivals:
        return taken
    part = waited / rivals
    return [
        one._replace(
            share=one.share * part, text=f"{one.text}, {percent(one.share * part)} while it had work"
        )
        if one.code in RIVALS
        else one
        for one in taken
    ]


def _placed(evidence: Evidence) -> str:
    sides = evidence.partition
    texts = [] if sides is None else [f"server on {list(sides.server)}, client on {list(sides.client)}"]
    sharing = [service.name for service in evidence.services if service.shares_server_cpus]
    return (
        "; ".join([*texts, f"{', '.join(sharing)} on the server's CPUs"] if sharing else texts) or "nothing"
    )


def _steal(evidence: Evidence) -> Taken | str:
    host, sides = evidence.host_window, evidence.partition
    own = set(sides.server) if sides is not None else set()
    shares = [] if host is None else [cpu.steal for cpu in host.cpus if not own or cpu.cpu in own]
    if not shares:
        return "steal could not be read"
    # Where the server's CPUs are not known: the most that it can have lost.
    share = sum(shares) / len(shares) if own else max(shares)
    return Taken(
        "steal",
        share,
        f"steal took {percent(share)} of the server's CPUs",
        "the hypervisor gave CPU time to other guests: repeat, or use a dedicated host",
    )


def _siblings(evidence: Evidence) -> Taken | None:
    host, sides = evidence.host_window, evidence.partition
    if host is None or sides is None or not host.siblings or not sides.server:
        return None
    busy = sum(cpu.busy for cpu in host.siblings) / len(sides.server)
    share = SHARED_CORE * min(busy, server_cpu_used(evidence) or 1.0)
    cpus = _listed(cpu.cpu for cpu in host.siblings)
    text = f"hardware threads {cpus}, on cores of the server's CPUs, were {percent(busy)} busy"
    advice = f"keep other work off CPUs {cpus}, or give the server whole cores (--server-cpus)"
    return Taken("siblings", share, text, advice)


def _elsewhere(window: ServerWindow, limit: str) -> Finding:
    outside = _listed(window.outside_cpus)
    return Finding(
        check=CHECK,
        code="repinned",
        conforms=False,
        value=outside,
        limit=limit,
        reason=f"the server's threads may run on CPU {outside}, outside of its set ({_listed(window.cpus)}): "
        "it changed its own affinity, or its JIT compiler was not moved back after the warm-up",
        advice="turn off its CPU pinning (worker_cpu_affinity, taskset), or name these CPUs (--server-cpus)",
        source=SOURCE,
    )


def _others(evidence: Evidence) -> Taken | str:
    host = evidence.host_window
    share = None if host is None else host.others_on_server_cpus
    if host is None or share is None:
        return "other processes could not be read"
    whose = f", most by {host.busiest_other}" if host.busiest_other else ""
    text = f"other processes took {percent(share)} of the server's CPUs"
    return Taken(
        "other_processes", share, text + whose, f"stop the other load{whose}{whose and ','} and repeat"
    )


def _soft_interrupts(evidence: Evidence) -> Taken | str | None:
    """Soft interrupts beyond an upper bound on the load's own packets; None with a backing service."""
    host, sides, window = evidence.host_window, evidence.partition, measured(evidence)
    if host is None or sides is None or window is None or evidence.services or not sides.server:
        return None
    own = [cpu for cpu in host.cpus if cpu.cpu in sides.server]
    irq = sum(cpu.irq for cpu in own) / len(sides.server)
    counts = [cpu.packets for cpu in own if cpu.packets is not None]
    if not own or len(counts) < len(own) or window.bytes_sent is None or window.bytes_received is None:
        return (
            None
            if irq < CERTAIN_IRQ
            else "the origin of soft interrupts on the server's CPUs could not be read"
        )
    load = (window.bytes_sent + window.bytes_received) / SEGMENT_BYTES
    load += PACKETS_PER_REQUEST * (window.completed + window.failed)
    load += PACKETS_PER_CONNECTION * (window.connect_attempts or window.connections_opened or 0)
    packets = sum(counts)
    share = irq * max(0.0, 1 - load / packets) if packets else 0.0
    text = f"soft interrupts for other traffic took {percent(share)} of the server's CPUs"
    advice = "keep other traffic off these CPUs (interrupt affinity, RPS), then repeat"
    return Taken("soft_interrupts", share, text, advice)


def _throttled(evidence: Evidence) -> Taken | str | None:
    window = evidence.server_window
    if window is None or window.wall_s <= 0:
        return None  # reported by the others
    if window.throttle is None:
        return "whether a CPU quota throttled the server could not be read"
    held_s, periods = window.throttle.throttled_s, window.throttle.periods
    text = f"a CPU quota throttled the server for {percent(held_s / window.wall_s)} of the window"
    advice = "measure without the quota, or declare the granted CPUs"
    share = held_s / window.wall_s / server_cpus(evidence)
    if held_s > 0 and periods > 0:
        # The kernel adds a throttling at its end: one may be missing. It counts no period without work.
        share = min(1.0, share + min(LONGEST_PERIOD_S, window.wall_s / periods) / window.wall_s)
    return Taken("throttled", share, text, advice)


def _client(evidence: Evidence) -> Taken | str | None:
    sides, window = evidence.partition, measured(evidence)
    if sides is None or not sides.server:
        return "the CPU sets are not known"
    if sides.apart or window is None or evidence.engine is None:
        return None
    placed = evidence.engine.ready.threads
    reported = len(placed) == len(window.threads) and all(thread.pinned is not None for thread in placed)
    if not reported and not sides.common:
        return "the pinning of client threads was not reported"
    own = [not reported or not thread.pinned or thread.cpu in sides.server for thread in placed]
    near = [thread for thread, is_near in zip(window.threads, own, strict=False) if is_near]
    shares = [thread.cpu_s / thread.wall_s for thread in near if thread.cpu_s is not None and thread.wall_s]
    if len(shares) < len(near):
        return "the CPU time of client threads on the server's CPUs could not be read"
    share = sum(shares) / len(sides.server)
    text = f"the load generator used {percent(share)} of the server's CPUs"
    advice = _pin(evidence) or "give client and server separate CPU sets (--server-cpus, --client-cpus)"
    if sides.shared:
        advice = "use a host with two or more CPUs"
    return Taken("shared_cpus", share, text, advice)


def _pin(evidence: Evidence) -> str:
    sides, pid = evidence.partition, evidence.server.pid
    if evidence.server.owned or sides is None or not sides.common or pid is None:
        return ""
    theirs = sorted(set(sides.server) - set(sides.common))
    return f"pin the server: taskset -apc {_listed(theirs)} {pid}" if theirs else ""


def _listed(cpus: Iterable[int]) -> str:
    return ",".join(map(str, cpus))
