"""The kernel's TCP counters of this network namespace."""

from __future__ import annotations

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
    """Counters since the namespace's creation; None where any is unreadable."""
    files = {file: groups(read_text(root / "proc/net" / file) or "") for file in ("snmp", "netstat")}
    counts = {field: files[file].get(group, {}).get(name) for field, (file, group, name) in FIELDS.items()}
    return None if None in counts.values() else TcpCounts.model_validate(counts)


def between(first: TcpCounts | None, last: TcpCounts | None) -> TcpCounts | None:
    """Differences between two readings; None when either is unknown."""
    if first is None or last is None:
        return None
    return TcpCounts(**{field: getattr(last, field) - getattr(first, field) for field in FIELDS})


def groups(text: str) -> dict[str, dict[str, int]]:
    """Group -> name -> counter of `snmp` or `netstat`: pairs of lines (names, values) that start with the
    group.
    """
    lines = [line.split() for line in text.splitlines() if line]
    return {
        names[0].rstrip(":"): {
            name: int(value)
            for name, value in zip(names[1:], values[1:], strict=False)
            if value.lstrip("-").isdecimal()
        }
        for names, values in zip(lines[::2], lines[1::2], strict=False)
    }
