"""The JSON of what is printed and is no result: lists, dry runs, checks of the host.

Must not import what judges or compares: these commands answer at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Literal

from pydantic import Field

from prony.host.check import Health, HostCheck
from prony.report.out import Out


class ListedOut(Out):
    """One line of `prony results list`."""

    id: str
    title: str
    command: str
    created: str
    status: Literal["running", "finished", "interrupted"]
    quick: bool
    trials: int


class ListOut(Out):
    """`prony results list --json`."""

    schema_: Literal[2] = Field(default=2, alias="schema")
    kind: Literal["results"] = "results"
    experiments: list[ListedOut]


class PlannedTrialOut(Out):
    """One trial of a dry run."""

    index: int = Field(description="from 1, in the order of the run")
    block: int = Field(description="from 0")
    cell: str = Field(description="part/server/workload/load")
    estimate_s: float


class LeftOut(Out):
    """One cell that would not run."""

    cell: str
    why: str


class DryRunOut(Out):
    """`prony run --dry-run --json`: what would run. Nothing was measured."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    kind: Literal["dry-run"] = "dry-run"
    title: str
    quick: bool
    seed: int
    estimate_s: float = Field(description="of all trials; builds apart")
    changes: list[str] = Field(description="what --quick or --duration changed in the plan")
    warnings: list[str]
    trials: list[PlannedTrialOut]
    skipped: list[LeftOut]


class HostCheckOut(Out):
    """One check of this host."""

    name: str
    status: Health
    found: str
    why: str = Field(description="why it matters; may be empty")
    what_to_do: str = Field(description="empty when there is nothing to do")


class DoctorOut(Out):
    """`prony doctor --json`."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    kind: Literal["doctor"] = "doctor"
    checks: list[HostCheckOut]


class CheckedHostOut(Out):
    """One host of hosts.yaml, or the laboratory."""

    name: str
    checks: list[HostCheckOut]


class HostsCheckOut(Out):
    """`prony hosts check --json`."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    kind: Literal["hosts-check"] = "hosts-check"
    hosts: list[CheckedHostOut]

    @classmethod
    def of(cls, rows: Iterable[tuple[str, HostCheck]]) -> HostsCheckOut:
        """From (host, check), a host's checks one after the other."""
        grouped: dict[str, list[HostCheckOut]] = {}
        for name, check in rows:
            grouped.setdefault(name, []).append(HostCheckOut(**asdict(check)))
        return cls(hosts=[CheckedHostOut(name=name, checks=checks) for name, checks in grouped.items()])


class ListedServerOut(Out):
    """One server, or one variant of a server."""

    name: str = Field(description="NAME or NAME:VARIANT, as commands take it")
    title: str
    runtime: str
    versions: dict[str, str] = Field(description="what -> version")
    workloads: list[str]


class ServersOut(Out):
    """`prony servers --json`."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    kind: Literal["servers"] = "servers"
    servers: list[ListedServerOut]
    workloads: list[str] = Field(description="every workload of the catalogue")
