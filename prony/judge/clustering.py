"""How much more a share of slow requests varies from second to second than it would if requests were
independent. Must not know which times are judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from prony.evidence.engine import IntervalRow

Floats = NDArray[np.float64]
FEWEST_ROWS = 5
LAG_ROWS = 15
"""Rows from which on the correlation of one with the next is looked at."""
MOST_CORRELATION = 0.9
NORMAL = NormalDist()
SCORES = tuple(NORMAL.inv_cdf(share) for share in (0.5, 0.9, 0.99))


def design_effect(rows: Sequence[IntervalRow], threshold_ns: float, share: float) -> float:
    """The factor by which the variance of the share of requests above a threshold exceeds the binomial one,
    at least 1; n requests then know as much as n ÷ this many independent ones. 1 with fewer than five rows.

    `share` is what lies above the threshold over all. With n_i requests in row i and e_i above it,
    D = Σ (n_i (e_i - e))² ÷ ((m - 1) e (1 - e) Σ n_i ÷ m), times (1 + r) ÷ (1 - r) for the lag-1
    correlation r of the e_i, times (t ÷ z)² for the few rows that it is known from.
    Source: Kish 1965, Survey Sampling, section 5.4 (ratio estimator of clusters); batch means.
    """
    known = [row for row in rows if row.completed > 0 and row.p50_ns is not None and row.max_ns is not None]
    if len(known) < FEWEST_ROWS or not 0 < share < 1 or threshold_ns <= 0:
        return 1.0
    counts = np.asarray([row.completed for row in known], dtype=np.float64)
    above = np.asarray([_share_above(row, threshold_ns) for row in known])
    mean = float(np.dot(counts, above) / counts.sum())
    residuals = counts * (above - mean)
    rows_m = len(known)
    usual = share * (1 - share) * float(counts.sum()) / rows_m
    effect = float(np.dot(residuals, residuals)) / (rows_m - 1) / usual
    if rows_m >= LAG_ROWS and effect > 1:
        together = float(np.dot(residuals[1:], residuals[:-1]) / np.dot(residuals, residuals))
        lag = min(max(together, 0.0), MOST_CORRELATION)
        effect *= (1 + lag) / (1 - lag)
    return max(1.0, effect * _few(rows_m))


def _few(rows: int) -> float:
    """(t ÷ z)² at 95 % with rows - 1 degrees of freedom (Cornish & Fisher 1938, two terms)."""
    z, degrees = NORMAL.inv_cdf(0.975), rows - 1
    t = z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
    return (t / z) ** 2


def _share_above(row: IntervalRow, threshold_ns: float) -> float:
    """Of a row's requests, from its percentiles: normal scores, straight between them over log time."""
    longest = row.max_ns or 0
    if threshold_ns >= longest:
        return 0.0
    points = [(row.p50_ns, SCORES[0]), (row.p90_ns, SCORES[1]), (row.p99_ns, SCORES[2])]
    points.append((longest, max(NORMAL.inv_cdf(1 - 0.5 / max(row.completed, 2)), SCORES[0])))
    times: list[float] = []
    scores: list[float] = []
    for value, score in points:
        # A time that several percentiles share has the lowest of their scores: that much lies at or above it.
        if value is not None and value > 0 and (not times or (value > times[-1] and score > scores[-1])):
            times.append(float(value))
            scores.append(score)
    if not times or threshold_ns < times[0]:
        score = _below(times, scores, threshold_ns)
    else:
        score = float(np.interp(np.log(threshold_ns), np.log(times), scores))
    return 1 - NORMAL.cdf(score)


def _below(times: Sequence[float], scores: Sequence[float], threshold_ns: float) -> float:
    """The score of a time shorter than the median: along the first stretch, as if it were symmetric."""
    if len(times) < 2:
        return -3.0 if times else 0.0
    slope = (scores[1] - scores[0]) / (np.log(times[1]) - np.log(times[0]))
    return float(max(-4.0, scores[0] + slope * (np.log(threshold_ns) - np.log(times[0]))))
