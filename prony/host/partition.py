"""Disjoint CPU sets for the server under test and for the client."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from prony.errors import UsageError
from prony.evidence.host import CpuPartition
from prony.host.affinity import granted_cpus
from prony.host.proc import cpus_text
from prony.host.topology import Core, Topology
from prony.host.topology import topology as read_topology

CLIENT_SHARE = 0.25
"""A response costs most servers several times the client's 5 µs."""

SMALLEST_NODE_CORES = 4
"""Fewest cores of a NUMA node for server and client; with fewer all nodes are used."""


def partition(
    *,
    server: Sequence[int] | None = None,
    client: Sequence[int] | None = None,
    services: bool = False,
    topology: Topology | None = None,
    allowed: Collection[int] | None = None,
) -> CpuPartition:
    """Divides the allowed CPUs (default: those granted) between server and client: cores stay whole, the
    client gets about a quarter (at least one), both use a single NUMA node if it is large enough. Given sets
    are used unchanged. `shared`: a core serves both sides. `services`: reserves an idle core, or one of an
    automatic server set; else services share the server's. Raises UsageError.
    """
    topology = read_topology() if topology is None else topology
    allowed = granted_cpus() if allowed is None else allowed
    for role, named in (("server", server), ("client", client)):
        if named is not None:
            _check(role, named, topology, allowed)
    usable = [cpu for cpu in topology.cpus if cpu in allowed]
    if not usable:
        raise UsageError(
            f"None of this host's CPUs ({cpus_text(topology.cpus)}) may be used by this process "
            f"(allowed: {cpus_text(allowed) or 'none'}); change its affinity or cpuset."
        )
    if server is not None and client is not None:
        chosen = _named(topology, server, client)
    elif server is not None:
        chosen = _named(topology, server, _rest(topology, usable, server, "server"))
    elif client is not None:
        chosen = _named(topology, _rest(topology, usable, client, "client"), client)
    else:
        chosen = _automatic(_cores(topology, usable))
    return _with_services(chosen, _cores(topology, usable), named=server is not None) if services else chosen


def beside(
    where: Collection[int],
    others: Collection[int] = (),
    *,
    topology: Topology | None = None,
    allowed: Collection[int] | None = None,
) -> CpuPartition:
    """The client's CPUs next to a running server that may use `where` (empty: not known): as many cores as
    `partition` gives, the last ones outside `where`, preferably on its NUMA nodes and free of the plan's
    `others`; else hardware threads; else those of `partition`, with the overlap in `common`.
    """
    topology = read_topology() if topology is None else topology
    allowed = granted_cpus() if allowed is None else allowed
    usual = partition(topology=topology, allowed=allowed)
    if not where:
        return usual
    server = tuple(sorted(where))
    cores = _cores(topology, [cpu for cpu in topology.cpus if cpu in allowed])
    nodes = {core.node for core in topology.cores if set(core.cpus) & set(server)}
    count = max(1, sum(set(core.cpus) <= set(usual.client) for core in cores))
    for taken in ({*where, *others}, set(where)):
        used = {cpu for core in topology.cores if taken & set(core.cpus) for cpu in core.cpus}
        free = [core for core in cores if not used & set(core.cpus)]
        chosen = ([core for core in free if core.node in nodes] or free)[-count:]
        if chosen:
            client = tuple(sorted(cpu for core in chosen for cpu in core.cpus))
            return CpuPartition(server=server, client=client)
    threads = tuple(cpu for core in cores for cpu in core.cpus if cpu not in where)
    if threads:
        return _named(topology, server, threads)
    return usual.model_copy(update={"server": server})


def _with_services(chosen: CpuPartition, cores: list[Core], *, named: bool) -> CpuPartition:
    used = {*chosen.server, *chosen.client}
    idle = [core for core in cores if not used & set(core.cpus)]
    if idle:
        return chosen.model_copy(update={"services": idle[0].cpus})
    whole = [core for core in cores if set(core.cpus) <= set(chosen.server)]
    if named or len(whole) < 2:
        return chosen
    rest = tuple(cpu for cpu in chosen.server if cpu not in whole[-1].cpus)
    return chosen.model_copy(update={"server": rest, "services": whole[-1].cpus})


