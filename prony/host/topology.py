"""CPU topology: cores, NUMA nodes, and the CPUs this process may use."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from prony.host.proc import ROOT, key_values, parse_cpus, read_cpus, read_int, read_text


@dataclass(frozen=True, slots=True)
class Core:
    """A physical core: hardware threads, package and NUMA node (0 if not reported)."""

    cpus: tuple[int, ...]
    package: int = 0
    node: int = 0


@dataclass(frozen=True, slots=True)
class Topology:
    """The online CPUs, grouped by core, in the order of their first CPU."""

    cores: tuple[Core, ...]
    complete: bool = True
    """False without reported siblings: each CPU then counts as a core."""

    @property
    def cpus(self) -> tuple[int, ...]:
        return tuple(sorted(cpu for core in self.cores for cpu in core.cpus))

    @property
    def smt(self) -> bool:
        return any(len(core.cpus) > 1 for core in self.cores)


def topology(root: Path = ROOT) -> Topology:
    """Read from /sys/devices/system; else every CPU of /proc/cpuinfo counts as a core."""
    base = root / "sys/devices/system/cpu"
    online = read_cpus(base / "online")
    if online is None:
        text = read_text(root / "proc/cpuinfo") or ""
        listed = [
            line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("processor")
        ]
        online = tuple(sorted(int(number) for number in listed if number.isdecimal()))
    nodes = _nodes(root)
    cores: dict[tuple[int, ...], Core] = {}
    complete = bool(online)
    for cpu in online:
        place = base / f"cpu{cpu}/topology"
        siblings = read_cpus(place / "core_cpus_list") or read_cpus(place / "thread_siblings_list")
        if siblings is None:
            complete = False
            siblings = (cpu,)
        members = tuple(sibling for sibling in siblings if sibling in online) or (cpu,)
        if members not in cores:
            package = read_int(place / "physical_package_id")
            # arm64 guests report -1 for an unknown package.
            cores[members] = Core(members, max(0, package or 0), nodes.get(cpu, 0))
    return Topology(tuple(cores[members] for members in sorted(cores)), complete)


def siblings(cpus: Collection[int], root: Path = ROOT) -> frozenset[int]:
    """The other hardware threads of their cores."""
    cores = [set(core.cpus) for core in topology(root).cores if set(core.cpus) & set(cpus)]
    return frozenset[int]().union(*cores) - frozenset(cpus)


def _nodes(root: Path) -> dict[int, int]:
    node_of: dict[int, int] = {}
    base = root / "sys/devices/system/node"
    for node in read_cpus(base / "online") or ():
        for cpu in read_cpus(base / f"node{node}/cpulist") or ():
            node_of[cpu] = node
    return node_of


def numa_nodes(root: Path = ROOT) -> int | None:
    online = read_cpus(root / "sys/devices/system/node/online")
    return len(online) if online else None


def allowed_cpus(root: Path = ROOT) -> tuple[int, ...]:
    """The main thread's affinity mask; before pinning: `prony.host.affinity.granted_cpus`."""
    text = read_text(root / "proc/self/status")
    listed = key_values(text).get("Cpus_allowed_list") if text is not None else None
    if listed:
        return parse_cpus(listed)
    if root == ROOT:
        return tuple(sorted(os.sched_getaffinity(0)))
    return topology(root).cpus
