"""The fingerprint of a host and its software."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from prony.evidence.host import Fingerprint
from prony.host import hardware
from prony.host.cgroup import cpu_quota
from prony.host.hardware import read_sysctls
from prony.host.proc import PAGE_BYTES, ROOT, read_text
from prony.host.topology import numa_nodes, topology

_NOT_IN_KEY = {"key", "hostname"}
_MEMORY_STEP_BYTES = 256 * 1024 * 1024
"""Rounding of memory: the kernel's reserve varies between boots without an effect on figures."""


def fingerprint(software: dict[str, str], *, root: Path = ROOT) -> Fingerprint:
    """Reads the host in a few milliseconds. `software`: versions such as `{"prony": "0.1.0"}`."""
    cores = topology(root)
    cpus = cores.cpus
    info = hardware.cpu_info(root)
    memory = hardware.memory(root)
    system = os.uname()
    architecture = system.machine
    without_key = Fingerprint(
        key="",
        hostname=read_text(root / "proc/sys/kernel/hostname") or system.nodename,
        architecture=architecture,
        cpu_model=hardware.cpu_model(info, architecture, root),
        cpus=len(cpus) or os.cpu_count() or 1,
        cores=len(cores.cores) if cores.complete else None,
        sockets=len({core.package for core in cores.cores}) if cores.complete else None,
        smt=cores.smt if cores.complete else None,
        numa_nodes=numa_nodes(root),
        cpu_max_mhz=hardware.max_mhz(cpus, root),
        governor=hardware.governor(cpus, root),
        turbo=hardware.turbo(root),
        caches=hardware.caches(cpus, root),
        memory_bytes=memory.get("MemTotal") or os.sysconf("SC_PHYS_PAGES") * PAGE_BYTES,
        swap_bytes=memory.get("SwapTotal"),
        kernel=read_text(root / "proc/sys/kernel/osrelease") or system.release,
        os=hardware.os_name(root),
        hypervisor=_hypervisor(info, root),
        clocksource=hardware.clocksource(root),
        mitigations=hardware.mitigations(root),
        thp=hardware.transparent_huge_pages(root),
        cgroup_cpu_quota=cpu_quota(root),
        software=dict(sorted(software.items())),
        sysctls=read_sysctls(root),
    )
    return without_key.model_copy(update={"key": key_of(without_key)})


def _hypervisor(info: dict[str, str], root: Path) -> str | None:
    below, inside = hardware.hypervisor(info, root), hardware.container(root)
    if inside is None:
        return below
    return f"{below or 'unknown'}, in a container ({inside})"


def key_of(fingerprint: Fingerprint) -> str:
    """A 12-digit hexadecimal hash over every field that can change a figure."""
    fields = fingerprint.model_dump(exclude=_NOT_IN_KEY)
    fields["memory_bytes"] = round(fingerprint.memory_bytes / _MEMORY_STEP_BYTES)
    hosts = fields.pop("hosts")
    if hosts:  # keys of a single host stay as they were
        fields["hosts"] = sorted(hosts.values())  # host names change no figure
    text = json.dumps(fields, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


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
        ("Memory", _gib(f.memory_bytes) + (f", swap {_gib(f.swap_bytes)}" if f.swap_bytes else no_swap)),
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


def differences(a: Fingerprint, b: Fingerprint) -> list[tuple[str, str, str]]:
    """(field, value in a, value in b) of all differences in the key; tables per entry."""
    rows: list[tuple[str, str, str]] = []
    left, right = a.model_dump(exclude=_NOT_IN_KEY), b.model_dump(exclude=_NOT_IN_KEY)
    for field in left:
        mine, other = left[field], right[field]
        if isinstance(mine, dict) and isinstance(other, dict):
            for name in sorted(mine.keys() | other.keys()):
                if mine.get(name) != other.get(name):
                    rows.append(
                        (f"{field}.{name}", str(mine.get(name, "absent")), str(other.get(name, "absent")))
                    )
        elif field == "memory_bytes":
            if round(mine / _MEMORY_STEP_BYTES) != round(other / _MEMORY_STEP_BYTES):
                rows.append((field, _gib(mine), _gib(other)))
        elif mine != other:
            rows.append((field, _shown(mine), _shown(other)))
    return rows


def _shown(value: object) -> str:
    return "unknown" if value is None else str(value)


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
    return ", ".join([f"{mitigated} mitigated", f"{vulnerable} left open", *chosen])


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 1024**3:.1f} GiB"
