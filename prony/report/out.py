"""What all models of the printed JSON share. Must not know any of them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Out(BaseModel):
    """An object of the contract: no key that is not declared."""

    model_config = ConfigDict(extra="forbid", frozen=True)
