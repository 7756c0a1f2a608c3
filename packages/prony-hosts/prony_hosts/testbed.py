"""Several hosts as an experiment's testbed: placement, surroundings, limits, fingerprint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from prony.errors import EnvironmentFault, UsageError
from prony.evidence.conformance import Conformance
from prony.evidence.host import CpuPartition, Fingerprint, Limits, PortRange
from prony.experiment.testbed import Testbed
from prony.host.proc import read_text
from prony.plan.plan import Plan, UsedHost
from prony.plan.target import Launch, Target, Url
from prony.plan.workload import Workload
from prony.report.out import filled
from prony.server.spec import HttpVersion
from prony.targets import ExternalServer, LaunchedServer, Placement, RunningTarget, ServerUnderTest
from prony.trial.surroundings import Surroundings
from prony_hosts.actors import BOOT_ID, LoadHost
from prony_hosts.file import HostsFile, is_loopback
from prony_hosts.fingerprint import HostFacts, of_hosts
from prony_hosts.laboratory import Laboratory
from prony_hosts.observed import HostedExternal
from prony_hosts.places import HostedPlaces, apart
from prony_hosts.reach import Reached
from prony_hosts.sampling import cpus_of
from prony_hosts.server_host import ServerHost
from prony_hosts.target import HostedServer, RunningHosted

ONE_MACHINE = "the hosts are one machine; give each CPUs of its own (cpus: in hosts.yaml)"


class HostsTestbed(Testbed):
    """The attached hosts of a file."""

    def __init__(self, laboratory: Laboratory, file: HostsFile, path: Path) -> None:
        self._laboratory, self._file, self._path = laboratory, file, path
        self.servers = {
            attached.host.group: Reached(
                attached, laboratory.start(ServerHost, attached.host.name, attached.reached_at)
            )
            for attached in laboratory.of_role("server")
        }
        self.loads = tuple(
            Reached(attached, laboratory.start(LoadHost, attached.host.name))
            for attached in laboratory.of_role("load")
        )

    @property
    def all(self) -> tuple[Reached, ...]:
        """Servers' hosts, then load hosts."""
        return (*self.servers.values(), *self.loads)

    def placed(self, plan: Plan) -> Plan:
        """The plan placed on these hosts. Raises UsageError for anything that several hosts cannot do."""
        refuse(plan)
        refuse_loopback(plan, self)
        return on_machines(plan, self._file).model_copy(update={"hosts_file": str(self._path.absolute())})

    @property
    def here(self) -> bool:
        return False

    def sides(self, target: ServerUnderTest, placed: Placement | None = None) -> CpuPartition:  # noqa: ARG002
        return self.partition

    @cached_property
    def limits(self) -> Limits:
        """Combined limits of the load hosts."""
        return together([(host.facts.limits, host.host.weight) for host in self.loads])

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """Of all hosts in their roles: other hosts give other results."""
        return of_hosts(
            [
                HostFacts(host.name, host.host.role, host.facts.fingerprint, host.host.weight, host.link)
                for host in self.all
            ]
        )

    @cached_property
    def partition(self) -> CpuPartition:
        """Of the first server's host and the first load host, for display before a trial."""
        return self._partition(next(iter(self.servers.values()), None))

    def lost(self) -> Mapping[str, str]:
        return self._laboratory.lost()

    def target(self, target: Target, here: ServerUnderTest) -> ServerUnderTest:
        if isinstance(target, Launch) and isinstance(here, LaunchedServer):
            return HostedServer(target, here, self._server(target.machine))
        host = self._host_of(target) if isinstance(target, Url) else None
        return (
            here
            if host is None or not isinstance(here, ExternalServer)
            else HostedExternal(here.at, host=host)
        )

    def _host_of(self, url: Url) -> Reached | None:
        """The server's host that has this URL's address; None when no host has it."""
        name, _ = url.first_address
        for host in self.servers.values():
            if is_loopback(name) and is_loopback(host.attached.reached_at):
                return host
            if not is_loopback(name) and host.call("is_here", name):
                return host
        return None

    def surroundings(self, target: ServerUnderTest) -> Surroundings:
        server = target.host if isinstance(target, (HostedServer, HostedExternal)) else None
        return HostedPlaces(
            self._partition(server), target.limits(self.limits), server, self.loads, self.lost
        )

    def conformance(
        self, server: RunningTarget, workload: Workload, only: tuple[str, ...], http_version: HttpVersion
    ) -> Conformance | None:
        assert isinstance(server, RunningHosted), "only a server on a host is built"
        return server.checked(workload, only, http_version)

    def settings_changed(self) -> tuple[str, ...]:
        """A lost host reports nothing; its trial says so."""
        changed: set[str] = set()
        for host in self.all:
            with suppress(EnvironmentFault):
                names = host.call("settings_changed", host.facts.fingerprint.sysctls)
                changed |= {f"{host.name}: {name}" for name in names}
        return tuple(sorted(changed))

    def _server(self, group: str | None) -> Reached:
        host = self.servers.get(group or "")
        if host is not None:
            return host
        if not self.servers:
            raise UsageError(
                "this plan launches servers, but hosts.yaml names no server's host: add server: with ssh: or "
                "connect:, or put a URL under load"
            )
        groups = ", ".join(self.servers)
        raise UsageError(f"hosts.yaml has no server's host called '{group}'; it has: {groups}")

    def _partition(self, server: Reached | None) -> CpuPartition:
        client = cpus_of(self.loads[0])
        if server is None:
            return CpuPartition(server=(), client=client, apart=True)
        separate = apart(server, self.loads)
        if not separate:
            client = tuple(sorted({cpu for host in self.loads for cpu in cpus_of(host)}))
        own = cpus_of(server)
        shared = not separate and bool(set(own) & set(client))
        return CpuPartition(
            server=own, client=client, apart=separate, shared=shared, note=ONE_MACHINE if shared else ""
        )


