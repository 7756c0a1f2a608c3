"""Ratio of geometric means with its interval: swapping the servers inverts every number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from prony.compare.sequential import Looks, boundaries
from prony.special import special

Floats = NDArray[np.float64]

MIN_TRIALS = 3
"""Fewest trials for an interval with more than one degree of freedom."""
SKEW_FROM = 10
"""Fewest pairs for the correction for skewness: with fewer it is too wide to be of use."""
PAIRED_SHARE = 2 / 3
"""Share of complete blocks from which trials are paired; below, pairing wastes trials."""
EXACT = 1e-12
"""Standard error of identical trials: rounding."""


@dataclass(frozen=True, slots=True)
class RatioResult:
    """a ÷ b. Without an interval (too few trials) `low`, `high` and `p_value` are None."""

    ratio: float
    low: float | None
    high: float | None
    confidence: float
    method: str
    n: int
    """Pairs, or the smaller number of trials."""
    n_a: int
    n_b: int
    p_value: float | None = None
    """Two-sided, for the hypothesis that the ratio is 1."""
    error: float | None = None
    """Standard error of the log ratio."""
    freedom: float | None = None
    looks: Looks | None = None
    """Set when the interval covers at all looks at once."""
    paired: bool = False


def ratio(
    a: Sequence[float],
    b: Sequence[float],
    blocks_a: Sequence[int] | None = None,
    blocks_b: Sequence[int] | None = None,
    *,
    confidence: float = 0.95,
) -> RatioResult:
    """Paired t on log differences (three complete blocks, at most a third incomplete), corrected for skewness
    from SKEW_FROM pairs; else Welch's t on logs. Raises ValueError for an empty side or a value without a
    logarithm.
    """
    logs_a, logs_b = _logs(a), _logs(b)
    if blocks_a is not None and blocks_b is not None:
        pairs = _pairs(logs_a, logs_b, blocks_a, blocks_b)
        if pairs is not None:
            return _paired(pairs, logs_a.size, logs_b.size, confidence)
    return _welch(logs_a, logs_b, confidence)


def repeated_ratio(
    a: Sequence[float],
    b: Sequence[float],
    blocks_a: Sequence[int],
    blocks_b: Sequence[int],
    looks: Looks,
    *,
    confidence: float = 0.95,
) -> RatioResult:
    """Over complete blocks, with an interval that covers at all of `looks`; before the first there is none.
    Raises ValueError as `ratio` does, and for more complete blocks than the last look.
    """
    logs_a, logs_b = _logs(a), _logs(b)
    differences = _complete(logs_a, logs_b, blocks_a, blocks_b)
    count = int(differences.size)
    sizes = (int(logs_a.size), int(logs_b.size))
    if count > looks.most:
        raise ValueError(f"{count} complete blocks; the last look was planned after {looks.most}")
    if count < looks.first:
        centre = float(differences.mean() if count else logs_a.mean() - logs_b.mean())
        return RatioResult(
            math.exp(centre), None, None, confidence, "too few blocks", count, *sizes, looks=looks
        )
    error = float(differences.std(ddof=1)) / math.sqrt(count)
    critical = boundaries(looks, 1 - confidence)[count]
    half, centre = critical * error, float(differences.mean())
    # At every look: a wrong claim ends the experiment, and later looks cannot correct it.
    low, high = skew_interval(differences, critical)
    return RatioResult(
        ratio=math.exp(centre),
        low=math.exp(min(low, centre - half)),
        high=math.exp(max(high, centre + half)),
        confidence=confidence,
        method="paired t on logs, repeated looks",
        n=count,
        n_a=sizes[0],
        n_b=sizes[1],
        error=error,
        freedom=count - 1,
        looks=looks,
        paired=True,
    )


def _logs(values: Sequence[float]) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise ValueError("a ratio needs at least one trial on each side")
    if not np.all(np.isfinite(array)) or np.any(array <= 0):
        raise ValueError("a ratio needs positive, finite values: exclude the others and report why")
    return np.log(array)


def _pairs(logs_a: Floats, logs_b: Floats, blocks_a: Sequence[int], blocks_b: Sequence[int]) -> Floats | None:
    differences = _complete(logs_a, logs_b, blocks_a, blocks_b)
    every = len({*blocks_a, *blocks_b})
    if differences.size < MIN_TRIALS or differences.size < PAIRED_SHARE * every:
        return None
    return differences


def _complete(logs_a: Floats, logs_b: Floats, blocks_a: Sequence[int], blocks_b: Sequence[int]) -> Floats:
    if len(blocks_a) != logs_a.size or len(blocks_b) != logs_b.size:
        raise ValueError("every trial needs a block")
    side_a, side_b = _by_block(logs_a, blocks_a), _by_block(logs_b, blocks_b)
    common = sorted(side_a.keys() & side_b.keys())
    return np.asarray([side_a[block] - side_b[block] for block in common], dtype=np.float64)


def _by_block(logs: Floats, blocks: Sequence[int]) -> dict[int, float]:
    gathered: dict[int, list[float]] = {}
    for block, value in zip(blocks, logs, strict=True):
        gathered.setdefault(block, []).append(float(value))
    return {block: sum(values) / len(values) for block, values in gathered.items()}


def _paired(differences: Floats, n_a: int, n_b: int, confidence: float) -> RatioResult:
    count = int(differences.size)
    centre = float(differences.mean())
    error = float(differences.std(ddof=1)) / math.sqrt(count)
    unpaired = _result(centre, error, count - 1, confidence, "paired t on logs", count, n_a, n_b)
    result = replace(unpaired, paired=True)
    if count < SKEW_FROM or result.low is None or result.high is None:
        return result
    low, high = skew_interval(differences, float(special.stdtrit(count - 1, 0.5 + confidence / 2)))
    return replace(result, low=min(result.low, math.exp(low)), high=max(result.high, math.exp(high)))


def _welch(logs_a: Floats, logs_b: Floats, confidence: float) -> RatioResult:
    n_a, n_b = int(logs_a.size), int(logs_b.size)
    least = min(n_a, n_b)
    centre = float(logs_a.mean() - logs_b.mean())
    if least < MIN_TRIALS:
        return RatioResult(math.exp(centre), None, None, confidence, "too few trials", least, n_a, n_b)
    part_a = float(logs_a.var(ddof=1)) / n_a
    part_b = float(logs_b.var(ddof=1)) / n_b
    total = part_a + part_b
    freedom = float(n_a + n_b - 2)
    if total > 0:  # Welch-Satterthwaite
        freedom = total**2 / (part_a**2 / (n_a - 1) + part_b**2 / (n_b - 1))
    return _result(centre, math.sqrt(total), freedom, confidence, "Welch t on logs", least, n_a, n_b)


def _result(
    centre: float,
    error: float,
    freedom: float,
    confidence: float,
    method: str,
    count: int,
    n_a: int,
    n_b: int,
) -> RatioResult:
    half = float(special.stdtrit(freedom, 0.5 + confidence / 2)) * error
    if error > EXACT:
        p_value = 2 * float(special.stdtr(freedom, -abs(centre) / error))
    else:
        p_value = 1.0 if abs(centre) <= EXACT else 0.0
    return RatioResult(
        ratio=math.exp(centre),
        low=math.exp(centre - half),
        high=math.exp(centre + half),
        confidence=confidence,
        method=method,
        n=count,
        n_a=n_a,
        n_b=n_b,
        p_value=p_value,
        error=error,
        freedom=freedom,
    )


LEVEL = 1e-6
"""Skewness below which there is no correction."""


def skew_interval(values: Floats, critical: float) -> tuple[float, float]:
    """S + aS²/3 + a²S³/27 + a/(6n) within ± `critical`, with S = (mean - truth) ÷ s and a the sample
    skewness, inverted in closed form. Source: Hall 1992, Journal of the Royal Statistical Society B 54.
    """
    count = values.size
    centre = float(values.mean())
    scale = float(values.std())
    if scale == 0:
        return centre, centre
    skewness = float(((values - centre) ** 3).mean()) / scale**3
    spread = scale * math.sqrt(count / (count - 1))

    def standardised(limit: float) -> float:
        if abs(skewness) < LEVEL:
            return limit
        inner = 1 + skewness * (limit - skewness / (6 * count))
        return 3 / skewness * (math.copysign(abs(inner) ** (1 / 3), inner) - 1)

    reach = critical / math.sqrt(count)
    return centre - spread * standardised(reach), centre - spread * standardised(-reach)
