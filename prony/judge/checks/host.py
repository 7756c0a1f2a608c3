"""host: did the host change during the window."""

from __future__ import annotations

from typing import NamedTuple

from prony.evidence.host import HostRow, HostWindow
from prony.evidence.hosts import HostEvidence
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, Share, check
from prony.judge.effects import both, lost, saturating, together
from prony.judge.finding import CPU, THROUGHPUT, TIMES, Bias, Finding, unread
from prony.numbers import number, percent

CHECK = "host"
SOURCE = "krun"
LOW_SHARE = 0.1
"""Tolerated share of seconds with a lower clock (at least one): a reading may fall between two requests."""


BUSY_SHARE = 0.75
"""Utilisation of the server's CPUs from which a clock reading counts: idle CPUs clock down (powersave)."""


class HostLimits(DeclaredLimits):
    host_frequency_drop: Share = 0.05
    """Allowed drop of the CPU clock, within the window and between compared trials."""


@check(HostLimits, order=50)
def host(evidence: Evidence, limits: HostLimits) -> Finding:
    """CPU clock of the server's host; swap-ins, kernel log and changed settings only add conditions."""
    allowed = percent(limits.host_frequency_drop)
    limit = f"CPU clock within {allowed}, no swapping, kernel warnings or changed settings"
    there = [machine for machine in evidence.hosts if machine.lost is None]
    if evidence.hosts and not there:
        return unread(CHECK, "every host was lost", provided=UNCHANGED, limit=limit, source=SOURCE)
    server = next((machine for machine in there if machine.role == "server"), None)
    windows = (
        [("", evidence.host_window)]
        if not there
        else [(f"{machine.name}: ", machine.host_window) for machine in there]
    )
    if any(window is None for _, window in windows):
        return unread(CHECK, "the host was not sampled", provided=UNCHANGED, limit=limit, source=SOURCE)
    seen = evidence if server is None else _seen_from(evidence, server)
    slower = _clock(seen, limits)
    changes = [f"{name}{text}" for name, window in windows if window is not None for text in _changed(window)]
    unread_ = [] if slower is not None else ["the CPU clock under load"]
    unread_ += sorted({what for _, window in windows if window is not None for what in _unread(window)})
    bias: dict[str, Bias] = {}
    if slower is not None and slower.share > 0:
        down = lost(slower.drop * slower.share)
        rate = both(THROUGHPUT, up=down) if saturating(evidence) else {}
        bias = together(rate, both(TIMES, down=down), both(CPU, down=down))
    conditions = [UNCHANGED_CLOCK] if slower is None else []
    conditions += [UNCHANGED] if changes else []
    texts = ([slower.text] if bias and slower is not None else []) + changes or ["nothing changed"]
    return Finding(
        check=CHECK,
        code="slower_clock" if bias else "changed" if changes else "unread" if unread_ else "ok",
        bias=bias,
        provided=" and ".join(conditions),
        value=None if slower is None else slower.drop,
        limit=limit,
        reason="; ".join(texts) + (f"; not readable: {', '.join(unread_)}" if unread_ else ""),
        assumption="the rate of a busy server follows its clock" if bias else "",
        advice="check cooling, free memory and `dmesg`, then repeat" if bias or changes else "",
        source=SOURCE,
        outside=bool(bias),
    )


UNCHANGED = "the host did not change"
UNCHANGED_CLOCK = "the CPU clock was level"


def _seen_from(evidence: Evidence, one: HostEvidence) -> Evidence:
    return evidence.model_copy(
        update={"hosts": (), "host_window": one.host_window, "host_rows": one.host_rows}
    )


def _changed(window: HostWindow) -> list[str]:
    changes = []
    if window.swap_in_bytes:
        changes.append(f"{number(window.swap_in_bytes / 2**20)} MiB swapped in")
    if window.kernel_log_lines:
        changes.append(f"{number(window.kernel_log_lines)} new warnings in the kernel log")
    if window.sysctls_changed:
        changes.append(f"changed kernel settings: {', '.join(window.sysctls_changed[:5])}")
    return changes


def _unread(window: HostWindow) -> list[str]:
    read = {
        "swap": window.swap_in_bytes,
        "kernel log": window.kernel_log_lines,
        "kernel settings": window.sysctls_changed,
    }
    return [what for what, value in read.items() if value is None]


def window_mhz(evidence: Evidence) -> list[float]:
    """CPU clock (MHz) in the full, busy seconds; empty where the kernel does not report it."""
    return [row.mhz for row in _window_rows(evidence) if row.mhz is not None and _is_busy(row)]


def _window_rows(evidence: Evidence) -> list[HostRow]:
    engine = evidence.engine
    window = engine.window if engine is not None else None
    if window is None:
        return []
    end_ms = window.opened_ms + window.duration_s * 1000
    return [
        row
        for row in evidence.host_rows
        if row.t_ms - row.duration_ms >= window.opened_ms and row.t_ms <= end_ms
    ]


def _is_busy(row: HostRow) -> bool:
    return row.server_cpus_busy is None or row.server_cpus_busy >= BUSY_SHARE


class Slower(NamedTuple):
    drop: float
    share: float
    text: str


def _clock(evidence: Evidence, limits: HostLimits) -> Slower | None:
    window, rows, whole = evidence.host_window, window_mhz(evidence), _window_rows(evidence)
    near_edges = whole[:1] + whole[-1:]
    edges = [] if window is None else [mhz for mhz in (window.mhz_open, window.mhz_close) if mhz]
    if not all(_is_busy(row) for row in near_edges):
        edges = []
    if len(edges) < 2 and not rows:
        return None
    level = max([*rows, *edges])
    floor = (1 - limits.host_frequency_drop) * level
    low = [mhz for mhz in rows if mhz < floor]
    if len(low) > max(1.0, LOW_SHARE * len(rows)):
        drop = 1 - min(low) / level
        text = f"CPU clock down {percent(drop)} to {number(min(low))} MHz for {len(low)} of {len(rows)} s"
        return Slower(drop, len(low) / len(rows), text)
    if len(edges) == 2 and edges[1] < (1 - limits.host_frequency_drop) * edges[0]:
        drop = 1 - edges[1] / edges[0]
        return Slower(drop, 1.0, f"CPU clock down {percent(drop)} to {number(edges[1])} MHz")
    return Slower(0.0, 0.0, "")
