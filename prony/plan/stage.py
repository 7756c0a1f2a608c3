"""A separate load before or after the measured one, like JMeter's setUp and tearDown groups. Not judged."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from prony.evidence.base import Record
from prony.plan.load import DRAIN_S, WHOLE_CAP_S, ClosedLoad
from prony.plan.population import last_end_s, misfit
from prony.plan.workload import Workload


class Stage(Record):
    """Bounded groups of users and their workload."""

    workload: Workload
    loads: ClosedLoad
    gives: tuple[str, ...] = ()
    """Values of its users that the loads after it know."""

    @model_validator(mode="after")
    def _ends(self) -> Self:
        groups = self.loads.populations
        if not groups or not all(group.bounded for group in groups):
            raise ValueError(
                "a load before or after the measured one must end: expected loads: populations, each with "
                "iterations_per_user or duration_s"
            )
        wrong = misfit(groups, self.workload.scenario_texts, list(self.workload.feeders))
        if wrong is not None:
            raise ValueError(wrong)
        return self

    @property
    def bound_s(self) -> float:
        end_s = last_end_s(self.loads.populations)
        return WHOLE_CAP_S if end_s is None else end_s + DRAIN_S
