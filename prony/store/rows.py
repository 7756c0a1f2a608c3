"""The store's return values, detached from the database. Must not know SQL."""

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
    """The raw rows of an experiment, columns by name, for another store."""

    experiment: dict[str, Any]
    trials: tuple[dict[str, Any], ...]
    judgements: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class StoredJudgement:
    """One judging of a trial."""

    judgement: Judgement
    figures: dict[str, Any]
    made: datetime
    prony_version: str


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
