"""What all models of the printed JSON share."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Out(BaseModel):
    """An object of the contract: no key that is not declared; a number that JSON has not becomes null."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, ser_json_inf_nan="null")
