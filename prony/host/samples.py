"""Interpolation of cumulative counters."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

Sample = tuple[float, float]
"""(CLOCK_MONOTONIC seconds, value of the counter)."""


def interpolate(samples: Sequence[Sample], t_s: float) -> float | None:
    """The counter at a moment by linear interpolation; None outside of `samples`, which ascend in time."""
    times = [sample[0] for sample in samples]
    after = bisect_left(times, t_s)
    if after == len(samples):
        return None
    if samples[after][0] == t_s:
        return samples[after][1]
    if after == 0:
        return None
    (t0, v0), (t1, v1) = samples[after - 1], samples[after]
    return v0 + (v1 - v0) * (t_s - t0) / (t1 - t0)


def difference(samples: Sequence[Sample], open_s: float, close_s: float) -> float | None:
    """Rise of the counter between two moments; None when either is outside of the readings."""
    before, after = interpolate(samples, open_s), interpolate(samples, close_s)
    return None if before is None or after is None else after - before
