"""The rows of an export as models: what comes from another host, or from anybody who may upload, is checked
here before it gets near the database. Must not know how the file is packed.
"""

from __future__ import annotations

import zlib
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, Json, model_validator

from prony.evidence.host import Fingerprint
from prony.evidence.trial import TrialRecord
from prony.store.keeping import judgement_of, trial_values
from prony.store.labels import MOST_NOTE_CHARACTERS
from prony.store.rows import ExperimentStatus

LOCAL = frozenset({"owner"})
"""Columns without meaning on another host."""

_Id = Annotated[str, Field(pattern=r"^[0-9]{6}-[0-9a-z]{4}$")]
_TrialId = Annotated[str, Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z._-]{0,63}$")]
"""Files are named by it (`prony results export -o FOLDER`): it leads into no other folder."""
_Key = Annotated[str, Field(pattern=r"^[0-9A-Za-z_-]{1,32}$")]
_Word = Annotated[str, Field(max_length=32)]
_Author = Annotated[str, Field(max_length=300)]


def _is_time(text: Any) -> Any:
    if not isinstance(text, str) or len(text) > 40:
        raise ValueError("a time is not ISO 8601 text")
    return text


_Time = Annotated[AwareDatetime, BeforeValidator(_is_time)]


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=False)


class ExperimentColumns(_Row):
    """Of table experiments, without those that are local."""

    id: _Id
    name: str = Field(max_length=10_000)
    created: _Time
    ended: _Time | None
    status: ExperimentStatus
    spec: Json[dict[str, Any]]
    fingerprint_key: _Key
    fingerprint: Json[Fingerprint]
    seed: str = Field(pattern=r"^[0-9]{1,20}$")
    quick: bool
    prony_version: _Word

    @model_validator(mode="after")
    def _one_key(self) -> ExperimentColumns:
        if self.fingerprint.key != self.fingerprint_key:
            raise ValueError(f"the fingerprint of {self.id} has two keys")
        return self


class TrialColumns(_Row):
    """Of table trials; those that repeat the record must say the same."""

    id: _TrialId
    experiment_id: _Id
    server: str
    workload: str
    load_name: str
    kind: str
    block: int
    position: int
    quick: bool
    started: str
    ended: str
    failure: str | None
    fingerprint_key: str
    prony_version: _Word
    record_format: Literal["json+zlib"]
    record: str

    @model_validator(mode="after")
    def _repeats_the_record(self) -> TrialColumns:
        derived = trial_values(TrialRecord.model_validate_json(self.record))
        own = {"record", "record_format", "prony_version"}
        differing = [
            name for name, value in derived.items() if name not in own and getattr(self, name) != value
        ]
        if differing:
            raise ValueError(f"{self.id} does not match its record ({', '.join(differing)})")
        return self


class JudgementColumns(_Row):
    """Of table judgements, without its number."""

    trial_id: _TrialId
    made: _Time
    prony_version: _Word
    judgement: str
    figures: Json[dict[str, Any]]
    conforms: bool

    @model_validator(mode="after")
    def _says_one_thing(self) -> JudgementColumns:
        found, _ = judgement_of(self.judgement)
        if found.conforms is not self.conforms:
            raise ValueError(f"a judgement of {self.trial_id} says that it conforms, and that it does not")
        return self


class NoteColumns(_Row):
    """Of table notes, without its number."""

    experiment_id: _Id
    made: _Time
    made_by: _Author
    text: str = Field(min_length=1, max_length=MOST_NOTE_CHARACTERS)


def experiment(row: dict[str, Any]) -> dict[str, Any]:
    """The row, when it is one. Raises ValueError (ValidationError is one) saying what is wrong."""
    ExperimentColumns.model_validate(row)
    return {"ended": None, **row}


def trial(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its record compressed, when the two agree."""
    TrialColumns.model_validate(row)
    return row | {"record": zlib.compress(str(row["record"]).encode())}


def judgement(row: dict[str, Any], of: set[str]) -> dict[str, Any]:
    """The row, when it judges one of these trials; of a file of schema 2 or before as it is stored now."""
    if "verdict" in row:
        earlier = {name: value for name, value in row.items() if name != "verdict"}
        row = earlier | {"conforms": row["verdict"] != "invalid"}
    if JudgementColumns.model_validate(row).trial_id not in of:
        raise ValueError(f"a judgement is of {row['trial_id']}, which is not in the file")
    return row


def note(row: dict[str, Any]) -> dict[str, Any]:
    """The row, when it is a note."""
    NoteColumns.model_validate(row)
    return row