def together(each: Sequence[tuple[Limits, float]]) -> Limits:
    """Limits of several load hosts as one: the host with the least for its weight bounds all."""
    whole = sum(weight for _, weight in each)

    def least(values: Sequence[int | None]) -> int | None:
        scaled = [
            value * whole / weight
            for value, (_, weight) in zip(values, each, strict=True)
            if value is not None
        ]
        return int(min(scaled)) if len(scaled) == len(each) else None

    ports = least([None if host_limits.ports is None else host_limits.ports.size for host_limits, _ in each])
    drivers = {host_limits.io_uring for host_limits, _ in each}
    return Limits(
        descriptors_soft=least([host_limits.descriptors_soft for host_limits, _ in each]),
        descriptors_hard=least([host_limits.descriptors_hard for host_limits, _ in each]),
        ports=None if ports is None else PortRange(low=1, high=ports),
        io_uring=None if None in drivers else all(drivers),
    )


def refuse(plan: Plan) -> None:
    """Raises UsageError for plans that several hosts cannot run."""
    if plan.cpus.server or plan.cpus.client:
        raise UsageError("the plan names CPUs of one host (cpus:); with --hosts they stand in hosts.yaml")
    for cell in plan.cells:
        trial = cell.trial
        for used, what in (
            (trial.beside, "other load generators (cross_check)"),
            (trial.script is not None, "a script of another tool"),
            (trial.log is not None, "--log, a row per request"),
            (trial.source_addresses, "--source, addresses of this host"),
            (isinstance(cell.target, Url) and cell.target.unix is not None, "a Unix socket"),
        ):
            if used:
                raise UsageError(f"{what} does not go with --hosts; leave it out, or measure from one host")


def refuse_loopback(plan: Plan, testbed: HostsTestbed) -> None:
    """Raises UsageError for a loopback URL, which means another machine on each host."""
    boot = read_text(BOOT_ID)
    elsewhere = next((host.name for host in testbed.loads if host.facts.boot_id != boot), None)
    for cell in plan.cells:
        if elsewhere is not None and isinstance(cell.target, Url) and is_loopback(cell.target.host):
            raise UsageError(
                f"{cell.target.url} means {elsewhere} itself on {elsewhere}: give the server's URL with an "
                "address that the load hosts reach"
            )


def on_machines(plan: Plan, file: HostsFile) -> Plan:
    """The plan with hosts; with groups of servers' hosts each server is measured on each."""
    used = tuple(filled(UsedHost, host) for host in file.hosts())
    plan = plan.model_copy(update={"hosts": used})
    if not file.servers:
        return plan
    cells = []
    for cell in plan.cells:
        if not isinstance(cell.target, Launch) or cell.target.machine is not None:
            cells.append(cell)
            continue
        for group in file.servers:
            server = f"{cell.server} on {group}"
            cells.append(
                cell.model_copy(
                    update={
                        "id": cell.id.replace(f"/{cell.server}/", f"/{server}/", 1),
                        "server": server,
                        "target": cell.target.model_copy(update={"machine": group}),
                    }
                )
            )
    return plan.model_copy(update={"cells": tuple(cells)})
