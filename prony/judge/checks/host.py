"""host: did the host itself change during the window. Must not know what ran on it."""

from __future__ import annotations

from typing import NamedTuple

from prony.evidence.host import HostRow, HostWindow
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, Share, check
from prony.judge.effects import cpu_spent
from prony.judge.finding import Finding, unread
from prony.numbers import number, percent

CHECK = "host"
SOURCE = "krun"
SAME = "the host stayed as it was"
SAME_CLOCK = "the CPU clock stayed the same"
LOW_SHARE = 0.1
"""Share of the window's seconds with a lower clock up to which nothing is said, or one second: such a reading
may have fallen between two requests.
"""
BUSY_SHARE = 0.75
"""Of the server's CPUs, where that is known: the clock of an idle CPU (powersave) is not a busy one's."""


class HostLimits(DeclaredLimits):
    host_frequency_drop: Share = 0.05
    """Drop of the CPU clock from which it is counted, within the window and between trials that are compared.
    """


class Noted(NamedTuple):
    """What changed, or could not be read, and what figures then rest on."""

    code: str
    text: str
    provided: str


@check(HostLimits, order=50)
def host(evidence: Evidence, limits: HostLimits) -> Finding:
    """CPU clock of the server's host; swap-ins, kernel log and changed kernel settings of each host."""
    limit = (
        f"CPU clock within {percent(limits.host_frequency_drop)}, nothing swapped in, no kernel warning, "
        "no changed setting"
    )
    there = [one for one in evidence.hosts if one.lost is None]
    windows = [(f"{one.name}: ", one.host_window) for one in there if one.host_window is not None]
    if not evidence.hosts and evidence.host_window is not None:
        windows = [("", evidence.host_window)]
    if not windows:
        return unread(CHECK, "the host was not sampled", provided=SAME, limit=limit, source=SOURCE)
    server = next((one for one in there if one.role == "server"), None)
    drop, said = 0.0, ""
    notes = [note for name, window in windows for note in _changes(name, window)]
    if server is not None or not evidence.hosts:
        # Of a load host the clock moves no figure as long as its CPUs have room (`client`).
        own = {} if server is None else {"host_window": server.host_window, "host_rows": server.host_rows}
        clock = _clock(evidence.model_copy(update=own), limits)
        if clock is None:
            notes.append(Noted("unread", "CPU clock under load not readable", SAME_CLOCK))
        else:
            drop, said = clock
    bad = [note for note in notes if note.code != "unread"]
    code = "clock" if drop else next((note.code for note in (*bad, *notes)), "ok")
    return Finding(
        check=CHECK,
        code=code,
        bias=cpu_spent(evidence, drop),
        provided=" and ".join(dict.fromkeys(note.provided for note in (*bad, *notes))),
        assumption="the server's work went as fast as the clock" if drop else "",
        value=drop,
        limit=limit,
        reason="; ".join([said] * bool(said) + [note.text for note in notes]) or "nothing changed",
        advice="check cooling, free memory and `dmesg`, then repeat" if drop or bad else "",
        source=SOURCE,
        outside=drop > 0,
    )


def _changes(name: str, window: HostWindow) -> list[Noted]:
    """Of one host: what changed, or could not be read."""
    swapped, lines, changed = window.swap_in_bytes, window.kernel_log_lines, window.sysctls_changed
    notes = []
    if swapped:
        text = f"{name}{number(swapped / 2**20)} MiB swapped in"
        notes.append(Noted("swap", text, "nothing of the server was swapped out"))
    if lines:
        text = f"{name}{number(lines)} new warnings in the kernel log"
        notes.append(Noted("kernel_log", text, "the kernel's warnings did no harm"))
    if changed:
        text = f"{name}changed kernel settings: {', '.join(changed[:5])}"
        notes.append(Noted("settings", text, "the changed settings did no harm"))
    readings = {"swap": swapped, "kernel log": lines, "kernel settings": changed}
    if untold := [what for what, reading in readings.items() if reading is None]:
        notes.append(Noted("unread", f"{name}{', '.join(untold)} not readable", SAME))
    return notes


def window_mhz(evidence: Evidence) -> list[float]:
    """The clock of the server's CPUs in each full second of the window in which they were busy, in MHz; empty
    where the kernel does not tell it (most virtual machines).
    """
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


def _clock(evidence: Evidence, limits: HostLimits) -> tuple[float, str] | None:
    """By how much the CPU clock was lower over the window, as a mean, and in words; None where it was not
    read of busy CPUs.
    """
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
        text = f"CPU clock down to {number(min(low))} MHz for {len(low)} of {len(rows)} s"
        return sum(1 - mhz / level for mhz in low) / len(rows), text
    if len(edges) == 2 and edges[1] < (1 - limits.host_frequency_drop) * edges[0]:
        drop = 1 - edges[1] / edges[0]
        return drop, f"CPU clock down {percent(drop)} to {number(edges[1])} MHz"
    return 0.0, ""