def _check(role: str, named: Sequence[int], topology: Topology, allowed: Collection[int]) -> None:
    if not named:
        raise UsageError(f"The {role}'s CPU set is empty; name at least one of {cpus_text(topology.cpus)}.")
    missing = [cpu for cpu in named if cpu not in topology.cpus]
    if missing:
        raise UsageError(
            f"The {role}'s CPU set names CPU {cpus_text(missing)}, which this host does not have; "
            f"it has {cpus_text(topology.cpus)}."
        )
    barred = [cpu for cpu in named if cpu not in allowed]
    if barred:
        raise UsageError(
            f"The {role}'s CPU set names CPU {cpus_text(barred)}, which this process may not use; "
            f"its affinity mask or cpuset allows {cpus_text(allowed)}."
        )


def _rest(topology: Topology, usable: Sequence[int], named: Sequence[int], role: str) -> list[int]:
    """Whole cores if possible, else hardware threads."""
    touched = {cpu for core in topology.cores if set(core.cpus) & set(named) for cpu in core.cpus}
    rest = [cpu for cpu in usable if cpu not in touched] or [cpu for cpu in usable if cpu not in named]
    if not rest:
        raise UsageError(
            f"The {role}'s CPU set {cpus_text(named)} leaves no CPU for the other side; "
            f"this process may use {cpus_text(usable)}."
        )
    return rest


def _named(topology: Topology, server: Sequence[int], client: Sequence[int]) -> CpuPartition:
    overlap = set(server) & set(client)
    if overlap:
        raise UsageError(
            f"CPU {cpus_text(overlap)} is in both sets; server ({cpus_text(server)}) and client "
            f"({cpus_text(client)}) must not share a CPU."
        )
    split = [core for core in topology.cores if set(core.cpus) & set(server) and set(core.cpus) & set(client)]
    return CpuPartition(
        server=tuple(sorted(set(server))),
        client=tuple(sorted(set(client))),
        shared=bool(split),
        note=_split_note(split),
    )


def _split_note(split: Sequence[Core]) -> str:
    if not split:
        return ""
    pairs = "; ".join(cpus_text(core.cpus) for core in split)
    return f"Server and client share a physical core (hardware threads {pairs}), so each slows the other."


def _cores(topology: Topology, usable: Collection[int]) -> list[Core]:
    trimmed = []
    for core in topology.cores:
        cpus = tuple(cpu for cpu in core.cpus if cpu in usable)
        if cpus:
            trimmed.append(Core(cpus, core.package, core.node))
    return trimmed


def _automatic(cores: list[Core]) -> CpuPartition:
    if len(cores) == 1:
        return _one_core(cores[0])
    note = ""
    nodes = sorted({core.node for core in cores})
    if len(nodes) > 1:
        by_node = {node: [core for core in cores if core.node == node] for node in nodes}
        largest = max(nodes, key=lambda node: (len(by_node[node]), -node))
        if len(by_node[largest]) >= SMALLEST_NODE_CORES:
            cores = by_node[largest]
            note = (
                f"Only NUMA node {largest} of {len(nodes)} is used, so that memory stays near; "
                "name the CPU sets to use the others."
            )
        else:
            note = f"The CPUs lie on {len(nodes)} NUMA nodes that are too small to hold both sides."
    count = max(1, round(len(cores) * CLIENT_SHARE))
    server, client = cores[:-count], cores[-count:]
    return CpuPartition(
        server=tuple(sorted(cpu for core in server for cpu in core.cpus)),
        client=tuple(sorted(cpu for core in client for cpu in core.cpus)),
        note=note,
    )


def _one_core(core: Core) -> CpuPartition:
    if len(core.cpus) == 1:
        return CpuPartition(
            server=core.cpus,
            client=core.cpus,
            shared=True,
            note=f"There is only one CPU ({core.cpus[0]}): server and client take it from each other.",
        )
    return CpuPartition(server=core.cpus[:-1], client=core.cpus[-1:], shared=True, note=_split_note([core]))
