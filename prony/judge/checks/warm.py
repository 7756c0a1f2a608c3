"""warm: was code still being compiled or loaded in the window."""

from __future__ import annotations

import math
from statistics import median

from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, NotNegative, Share, check
from prony.judge.effects import Biases, both, cpu_spent, lost, responding, saturating, together
from prony.judge.finding import CPU, THROUGHPUT, TIMES, Finding, unread
from prony.judge.server_cpu import ServerCpuLimits, server_cpu_share
from prony.judge.times import headline_times
from prony.judge.window import measured
from prony.numbers import number, percent
from prony.steady.compiling import compiling_s, elapsed_only, waited_s
from prony.steady.detector import WAITING_SHARE_MAX, full_rows

CHECK = "warm"
SOURCE = "HttpArena#1417"
JVM_RUNTIMES = ("jvm", "java", "jdk")
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
    warm_share: Share = 0.01
    """JIT compilation and class loading ÷ server CPU of the window, from which it is named
    (HttpArena#1417).
    """
    warm_class_cost_ms: NotNegative = 0.3
    """CPU per loaded class, an estimate: Spring Boot loads about 10,000 classes in about 3 s of one CPU."""
    warm_waiting_share: Share = WAITING_SHARE_MAX
    """Time in which compilations waited for a CPU ÷ length of the window, from which the compiler is starved,
    however little CPU it had. What waits to be compiled is still slow.
    """


@check(WarmLimits, order=160)
def warm(evidence: Evidence, limits: WarmLimits) -> Finding | None:
    """(CPU time of the JIT compilers + estimated class loading time) ÷ server CPU of the window: what
    requests would have had without it. Where compilations waited for a CPU, what was compiled in the same
    trial's own warm-up says how much what waits may bring. Left out for a launched server that is no JVM.
    """
    limit = f"below {percent(limits.warm_share)} of server CPU"
    server, window = evidence.server, evidence.server_window
    opened = window.jvm_open if window is not None else None
    closed = window.jvm_close if window is not None else None
    if opened is None or closed is None or window is None:
        runtime = server.runtime.lower()
        if server.owned and runtime and not any(name in runtime for name in JVM_RUNTIMES):
            return None
        whose = "the JVM was not read" if server.owned else "not read: Prony did not launch this server"
        return unread(CHECK, whose, provided=NOTHING, limit=limit, source=SOURCE)
    classes = closed.classes_loaded_total - opened.classes_loaded_total
    cpu_s = window.cpu_s
    if cpu_s is None and opened.process_cpu_s is not None and closed.process_cpu_s is not None:
        cpu_s = closed.process_cpu_s - opened.process_cpu_s
    jit_s = compiling_s(opened, closed)
    if jit_s is None or not cpu_s or cpu_s <= 0:
        reason = "compilation time or server CPU could not be read"
        return unread(CHECK, reason, provided=NOTHING, limit=limit, source=SOURCE)
    cost_s = jit_s + max(0, classes) * limits.warm_class_cost_ms / 1000
    # Where the JVM's own count is all there is, it is elapsed time, and waiting for a CPU is in it.
    waited = cost_s > cpu_s and elapsed_only(opened, closed)
    waiting_s = waited_s(opened, closed) or 0.0
    starved = waiting_s >= limits.warm_waiting_share * window.wall_s > 0
    share = min(cost_s / cpu_s, 1.0)
    protocol = evidence.load.claim == "protocol"
    bias: Biases = {}
    if not protocol:
        bias = compiled_away(evidence, share)
        if starved:
            bias = together(bias, _compiled(evidence, min(waiting_s / window.wall_s, 1.0)))
    code = "starved" if starved else "compiling" if share >= limits.warm_share else "ok"
    said = f"{percent(share)}{' at most: compilations waited for a CPU' if waited else ''}"
    return Finding(
        check=CHECK,
        code=code,
        bias=bias,
        value=share,
        limit=limit,
        reason=f"{number(jit_s)} s of JIT compilation and {number(classes)} classes loaded "
        f"in {number(cpu_s)} s of server CPU: {said}"
        + (f"; compilations waited {number(waiting_s)} s for a CPU" if starved else ""),
        assumption=WAITING if starved else "requests would have had the CPU time of the compilers",
        advice="" if code == "ok" else _advice(evidence, starved),
        source=SOURCE,
    )


NOTHING = "no code was being compiled in the window"
WAITING = "what waits to be compiled brings no more than what was compiled in the warm-up"


def compiled_away(evidence: Evidence, share: float) -> Biases:
    """What the figures would be without the compilers: of a server whose CPU is the bound, and has none left,
    the rate by their share of its CPU; else by their share of what it was granted. Where the rate is given
    its queue would be shorter, too.
    """
    if not saturating(evidence):
        return cpu_spent(evidence, share)
    used = server_cpu_share(evidence)
    slower = lost(share if used is None or used >= BUSY else share * used)
    return together(both(THROUGHPUT, up=slower), both(TIMES, down=slower), both(CPU, down=lost(share)))


BUSY = ServerCpuLimits().bound_cpu_min
"""Of the granted CPU, from which the server's CPU is taken for the bound."""
FEWEST_ROWS = 3


def _compiled(evidence: Evidence, share: float) -> Biases:
    """Of code that waited to be compiled for this share of the window: ln(1 + w (G - 1)), G the level of the
    window ÷ that of the trial's first full rows under its load. Not bounded without rows of a warm-up.
    """
    gain = math.log1p(share * max(0.0, _faster(evidence) - 1))
    slow = both((*TIMES, *CPU), down=gain)
    if evidence.load.model == "open":
        return slow
    return slow | both(THROUGHPUT, up=lost(-math.expm1(-gain) * responding(evidence)))


def _faster(evidence: Evidence) -> float:
    """G: by the rate where the response times set it, else by their median."""
    window, engine, times = measured(evidence), evidence.engine, headline_times(evidence)
    if window is None or engine is None or times is None:
        return math.inf
    before = full_rows(engine.rows, 0.0, window.opened_ms)[:FEWEST_ROWS]
    if len(before) < FEWEST_ROWS:
        return math.inf
    if saturating(evidence):
        first, now = median(row.completed_per_s for row in before), window.completed / window.duration_s
        return now / first if first > 0 and now > 0 else math.inf
    slow = [row.p50_ns for row in before if row.p50_ns is not None]
    usual = times.responses.percentile_ns(50)
    return median(slow) / usual if slow and usual else math.inf


def _advice(evidence: Evidence, starved: bool) -> str:
    if evidence.load.claim == "protocol":
        return COLD
    if not starved:
        return LONGER
    return STILL_STARVED if evidence.warm_up is not None and evidence.warm_up.closed_users else STARVED
