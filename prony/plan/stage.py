"""A load of its own that is offered wholly before the measured one, or wholly after it: what JMeter calls
setUp and tearDown groups. Nothing of it is judged.
"""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from prony.evidence.base import Record
from prony.plan.load import DRAIN_S, WHOLE_CAP_S, ClosedLoad
from prony.plan.population import last_end_s, misfit
from prony.plan.workload import Workload


class Stage(Record):
    """Groups of users who end by themselves, and what they walk."""

    workload: Workload
    loads: ClosedLoad

    @model_validator(mode="after")
    def _ends(self) -> Self:
        groups = self.loads.populations
        if not groups or not all(one.bounded for one in groups):
            raise ValueError(
                "a load before or after another one ends by itself; expected loads: populations, each with "
                "iterations_per_user or duration_s"
            )
        wrong = misfit(groups, self.workload.scenario_texts, list(self.workload.feeders))
        if wrong is not None:
            raise ValueError(wrong)
        return self

    @property
    def bound_s(self) -> float:
        """It is ended after this, whatever the server does."""
        end_s = last_end_s(self.loads.populations)
        return WHOLE_CAP_S if end_s is None else end_s + DRAIN_S
