"""Base of all recorded values: immutable, no unknown keys."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """An immutable value with a lossless JSON form."""

    model_config = ConfigDict(frozen=True, defer_build=True, extra="forbid", ser_json_inf_nan="constants")
