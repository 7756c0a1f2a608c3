"""Change points and trend of a series on the log scale, calibrated against false alarms (docs/method.md)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray

from prony.steady.precision import t_quantile

MIN_SEGMENT_ROWS = 3
"""Shortest level: two deviating rows are usually noise."""
MAX_CHANGES_FOR_VARIANCE = 2
LONG_RUN_FACTOR = 3.0
"""(1 + rho) / (1 - rho) for rho = 0.5: inflation of the variance of a mean."""
TREND_CONFIDENCE = 0.995
"""Two-sided, after inflation by LONG_RUN_FACTOR."""
UNSETTLED = 6.0
"""Squared distance, in variances, above which a leading row is cut off a level: 1 row of noise in 70."""
LONE, LONE_WINDOW = 10.0, 5
MAX_POINTS = 240
"""Parts into which longer series are averaged (an eight-hour soak has 28,800 rows)."""
NOISE_FLOOR = 0.0005
"""Standard deviation of an exact series: half the resolution of three significant digits."""
NORMAL_MAD = 0.6744897501960817

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes in a series, as differences of log levels: 0.02 is about 2 %."""

    cuts: tuple[int, ...]
    levels: tuple[float, ...]
    """Mean log level per segment: one more than cuts."""
    trend: float
    """Change of the fitted line from the first row to the last."""
    trend_error: float
    """Standard error of `trend`, inflated for autocorrelation."""
    is_trend: bool
    """Whether a line describes the series better than levels."""
    resolution: float
    """Approximate smallest detectable step in mid-series; infinite when too short."""

    @property
    def largest_step(self) -> float:
        steps = [b - a for a, b in pairwise(self.levels)]
        return max(steps, key=abs, default=0.0)

    @property
    def largest(self) -> float:
        """The significant change by the better description, signed; 0 when nothing is significant."""
        return self.trend if self.is_trend else self.largest_step


def log_levels(values: Sequence[float]) -> Floats:
    """Logarithms, floored at a twentieth of the median so that an empty second is an outlier, not -inf."""
    array = np.asarray(values, dtype=np.float64)
    positive = array[array > 0]
    floor = median(positive.tolist()) / 20 if positive.size else 1.0
    return np.log(np.maximum(array, floor))


def find_changes(
    logs: Floats, *, penalty: float, least: float, max_changes_for_variance: int = MAX_CHANGES_FOR_VARIANCE
) -> Changes:
    """Levels by the l2 cost (the optimum that PELT finds), and the trend by least squares.

    `penalty` is in units of the residual variance. Segments whose levels differ by less than `least` are
    joined.
    """
    count = logs.size
    width = max(1, math.ceil(count / MAX_POINTS))
    points = _averaged(logs, width)
    cuts, variance = _cuts(points, penalty, max_changes_for_variance)
    resolution = 2 * math.sqrt(penalty * variance / points.size) if points.size else math.inf
    cuts = _joined(points, cuts, least)
    levels = tuple(float(part.mean()) for part in np.split(points, cuts)) if points.size else ()
    trend, error, significant, misfit = _trend(points)
    freedom = points.size - 1 - 2 * len(cuts)
    is_trend = significant and (not cuts or misfit <= _residual(points, cuts) / max(freedom, 1))
    return Changes(tuple(c * width for c in cuts), levels, trend, error, is_trend, resolution)


