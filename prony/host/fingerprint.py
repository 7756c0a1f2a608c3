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
                rows.append((field, gib(mine), gib(other)))
        elif mine != other:
            rows.append((field, _shown(mine), _shown(other)))
    return rows


def _shown(value: object) -> str:
    return "unknown" if value is None else str(value)


def gib(size_bytes: int) -> str:
    return f"{size_bytes / 1024**3:.1f} GiB"
