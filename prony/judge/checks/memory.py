"""memory: did the server's memory level off, and was garbage collected within the window."""

from __future__ import annotations

from itertools import pairwise
from statistics import median

from prony.evidence.server import JvmSnapshot
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, NotNegative, Positive, Share, check
from prony.judge.finding import Finding, no_window, unread
from prony.judge.window import measured
from prony.numbers import number, percent

CHECK = "memory"
SOURCE = "a leak shows in memory hours before it shows in times; Blackburn et al. 2008 on heaps"
MIB = 2**20
LEAST_MIB = 8.0
"""Growth below this is the granularity of an allocator."""
THIRDS = 3
LEVEL = "the server's memory levels off"
COLLECTED = "garbage collection costs nothing"
EVEN_SHARE = 0.15
"""Least share of the growth in each third of the window, if it continues; a filling heap levels off."""


class MemoryLimits(DeclaredLimits):
    memory_growth: NotNegative = 0.25
    """Growth of resident memory, in every third of the window, ÷ its start, that flags a short window."""
    memory_growth_long: NotNegative = 0.05
    """The same for windows from `memory_long_s`, in which a heap had time to level off."""
    memory_long_s: Positive = 60.0
    memory_uncollected: Share = 0.05
    """Growth of a JVM's heap ÷ its maximum that flags a window without a collection and its cost."""


@check(MemoryLimits, order=155)
def memory(evidence: Evidence, limits: MemoryLimits) -> Finding | None:
    """None where the server's processes are not known, and for a protocol that measures the start."""
    limit = (
        f"resident memory grows by less than {percent(limits.memory_growth)} "
        f"({percent(limits.memory_growth_long)} from {number(limits.memory_long_s)} s on), and a heap that "
        f"grows by {percent(limits.memory_uncollected)} of its maximum is collected"
    )
    window = measured(evidence)
    if window is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    if evidence.load.claim == "protocol" or (evidence.server_window is None and not evidence.server.owned):
        return None
    end_ms = window.opened_ms + window.duration_s * 1000
    rss = [
        row.server_rss_bytes
        for row in evidence.host_rows
        if row.server_rss_bytes is not None and window.opened_ms <= row.t_ms <= end_ms + row.duration_ms
    ]
    server = evidence.server_window
    opened, closed = (None, None) if server is None else (server.jvm_open, server.jvm_close)
    uncollected = _uncollected(opened, closed, window.duration_s, limits)
    if len(rss) < 2 * THIRDS and uncollected is None:
        reason = f"{len(rss)} readings of resident memory"
        return unread(CHECK, reason, provided=LEVEL, limit=limit, source=SOURCE)
    grown, reason = _growth(rss, closed or opened, window.duration_s)
    allowed = limits.memory_growth_long
    if window.duration_s < limits.memory_long_s:
        allowed = limits.memory_growth
    unseen = opened is None and closed is None and _may_have_a_heap(evidence)
    if grown >= allowed and unseen:
        reason += ", which may be a heap: the runtime could not be read"
        return unread(CHECK, reason, provided=LEVEL, limit=limit, source=SOURCE)
    parts = [reason] if grown >= allowed else []
    provided = [LEVEL] if parts else []
    advice = ["measure longer: a leak continues, a cache or a heap levels off"] if parts else []
    if uncollected is not None:
        parts.append(uncollected[0])
        advice.append(uncollected[1])
        provided.append(COLLECTED)
    return Finding(
        check=CHECK,
        code="ok" if not parts else "growing" if LEVEL in provided else "not_collected",
        provided=" and ".join(provided),
        value=grown,
        limit=limit,
        reason="; ".join(parts) or reason,
        advice="; ".join(advice),
        source=SOURCE,
    )


def _may_have_a_heap(evidence: Evidence) -> bool:
    server = evidence.server
    return server.runtime in {"jvm", "java"} or (not server.owned and not server.runtime)


def _growth(rss: list[int], jvm: JvmSnapshot | None, duration_s: float) -> tuple[float, str]:
    """Growth ÷ start (0 where it levelled off), and a sentence. A JVM touches its heap page by page: only
    growth beyond the committed size is a leak.
    """
    if len(rss) < 2 * THIRDS:
        return 0.0, f"{len(rss)} readings of resident memory"
    size = len(rss) // THIRDS
    levels = [median(rss[at : at + size]) for at in (0, (len(rss) - size) // 2, len(rss) - size)]
    first, last = rss[0], rss[-1]
    begun = first
    if jvm is not None:
        begun = max(first, jvm.heap_committed_bytes + jvm.non_heap_used_bytes)
    whole = last - begun
    span = f"from {number(first / MIB)} to {number(last / MIB)} MiB"
    if whole < LEAST_MIB * MIB:
        within = ", within its heap" if jvm is not None and last - first >= LEAST_MIB * MIB else ""
        return 0.0, f"resident memory {span}{within}"
    even = all(b - a >= EVEN_SHARE * (last - first) for a, b in pairwise(levels))
    if not even:
        return 0.0, f"resident memory {span}, and levelled off"
    per_min = (last - first) / MIB / duration_s * 60
    return whole / begun, f"resident memory grew through the whole window, {span}: {number(per_min)} MiB/min"


def _uncollected(
    opened: JvmSnapshot | None, closed: JvmSnapshot | None, duration_s: float, limits: MemoryLimits
) -> tuple[str, str] | None:
    if opened is None or closed is None or closed.gc_count != opened.gc_count:
        return None
    filled = closed.heap_used_bytes - opened.heap_used_bytes
    if closed.heap_max_bytes <= 0 or filled < limits.memory_uncollected * closed.heap_max_bytes:
        return None
    due_s = (closed.heap_max_bytes - closed.heap_used_bytes) / (filled / duration_s)
    return (
        f"no garbage collection in {number(duration_s)} s while the heap grew by {number(filled / MIB)} MiB: "
        "the figure lacks the cost of collecting",
        f"measure longer (a collection is due within {number(max(1.0, due_s))} s), or use a smaller heap",
    )
