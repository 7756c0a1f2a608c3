"""host: did the host itself change during the window. Must not know what ran on it."""

from __future__ import annotations

from prony.evidence.host import HostRow
from prony.evidence.hosts import HostEvidence
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, Share, check
from prony.judge.finding import Finding, Status, unknown, worst
from prony.judge.load_hosts import named
from prony.numbers import number, percent

CHECK = "host"
SOURCE = "krun"
LOW_SHARE = 0.1
"""Share of the window's seconds with a lower clock up to which nothing is said, or one second: such a reading
may have fallen between two requests.
"""


BUSY_SHARE = 0.75
"""Of the server's CPUs, where that is known: the clock of an idle CPU (powersave) is not a busy one's."""


class HostLimits(DeclaredLimits):
    host_frequency_drop: Share = 0.05
    """Allowed drop of the CPU clock, within the window and between trials that are compared."""


@check(HostLimits, order=50)
def host(evidence: Evidence, limits: HostLimits) -> Finding:
    """CPU clock, swap-ins, kernel log, changed kernel settings; of each host of the trial."""
    if not evidence.hosts:
        return _of_one(evidence, limits)
    found = [
        (one.name, _of_one(_seen_from(evidence, one), limits, clock=one.role == "server"))
        for one in evidence.hosts
        if one.lost is None
    ]
    if not found:
        return unknown(CHECK, "every host was lost", source=SOURCE)
    status = worst(*(finding.status for _, finding in found))
    first = next(finding for _, finding in found if finding.status is status)
    reason = named(found) if status is not Status.VALID else first.reason
    return first.model_copy(update={"reason": reason, "advice": first.advice})


def _seen_from(evidence: Evidence, one: HostEvidence) -> Evidence:
    """One host of several, as if it were the only one."""
    return evidence.model_copy(
        update={"hosts": (), "host_window": one.host_window, "host_rows": one.host_rows}
    )


def _of_one(evidence: Evidence, limits: HostLimits, *, clock: bool = True) -> Finding:
    """`clock` False: of a load host, whose clock moves no figure as long as its CPUs have room (`client`)."""
    allowed = percent(limits.host_frequency_drop)
    limit = f"CPU clock within {allowed}, no swap, no kernel warnings, no changed settings"
    window = evidence.host_window
    if window is None:
        return unknown(CHECK, "the host was not sampled", limit=limit, source=SOURCE)
    bad: list[str] = []
    unread: list[str] = []
    slower = _clock(evidence, limits) if clock else ""
    if slower is None:
        unread.append("CPU clock under load")
    elif slower:
        bad.append(slower)
    if window.swap_in_bytes is None:
        unread.append("swap")
    elif window.swap_in_bytes > 0:
        bad.append(f"{number(window.swap_in_bytes / 2**20)} MiB swapped in")
    if window.kernel_log_lines is None:
        unread.append("kernel log")
    elif window.kernel_log_lines > 0:
        bad.append(f"{number(window.kernel_log_lines)} new warnings in the kernel log")
    if window.sysctls_changed is None:
        unread.append("kernel settings")
    elif window.sysctls_changed:
        bad.append(f"changed kernel settings: {', '.join(window.sysctls_changed[:5])}")
    said = "; ".join(bad) or "nothing changed"
    if unread:
        said += f"; not readable: {', '.join(unread)}"
    status = Status.SUSPECT if bad else Status.UNKNOWN if unread else Status.VALID
    return Finding(
        check=CHECK,
        status=status,
        value=float(len(bad)),
        limit=limit,
        reason=said,
        advice="check cooling, free memory and `dmesg`, then repeat" if bad else "",
        source=SOURCE,
    )


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


def _clock(evidence: Evidence, limits: HostLimits) -> str | None:
    """What is wrong with the CPU clock; empty where nothing is, None where it was not read of busy CPUs."""
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
        drop = percent(1 - min(low) / level)
        return f"CPU clock down {drop} to {number(min(low))} MHz for {len(low)} of {len(rows)} s"
    if len(edges) == 2 and edges[1] < (1 - limits.host_frequency_drop) * edges[0]:
        return f"CPU clock down {percent(1 - edges[1] / edges[0])} to {number(edges[1])} MHz"
    return ""