def unsettled_rows(logs: Floats) -> int:
    """Leading rows not yet at the newest half's level: the cut k minimises UNSETTLED × k + Σ squared
    distances of the rows from k on, in variances of that half.
    """
    half = logs[logs.size // 2 :]
    if half.size < MIN_SEGMENT_ROWS:
        return 0
    level = median(half.tolist())
    deviation = max(median(np.abs(half - level).tolist()) / NORMAL_MAD, NOISE_FLOOR)
    gain = np.cumsum(((logs[: logs.size // 2] - level) / deviation) ** 2 - UNSETTLED)
    best = int(np.argmax(gain)) if gain.size else 0
    return best + 1 if gain.size and gain[best] > 0 else 0


def lone_rows(logs: Floats) -> tuple[int, ...]:
    """Outliers: further than LONE deviations from the median of the five rows around them."""
    if logs.size < LONE_WINDOW:
        return ()
    around = np.lib.stride_tricks.sliding_window_view(
        np.pad(logs, LONE_WINDOW // 2, mode="edge"), LONE_WINDOW
    )
    distance = np.abs(logs - np.sort(around, axis=1)[:, LONE_WINDOW // 2])
    usual = max(median(distance.tolist()) / NORMAL_MAD, NOISE_FLOOR)
    return tuple(int(i) for i in np.flatnonzero(distance > LONE * usual))


def _averaged(logs: Floats, width: int) -> Floats:
    if width == 1:
        return logs
    usable = logs.size // width * width
    return np.asarray(logs[:usable].reshape(-1, width).mean(axis=1), dtype=np.float64)


def _cuts(points: Floats, penalty: float, max_changes: int) -> tuple[list[int], float]:
    if points.size < 2 * MIN_SEGMENT_ROWS:
        return [], math.inf
    if float(np.ptp(points)) < NOISE_FLOOR:
        return [], NOISE_FLOOR**2
    variance = float(points.var(ddof=1))
    for cuts, error in islice(_divisions(points), 1, max_changes + 1):
        freedom = points.size - 1 - 2 * len(cuts)
        if freedom >= 2:
            variance = min(variance, error / freedom)
    variance = max(variance, NOISE_FLOOR**2)
    chosen, least = [], math.inf
    for cuts, error in _divisions(points):
        paid = penalty * variance * len(cuts)
        if paid >= least:
            break
        if error + paid < least:
            chosen, least = cuts, error + paid
    return chosen, variance


def _divisions(points: Floats) -> Iterator[tuple[list[int], float]]:
    """Cuts into 1, 2, 3 … levels of MIN_SEGMENT_ROWS or more, each with the least squared error; exact (Auger
    and Lawrence 1989). Every line takes 0.1 ms for MAX_POINTS.
    """
    centred = points - points.mean()
    sums, squares = (np.concatenate(([0.0], np.cumsum(values))) for values in (centred, centred**2))
    ends = np.arange(sums.size)
    rows = ends - ends[:, None]
    errors = squares - squares[:, None] - (sums - sums[:, None]) ** 2 / np.maximum(rows, 1)
    errors[rows < MIN_SEGMENT_ROWS] = math.inf
    best, starts = errors[0], list[NDArray[np.intp]]()
    while math.isfinite(best[-1]):
        cuts = [points.size]
        for start in reversed(starts):
            cuts.insert(0, int(start[cuts[0]]))
        yield cuts[:-1], float(best[-1])
        joined = best[:, None] + errors
        starts.append(joined.argmin(axis=0))
        best = joined.min(axis=0)


def _residual(points: Floats, cuts: list[int]) -> float:
    return sum(float(((part - part.mean()) ** 2).sum()) for part in np.split(points, cuts))


def _joined(points: Floats, cuts: list[int], least: float) -> list[int]:
    kept = list(cuts)
    while kept:
        levels = [float(part.mean()) for part in np.split(points, kept)]
        steps = [abs(b - a) for a, b in pairwise(levels)]
        smallest = int(np.argmin(steps))
        if steps[smallest] >= least:
            break
        del kept[smallest]
    return kept


def _trend(points: Floats) -> tuple[float, float, bool, float]:
    count = points.size
    if count < MIN_SEGMENT_ROWS:
        return 0.0, math.inf, False, math.inf
    time = np.linspace(-0.5, 0.5, count)
    slope = float(np.dot(time, points) / np.dot(time, time))
    residual = points - points.mean() - slope * time
    variance = max(float((residual**2).sum()) / (count - 2), NOISE_FLOOR**2)
    error = math.sqrt(LONG_RUN_FACTOR * variance / float(np.dot(time, time)))
    critical = t_quantile(count - 2, 0.5 + TREND_CONFIDENCE / 2)
    return slope, error, abs(slope) > critical * error, variance
