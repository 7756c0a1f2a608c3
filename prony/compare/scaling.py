"""Throughput over users: the Universal Scalability Law, its peak and its sweet spot."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prony.compare.position import dummies
from prony.compare.summary import CONFIDENCE
from prony.special import special

Floats = NDArray[np.float64]
Law = tuple[float, float, float]
"""Rate of one user, α, β."""


def log_capacity(users: Floats, alpha: float | Floats, beta: float | Floats) -> Floats:
    """ln of N ÷ (1 + α(N - 1) + βN(N - 1)); arrays broadcast (Gunther 1993)."""
    return np.asarray(
        np.log(users) - np.log1p(alpha * (users - 1) + beta * users * (users - 1)), dtype=np.float64
    )


def throughput(users: Floats, rate_1: float, alpha: float, beta: float) -> Floats:
    """X(N) in the unit of `rate_1`, the throughput of one user."""
    return np.asarray(rate_1 * np.exp(log_capacity(users, alpha, beta)), dtype=np.float64)


PARAMETERS = 3
GRID = 60
"""Grid points of α and of β; the box shrinks until the region fills most of it."""
MOST_ROUNDS = 60
WIDEST = 1e8
"""Values of α and βN² beyond which nothing changes."""
FILLED = 0.6


@dataclass(frozen=True, slots=True)
class Region:
    """Laws within the region, one per array element, including the best fit."""

    rate_1: Floats
    alpha: Floats
    beta: Floats
    slack: Floats
    """Slack of log(`rate_1`) in either direction before the law leaves the region."""


def region(users: Floats, logs: Floats, best: Law, confidence: float, taken: int = 0) -> Region | None:
    """Every (α, β) with residual squares S <= S_min (1 + F / (n - 3)), F of 1 and n - 3 degrees of freedom
    (Bates & Watts 1988, 6.1). `taken`: degrees of freedom used elsewhere. None without any left.
    """
    freedom = users.size - PARAMETERS - taken
    if freedom < 1:
        return None
    scale = float(users.max()) ** 2
    start = (best[1], best[2] * scale)
    least = float(_misfits(users, logs, np.asarray([start[0]]), np.asarray([start[1]]))[0][0])
    limit = least * (1 + float(special.fdtri(1, freedom, confidence)) / freedom) + 1e-18
    box = (0.0, max(2 * start[0], 1e-3), 0.0, max(2 * start[1], 1e-3))
    for _ in range(MOST_ROUNDS):
        alphas, bends = np.linspace(box[0], box[1], GRID), np.linspace(box[2], box[3], GRID)
        grid_a, grid_b = (values.ravel() for values in np.meshgrid(alphas, bends))
        misfit, log_rate = _misfits(users, logs, grid_a, grid_b)
        inside = misfit <= limit
        following = _next_box(box, inside.reshape(GRID, GRID), start)
        if following is None:
            break
        box = following
    kept = np.flatnonzero(inside)
    slack = np.sqrt(np.maximum(limit - misfit[kept], 0) / users.size)
    best_slack = np.sqrt(max(limit - least, 0.0) / users.size)
    return Region(
        rate_1=np.append(np.exp(log_rate[kept]), best[0]),
        alpha=np.append(grid_a[kept], best[1]),
        beta=np.append(grid_b[kept] / scale, best[2]),
        slack=np.append(slack, best_slack),
    )


def _misfits(users: Floats, logs: Floats, alphas: Floats, bends: Floats) -> tuple[Floats, Floats]:
    scale = float(users.max()) ** 2
    left = logs - log_capacity(users, alphas[:, None], bends[:, None] / scale)
    log_rate = left.mean(axis=1)
    return ((left - log_rate[:, None]) ** 2).sum(axis=1), log_rate


Box = tuple[float, float, float, float]


def _next_box(box: Box, inside: NDArray[np.bool_], best: tuple[float, float]) -> Box | None:
    low_a, high_a, low_b, high_b = box
    if not inside.any():  # the region is finer than the grid: zoom in
        half_a, half_b = (high_a - low_a) / 4, (high_b - low_b) / 4
        if max(half_a, half_b) < 1e-12:
            return None
        return (
            max(0.0, best[0] - half_a), best[0] + half_a,
            max(0.0, best[1] - half_b), best[1] + half_b,
        )  # fmt: skip
    wide_a, wide_b = bool(inside[:, -1].any()), bool(inside[-1, :].any())
    if wide_a or wide_b:
        if (wide_a and high_a > WIDEST) or (wide_b and high_b > WIDEST):
            return None
        return low_a, high_a * (2 if wide_a else 1), low_b, high_b * (2 if wide_b else 1)
    columns, rows = np.flatnonzero(inside.any(axis=0)), np.flatnonzero(inside.any(axis=1))
    step_a, step_b = (high_a - low_a) / (GRID - 1), (high_b - low_b) / (GRID - 1)
    following = (
        max(0.0, low_a + (int(columns[0]) - 1) * step_a), low_a + (int(columns[-1]) + 1) * step_a,
        max(0.0, low_b + (int(rows[0]) - 1) * step_b), low_b + (int(rows[-1]) + 1) * step_b,
    )  # fmt: skip
    shrunk_a = (following[1] - following[0]) / (high_a - low_a)
    shrunk_b = (following[3] - following[2]) / (high_b - low_b)
    return None if min(shrunk_a, shrunk_b) > FILLED else following


FEWEST_POINTS = 4
"""Fewest different numbers of users for a fit of three parameters."""
POINTS_FOR_INTERVALS = 5
ENOUGH = 0.95
"""The sweet spot reaches this share of the highest throughput within the measured range."""
RISING = 0.9
"""Share of the range beyond which a sweet spot is none: a straight line has it there."""
POOR_FIT = 0.10
"""RMS of the log residuals above which the fit is poor."""
ABSENT = 1e-4
"""Effect of the coherency term on the throughput at the largest N below which it is zero."""


class Point(NamedTuple):
    users: float
    per_s: float
    process: str = ""
    """Key of a shared process; empty: a process of its own."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval; `low` and `high` are None without one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Scaling:
    """X(N) = rate_1 · N ÷ (1 + α(N - 1) + βN(N - 1)), fitted.

    α: contention (serial work), β: coherency (pairwise coordination).
    """

    rate_1: Estimate
    alpha: Estimate
    beta: Estimate
    peak: Estimate
    """N* = sqrt((1 - α) ÷ β), users at the highest throughput; infinite without a peak."""
    sweet_spot: Estimate
    """The fewest users that reach ENOUGH of the highest throughput within the measured range."""
    miss: float
    """RMS of the log residuals: the typical relative error."""
    most_users: float
    """Largest measured number; beyond it the law is an extrapolation."""
    points: int
    confidence: float

    @property
    def poor(self) -> bool:
        return self.miss > POOR_FIT

    @property
    def peak_seen(self) -> bool:
        return self.peak.value <= self.most_users

    @property
    def rising(self) -> bool:
        return self.sweet_spot.value > RISING * self.most_users

    def per_s(self, users: float) -> float:
        return float(throughput(np.asarray([users]), self.rate_1.value, self.alpha.value, self.beta.value)[0])


