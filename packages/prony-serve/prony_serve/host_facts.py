"""A host's fingerprint as labels and values."""

from __future__ import annotations

from prony.evidence.host import Fingerprint
from prony.host.fingerprint import gib


def describe(fingerprint: Fingerprint) -> list[tuple[str, str]]:
    """(label, value) for reports, most important first; unread facts are `unknown`."""
    f = fingerprint
    no_swap = ", no swap" if f.swap_bytes == 0 else ", swap unknown"
    rows = [
        ("Host", f.hostname),
        ("CPU", f"{f.cpu_model} ({f.architecture})"),
        ("CPUs", _cpu_counts(f)),
        ("Frequency", _frequency(f)),
        ("Caches", ", ".join(f"{name} {size}" for name, size in f.caches.items()) or "unknown"),
        ("Memory", gib(f.memory_bytes) + (f", swap {gib(f.swap_bytes)}" if f.swap_bytes else no_swap)),
        ("Runs on", {"none": "bare metal", None: "unknown"}.get(f.hypervisor, str(f.hypervisor))),
        ("Kernel", f.kernel),
        ("System", f.os),
        ("Clock", f.clocksource or "unknown"),
        ("Huge pages", f.thp or "unknown"),
        ("Mitigations", _mitigations(f.mitigations)),
        ("CPU quota", "none" if f.cgroup_cpu_quota is None else f"{f.cgroup_cpu_quota:g} CPUs"),
    ]
    rows += [(name, version) for name, version in f.software.items()]
    rows += [(f"Host {name}", text) for name, text in f.hosts.items()]
    rows.append(("Fingerprint", f.key))
    return rows


def _cpu_counts(f: Fingerprint) -> str:
    parts = [f"{f.cpus}"]
    if f.cores is not None:
        parts.append(f"{f.cores} cores")
    if f.sockets is not None:
        parts.append(f"{f.sockets} socket{'s' if f.sockets != 1 else ''}")
    if f.smt is not None:
        parts.append("hardware threads share cores" if f.smt else "one hardware thread per core")
    if f.numa_nodes is not None and f.numa_nodes > 1:
        parts.append(f"{f.numa_nodes} NUMA nodes")
    return ", ".join(parts)


def _frequency(f: Fingerprint) -> str:
    highest = "highest unknown" if f.cpu_max_mhz is None else f"up to {f.cpu_max_mhz:.0f} MHz"
    turbo = {True: "on", False: "off", None: "unknown"}[f.turbo]
    return f"{highest}, governor {f.governor or 'unknown'}, turbo {turbo}"


def _mitigations(text: str | None) -> str:
    if text is None:
        return "unknown"
    parts = text.split("; ")
    vulnerable = sum(": Vulnerable" in part for part in parts)
    mitigated = sum(": Mitigation" in part for part in parts)
    chosen = [part for part in parts if part.startswith("mitigations=")]
    return ", ".join([f"{mitigated} mitigated", f"{vulnerable} unmitigated", *chosen])
