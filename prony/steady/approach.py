"""Residual drift: bound on the change of a series after its window, to its plateau or up to a horizon."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prony.steady.changes import MAX_POINTS, NOISE_FLOOR
from prony.steady.precision import t_quantile

SHORTEST_S, LONGEST_S = 3.0, 300.0
"""Range of time constants. A slower approach looks level over any practical window and is not covered."""
TIME_CONSTANTS = 28
"""Grid points, evenly spaced on the log scale, 19 % apart."""
CONFIDENCE = 0.95
"""One-sided confidence of the bound to the plateau, per time constant ..."""
TWO_SIDED = 0.975
"""... and of either end of the interval up to a horizon."""
DISMISSED = 3.84
"""Misfit above the best, long-run variances, that dismisses a time constant (chi-square, 1 degree, 95 %)."""
APART = 4.0
"""Least ratio of two time constants that a fit can separate."""
MOST_CORRELATED = 0.9
"""Autocorrelation above which a series of minutes is indistinguishable from a random walk."""
FEWEST_ROWS = 8
ROUNDING = 1e-9

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Approach:
    """The remaining change, as differences of log levels (0.03 is about 3 %)."""

    remaining: float
    """Best estimate of (level at the horizon - mean of the window): positive while the series rises."""
    coming: tuple[tuple[float, float], ...]
    """(change, 95 % half-width) for every time constant that the rows do not contradict."""
    time_constant_s: float
    """Of the best fit (infinite: a straight line); arbitrary where `remaining` is small."""
    noise: float
    """Standard deviation of a row around the fit."""
    autocorrelation: float
    """Lag-1 autocorrelation of the rows around the fit, corrected for short series; at least 0."""
    rows: int

    @property
    def low(self) -> float:
        return min(change - half for change, half in self.coming)

    @property
    def high(self) -> float:
        return max(change + half for change, half in self.coming)

    @property
    def bound(self) -> float:
        return max(-self.low, self.high)

    def less(self, other: Approach) -> tuple[float, float]:
        """Interval of this change minus an independent one's; errors add as squares."""
        ends = [
            (mine - theirs, math.hypot(half, others_half))
            for mine, half in self.coming
            for theirs, others_half in other.coming
        ]
        return min(c - half for c, half in ends), max(c + half for c, half in ends)


def approach(
    logs: Sequence[float] | Floats,
    at_s: Sequence[float] | Floats,
    window: Sequence[bool] | NDArray[np.bool_],
    regime: Sequence[int] | NDArray[np.int_] | None = None,
    *,
    horizon_s: float = math.inf,
) -> Approach | None:
    """Fits level - gap x exp(-t / T) to a series on the log scale, for each T of a grid and a straight line,
    and bounds its change from the mean of `window` until `horizon_s` after the window. Without a horizon: to
    the plateau, and for a straight line over the window's own length.

    `at_s`: the middle of each row, from any origin. `regime`: rows of one number share a level (the server's
    CPUs, a trial); all share the approach. Future rows are NaN in `logs`: the bound is then the expected one.
    None with fewer than FEWEST_ROWS measured rows, or no row in the window.

    For one T the model is linear: least squares, with variance and degrees of freedom corrected by (1 + rho)
    / (1 - rho) for autocorrelation (Bartlett 1946). Over T it is a profile: the bound is the largest over all
    T that the rows do not dismiss. A fast approach that ended in the rows adds nothing; a slow one is bounded
    by the slope that would have shown. As a fast approach early in the rows may mask a much slower one, each
    T above APART times the best is also fitted together with the best.
    """
    y, t = np.asarray(logs, dtype=np.float64), np.asarray(at_s, dtype=np.float64)
    inside = np.asarray(window, dtype=bool)
    part = np.zeros(y.size, dtype=int)
    if regime is not None:
        part = np.unique(np.asarray(regime, dtype=int), return_inverse=True)[1]
    if np.count_nonzero(~np.isnan(y)) < FEWEST_ROWS or not inside.any():
        return None
    series = _thinned(y, t - t.min(), inside, part)
    grid = np.geomspace(SHORTEST_S, LONGEST_S, TIME_CONSTANTS)
    fits = [fit for tau in (*grid, math.inf) if (fit := _fit(series, tau, horizon_s)) is not None]
    if not fits:
        return None
    best = min(fits, key=lambda fit: fit.misfit)
    inflation = (1 + best.rho) / (1 - best.rho)
    unit = max(best.misfit / best.freedom, NOISE_FLOOR**2) * inflation
    kept = [fit for fit in fits if fit.misfit - best.misfit <= DISMISSED * unit]
    slower = [fit.tau for fit in fits if fit.tau > APART * best.tau and fit not in kept]
    kept += [fit for tau in slower if (fit := _fit(series, tau, horizon_s, best.tau)) is not None]
    return Approach(
        remaining=best.remaining,
        coming=tuple((fit.remaining, fit.half) for fit in kept),
        time_constant_s=best.tau,
        noise=math.sqrt(best.misfit / best.freedom),
        autocorrelation=best.rho,
        rows=int(np.count_nonzero(~np.isnan(y))),
    )


MOST_ROWS = 3600


