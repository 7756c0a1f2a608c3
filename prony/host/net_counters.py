"""The kernel's counters of TCP (this network namespace) and of packets in soft interrupts (all)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from prony.evidence.host import TcpCounts
from prony.host.proc import ROOT, read_text

FIELDS = {
    "segments_out": ("snmp", "Tcp", "OutSegs"),
    "retransmitted": ("snmp", "Tcp", "RetransSegs"),
    "syn_retransmitted": ("netstat", "TcpExt", "TCPSynRetrans"),
    "listen_overflows": ("netstat", "TcpExt", "ListenOverflows"),
    "listen_drops": ("netstat", "TcpExt", "ListenDrops"),
    "delayed_acks": ("netstat", "TcpExt", "DelayedACKs"),
}
"""Field -> file, group and the kernel's name (Documentation/networking/snmp_counter.rst)."""


def tcp_counts(root: Path = ROOT) -> TcpCounts | None:
    """TCP counters since the namespace's creation; None where any is unreadable."""
    files = {file: groups(read_text(root / "proc/net" / file) or "") for file in ("snmp", "netstat")}
    counts = {field: files[file].get(group, {}).get(name) for field, (file, group, name) in FIELDS.items()}
    return None if None in counts.values() else TcpCounts.model_validate(counts)


def between(first: TcpCounts | None, last: TcpCounts | None) -> TcpCounts | None:
    """The difference of two readings; None when either is unknown."""
    if first is None or last is None:
        return None
    return TcpCounts(**{field: getattr(last, field) - getattr(first, field) for field in FIELDS})


def summed(parts: Sequence[TcpCounts | None]) -> TcpCounts | None:
    """The sum of readings; None when any is unknown."""
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    return TcpCounts(**{field: sum(getattr(part, field) for part in known) for field in FIELDS})


def groups(text: str) -> dict[str, dict[str, int]]:
    """Group -> name -> counter of `snmp` or `netstat`: pairs of lines (names, values)."""
    lines = [line.split() for line in text.splitlines() if line]
    return {
        names[0].rstrip(":"): {
            name: int(value)
            for name, value in zip(names[1:], values[1:], strict=False)
            if value.lstrip("-").isdecimal()
        }
        for names, values in zip(lines[::2], lines[1::2], strict=False)
    }


PROCESSED, DROPPED, CPU = 0, 1, 12
"""Columns: packets handled, packets dropped by a full backlog, CPU (from Linux 5.10; before, the row number).
"""


def packets_by_cpu(root: Path = ROOT) -> dict[int, int] | None:
    """CPU -> packets handled since boot (wraps at 32 bits); None when unreadable."""
    return _by_cpu(root, PROCESSED)


def dropped_by_cpu(root: Path = ROOT) -> dict[int, int] | None:
    """CPU -> packets dropped by a full backlog, like `packets_by_cpu`."""
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
    """The increase of a CPU's counter; None if either reading lacks it."""
    if before is None or after is None or cpu not in before or cpu not in after:
        return None
    return (after[cpu] - before[cpu]) % 2**32
