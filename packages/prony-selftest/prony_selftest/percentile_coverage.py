"""Coverage of percentile intervals by the judge's functions: of one trial, of the median of trials."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prony.evidence.engine import IntervalRow
from prony.judge.clustering import Seconds
from prony.judge.histogram import Decoded
from prony.judge.percentiles import Times, median_interval, useful_samples

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]
Share = Callable[[float], float]

SEED = 20261122
SPREAD = 0.4
"""Default standard deviation (log) of times."""
NORMAL = NormalDist()
PAUSED = 0.02
"""Share of requests that meet a pause; TOGETHER consecutive requests meet the same pause."""
TOGETHER = 20
SECONDS = 30
"""Length of a window."""


@dataclass(frozen=True, slots=True)
class TimesWorld:
    """`draw(rng, n)` gives the times (ms) of n requests in order; `below(t)` is the share below t."""

    name: str
    description: str
    draw: Draw
    below: Share

    def percentile(self, percentile: float) -> float:
        """The true percentile, ms."""
        return _solved(self.below, percentile / 100)

    def mean(self) -> float:
        """The true mean, ms: the integral of the share above t."""
        from scipy import integrate

        cuts = (0.0, 1.0, 5.0, 55.0, math.inf)
        return sum(float(integrate.quad(lambda t: 1 - self.below(t), *ends)[0]) for ends in pairwise(cuts))


def _solved(below: Share, share: float) -> float:
    low, high = -1e6, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < share else (low, middle)
    return (low + high) / 2


def _log_normal(median_ms: float = 1.0) -> Share:
    return lambda t: NORMAL.cdf(math.log(t / median_ms) / SPREAD) if t > 0 else 0.0


def _independent(rng: np.random.Generator, n: int) -> Floats:
    return np.asarray(np.exp(SPREAD * rng.standard_normal(n)), dtype=np.float64)


def _bimodal(rng: np.random.Generator, n: int) -> Floats:
    return _independent(rng, n) * np.where(rng.random(n) < 0.05, 20.0, 1.0)


def _pareto(rng: np.random.Generator, n: int) -> Floats:
    return np.asarray((1 - rng.random(n)) ** -0.5, dtype=np.float64)


def _correlated(correlation: float) -> Draw:
    def draw(rng: np.random.Generator, n: int) -> Floats:
        from scipy.signal import lfilter

        noise = rng.standard_normal(n) * math.sqrt(1 - correlation**2)
        noise[0] /= math.sqrt(1 - correlation**2)
        return np.asarray(np.exp(SPREAD * lfilter([1.0], [1.0, -correlation], noise)), dtype=np.float64)

    return draw


def _paused(rng: np.random.Generator, n: int) -> Floats:
    groups = rng.random(-(-n // TOGETHER)) < PAUSED
    inside = np.repeat(groups, TOGETHER)[:n]
    return np.where(inside, rng.uniform(5, 55, n), _independent(rng, n))


def _queue(load: float) -> Draw:
    """M/M/1 in order of arrival, mean service time 1 ms, from its stationary state (Lindley 1952)."""

    def draw(rng: np.random.Generator, n: int) -> Floats:
        service, gaps = rng.exponential(1.0, n), rng.exponential(1 / load, n)
        first = rng.exponential(1 / (1 - load)) if rng.random() < load else 0.0
        steps = np.concatenate([[first], np.cumsum(service[:-1] - gaps[:-1]) + first])
        waits = steps - np.minimum(np.minimum.accumulate(steps), 0.0)
        return np.asarray(waits + service, dtype=np.float64)

    return draw


def _exponential(rate: float) -> Share:
    return lambda t: -math.expm1(-rate * t) if t > 0 else 0.0


def _in_queue(load: float) -> TimesWorld:
    description = f"one server, Poisson arrivals, {load:.0%} busy: consecutive requests share the queue"
    return TimesWorld(f"queue, {load:.0%} busy", description, _queue(load), _exponential(1 - load))


WORLDS: tuple[TimesWorld, ...] = (
    TimesWorld("log-normal", "independent requests", _independent, _log_normal()),
    TimesWorld("bimodal", "independent; one in twenty takes twenty times as long", _bimodal,
        lambda t: 0.95 * _log_normal()(t) + 0.05 * _log_normal(20.0)(t)),
    TimesWorld("Pareto", "independent, with infinite variance (exponent 2)", _pareto,
        lambda t: 1 - t**-2 if t > 1 else 0.0),
    TimesWorld("correlated 0.5", "each log-normal time correlates with the last", _correlated(0.5),
        _log_normal()),
    TimesWorld("correlated 0.9", "the same, strongly", _correlated(0.9), _log_normal()),
    _in_queue(0.5),
    _in_queue(0.8),
    _in_queue(0.95),
    TimesWorld("pauses",
        f"{PAUSED:.0%} of the requests meet a pause of up to 55 ms, {TOGETHER} in a row the same one",
        _paused, lambda t: (1 - PAUSED) * _log_normal()(t) + PAUSED * min(max((t - 5) / 50, 0.0), 1.0)),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TrialsWorld:
    """`draw(rng, n)` gives the logs of the p99 of n trials, with the median `median`."""

    name: str
    description: str
    draw: Draw
    median: float


SLOW = math.log(1.3)
OVER_TRIALS: tuple[TrialsWorld, ...] = (
    TrialsWorld("log-normal", "p99 differs by 10 %", lambda rng, n: rng.normal(0, 0.1, n), 0.0),
    TrialsWorld("slow starts", "besides, three starts in ten are 30 % slower",
        lambda rng, n: rng.normal(0, 0.1, n) + SLOW * (rng.random(n) < 0.3),
        _solved(lambda t: 0.7 * NORMAL.cdf(t / 0.1) + 0.3 * NORMAL.cdf((t - SLOW) / 0.1), 0.5)),
    TrialsWorld("heavy-tailed", "Cauchy: no mean exists", lambda rng, n: rng.standard_cauchy(n), 0.0),
)  # fmt: skip


class Covered(NamedTuple):
    """Shares: trials that print the percentile; of these, intervals that hold the truth, and open ends."""

    printed: float
    covered: float
    open: float


def coverage(
    world: TimesWorld,
    count: int,
    percentiles: Sequence[float],
    rounds: int,
    seed: int = SEED,
    rows: bool = True,
) -> dict[float, Covered]:
    """Per percentile, over trials of `count` requests. Without `rows`, requests are taken as independent."""
    rng = np.random.default_rng(seed)
    truth = {p: world.percentile(p) for p in percentiles}
    printed, covered, opened = (dict.fromkeys(percentiles, 0) for _ in range(3))
    for _ in range(rounds):
        drawn = world.draw(rng, count) * 1e6
        values = np.sort(drawn)
        times = Times(
            Decoded(values, values, np.ones_like(values)),
            seconds=Seconds.of(rows_of(drawn)) if rows else None,
        )
        for p in percentiles:
            interval = times.percentile(p) if times.supports(p) else None
            if interval is not None:
                printed[p] += 1
                covered[p] += interval.low_ms <= truth[p] <= interval.high_ms
                opened[p] += interval.open
    return {p: Covered(n / rounds, covered[p] / max(1, n), opened[p] / max(1, n)) for p, n in printed.items()}


class MeanCovered(NamedTuple):
    """Shares of intervals wholly below and above the true mean; median upper end ÷ the true mean."""

    below: float
    above: float
    upper: float


def mean_coverage(world: TimesWorld, count: int, seconds: int, rounds: int, seed: int = SEED) -> MeanCovered:
    """Coverage of a mean. An interval below the truth makes an infeasible rate pass."""
    rng, truth = np.random.default_rng(seed), world.mean()
    low, high = np.empty(rounds), np.empty(rounds)
    for at in range(rounds):
        drawn = world.draw(rng, count) * 1e6
        values = np.sort(drawn)
        times = Times(
            Decoded(values, values, np.ones_like(values)),
            mean_ms=float(drawn.mean()) / 1e6,
            seconds=Seconds.of(rows_of(drawn, seconds)),
        )
        low[at], high[at] = times.mean_interval()
    return MeanCovered(
        float((high < truth).mean()), float((low > truth).mean()), float(np.median(high)) / truth
    )


def rows_of(times_ns: Floats, seconds: int = SECONDS) -> tuple[IntervalRow, ...]:
    """The requests of a window, in order, as the engine's rows."""
    rows = []
    for second, part in enumerate(np.array_split(times_ns, seconds), start=1):
        ordered = np.sort(part)
        p50, p90, p99 = (int(ordered[max(0, math.ceil(q * part.size) - 1)]) for q in (0.5, 0.9, 0.99))
        rows.append(
            IntervalRow(
                t_ms=second * 1000.0,
                duration_ms=1000.0,
                completed=part.size,
                mean_ns=float(part.mean()),
                p50_ns=p50,
                p90_ns=p90,
                p99_ns=p99,
                max_ns=int(ordered[-1]),
            )
        )
    return tuple(rows)


def median_coverage(world: TrialsWorld, trials: int, rounds: int, seed: int = SEED) -> float:
    """Share of experiments whose interval of the median over trials holds the truth."""
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(rounds):
        interval = median_interval([float(v) for v in world.draw(rng, trials)])
        hits += interval is not None and interval[0] <= world.median <= interval[1]
    return hits / rounds


COUNTS = (useful_samples(99.0), 5_000, 30_000)
MEANS = ((2_000, 10), (6_000, 30), (30_000, 30))
"""Requests, seconds of the window."""
PERCENTILES = (50.0, 99.0)
TRIALS = (6, 10, 20)
ROUNDS = 400
