"""Think times of users, steps and sessions."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, model_validator

from prony.evidence.base import Record


class Think(Record):
    """Pause of a user between a response and its next request, in ms."""

    kind: Literal["none", "constant", "uniform", "exponential", "gaussian", "poisson"]
    ms: float | None = None
    min_ms: float | None = None
    max_ms: float | None = None
    mean_ms: float | None = None
    stdev_ms: float | None = None
    offset_ms: float | None = None

    @model_validator(mode="after")
    def _has_its_numbers(self) -> Self:
        needed = {
            "none": set[str](),
            "constant": {"ms"},
            "uniform": {"min_ms", "max_ms"},
            "exponential": {"mean_ms"},
            "gaussian": {"mean_ms", "stdev_ms"},
            "poisson": {"mean_ms", "offset_ms"},
        }[self.kind]
        given = self.model_dump(exclude_none=True).keys() - {"kind"}
        if given != needed:
            raise ValueError(f"{self.kind} takes {' and '.join(sorted(needed)) or 'no numbers'}")
        return self

    @property
    def expected_ms(self) -> float:
        """Requested mean; for a Gaussian, before truncation at 0."""
        match self.kind:
            case "constant":
                return self.ms or 0.0
            case "uniform":
                return ((self.min_ms or 0.0) + (self.max_ms or 0.0)) / 2
            case "exponential" | "gaussian":
                return self.mean_ms or 0.0
            case "poisson":
                return (self.mean_ms or 0.0) + (self.offset_ms or 0.0)
            case _:
                return 0.0


NO_THINK = Think(kind="none")
_PAUSE = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s)")


def _pause(value: object) -> object:
    if not isinstance(value, str):
        return value
    if value == "none":
        return NO_THINK
    match = _PAUSE.fullmatch(value.strip())
    if match is None:
        raise ValueError("expected none, a time such as 500ms or 2s, or {kind: …} (uniform, exponential …)")
    return Think(kind="constant", ms=float(match[1]) * (1000 if match[2] == "s" else 1))


Pause = Annotated[Think, BeforeValidator(_pause, json_schema_input_type=str | Think)]
"""A think time, or a short form of it."""
