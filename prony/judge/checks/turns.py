"""turns: in a duet, the rest of the other servers, and work put off beyond the server's own turns."""

from __future__ import annotations

import math

from prony.evidence.trial import Evidence, Turns
from prony.judge.check import DeclaredLimits, check
from prony.judge.effects import both, cpu_lost, lost, together
from prony.judge.finding import CPU, THROUGHPUT, TIMES, Finding
from prony.judge.server_cpu import server_cpus
from prony.judge.window import measured
from prony.numbers import number, percent

CHECK = "turns"
SOURCE = "Bulej et al. 2020, duet benchmarking"
MUCH = 0.01
"""Effect from which one server at a time may be the better design."""
ASSUMED = "CPU time at rest is work that was put off; a turn settles within its left-out part"


@check(DeclaredLimits, order=42)
def turns(evidence: Evidence, limits: DeclaredLimits) -> Finding | None:
    """None outside of a duet."""
    del limits
    duet, window, server = evidence.turns, measured(evidence), evidence.server_window
    if duet is None or window is None:
        return None
    wall_s, used_s = (None, None) if server is None else (server.wall_s, server.cpu_s)
    others_s, resting_s = duet.others_cpu_s, duet.resting_cpu_s
    read = wall_s and used_s and others_s is not None and resting_s is not None
    busy = others_s / (server_cpus(evidence) * wall_s) if wall_s and others_s else 0.0
    off = resting_s * (1 + duet.left_out_s / duet.turn_s) / used_s if used_s and resting_s else 0.0
    settling = _settling(duet, window.completed / window.duration_s)
    slow, late, fast = max(0.0, settling), math.log1p(off), max(0.0, -settling)
    bias = together(
        cpu_lost(evidence, busy),
        both(THROUGHPUT, down=late + fast, up=slow),
        both((*TIMES, *CPU), down=slow, up=late + fast),
    )
    bends = any(effect.counts for effect in bias.values())
    codes = {"busy": lost(min(busy, 1.0)), "put_off": late, "settling": abs(settling)}
    missed = f"; {duet.collections_outside} collections not in a reading" if duet.collections_outside else ""
    return Finding(
        check=CHECK,
        code="unread" if not read else max(codes, key=lambda code: codes[code]) if bends else "ok",
        bias=bias,
        provided="" if read else "the other servers rested in its turns",
        assumption=ASSUMED if bends else "",
        value=busy,
        reason=f"{duet.turns} turns of {number(duet.turn_s)} s with {', '.join(duet.others)}, the first "
        f"{number(duet.left_out_s)} s of each left out; CPU of the others in them: "
        f"{'not read' if others_s is None else f'{percent(busy)} of the CPUs'}; own CPU at rest: "
        f"{'not read' if resting_s is None else f'{percent(off)} of that in its turns'}{missed}",
        advice="measure one server at a time (omit --duet)" if max(codes.values()) > MUCH else "",
        source=SOURCE,
    )


def _settling(duet: Turns, per_s: float) -> float:
    """Mean log rise of the rate still missing in the measured part: an exponential approach whose time
    constant is the left-out part leaves this share of that part's deviation.
    """
    if not duet.left_out_per_s or per_s <= 0:
        return 0.0
    rest = duet.turn_s / duet.left_out_s
    share = math.exp(-1) * -math.expm1(-rest) / (rest * -math.expm1(-1))
    return share * math.log(per_s / duet.left_out_per_s)
