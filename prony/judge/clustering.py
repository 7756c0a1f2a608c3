"""Design effect: variance of a slow share, or of a mean, between seconds ÷ that of independent requests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Self

import numpy as np
from numpy.typing import NDArray

from prony.evidence.engine import IntervalRow

Floats = NDArray[np.float64]
FEWEST_ROWS = 5
LAG_ROWS = 15
MOST_CORRELATION = 0.9
FEWEST_INDEPENDENT = 3.0
"""Lower bound on the rows behind t: its series does not hold below."""
NORMAL = NormalDist()
SCORES = tuple(NORMAL.inv_cdf(share) for share in (0.5, 0.9, 0.99))
LEAST_SCORE = -4.0


@dataclass(frozen=True, slots=True)
class Seconds:
    """A window's m seconds: `times` (m x 4, log ns) at `scores` (normal): median, p90, p99, longest."""

    counts: Floats
    means_s: Floats
    """NaN where the engine reported none."""
    times: Floats
    scores: Floats
    longest: Floats
    """Log ns."""

    @classmethod
    def of_latencies(cls, rows: Sequence[IntervalRow]) -> Self:
        """From latency median and p99; mean: service mean + (median latency - median service time)."""
        return cls.of([_of_latency(row) for row in rows])

    @classmethod
    def of(cls, rows: Sequence[IntervalRow]) -> Self:
        answered = [row for row in rows if row.completed > 0 and row.p50_ns and row.max_ns]
        points = [_points(row) for row in answered]
        return cls(
            np.asarray([row.completed for row in answered], dtype=np.float64),
            np.asarray([math.nan if row.mean_ns is None else row.mean_ns / 1e9 for row in answered]),
            np.asarray([times for times, _ in points]).reshape(-1, 4),
            np.asarray([scores for _, scores in points]).reshape(-1, 4),
            np.asarray([math.log(row.max_ns or 1) for row in answered]),
        )

    def above(self, threshold_ns: float) -> Floats:
        """Share of each second's requests above the threshold (m): normal scores, linear in log time."""
        at = math.log(threshold_ns)
        right = np.clip((self.times <= at).sum(axis=1), 1, 3)[:, None]
        left = right - 1
        begin, end = (np.take_along_axis(self.times, side, axis=1) for side in (left, right))
        low, high = (np.take_along_axis(self.scores, side, axis=1) for side in (left, right))
        with np.errstate(divide="ignore", invalid="ignore"):
            along = np.where(end > begin, (at - begin) / (end - begin), np.where(at < begin, -math.inf, 0.0))
            scores = np.where(np.isneginf(along), LEAST_SCORE + 1, low + along * (high - low))[:, 0]
        shares = np.asarray([0.5 * math.erfc(z / math.sqrt(2)) for z in np.maximum(LEAST_SCORE, scores)])
        return np.where(at >= self.longest, 0.0, shares)


def design_effect(seconds: Seconds, threshold_ns: float, share: float) -> float:
    """Variance of the share of requests above a threshold ÷ the binomial variance, at least 1: n requests
    carry the information of n ÷ this independent ones. 1 with fewer than five rows.

    `share`: share above the threshold over the whole window. With n_i requests in row i and e_i above it,
    D = Σ (n_i (e_i - e))² ÷ ((m - 1) e (1 - e) Σ n_i ÷ m), times (1 + r) ÷ (1 - r) for the lag-1
    correlation r of the e_i, times (t ÷ z)² for the number of rows.
    Source: Kish 1965, Survey Sampling, section 5.4 (ratio estimator of clusters); batch means.
    """
    if len(seconds.counts) < FEWEST_ROWS or not 0 < share < 1 or threshold_ns <= 0:
        return 1.0
    effect, lag = _effect(seconds.counts, seconds.above(threshold_ns), share * (1 - share))
    rows = len(seconds.counts)
    if rows >= LAG_ROWS:
        effect *= (1 + lag) / (1 - lag)
    return max(1.0, effect * few(rows))


def mean_effect(seconds: Seconds, variance_s2: float) -> float | None:
    """The same for the mean time: s² replaces e (1 - e). None below five rows, or where a row has no mean.

    Correlation counts from five rows on, with Kendall's bias correction, (1 + 3r) ÷ m.
    """
    has_means = bool(np.all(np.isfinite(seconds.means_s)))
    if len(seconds.counts) < FEWEST_ROWS or not has_means or variance_s2 <= 0:
        return None
    effect, lag = _effect(seconds.counts, seconds.means_s, variance_s2)
    rows = len(seconds.counts)
    if effect > 1:
        lag = min(lag + (1 + 3 * lag) / rows, MOST_CORRELATION)
    independent = rows * (1 - lag) / (1 + lag)
    return max(1.0, effect * (1 + lag) / (1 - lag)) * few(max(independent, FEWEST_INDEPENDENT))


def _effect(counts: Floats, values: Floats, variance: float) -> tuple[float, float]:
    """Of a ratio estimator over rows, and its lag-1 correlation. `variance`: of one request."""
    rows = len(counts)
    mean = float(np.dot(counts, values) / counts.sum())
    residuals = counts * (values - mean)
    squares = float(np.dot(residuals, residuals))
    effect = squares / (rows - 1) / (variance * float(counts.sum()) / rows)
    if effect <= 1:
        return effect, 0.0
    together = float(np.dot(residuals[1:], residuals[:-1])) / squares
    return effect, min(max(together, 0.0), MOST_CORRELATION)


def few(rows: float) -> float:
    """Small-sample factor (t ÷ z)² at 95 % with rows - 1 degrees of freedom (Cornish & Fisher 1938)."""
    z, degrees = NORMAL.inv_cdf(0.975), rows - 1
    t = z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
    return (t / z) ** 2


def _of_latency(row: IntervalRow) -> IntervalRow:
    p50_ns, p99_ns = row.latency_p50_ns, row.latency_p99_ns
    if p50_ns is None or row.p50_ns is None or row.mean_ns is None:
        return row.model_copy(update={"mean_ns": None})
    times_ns = [ns for ns in (p50_ns, p99_ns, row.max_ns) if ns is not None]
    return row.model_copy(
        update={
            "mean_ns": row.mean_ns + p50_ns - row.p50_ns,
            "p50_ns": p50_ns,
            "p90_ns": None,
            "p99_ns": p99_ns,
            "max_ns": max(times_ns),
        }
    )


def _points(row: IntervalRow) -> tuple[list[float], list[float]]:
    points = [(row.p50_ns, SCORES[0]), (row.p90_ns, SCORES[1]), (row.p99_ns, SCORES[2])]
    points.append((row.max_ns, max(NORMAL.inv_cdf(1 - 0.5 / max(row.completed, 2)), SCORES[0])))
    times: list[float] = []
    scores: list[float] = []
    for value, score in points:
        # Percentiles with equal times keep the lowest score: that share lies at or above the time.
        if value is not None and value > 0 and (not times or (value > times[-1] and score > scores[-1])):
            times.append(float(value))
            scores.append(score)
    missing = len(points) - len(times)
    logs = [math.log(value) for value in times]
    return logs + logs[-1:] * missing, scores + scores[-1:] * missing
