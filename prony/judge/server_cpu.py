"""How busy the server's CPUs were over the window. Must not know what follows from it: `bound_by` names the
bottleneck, `client` asks whether a busy client could have moved the throughput.
"""

from __future__ import annotations

from prony.evidence.trial import Evidence


def server_cpu_share(evidence: Evidence) -> float | None:
    """Server CPU ÷ (granted CPUs x wall time) over the window."""
    window = evidence.server_window
    if window is None or window.cpu_s is None:
        return None
    granted_s = window.wall_s * window.granted_cpus
    return window.cpu_s / granted_s if granted_s > 0 else None


def busiest_server_thread_share(evidence: Evidence) -> float | None:
    """CPU ÷ wall time of the server's busiest thread over the window, at most 1: clock ticks are coarse."""
    window = evidence.server_window
    if window is None or window.busiest_thread is None or window.wall_s <= 0:
        return None
    return min(1.0, window.busiest_thread.cpu_s / window.wall_s)
