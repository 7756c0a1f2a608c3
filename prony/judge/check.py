"""A check: a pure function of evidence and limits, with its declared limits and its place in the output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Generic, Self, TypeVar

from pydantic import Field

from prony.evidence.base import Record
from prony.evidence.trial import Evidence
from prony.judge.finding import Finding

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
NotNegative = Annotated[float, Field(ge=0.0)]


class DeclaredLimits(Record):
    """Base of a check's limits. Each field is a key of `limits:` in a plan; its docstring gives the source of
    the default. Shares are 0..1; other units are in the name.
    """

    def of(self, kind: type[L]) -> L:
        """These limits as `kind`; `CheckLimits` is every check's kind."""
        assert isinstance(self, kind), f"{type(self).__name__} does not hold the limits {kind.__name__}"
        return self

    @classmethod
    def among(cls, limits: Mapping[str, Any]) -> Self:
        """Its keys of a plan's or judgement's limits; defaults for the rest."""
        return cls.model_validate({key: value for key, value in limits.items() if key in cls.model_fields})


L = TypeVar("L", bound=DeclaredLimits)
R = TypeVar("R", bound=Finding | None, covariant=True)


class Check(Generic[R]):
    """Callable with evidence and limits; returns None where the check does not apply."""

    def __init__(self, function: Callable[[Evidence, L], R], limits: type[L], order: int) -> None:
        self.name: str = function.__name__
        self.limits: type[DeclaredLimits] = limits
        self.order = order
        """Position in the output: causes (another process on the CPUs) before symptoms (an idle server)."""
        self._judge: Callable[[Evidence, DeclaredLimits], R] = lambda evidence, all_limits: function(
            evidence, all_limits.of(limits)
        )

    def __call__(self, evidence: Evidence, limits: DeclaredLimits) -> R:
        return self._judge(evidence, limits)


def check(limits: type[L], *, order: int) -> Callable[[Callable[[Evidence, L], R]], Check[R]]:
    """Decorator: makes a function the check of its module. Module, function and finding share one name."""
    return lambda function: Check(function, limits, order)
