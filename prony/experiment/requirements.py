"""Whether this host meets a plan's needs, cell by cell, before anything starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prony.errors import EnvironmentFault, UsageError
from prony.evidence.host import Limits
from prony.evidence.trial import LoadFacts
from prony.experiment.duets import design
from prony.experiment.testbed import Targets, Testbed
from prony.host.proc import cpus_text
from prony.judge.checks.descriptors import DescriptorsLimits, forecast_descriptors
from prony.judge.checks.ports import PortsLimits, forecast_ports
from prony.judge.finding import Finding
from prony.judge.limits import CheckLimits
from prony.numbers import number
from prony.plan.cell import Cell, HostNeeds
from prony.plan.plan import Plan, Skipped
from prony.targets import ServerUnderTest
from prony.trial.surroundings import trial_facts

REMEDY = "Fix it, or run the rest with --skip-unmeetable"


def find_targets(plan: Plan, targets: Targets, where: Callable[[str, str], str] | None = None) -> None:
    """Check that the catalogue has every server and workload of the plan. `where`: locates a server in the
    plan file, from part and server. Raises UsageError.
    """
    for cell in plan.cells:
        try:
            target, workload = targets.of(cell), cell.trial.workload.name
            if target.workloads and workload not in target.workloads:
                raise UsageError(
                    f"server '{target.name}' does not offer the workload '{workload}'; "
                    f"it offers: {', '.join(target.workloads)}"
                )
        except UsageError as fault:
            if where is None:
                raise
            raise UsageError(f"{where(cell.part, cell.server)}: {fault}") from fault


def servers_of(plan: Plan, targets: Targets) -> list[ServerUnderTest]:
    return list({id(server): server for server in map(targets.of, plan.cells)}.values())


def unmet(plan: Plan, targets: Targets, testbed: Testbed) -> list[Skipped]:
    """Cells that this host cannot run, with reason and remedy."""
    lacks: dict[int, str | None] = {}
    lacking_cells = []
    for cell in plan.cells:
        target = targets.of(cell)
        if id(target) not in lacks:
            lacks[id(target)] = target.lacking()
        lacking, needs = lacks[id(target)], cell.needs
        reasons = [] if lacking is None else [lacking]
        reasons += refusals(_forecasts(cell, target, testbed))
        reasons += [] if needs is None else _needs(needs, testbed)
        if reasons:
            lacking_cells.append(skipped(cell, "; ".join(reasons)))
    return lacking_cells


def refuse_cell(cell: Cell, targets: Targets, testbed: Testbed) -> None:
    """Raises EnvironmentFault where ports or descriptors do not suffice, with the remedy."""
    if refused := refusals(_forecasts(cell, targets.of(cell), testbed)):
        raise EnvironmentFault("; ".join(refused))


def without_optional(plan: Plan, lacking: Sequence[Skipped]) -> tuple[Plan, list[Skipped]]:
    """The plan without its optional lacking cells, and the other lacking cells. Raises EnvironmentFault."""
    optional = {cell.id for cell in plan.cells if cell.optional}
    spared = [cell_lacking for cell_lacking in lacking if cell_lacking.cell in optional]
    return without(plan, spared) if spared else plan, [
        cell_lacking for cell_lacking in lacking if cell_lacking.cell not in optional
    ]


def without(plan: Plan, left_out: Sequence[Skipped]) -> Plan:
    """The plan without these cells. Raises EnvironmentFault when none is left."""
    names = {skipped_cell.cell for skipped_cell in left_out}
    cells = tuple(cell for cell in plan.cells if cell.id not in names)
    if not cells:
        raise EnvironmentFault(f"nothing of the plan '{plan.name}' can be run here: {refusal(left_out)}")
    return plan.model_copy(update={"cells": cells, "skipped": (*plan.skipped, *left_out)})


def refusal(left_out: Sequence[Skipped]) -> str:
    """What is missing, each reason once, with the cells that it stops."""
    cells: dict[str, list[str]] = {}
    for skipped_cell in left_out:
        cells.setdefault(skipped_cell.why, []).append(skipped_cell.cell)
    return "; ".join(
        f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {why}"
        for why, names in cells.items()
    )


def skipped(cell: Cell, why: str) -> Skipped:
    """The cell as skipped."""
    return Skipped(cell=cell.id, part=cell.part, server=cell.server, why=why)


def refusals(forecasts: Sequence[Finding]) -> list[str]:
    """Forecasts that do not conform, in words."""
    return [in_words(forecast) for forecast in forecasts if not forecast.conforms]


def warnings(plan: Plan, targets: Targets, testbed: Testbed) -> list[str]:
    """The design of a comparison, roaming servers, and doubtful forecasts, a sentence each."""
    sentences = [*design(plan, targets), *roaming(plan, targets, testbed)]
    for cell in plan.cells:
        target = targets.of(cell)
        if (crowd := _too_many_connections(cell, target)) is not None:
            sentences.append(f"{cell.id}: {crowd}")
        ports, descriptors = _forecasts(cell, target, testbed)
        doubtful = {ports.check} if not cell.trial.connections.keep_alive else set()
        for finding in (ports, descriptors):
            doubted = finding.code != "unread" or finding.check in doubtful
            if finding.conforms and finding.provided and doubted:
                sentences.append(f"{cell.id}: {in_words(finding)}")
    return sentences


def roaming(plan: Plan, targets: Targets, testbed: Testbed) -> list[str]:
    """A sentence per server that may run on the client's CPUs, or whose CPUs cannot be read."""
    running = [server for server in servers_of(plan, targets) if not server.owned and testbed.here]
    return [
        sentence for sentence in (_roaming(server, testbed) for server in running) if sentence is not None
    ]


