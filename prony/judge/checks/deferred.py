"""deferred: did the server do work after the load that belongs to its requests."""

from __future__ import annotations

import math

from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, check
from prony.judge.effects import both
from prony.judge.finding import CPU, THROUGHPUT, TIMES, Finding
from prony.judge.window import measured
from prony.numbers import milliseconds, number, percent

MIB = 2**20
IN_FLIGHT = 2.0
"""Largest CPU time of a request in flight at the end ÷ the mean: long requests are overrepresented."""
CLOSING = 0.005
"""CPU time after the load ÷ in the window, below which it is that of closing connections."""
WRITTEN_SHARE = 0.1
"""Bytes written after the load ÷ in the window, from which they are a condition, if more than 1 MiB."""


@check(DeclaredLimits, order=43)
def deferred(evidence: Evidence, limits: DeclaredLimits) -> Finding | None:
    """None where the server was not watched after the load."""
    del limits
    after, server = evidence.after_load, evidence.server_window
    window, engine = measured(evidence), evidence.engine
    if after is None or server is None or not server.cpu_s or window is None or engine is None:
        return None
    last_s = IN_FLIGHT * engine.totals.abandoned * server.cpu_s / max(1, window.completed)
    late_s = max(0.0, after.cpu_s - last_s)
    share = late_s / server.cpu_s
    late = 0.0 if share < CLOSING else math.log1p(share) if after.idle else math.inf
    written = after.disk_bytes or 0
    wrote = written > MIB and written > WRITTEN_SHARE * (server.disk_bytes or 0)
    reason = f"CPU time after the load {milliseconds(1000 * late_s)}, {percent(share)} of the window's"
    if late and not after.idle:
        reason += f"; still busy after {number(after.wall_s)} s"
    return Finding(
        check="deferred",
        code="put_off" if late else "written" if wrote else "ok",
        bias=both(THROUGHPUT, down=late) | both((*TIMES, *CPU), up=late) if late else {},
        provided="writing after the load costs nothing" if wrote else "",
        assumption="CPU time after the load is work of the window's requests" if late else "",
        value=share,
        limit="the server is idle when the load has ended",
        reason=reason + (f"; {number(written / MIB)} MiB written after the load" if wrote else ""),
        advice="let the server finish each request's work, or measure longer" if late or wrote else "",
        source="a queue drained after the window is work that the figure lacks",
    )
