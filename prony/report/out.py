"""What all models of the printed JSON share."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class Out(BaseModel):
    """An object of the contract: no key that is not declared; a number that JSON has not becomes null."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, ser_json_inf_nan="null")

    @classmethod
    def filled(cls, *of: object, **given: Any) -> Self:
        """What is `given`, and of these values each attribute that is called as one of the other fields."""
        others = cls.model_fields.keys() - given.keys()
        found = {name: getattr(one, name) for one in of for name in others if hasattr(one, name)}
        return cls(**given, **found)
