"""What a check is: a pure function of evidence and limits, with the limits it declares and its place in the
output.
"""

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
    """Base of the limits that a check declares: each field is a key of `limits:` in a plan, with its default
    and a docstring that says where the number comes from. Shares are 0..1; other units are in the name.
    """

    def of(self, kind: type[L]) -> L:
        """These limits as those of one check. All limits together (`CheckLimits`) are every check's."""
        assert isinstance(self, kind), f"{type(self).__name__} does not hold the limits {kind.__name__}"
        return self

    @classmethod
    def among(cls, limits: Mapping[str, Any]) -> Self:
        """Its own of the limits of a plan or a judgement; the others are the defaults."""
        return cls.model_validate({key: value for key, value in limits.items() if key in cls.model_fields})


L = TypeVar("L", bound=DeclaredLimits)
R = TypeVar("R", bound=Finding | None, covariant=True)


class Check(Generic[R]):
    """A check: call it with evidence and limits. Its function returns None where it does not apply."""

    def __init__(self, function: Callable[[Evidence, L], R], limits: type[L], order: int) -> None:
        self.name: str = function.__name__
        self.limits: type[DeclaredLimits] = limits
        self.order = order
        """Findings stand in this order: causes (another process on the CPUs) come before their symptoms (a
        server that looks idle), and the first that does not conform is named.
        """
        self._judge: Callable[[Evidence, DeclaredLimits], R] = lambda evidence, all_limits: function(
            evidence, all_limits.of(limits)
        )

    def __call__(self, evidence: Evidence, limits: DeclaredLimits) -> R:
        return self._judge(evidence, limits)


def check(
    limits: type[L],
    *,
    order: int,
) -> Callable[[Callable[[Evidence, L], R]], Check[R]]:
    """Makes a function the check of its module: both have the same name, which is also the finding's."""
    return lambda function: Check(function, limits, order)
