"""Packets handled in soft interrupts per CPU, from /proc/net/softnet_stat, of all network namespaces."""

from __future__ import annotations

from pathlib import Path

from prony.host.proc import ROOT, read_text

PROCESSED, DROPPED, CPU = 0, 1, 12
"""Columns: packets handled, packets dropped by a full backlog, CPU (from Linux 5.10; before, the row number).
"""


def packets_by_cpu(root: Path = ROOT) -> dict[int, int] | None:
    """CPU -> packets handled since boot (wraps at 32 bits); None when unreadable."""
    return _by_cpu(root, PROCESSED)


def dropped_by_cpu(root: Path = ROOT) -> dict[int, int] | None:
    """CPU -> packets dropped since boot by a full backlog, like `packets_by_cpu`."""
    return _by_cpu(root, DROPPED)


def _by_cpu(root: Path, column: int) -> dict[int, int] | None:
    text = read_text(root / "proc/net/softnet_stat")
    if not text:
        return None
    try:
        rows = [[int(word, 16) for word in line.split()] for line in text.splitlines()]
    except ValueError:
        return None
    return {row[CPU] if len(row) > CPU else at: row[column] for at, row in enumerate(rows) if row}


def rise(before: dict[int, int] | None, after: dict[int, int] | None, cpu: int) -> int | None:
    """Packets of this CPU between two readings; None if either lacks it."""
    if before is None or after is None or cpu not in before or cpu not in after:
        return None
    return (after[cpu] - before[cpu]) % 2**32