MOST_TO_PIN = 8
"""With more processes, the remedy is in the command that starts the server."""


def _roaming(target: ServerUnderTest, testbed: Testbed) -> str | None:
    placed = target.placement()
    client = testbed.sides(target, placed).client
    if placed.hidden:
        if testbed.named:
            return None
        return (
            f"{target.name}: the CPUs of another user's process cannot be read; run Prony as that user, or "
            "give --client-cpus"
        )
    there = {pid: cpus for pid, cpus in placed.cpus.items() if cpus & set(client)}
    better = (set(testbed.partition.server) - set(client)) or (placed.all_cpus - set(client))
    if not there or not better:
        return None
    where = "roams, also onto" if any(cpus - set(client) for cpus in there.values()) else "is pinned to"
    common = cpus_text(placed.all_cpus & set(client))
    return (
        f"{target.name} {where} the client's CPU {common}; pin it: {_pinning(list(there), cpus_text(better))}"
    )


def _pinning(pids: Sequence[int], cpus: str) -> str:
    if len(pids) == 1:
        return f"taskset -apc {cpus} {pids[0]}"
    if len(pids) > MOST_TO_PIN:
        return f"start it with taskset -c {cpus}"
    return f"for p in {' '.join(map(str, pids))}; do taskset -apc {cpus} $p; done"


def _too_many_connections(cell: Cell, target: ServerUnderTest) -> str | None:
    """Connections of the load above the server's declared maximum, as a sentence."""
    facts, most = trial_facts(cell.trial, target), target.max_connections
    if facts.users is None or most is None or not facts.keep_alive:
        return None
    needed = facts.shared_connections or facts.users * facts.connections_per_user
    if needed <= most:
        return None
    return (
        f"connections: the load opens {number(needed)} and {target.name} accepts {number(most)} at a time; "
        "the others time out (use fewer users, or raise the server's limit)"
    )


def _forecasts(cell: Cell, target: ServerUnderTest, testbed: Testbed) -> tuple[Finding, Finding]:
    facts = trial_facts(cell.trial, target).model_copy(
        update={"expected_requests_per_s": cell.expected_requests_per_s}
    )
    return forecasts(facts, target.limits(testbed.limits), CheckLimits.model_validate(cell.limits))


def forecasts(facts: LoadFacts, host: Limits, limits: CheckLimits | None = None) -> tuple[Finding, Finding]:
    """Forecasts of ephemeral ports and of descriptors for this load."""
    limits = limits or CheckLimits()
    return (
        forecast_ports(facts, host, limits.of(PortsLimits)),
        forecast_descriptors(facts, host, None, limits.of(DescriptorsLimits)),
    )


def in_words(finding: Finding) -> str:
    """A forecast as a clause."""
    return f"{finding.check}: {finding.reason}" + (f" ({finding.advice})" if finding.advice else "")


def _needs(needs: HostNeeds, testbed: Testbed) -> list[str]:
    missing: list[str] = []
    limits = testbed.limits
    soft, hard = limits.descriptors_soft, limits.descriptors_hard
    if needs.descriptors is not None and soft is not None and soft < needs.descriptors:
        how = (
            f"ulimit -n {needs.descriptors} in this shell"
            if hard is not None and hard >= needs.descriptors
            else f"raise the hard limit to {needs.descriptors} (limits.conf: nofile, systemd: LimitNOFILE)"
        )
        missing.append(f"the plan needs {needs.descriptors:,} descriptors and there are {soft:,} ({how})")
    size = limits.ports.size if limits.ports is not None else None
    if needs.ports is not None and size is not None and size < needs.ports:
        missing.append(
            f"the plan needs {needs.ports:,} ephemeral ports and there are {size:,} "
            '(sysctl -w net.ipv4.ip_local_port_range="1024 65535")'
        )
    cpus = testbed.partition.count
    if needs.cpus is not None and cpus < needs.cpus:
        missing.append(f"the plan needs {needs.cpus} CPUs and there are {cpus} (a larger host)")
    return missing
