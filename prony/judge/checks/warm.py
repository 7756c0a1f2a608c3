"""warm: was code still being compiled or loaded in the window. Must not know which virtual machine it is."""

from __future__ import annotations

from prony.evidence.server import JvmSnapshot, ServerWindow
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, NotNegative, Share, check
from prony.judge.finding import Finding, Status, unknown
from prony.numbers import number, percent
from prony.steady.compiling import compiling_s, elapsed_only, waited_s
from prony.steady.detector import WAITING_SHARE_MAX

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
    """JIT compilation and class loading ÷ server CPU of the window (HttpArena#1417)."""
    warm_share_invalid: Share = 0.10
    warm_class_cost_ms: NotNegative = 0.3
    """CPU per loaded class, an estimate: Spring Boot loads about 10,000 classes in about 3 s of one CPU."""
    warm_waiting_share: Share = WAITING_SHARE_MAX
    """Time in which compilations waited for a CPU ÷ length of the window, from: suspect, however little CPU
    they had. What waits to be compiled is still slow.
    """


@check(WarmLimits, order=160)
def warm(evidence: Evidence, limits: WarmLimits) -> Finding | None:
    """(CPU time of the JIT compilers + estimated class loading time) ÷ server CPU of the window. The re-run
    of a fixed protocol, which includes the warm-up, is suspect at most, and so is a capacity where compiling
    took less than the limit of what the server was granted. Suspect, too, where compilations waited for a CPU
    for much of the window. Left out for a launched server that is no JVM.
    """
    limit = (
        f"below {percent(limits.warm_share)} of server CPU "
        f"({percent(limits.warm_share_invalid)} or more invalid)"
    )
    server, window = evidence.server, evidence.server_window
    opened = window.jvm_open if window is not None else None
    closed = window.jvm_close if window is not None else None
    if opened is None or closed is None or window is None:
        runtime = server.runtime.lower()
        if server.owned and runtime and not any(name in runtime for name in JVM_RUNTIMES):
            return None
        whose = "the JVM was not read" if server.owned else "not read: Prony did not launch this server"
        return unknown(CHECK, whose, limit=limit, source=SOURCE)
    classes = closed.classes_loaded_total - opened.classes_loaded_total
    cpu_s = window.cpu_s
    if cpu_s is None and opened.process_cpu_s is not None and closed.process_cpu_s is not None:
        cpu_s = closed.process_cpu_s - opened.process_cpu_s
    jit_s = compiling_s(opened, closed)
    if jit_s is None or not cpu_s or cpu_s <= 0:
        return unknown(CHECK, "compilation time or server CPU could not be read", limit=limit, source=SOURCE)
    cost_s = jit_s + max(0, classes) * limits.warm_class_cost_ms / 1000
    # Where the JVM's own count is all there is, it is elapsed time, and waiting for a CPU is in it.
    waited = cost_s > cpu_s and elapsed_only(opened, closed)
    starved = _starved(opened, closed, window.wall_s, limits)
    share = min(cost_s / cpu_s, 1.0)
    taken = _taken(window, cost_s) if evidence.load.claim == "capacity" else share
    status = Status.VALID
    if min(share, taken) >= limits.warm_share_invalid and evidence.load.claim != "protocol":
        status = Status.INVALID
    elif share >= limits.warm_share or starved:
        status = Status.SUSPECT
    return Finding(
        check=CHECK,
        status=status,
        value=share,
        limit=limit,
        reason=f"{number(jit_s)} s of JIT compilation and {number(classes)} classes loaded "
        f"in {number(cpu_s)} s of server CPU "
        f"({percent(share)}{' at most: compilations waited for a CPU' if waited else ''}"
        f"{f'; {percent(taken)} of what it was granted' if taken < share / 2 else ''}{starved})",
        advice="" if status is Status.VALID else _advice(evidence, bool(starved)),
        source=SOURCE,
    )


def _starved(opened: JvmSnapshot, closed: JvmSnapshot, wall_s: float, limits: WarmLimits) -> str:
    """What to say of compilers that the load keeps from the CPU; nothing where they hardly wait."""
    waiting_s = waited_s(opened, closed)
    if waiting_s is None or waiting_s < limits.warm_waiting_share * wall_s:
        return ""
    return f"; compilations waited {number(waiting_s)} s for a CPU"


def _advice(evidence: Evidence, starved: bool) -> str:
    if evidence.load.claim == "protocol":
        return COLD
    if not starved:
        return LONGER
    return STILL_STARVED if evidence.warm_up is not None and evidence.warm_up.closed_users else STARVED


def _taken(window: ServerWindow, cost_s: float) -> float:
    """Of the CPU time that requests could have had. A server that waits for something else has some left, of
    which compiling takes nothing from them: it makes the CPU time per request larger, the rate not smaller.
    """
    granted_s = window.granted_cpus * window.wall_s
    return min(cost_s / granted_s, 1.0) if granted_s > 0 else 1.0
