"""Does the rate rise with more users? The seconds of the scaling probe against those of the window.

Must not know what the rate is bound by, or what follows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from prony.evidence.trial import Evidence
from prony.judge.window import measured
from prony.steady.detector import full_rows
from prony.steady.quantile import t_quantile

CONFIDENCE = 0.95
INFLATION = 3.0
"""Of the variance of a mean of seconds: their autocorrelation is taken for 0.5, as by `steady`."""
LEAST_ROWS = 2
"""On either side; a spread needs two."""


@dataclass(frozen=True, slots=True)
class Rise:
    """By how much the rate was higher under the probe, as a share of the window's, with its 95 % interval."""

    gain: float
    low: float
    high: float
    more_users: float
    """By how much there were more users, as a share."""


def rise(evidence: Evidence) -> Rise | None:
    """None without a probe, or where either side has too few seconds."""
    probe, window, users = evidence.scaling_probe, measured(evidence), evidence.load.users
    if probe is None or window is None or evidence.engine is None or not users:
        return None
    rows = full_rows(evidence.engine.rows, window.opened_ms, window.opened_ms + window.duration_s * 1000)
    before, after = [row.completed_per_s for row in rows], list(probe.rates_per_s)
    if min(len(before), len(after)) < LEAST_ROWS or fmean(before) <= 0 or fmean(after) <= 0:
        return None
    ratio = fmean(after) / fmean(before)
    freedom = len(before) + len(after) - 2
    pooled = (_squares(before) + _squares(after)) / freedom
    error = ratio * math.sqrt(INFLATION * pooled * (1 / len(before) + 1 / len(after)))
    half = t_quantile(freedom, 0.5 + CONFIDENCE / 2) * error
    return Rise(ratio - 1, ratio - 1 - half, ratio - 1 + half, probe.users / users - 1)


def _squares(rates: Sequence[float]) -> float:
    """Sum of squared deviations from the mean, as shares of it."""
    mean = fmean(rates)
    return sum((rate / mean - 1) ** 2 for rate in rates)
