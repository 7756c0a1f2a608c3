"""warm: was code being compiled or loaded in the window."""

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
from prony.steady.detector import WAITING_SHARE_MAX, compiling_s, elapsed_only, full_rows, waited_s

CHECK = "warm"
SOURCE = "HttpArena#1417"
JVM_RUNTIMES = ("jvm", "java", "jdk")
LONGER = "warm up longer: code was being compiled"
COLD = "the protocol ends the warm-up here: quote the figure as that of a process during warm-up"
STARVED = (
    "warm up with a few users first (warm_up: closed_users, docs/plans.md): under this load the server's "
    "threads starve the JIT compiler"
)
STILL_STARVED = (
    "warm up with a few users for longer (warm_up: closed_s, docs/plans.md), or give the server more CPUs: "
    "under this load the server's threads starve the JIT compiler"
)


class WarmLimits(DeclaredLimits):
    warm_share: Share = 0.01
    """JIT compilation and class loading ÷ server CPU of the window, from which it is named."""
    warm_class_cost_ms: NotNegative = 0.3
    """CPU per loaded class, an estimate: Spring Boot loads about 10,000 classes in about 3 s of one CPU."""
    warm_waiting_share: Share = WAITING_SHARE_MAX
    """Waits of compilations for a CPU ÷ length of the window, from which the compiler is starved."""


@check(WarmLimits, order=160)
def warm(evidence: Evidence, limits: WarmLimits) -> Finding | None:
    """(JIT CPU + class loading) ÷ server CPU of the window; None for a launched server that is not a JVM."""
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
    # The JVM's own count is elapsed time, which includes waiting for a CPU.
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
    text = f"{percent(share)}{' at most, as compilations waited for a CPU' if waited else ''}"
    return Finding(
        check=CHECK,
        code=code,
        bias=bias,
        value=share,
        limit=limit,
        reason=f"{number(jit_s)} s of JIT compilation and {number(classes)} classes loaded "
        f"in {number(cpu_s)} s of server CPU: {text}"
        + (f"; compilations waited {number(waiting_s)} s for a CPU" if starved else ""),
        assumption=WAITING if starved else "requests would have used the compilers' CPU time",
        advice="" if code == "ok" else _advice(evidence, starved),
        source=SOURCE,
    )


NOTHING = "no code was being compiled in the window"
WAITING = "pending compilations gain no more than those of the warm-up"


def compiled_away(evidence: Evidence, share: float) -> Biases:
    """Bias by the compilers' share: of the server's CPU where that is the bound, else of the granted CPU."""
    if not saturating(evidence):
        return cpu_spent(evidence, share)
    used = server_cpu_share(evidence)
    slower = lost(share if used is None or used >= BUSY else share * used)
    return together(both(THROUGHPUT, up=slower), both(TIMES, down=slower), both(CPU, down=lost(share)))


BUSY = ServerCpuLimits().bound_cpu_min
"""Server CPU ÷ granted CPU from which it is the bound."""
FEWEST_ROWS = 3


def _compiled(evidence: Evidence, share: float) -> Biases:
    """Code that waited for a share w of the window: ln(1 + w (G - 1)), G the gain in the warm-up."""
    gain = math.log1p(share * max(0.0, _faster(evidence) - 1))
    slow = both((*TIMES, *CPU), down=gain)
    if evidence.load.model == "open":
        return slow
    return slow | both(THROUGHPUT, up=lost(-math.expm1(-gain) * responding(evidence)))


def _faster(evidence: Evidence) -> float:
    """G: of the rate where response times set it, else of the median time."""
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
