"""Utilisation of the server's CPUs over the window."""

from __future__ import annotations

import math

from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, Share


class ServerCpuLimits(DeclaredLimits):
    bound_cpu_min: Share = 0.75
    """Server CPU ÷ granted CPU from which a server is CPU-bound (the-benchmarker's saturation rule)."""
    bound_thread_min: Share = 0.90
    """CPU ÷ wall time of the busiest thread from which it bounds the server (at most 11 % left). Higher than
    `bound_cpu_min`: no other thread can take the requests of one that waits.
    """


def server_cpu_share(evidence: Evidence) -> float | None:
    """Server CPU ÷ (granted CPUs x wall time)."""
    window = evidence.server_window
    if window is None or window.cpu_s is None:
        return None
    granted_s = window.wall_s * window.granted_cpus
    return window.cpu_s / granted_s if granted_s > 0 else None


def server_cpus(evidence: Evidence) -> int:
    window, sides = evidence.server_window, evidence.partition
    cpus = len(sides.server) if sides is not None else 0
    if window is not None:
        cpus = cpus or len(window.cpus) or math.ceil(window.granted_cpus)
    return max(1, cpus)


def server_cpu_used(evidence: Evidence) -> float | None:
    """Server CPU ÷ (CPUs it may run on x wall time) over the window."""
    window, share = evidence.server_window, server_cpu_share(evidence)
    return None if window is None or share is None else share * window.granted_cpus / server_cpus(evidence)


def busiest_server_thread_share(evidence: Evidence) -> float | None:
    """CPU ÷ wall time of the server's busiest thread, capped at 1: clock ticks are coarse."""
    window = evidence.server_window
    if window is None or window.busiest_thread is None:
        return None
    wall_s = window.busiest_thread.wall_s or window.wall_s
    return min(1.0, window.busiest_thread.cpu_s / wall_s) if wall_s > 0 else None


def is_exhausted(evidence: Evidence, limits: ServerCpuLimits) -> bool | None:
    """Whether its CPU or busiest thread bounds the server; None where neither was read."""
    share, thread = server_cpu_share(evidence), busiest_server_thread_share(evidence)
    if share is None and thread is None:
        return None
    return (share or 0.0) >= limits.bound_cpu_min or (thread or 0.0) >= limits.bound_thread_min


def headroom(evidence: Evidence, *, by_thread: bool) -> float | None:
    """Possible rise as a share: 1/u - 1, u the utilisation (or, `by_thread`, the busiest thread's)."""
    thread = busiest_server_thread_share(evidence) if by_thread else None
    shares = (server_cpu_share(evidence), thread)
    busy = max((share for share in shares if share is not None), default=0.0)
    return 1 / min(busy, 1.0) - 1 if busy > 0 else None
