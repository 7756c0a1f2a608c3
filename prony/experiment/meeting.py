"""Can this machine do what a plan needs? Asked cell by cell before anything starts.

Must not run or store anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prony.errors import EnvironmentFault, UsageError
from prony.evidence.host import Limits
from prony.experiment.bench import Bench
from prony.experiment.conclude import in_words
from prony.experiment.run import check_workload
from prony.judge.checks.descriptors import DescriptorsLimits, forecast_descriptors
from prony.judge.checks.ports import PortsLimits, forecast_ports
from prony.judge.finding import Finding, Status
from prony.judge.limits import CheckLimits
from prony.plan.cells import Cell, RunPlan, Skipped
from prony.plan.planfile import NeedKeys
from prony.server.build import lacking
from prony.server.catalogue import Catalogue
from prony.server.settings import Settings
from prony.server.spec import ServerSpec
from prony.target import LaunchedServer
from prony.trial.facts import trial_facts

REMEDY = "Mend it, or run the rest with --skip-unmeetable"


def specs(
    plan: RunPlan, catalogue: Catalogue, place: Callable[[str, str], str] | None = None
) -> dict[str, ServerSpec]:
    """Cell id -> its server as it is to be started. Raises UsageError for an unknown server, a setting that
    it has not, or a workload that it does not offer; `place` says where a part names a server.
    """
    found: dict[str, ServerSpec] = {}
    for cell in plan.cells:
        launch = cell.launch
        asked = Settings(dict(launch.settings), launch.heap, launch.jvm_flags, launch.jdk)
        try:
            spec = catalogue.resolve(launch.address, asked)
            check_workload({cell.server: spec}, cell.trial.workload.name)
        except UsageError as fault:
            where = f"{plan.name}, part '{cell.part}'" if place is None else place(cell.part, cell.server)
            raise UsageError(f"{where}: {fault}") from fault
        found[cell.id] = spec
    return found


def unmet(plan: RunPlan, found: dict[str, ServerSpec], bench: Bench) -> list[Skipped]:
    """The cells that this machine cannot run, each with the reason and the remedy."""
    tools = _Tools()
    return [
        skipped(cell, why)
        for cell in plan.cells
        if (why := _why_not(cell, found[cell.id], bench, tools)) is not None
    ]


def without_optional(plan: RunPlan, lacking: Sequence[Skipped]) -> tuple[RunPlan, list[Skipped]]:
    """The plan without what may be left out, and what is still lacking. Raises EnvironmentFault when nothing
    is left.
    """
    optional = {cell.id for cell in plan.cells if cell.optional}
    spared = [one for one in lacking if one.cell in optional]
    return without(plan, spared) if spared else plan, [one for one in lacking if one.cell not in optional]


def without(plan: RunPlan, left_out: Sequence[Skipped]) -> RunPlan:
    """The plan without these cells. Raises EnvironmentFault when nothing is left."""
    names = {one.cell for one in left_out}
    cells = tuple(cell for cell in plan.cells if cell.id not in names)
    if not cells:
        raise EnvironmentFault(f"nothing of the plan '{plan.name}' can be run here: {refusal(left_out)}")
    return plan.model_copy(update={"cells": cells, "skipped": (*plan.skipped, *left_out)})


def refusal(left_out: Sequence[Skipped]) -> str:
    """What is missing, each reason once, with the cells that it stops."""
    cells: dict[str, list[str]] = {}
    for one in left_out:
        cells.setdefault(one.why, []).append(one.cell)
    return "; ".join(
        f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {why}"
        for why, names in cells.items()
    )


def skipped(cell: Cell, why: str) -> Skipped:
    """The cell as one that is not run."""
    return Skipped(cell=cell.id, part=cell.part, server=cell.server, why=why)


class _Tools:
    """What each server lacks of JDKs, build tools and services; looked for once per server."""

    def __init__(self) -> None:
        self._known: list[tuple[ServerSpec, str | None]] = []

    def lacking(self, spec: ServerSpec) -> str | None:
        for other, why in self._known:
            if other == spec:
                return why
        self._known.append((spec, lacking(spec)))
        return self._known[-1][1]


def _why_not(cell: Cell, spec: ServerSpec, bench: Bench, tools: _Tools) -> str | None:
    tool = tools.lacking(spec)
    refused = [] if tool is None else [tool]
    refused += [in_words(one) for one in _forecasts(cell, spec, bench) if one.status is Status.INVALID]
    if cell.needs is not None:
        refused += _needs(cell.needs, bench.limits, bench)
    return "; ".join(refused) or None


def warnings(plan: RunPlan, found: dict[str, ServerSpec], bench: Bench) -> list[str]:
    """What the forecasts doubt without refusing it, one sentence per cell."""
    said: list[str] = []
    for cell in plan.cells:
        ports, descriptors = _forecasts(cell, found[cell.id], bench)
        doubtful = ports.status is Status.UNKNOWN and not cell.trial.connections.keep_alive
        for finding in (ports, descriptors):
            if finding.status is Status.SUSPECT or (doubtful and finding is ports):
                said.append(f"{cell.id}: {in_words(finding)}")
    return said


def _forecasts(cell: Cell, spec: ServerSpec, bench: Bench) -> tuple[Finding, Finding]:
    """Of ports and of descriptors."""
    limits = CheckLimits.model_validate(cell.limits)
    facts = trial_facts(cell.trial, LaunchedServer(spec)).model_copy(
        update={"expected_requests_per_s": cell.expected_requests_per_s}
    )
    return (
        forecast_ports(facts, bench.limits, limits.of(PortsLimits)),
        forecast_descriptors(facts, bench.limits, None, limits.of(DescriptorsLimits)),
    )


def _needs(needs: NeedKeys, limits: Limits, bench: Bench) -> list[str]:
    missing: list[str] = []
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
    cpus = len({*bench.partition.server, *bench.partition.client})
    if needs.cpus is not None and cpus < needs.cpus:
        missing.append(f"the plan needs {needs.cpus} CPUs and there are {cpus} (a larger machine)")
    return missing