def scaling(points: Sequence[Point]) -> Scaling | None:
    """The law by bounded least squares on logarithms; None below four different N.

    Intervals from five N on. For shared processes the shape is fitted within them; a single process gives no
    interval. Raises ValueError for a point that is not positive.
    """
    if any(not (p.users >= 1 and p.per_s > 0 and math.isfinite(p.per_s)) for p in points):
        raise ValueError("a point needs at least one user and a positive, finite throughput")
    if len({p.users for p in points}) < FEWEST_POINTS:
        return None
    ordered = sorted(points)
    users = np.asarray([p.users for p in ordered], dtype=np.float64)
    shared = _processes(ordered)
    logs = np.log([p.per_s for p in ordered]) - shared.shifts
    best = _fit(users, logs)
    fitted = np.log(throughput(users, *best))
    residuals = logs - fitted
    rate_1, alpha, beta = (np.asarray([value]) for value in best)
    most_likely = [float(derived[0]) for derived in _derived(rate_1, alpha, beta, users)]
    laws = None
    if len({p.users for p in points}) >= POINTS_FOR_INTERVALS and shared.count != 1:
        laws = region(users, logs, best, CONFIDENCE, taken=max(0, shared.count - 1))
    values = None if laws is None else _ranges(laws, users, shared.half_width())

    def estimate(pick: int) -> Estimate:
        value = most_likely[pick]
        if values is None:
            return Estimate(value)
        low, high = values[pick]
        return Estimate(value, min(low, value), max(high, value))

    return Scaling(
        rate_1=estimate(0),
        alpha=estimate(1),
        beta=estimate(2),
        peak=estimate(3),
        sweet_spot=estimate(4),
        miss=float(np.sqrt(np.mean(residuals**2))),
        most_users=float(users[-1]),
        points=len(ordered),
        confidence=CONFIDENCE,
    )


