"""The common ground of all recorded values: immutable, strict about unknown keys."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """An immutable value that can be written to and read from JSON without loss."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")