def rows_needed(noise: float, autocorrelation: float, window_rows: int, limit: float) -> int:
    """Approximate one-second rows, window included, for a bound below `limit`; at most MOST_ROWS."""
    least = max(FEWEST_ROWS, window_rows + 3)

    def suffice(rows: int) -> bool:
        return _level_bound(noise, autocorrelation, window_rows, rows) < limit

    return least + bisect_left(range(least, MOST_ROWS), True, key=suffice)


@dataclass(frozen=True, slots=True)
class _Series:
    y: Floats
    t: Floats
    inside: NDArray[np.bool_]
    part: NDArray[np.int_]
    known: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Fit:
    tau: float
    remaining: float
    half: float
    misfit: float
    freedom: int
    rho: float


def _thinned(y: Floats, t: Floats, inside: NDArray[np.bool_], part: NDArray[np.int_]) -> _Series:
    known = ~np.isnan(y)
    width = math.ceil(max(int(np.count_nonzero(part == number)) for number in np.unique(part)) / MAX_POINTS)
    if width == 1:
        return _Series(y, t, inside, part, known)
    kept: list[NDArray[np.int_]] = []
    for number in np.unique(part):
        for rows in (np.flatnonzero((part == number) & known), np.flatnonzero((part == number) & ~known)):
            kept += list(rows[: rows.size // width * width].reshape(-1, width))
    parts = np.asarray(kept)
    first = parts[:, 0]
    return _Series(y[parts].mean(axis=1), t[parts].mean(axis=1), inside[first], part[first], known[first])


def _fit(series: _Series, tau: float, horizon_s: float, second: float | None = None) -> _Fit | None:
    """`second`: time constant of a second approach in the fit. None where the rows do not determine both."""
    known, regimes = series.known, int(series.part.max()) + 1
    shapes = [
        _shape(series, constant, horizon_s) for constant in ((tau,) if second is None else (tau, second))
    ]
    y = _centred(series.y[known], series.part[known])  # removes a level per regime
    seen = np.column_stack([_centred(shape[known], series.part[known]) for shape, _ in shapes])
    design = np.column_stack([_centred(shape, series.part) for shape, _ in shapes])
    normal = seen.T @ seen
    freedom = int(y.size - regimes - len(shapes))
    if np.linalg.det(normal) < 1e-12 or freedom < 3:
        return None
    slopes = np.linalg.solve(normal, seen.T @ y)
    residual = y - seen @ slopes
    misfit = float(residual @ residual)
    rho = _autocorrelation(residual, misfit, regimes + len(shapes))
    inflation = (1 + rho) / (1 - rho)
    variance = max(misfit / freedom, NOISE_FLOOR**2) * inflation
    shares = np.asarray([share for _, share in shapes])
    free = series.y.size / inflation - regimes - len(shapes)
    t_value = t_quantile(max(free, 1.5), CONFIDENCE if math.isinf(horizon_s) else TWO_SIDED)
    remaining = -float(slopes @ shares)
    error = math.sqrt(variance * float(shares @ np.linalg.solve(design.T @ design, shares)))
    return _Fit(tau, remaining, t_value * error, misfit, freedom, rho)


def _shape(series: _Series, tau: float, horizon_s: float) -> tuple[Floats, float]:
    """Remainder of a unit gap at each row, and its decrease from the window's mean to the horizon."""
    if math.isinf(tau):
        unit = float(series.t.max()) or 1.0
        line = series.t / unit
        return line, _mean_over_windows(series, lambda rows: _line_ahead(series.t[rows], horizon_s) / unit)
    decay = np.exp(-series.t / tau)

    def left(rows: NDArray[np.bool_]) -> float:
        end_s = float(series.t[rows].max()) + horizon_s
        return float(decay[rows].mean()) - math.exp(-end_s / tau)

    return decay, _mean_over_windows(series, left)


def _line_ahead(t: Floats, horizon_s: float) -> float:
    return -float(np.ptp(t)) if math.isinf(horizon_s) else float(t.mean() - t.max()) - horizon_s


def _mean_over_windows(series: _Series, of: Callable[[NDArray[np.bool_]], float]) -> float:
    windows = [series.inside & (series.part == number) for number in np.unique(series.part)]
    return float(np.mean([of(rows) for rows in windows if rows.any()]))


def _centred(values: Floats, part: NDArray[np.int_]) -> Floats:
    counts = np.maximum(np.bincount(part), 1)
    means = np.bincount(part, values) / counts
    return np.asarray(values - means[part], dtype=np.float64)


def _autocorrelation(residual: Floats, misfit: float, parameters: int) -> float:
    if misfit <= residual.size * ROUNDING**2:
        return 0.0
    raw = float(residual[1:] @ residual[:-1]) / misfit
    return float(np.clip(raw + (parameters + 3 * max(raw, 0.0)) / residual.size, 0.0, MOST_CORRELATED))


def _level_bound(noise: float, rho: float, window_rows: int, rows: int) -> float:
    inflation = (1 + rho) / (1 - rho)
    decay = np.exp(-(np.arange(rows) + 0.5) / LONGEST_S)
    spread = float(((decay - decay.mean()) ** 2).sum())
    t_value = t_quantile(max(rows / inflation - 2, 1.5), CONFIDENCE)
    error = max(noise, NOISE_FLOOR) * math.sqrt(inflation / spread) * float(decay[-window_rows:].mean())
    # The estimate of a level series lies 0.8 standard errors away on average: an even chance.
    return error * (t_value + 0.8)
