"""host: did the host change during the window."""

from __future__ import annotations

from typing import NamedTuple

from prony.evidence.host import HostRow, HostWindow
from prony.evidence.hosts import HostEvidence
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, Positive, Share, check
from prony.judge.effects import both, cpu_lost, lost, saturating, together
from prony.judge.finding import CPU, THROUGHPUT, TIMES, Bias, Finding, unread
from prony.judge.server_cpu import server_cpu_used
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
    host_major_faults_per_s: Positive = 1.0
    """Major faults of the server per second from which its memory was paged out (10 ms each: 1 % of time)."""


@check(HostLimits, order=50)
def host(evidence: Evidence, limits: HostLimits) -> Finding:
    """Clock and memory of the server's host; swap-ins, major faults, kernel log, settings: conditions."""
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
    is_slower, short = bool(bias), _short_of_memory(seen)
    bias = together(bias, short)
    faults = _major_faults(evidence, limits)
    conditions = [UNCHANGED_CLOCK] if slower is None else []
    conditions += [UNCHANGED] if changes else []
    conditions += [IN_MEMORY] if faults else []
    texts = ([slower.text] if is_slower and slower is not None else []) + changes + faults
    if short and seen.host_window is not None:
        texts.append(f"tasks waited for memory for {percent(_stalled(seen.host_window))} of the window")
    code = "slower_clock" if is_slower else "short_of_memory" if short or faults else ""
    return Finding(
        check=CHECK,
        code=code or ("changed" if changes else "unread" if unread_ else "ok"),
        bias=bias,
        provided=" and ".join(conditions),
        value=None if slower is None else slower.drop,
        limit=limit,
        reason="; ".join(texts or ["nothing changed"])
        + (f"; not readable: {', '.join(unread_)}" if unread_ else ""),
        assumption="the rate of a busy server follows its clock" if is_slower else "",
        advice="check cooling, free memory, memory.high and `dmesg`, then repeat" if texts else "",
        source=SOURCE,
        outside=is_slower,
    )


UNCHANGED = "the host did not change"
UNCHANGED_CLOCK = "the CPU clock was level"
IN_MEMORY = "the server's pages were in memory"


def _stalled(window: HostWindow) -> float:
    return min(1.0, (window.memory_stall_s or 0.0) / window.wall_s) if window.wall_s > 0 else 0.0


def _short_of_memory(evidence: Evidence) -> dict[str, Bias]:
    """As if the server stood still while any task waited for memory; reclaiming also costs CPU time."""
    window = evidence.host_window
    share, used = 0.0 if window is None else _stalled(window), server_cpu_used(evidence)
    bias = together(cpu_lost(evidence, share), both(CPU, down=lost(share / used) if used else 0.0))
    return bias if any(effect.counts for effect in bias.values()) else {}


def _major_faults(evidence: Evidence, limits: HostLimits) -> list[str]:
    window = evidence.server_window
    if window is None or not window.major_faults or window.wall_s <= 0:
        return []
    per_s = window.major_faults / window.wall_s
    if per_s < limits.host_major_faults_per_s:
        return []
    many = number(window.major_faults)
    return [f"the server read {many} pages from disk or swap (major faults), {number(per_s)} per second"]


def _seen_from(evidence: Evidence, of_host: HostEvidence) -> Evidence:
    return evidence.model_copy(
        update={"hosts": (), "host_window": of_host.host_window, "host_rows": of_host.host_rows}
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
