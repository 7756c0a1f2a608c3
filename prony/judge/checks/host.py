"""host: did the host itself change during the window. Must not know what ran on it."""

from __future__ import annotations

from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, Share, check
from prony.judge.finding import Finding, Status
from prony.judge.words import number, percent, unknown

CHECK = "host"
SOURCE = "krun"


class HostLimits(DeclaredLimits):
    host_frequency_drop: Share = 0.05
    """Allowed drop of the CPU clock from the window's start to its end."""


@check(HostLimits, order=50)
def host(evidence: Evidence, limits: HostLimits) -> Finding:
    """CPU clock, swap-ins, kernel log, changed kernel settings."""
    clock = percent(limits.host_frequency_drop)
    limit = f"CPU clock within {clock}, no swap, no kernel warnings, no changed settings"
    window = evidence.host_window
    if window is None:
        return unknown(CHECK, "the host was not sampled", limit=limit, source=SOURCE)
    bad: list[str] = []
    unread: list[str] = []
    if window.mhz_open is None or window.mhz_close is None or window.mhz_open <= 0:
        unread.append("CPU clock")
    elif window.mhz_close < (1 - limits.host_frequency_drop) * window.mhz_open:
        drop = 1 - window.mhz_close / window.mhz_open
        bad.append(f"CPU clock down {percent(drop)} to {number(window.mhz_close)} MHz")
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