@dataclass(frozen=True, slots=True)
class _Shared:
    shifts: Floats
    """Per point; 0 where no process was shared."""
    levels: Floats
    """Per process, about their mean."""

    @property
    def count(self) -> int:
        return int(self.levels.size)

    def half_width(self) -> float:
        if self.count < 2:
            return 0.0
        quantile = float(special.stdtrit(self.count - 1, 0.5 + CONFIDENCE / 2))
        return quantile * float(self.levels.std(ddof=1)) / math.sqrt(self.count)


def _processes(points: Sequence[Point]) -> _Shared:
    names = [p.process for p in points]
    if "" in names:
        return _Shared(np.zeros(len(points)), np.zeros(0))
    _, numbers = np.unique(names, return_inverse=True)
    of_process = dummies(list(numbers))
    if of_process.shape[1] < 2:
        return _Shared(np.zeros(len(points)), np.zeros(1))
    _, counts = np.unique([p.users for p in points], return_inverse=True)
    design = np.column_stack([dummies(list(counts)), of_process])
    logs = np.log([p.per_s for p in points])
    levels = np.linalg.lstsq(design, logs, rcond=None)[0][-of_process.shape[1] :]
    levels = levels - levels.mean()
    return _Shared(np.asarray(of_process @ levels), np.asarray(levels))


def _fit(users: Floats, logs: Floats) -> tuple[float, float, float]:
    from scipy import optimize as untyped_optimize  # importing it takes 0.25 s

    optimize: Any = untyped_optimize
    widest = float(users[-1]) ** 2  # β is tiny: in units of 1 ÷ N² it is of the size of α

    def model(n: Floats, log_rate: float, alpha: float, bent: float) -> Floats:
        return log_rate + log_capacity(n, alpha, bent / widest)

    def slopes(n: Floats, _: float, alpha: float, bent: float) -> Floats:
        below = 1 + alpha * (n - 1) + bent / widest * n * (n - 1)
        return np.stack([np.ones_like(n), -(n - 1) / below, -n * (n - 1) / widest / below], axis=1)

    first = float(logs[0] - np.log(users[0]))
    best: tuple[float, tuple[float, float, float]] | None = None
    starts = [(first, alpha, bent) for alpha in (0.02, 0.5) for bent in (0.01, 1.0)]
    for start in starts:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the covariance at a bound, which is not used
            try:
                values, _ = optimize.curve_fit(
                    model,
                    users,
                    logs,
                    p0=start,
                    bounds=([-np.inf, 0, 0], [np.inf, np.inf, np.inf]),
                    jac=slopes,
                    max_nfev=200,
                )
            except RuntimeError:  # did not converge: keep the starting point
                values = np.asarray(start)
        miss = float(((model(users, *values) - logs) ** 2).sum())
        if best is None or miss < best[0]:
            best = miss, (math.exp(float(values[0])), float(values[1]), float(values[2]) / widest)
    assert best is not None
    return best[1]


def _derived(rate_1: Floats, alpha: Floats, beta: Floats, users: Floats) -> tuple[Floats, ...]:
    bends = beta * float(users[-1]) ** 2 > ABSENT
    with np.errstate(divide="ignore", invalid="ignore"):
        peak = np.where(bends, np.sqrt(np.maximum(1 - alpha, 0) / beta), np.inf)
    peak = np.where(alpha >= 1, 1.0, np.maximum(1.0, peak))  # with α >= 1 one user is optimal
    # Fine enough for a sweet spot to a hundredth of a decade.
    grid = np.geomspace(users[0], users[-1], 400)
    curves = log_capacity(grid, alpha[:, None], beta[:, None])
    reached = curves >= math.log(ENOUGH) + curves.max(axis=1, keepdims=True)
    return rate_1, alpha, beta, peak, grid[reached.argmax(axis=1)]


def _ranges(laws: Region, users: Floats, between: float = 0.0) -> list[tuple[float, float]]:
    derived = _derived(laws.rate_1, laws.alpha, laws.beta, users)
    ranges = [(float(values.min()), float(values.max())) for values in derived]
    ranges[0] = (
        float((laws.rate_1 * np.exp(-laws.slack - between)).min()),
        float((laws.rate_1 * np.exp(laws.slack + between)).max()),
    )
    return ranges
