"""The JSON of what is printed and is no result: lists, dry runs, checks of the host."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from prony.host.check import Health, HostCheck
from prony.report.out import Out

if TYPE_CHECKING:
    from prony.store import Found, FoundExperiment, Note


class NoteOut(Out):
    """A user's note on an experiment."""

    made: str
    by: str = Field(description="user@host")
    text: str

    @classmethod
    def of(cls, note: Note) -> NoteOut:
        return cls(made=note.made.isoformat(), by=note.by, text=note.text)


class ListedOut(Out):
    """A line of `prony results list`."""

    id: str
    title: str
    command: str
    created: str
    ended: str | None
    status: Literal["running", "finished", "interrupted"]
    quick: bool
    trials: int
    conforming_trials: int = Field(description="trials that did what the plan says")
    servers: list[str]
    workloads: list[str]
    host: str = Field(description="name of the host")
    fingerprint: str = Field(description="key of host and software")
    prony_version: str
    tags: list[str]
    notes: list[NoteOut]
    answer: str = Field(description="its answer, in a sentence; empty until it was shown")

    @classmethod
    def of(cls, experiment: FoundExperiment) -> ListedOut:
        return cls.filled(
            experiment,
            title=experiment.name,
            created=experiment.created.isoformat(),
            ended=experiment.ended.isoformat() if experiment.ended else None,
            conforming_trials=experiment.conforming,
            host=experiment.hostname,
            fingerprint=experiment.fingerprint_key,
            notes=[NoteOut.of(note) for note in experiment.notes],
        )


class ListOut(Out):
    """`prony results list --json`."""

    schema_: Literal[3] = Field(default=3, alias="schema")
    kind: Literal["results"] = "results"
    total: int = Field(description="of all that match; experiments are those of --limit and --offset")
    experiments: list[ListedOut]
    unreadable: list[str] = Field(
        default_factory=list, description="a sentence for each row of these that cannot be read"
    )

    @classmethod
    def of(cls, listing: Found) -> ListOut:
        return cls(
            total=listing.total,
            experiments=[ListedOut.of(experiment) for experiment in listing.experiments],
            unreadable=[unreadable.sentence for unreadable in listing.unreadable],
        )


class PrunedOut(Out):
    """An experiment that prune removes."""

    id: str
    title: str
    created: str = Field(description="empty if unreadable, with the reason in the title")
    trials: int
    bytes: int = Field(description="of its records as they are stored")


class PruneOut(Out):
    """`prony results prune --json`."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    kind: Literal["prune"] = "prune"
    deleted: bool = Field(description="false: this is what --delete would remove")
    kept: int
    experiments: list[PrunedOut]


class PlannedTrialOut(Out):
    """A trial of a dry run."""

    index: int = Field(description="from 1, in the order of the run")
    block: int = Field(description="from 0")
    cell: str = Field(description="part/server/workload/load")
    process: str | None = Field(
        default=None, description="consecutive trials with the same value share a process"
    )
    estimate_s: float


class LeftOut(Out):
    """A cell that would not run."""

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
    """A check of this host."""

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
    """A host of hosts.yaml, or the laboratory."""

    name: str
    checks: list[HostCheckOut]


class HostsCheckOut(Out):
    """`prony hosts check --json`."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    kind: Literal["hosts-check"] = "hosts-check"
    hosts: list[CheckedHostOut]

    @classmethod
    def of(cls, rows: Iterable[tuple[str, HostCheck]]) -> HostsCheckOut:
        grouped: dict[str, list[HostCheckOut]] = {}
        for name, check in rows:
            grouped.setdefault(name, []).append(HostCheckOut(**asdict(check)))
        return cls(hosts=[CheckedHostOut(name=name, checks=checks) for name, checks in grouped.items()])


class ListedServerOut(Out):
    """A server, or a variant of a server."""

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
