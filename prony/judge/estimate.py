"""A trial's figure as printed: value, statistical interval, bias, residual drift."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from prony.evidence.trial import Evidence
from prony.judge.checks.samples import SamplesLimits
from prony.judge.finding import Bias, Judgement, added
from prony.judge.times import NAMED, headline_times
from prony.judge.window import measured
from prony.steady.detector import full_rows
from prony.steady.precision import half_width

FEWEST_ROWS = 5


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """How far a figure may be off: the interval of its trials' (geometric) mean, and the budget, each
    relative to the mean; None where not bounded, or (of the interval) not known.
    """

    low: float | None
    high: float | None
    bias_low: float | None
    bias_high: float | None

    @property
    def worst(self) -> tuple[float | None, float | None]:
        return Bias(low=self.bias_low, high=self.bias_high).beyond(self.low or 0.0, self.high or 0.0)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Values in the figure's unit; biases relative to the value. None: not bounded on that side, or (both
    ends of an interval or plateau) not known.
    """

    value: float
    low: float | None = None
    high: float | None = None
    """Statistical, 95 %."""
    bias_low: float | None = 0.0
    bias_high: float | None = 0.0
    """Sum of the budget, every source at its worst."""
    plateau_low: float | None = None
    plateau_high: float | None = None
    """Up to `horizon_s` after the window: interval, budget and residual drift added."""
    horizon_s: float | None = None

    @property
    def bias(self) -> Bias:
        return Bias(low=self.bias_low, high=self.bias_high)

    @property
    def uncertainty(self) -> Uncertainty:
        low, high = (None if end is None else end / self.value - 1 for end in (self.low, self.high))
        return Uncertainty(low, high, self.bias_low, self.bias_high)


def estimates(evidence: Evidence, judgement: Judgement, figures: Mapping[str, float]) -> dict[str, Estimate]:
    intervals = _intervals(evidence, judgement, figures)
    return {
        name: _estimate(name, value, judgement, *intervals.get(name, (None, None)))
        for name, value in figures.items()
        if math.isfinite(value)
    }


def _estimate(
    name: str, value: float, judgement: Judgement, low: float | None, high: float | None
) -> Estimate:
    bias, plateau = judgement.bias(name), judgement.plateau(name)
    estimate = Estimate(value, low, high, bias.low, bias.high)
    if plateau is None or value <= 0:
        return estimate
    whole = added((bias, plateau.bias))
    return replace(
        estimate,
        plateau_low=None if whole.low is None else (value if low is None else low) * (1 + whole.low),
        plateau_high=None if whole.high is None else (value if high is None else high) * (1 + whole.high),
        horizon_s=plateau.horizon_s,
    )


def _intervals(
    evidence: Evidence, judgement: Judgement, names: Collection[str]
) -> dict[str, tuple[float | None, float | None]]:
    intervals: dict[str, tuple[float | None, float | None]] = {}
    if "requests_per_s" in names:
        intervals["requests_per_s"] = rate_interval(evidence)
    percentiles = {name: NAMED[name] for name in NAMED if name in names}
    if (not percentiles and "mean_ms" not in names) or (times := headline_times(evidence)) is None:
        return intervals
    confidence = SamplesLimits.among(judgement.limits).samples_confidence
    for name, percentile in percentiles.items():
        if (estimate := times.percentile(percentile, confidence)) is not None:
            intervals[name] = _finite(estimate.low_ms, estimate.high_ms)
    if "mean_ms" in names:
        intervals["mean_ms"] = _finite(*times.mean_interval(confidence))
    return intervals


def _finite(low: float, high: float) -> tuple[float | None, float | None]:
    return (low if math.isfinite(low) else None), (high if math.isfinite(high) else None)


def rate_interval(evidence: Evidence) -> tuple[float | None, float | None]:
    """95 %, from the window's seconds; (None, None) below FEWEST_ROWS and in an open loop."""
    window = measured(evidence)
    if window is None or evidence.engine is None or evidence.load.model == "open":
        return None, None
    rows = full_rows(evidence.engine.rows, window.opened_ms, window.opened_ms + window.duration_s * 1000)
    half = half_width([row.completed_per_s for row in rows], FEWEST_ROWS)
    if half is None:
        return None, None
    rate = window.completed / window.duration_s
    return max(0.0, rate * (1 - half)), rate * (1 + half)
