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
    """An experiment. `status` is `interrupted` also after its process died."""

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


@dataclass(frozen=True, slots=True)
class RawExperiment:
    """Raw rows of an experiment (column -> value) for another store; notes without an id."""

    experiment: dict[str, Any]
    trials: tuple[dict[str, Any], ...]
    judgements: tuple[dict[str, Any], ...]
    notes: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class StoredJudgement:
    judgement: Judgement
    figures: dict[str, Any]
    made: datetime
    prony_version: str
    odd: tuple[str, ...] = ()
    """A sentence per invalid stored figure, which `figures` lacks."""


@dataclass(frozen=True, slots=True)
class StoredTrial:
    """A trial with its judgements, oldest first; the newest counts."""

    record: TrialRecord
    judgements: tuple[StoredJudgement, ...]
    prony_version: str

    @property
    def first(self) -> StoredJudgement:
        return self.judgements[0]

    @property
    def judgement(self) -> Judgement:
        return self.judgements[-1].judgement

    @property
    def figures(self) -> dict[str, Any]:
        return self.judgements[-1].figures


@dataclass(frozen=True, slots=True)
class Note:
    made: datetime
    by: str
    text: str


@dataclass(frozen=True, slots=True)
class FoundExperiment:
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
    """Stored trials, including controls and repeated ones, without explained ones."""
    conforming: int = 0
    servers: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    answer: str = ""
    """Its main conclusion, in a sentence; empty until it was shown."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    experiment_id: str
    sentence: str
    whole: bool = True
    """Whether it is the experiment itself, or a note on it."""


@dataclass(frozen=True, slots=True)
class Found:
    """A page of search results, newest first, and their total."""

    experiments: tuple[FoundExperiment, ...]
    total: int
    unreadable: tuple[Unreadable, ...] = ()
