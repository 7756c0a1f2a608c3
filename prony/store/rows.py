"""The store's return values, detached from the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from prony.evidence.host import Fingerprint
from prony.evidence.trial import TrialRecord
from prony.judge.finding import Judgement

ExperimentStatus = Literal["running", "finished", "interrupted"]


@dataclass(frozen=True, slots=True)
class ExperimentRow:
    """One experiment. `status` is `interrupted` also when its process died."""

    id: str
    name: str
    created: datetime
    ended: datetime | None
    status: ExperimentStatus
    spec: dict[str, Any]
    fingerprint: Fingerprint
    seed: int
    quick: bool
    prony_version: str
    trials: int
    """Number of stored trials."""


@dataclass(frozen=True, slots=True)
class RawExperiment:
    """The raw rows of an experiment, columns by name, for another store. Trials in the order of storing,
    notes without an id.
    """

    experiment: dict[str, Any]
    trials: tuple[dict[str, Any], ...]
    judgements: tuple[dict[str, Any], ...]
    notes: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class StoredJudgement:
    """One judging of a trial."""

    judgement: Judgement
    figures: dict[str, Any]
    made: datetime
    prony_version: str
    odd: tuple[str, ...] = ()
    """A sentence for each stored figure that is no number, and so is none of `figures`."""


@dataclass(frozen=True, slots=True)
class StoredTrial:
    """One trial with its judgements, oldest first; the newest counts."""

    record: TrialRecord
    judgements: tuple[StoredJudgement, ...]
    prony_version: str

    @property
    def first(self) -> StoredJudgement:
        """The judgement made when the trial ended."""
        return self.judgements[0]

    @property
    def judgement(self) -> Judgement:
        """The newest judgement."""
        return self.judgements[-1].judgement

    @property
    def figures(self) -> dict[str, Any]:
        """The figures of the newest judgement."""
        return self.judgements[-1].figures


@dataclass(frozen=True, slots=True)
class Note:
    """What somebody wrote about an experiment."""

    made: datetime
    by: str
    """user@host"""
    text: str


@dataclass(frozen=True, slots=True)
class FoundExperiment:
    """One experiment as a list shows it; neither plan nor records were read."""

    id: str
    name: str
    command: str
    created: datetime
    ended: datetime | None
    status: ExperimentStatus
    quick: bool
    prony_version: str
    fingerprint_key: str
    hostname: str
    trials: int = 0
    """Stored: controls and repeated ones too, but no explained ones."""
    conforming: int = 0
    """So many of them, by their newest judgement."""
    servers: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    """Oldest first."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row that is there and cannot be shown."""

    experiment_id: str
    sentence: str
    """Which row, what was found, what was expected."""
    whole: bool = True
    """The experiment itself; else a note on it."""


@dataclass(frozen=True, slots=True)
class Found:
    """A page of what a search found, newest first, and how many there are in all."""

    experiments: tuple[FoundExperiment, ...]
    total: int
    unreadable: tuple[Unreadable, ...] = ()


@dataclass(frozen=True, slots=True)
class SeriesName:
    """A server under a load of a workload, measured again and again."""

    server: str
    workload: str
    load_name: str
    trials: int
    newest: datetime


@dataclass(frozen=True, slots=True)
class SeriesTrial:
    """One trial of a series, without its record."""

    trial_id: str
    experiment_id: str
    cell: str
    """Empty in experiments of the first version."""
    block: int
    kind: Literal["trial", "control", "explained"]
    quick: bool
    repeated: bool
    """A later attempt at the same trial stands in its place."""
    started: datetime
    fingerprint_key: str
    plan_key: str
    """A hash over the target and the trial in the plan; empty where the plan does not say."""
    conforms: bool
    bound_by: str
    reason: str
    """Why it does not conform, at most 300 characters; empty when it does."""
    failure: str | None
    figures: dict[str, Any]
    versions: dict[str, str]
    """Of the server and its runtime."""
    build_key: str | None
    prony_version: str


@dataclass(frozen=True, slots=True)
class SeenHost:
    """A host and its software, as experiments found it."""

    fingerprint: Fingerprint
    experiments: int
    newest: datetime
