"""Ends a window when its figure is known precisely enough."""

from __future__ import annotations

from dataclasses import dataclass, field

from prony.evidence.engine import IntervalRow
from prony.plan.load import SteadyWindow
from prony.plan.trial import TrialPlan
from prony.steady.precision import LEAST_ROWS, half_width, t_quantile


@dataclass(slots=True)
class PreciseEnough:
    """Told each row of the window: throughput in a closed loop; p50 in an open one, whose schedule sets its
    throughput.
    """

    precision: float
    by_p50: bool
    _values: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, plan: TrialPlan) -> PreciseEnough | None:
        """None where the plan fixes how long is measured."""
        measured = plan.measured
        if not isinstance(measured, SteadyWindow) or measured.precision is None:
            return None
        t_quantile(LEAST_ROWS, 0.975)  # what it imports costs CPU: now, and not in the window
        return cls(measured.precision, by_p50=plan.load.model == "open")

    def __call__(self, row: IntervalRow) -> bool:
        """Whether the figure is as precise as it was asked for, this row included."""
        value = row.p50_ns if self.by_p50 else row.completed_per_s
        if value is not None:
            self._values.append(float(value))
        half = half_width(self._values)
        return half is not None and half <= self.precision
