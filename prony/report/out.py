"""What models of the printed JSON, and values made of others, share."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict

T = TypeVar("T")


def filled(kind: type[T], /, *of: object, **given: Any) -> T:
    """A model or dataclass of what is `given`, and of these values' attributes named as its other fields."""
    every = kind.model_fields if issubclass(kind, BaseModel) else [field.name for field in fields(kind)]  # type: ignore[arg-type]
    others = [name for name in every if name not in given]
    return kind(**given, **{name: getattr(s, name) for s in of for name in others if hasattr(s, name)})


class Out(BaseModel):
    """An object of the contract: no key that is not declared; a number that JSON has not becomes null."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, ser_json_inf_nan="null")

    @classmethod
    def filled(cls, *of: object, **given: Any) -> Self:
        """As the function `filled`."""
        return filled(cls, *of, **given)
