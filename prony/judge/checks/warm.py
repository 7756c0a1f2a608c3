"""warm: was code still being compiled or loaded in the window. Must not know which virtual machine it is."""

from __future__ import annotations

import math

from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, NotNegative, Share, check
from prony.judge.effects import Biases, both, cpu_spent, lost, responding, saturating, together
from prony.judge.finding import CPU, THROUGHPUT, TIMES, Finding, unread
from prony.judge.times import headline_times
from prony.judge.window import measured
from prony.numbers import number, percent
from prony.steady.compiling import compiling_s, elapsed_only, waited_s
from prony.steady.detector import WAITING_SHARE_MAX, full_rows

CHECK = "warm"
SOURCE = "HttpArena#1417"
JVM_RUNTIMES = ("jvm", "java", "jdk")
NOT_COMPILING = "no code was being compiled"
FIRST_ROWS = slice(1, 4)
"""Rows of a trial that show how fast its load was at first; in the very first one connections are opened."""
LONGER = "warm up longer: code was still being compiled"
COLD = "the protocol warms it up no further: quote the figure as one of a process that is still warming up"
STARVED = (
    "warm up with a few users first (warm_up: closed_users, docs/plans.md): under this load the JIT compiler "
    "waits behind the server's threads"
)
STILL_STARVED = (
    "load the process with a few users for longer first (warm_up: closed_s, docs/plans.md), or give the "
    "server more CPUs: under this load the JIT compiler waits behind the server's threads"
)


class WarmLimits(DeclaredLimits):
    warm_class_cost_ms: NotNegative = 0.3
    """CPU per loaded class, an estimate: Spring Boot loads about 10,000 classes in about 3 s of one CPU."""
    warm_waiting_share: Share = WAITING_SHARE_MAX
    """Time in which compilations waited for a CPU ÷ length of the window, from which that counts, however
    little CPU they had: what waits to be compiled is still slow.
    """


@check(WarmLimits, order=160)
def warm(evidence: Evidence, limits: WarmLimits) -> Finding | None:
    """CPU time of the JIT compilers and of class loading (estimated), which served nobody; and how much
    faster the server may be once what waits to be compiled is. The figures of a fixed protocol, which
    includes the warm-up, are not off by it. Left out for a launched server that is no JVM.
    """
    limit = f"compilations wait for a CPU for less than {percent(limits.warm_waiting_share)} of the window"
    server, window = evidence.server, evidence.server_window
    opened = window.jvm_open if window is not None else None
    closed = window.jvm_close if window is not None else None
    if opened is None or closed is None or window is None:
        runtime = server.runtime.lower()
        if server.owned and runtime and not any(name in runtime for name in JVM_RUNTIMES):
            return None
        whose = "the JVM was not read" if server.owned else "not read: Prony did not launch this server"
        return unread(CHECK, whose, provided=NOT_COMPILING, limit=limit, source=SOURCE)
    classes = max(0, closed.classes_loaded_total - opened.classes_loaded_total)
    cpu_s = window.cpu_s
    if cpu_s is None and opened.process_cpu_s is not None and closed.process_cpu_s is not None:
        cpu_s = closed.process_cpu_s - opened.process_cpu_s
    jit_s = compiling_s(opened, closed)
    if jit_s is None or not cpu_s or cpu_s <= 0:
        reason = "compilation time or server CPU could not be read"
        return unread(CHECK, reason, provided=NOT_COMPILING, limit=limit, source=SOURCE)
    cost_s = jit_s + classes * limits.warm_class_cost_ms / 1000
    share = min(cost_s / cpu_s, 1.0)
    reason = f"{number(jit_s)} s of JIT compilation and {number(classes)} classes loaded"
    reason += f", {percent(share)} of {number(cpu_s)} s of server CPU"
    if cost_s > cpu_s and elapsed_only(opened, closed):
        reason += " at most: waiting for a CPU is in it"  # the JVM's own count is elapsed time
    waiting_s = waited_s(opened, closed) or 0.0
    starved = waiting_s > 0 and waiting_s >= limits.warm_waiting_share * window.wall_s
    bias = cpu_spent(evidence, share)
    if starved:
        reason += f"; compilations waited {number(waiting_s)} s for a CPU"
        bias = together(bias, _still_slow(evidence, min(1.0, waiting_s / window.wall_s)))
    protocol = evidence.load.claim == "protocol"
    bends = starved or any(one.counts for one in bias.values())
    if bends and protocol:
        reason += "; the protocol includes its warm-up"
    return Finding(
        check=CHECK,
        code="starved" if starved else "compiling" if bends else "ok",
        bias={} if protocol else bias,
        assumption=FASTER_BY if starved and not protocol else "",
        value=share,
        limit=limit,
        reason=reason,
        advice=_advice(evidence, starved) if bends else "",
        source=SOURCE,
    )


FASTER_BY = "what still waits makes the server faster by no more than this load's warm-up did"


def _still_slow(evidence: Evidence, waiting: float) -> Biases:
    """Of code that waits to be compiled for this share of the window: as if it had gained nothing yet of what
    the trial gained since its first seconds. Not bounded where those were not seen.
    """
    window, times = measured(evidence), headline_times(evidence)
    if window is None or evidence.engine is None:
        return {}
    rows = full_rows(evidence.engine.rows, evidence.load.ramp_up_s * 1000, window.opened_ms)[FIRST_ROWS]
    if saturating(evidence):
        rate = window.completed / window.duration_s
        gains = [rate / row.completed_per_s for row in rows if row.completed_per_s > 0]
    else:
        median = None if times is None else times.responses.percentile_ns(50)
        gains = [row.p50_ns / median for row in rows if row.p50_ns and median]
    faster = math.log1p(waiting * (max(1.0, *gains) - 1)) if gains else math.inf
    slow = both((*TIMES, *CPU), down=faster)
    if evidence.load.model == "open":
        return slow
    return slow | both(THROUGHPUT, up=lost(-math.expm1(-faster) * responding(evidence)))


def _advice(evidence: Evidence, starved: bool) -> str:
    if evidence.load.claim == "protocol":
        return COLD
    if not starved:
        return LONGER
    return STILL_STARVED if evidence.warm_up is not None and evidence.warm_up.closed_users else STARVED
