"""HdrHistograms as arrays: values at a rank, moments, gap fill. Merged within a trial only, for display."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from prony.evidence.counts import Gap
from prony.evidence.engine import Histogram
from prony.load.histograms import added, unpacked

FILL_POINTS = 512
"""Number of steps for the uniform waits in a gap: finer than any printed digit."""


class HistogramError(ValueError):
    """Not an HdrHistogram in V2 compressed base64."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Recorded buckets, ascending: highest and middle equivalent value (ns) and count of each."""

    high_ns: NDArray[np.float64]
    middle_ns: NDArray[np.float64]
    counts: NDArray[np.float64]

    @property
    def count(self) -> float:
        return float(self.counts.sum())

    @property
    def max_ns(self) -> float:
        """Highest equivalent value of the last recorded bucket; 0 when empty."""
        return float(self.high_ns[-1]) if self.high_ns.size else 0.0

    def moment(self, power: int) -> float:
        """E[S^power] in seconds^power, from the middles of the buckets; 0 when empty."""
        total = self.count
        if total <= 0:
            return 0.0
        return float(np.dot((self.middle_ns * 1e-9) ** power, self.counts) / total)

    def percentile_ns(self, percentile: float) -> float | None:
        """Nearest rank, rounded up, highest equivalent value, as in the engine. None when empty."""
        total = self.count
        return None if total <= 0 else self.at_rank_ns(self.rank(percentile, total))

    @staticmethod
    def rank(percentile: float, count: float) -> int:
        return max(1, math.ceil(count * min(percentile, 100.0) / 100 - 1e-9))

    def at_rank_ns(self, rank: float) -> float:
        """Sample at this rank (from 1), ascending; the longest beyond the end. Undefined when empty."""
        index = int(np.searchsorted(np.cumsum(self.counts), rank - 1e-9))
        return float(self.high_ns[min(index, self.high_ns.size - 1)])

    def without_longest(self, samples: int) -> Decoded:
        beyond = np.cumsum(self.counts[::-1])[::-1] - self.counts  # samples above each bucket
        kept = np.maximum(0.0, self.counts - np.maximum(0.0, samples - beyond))
        there = kept > 0
        return Decoded(self.high_ns[there], self.middle_ns[there], kept[there])


def decode(histogram: Histogram) -> Decoded:
    """The buckets of a histogram. Raises HistogramError when the text cannot be read."""
    return _decode(histogram.v2)


@lru_cache(maxsize=256)
def _decode(text: str) -> Decoded:
    try:
        filled = added([unpacked(text)])
    except (ValueError, IndexError) as cause:
        raise HistogramError(str(cause)) from cause
    low, high = filled.bounds_ns(filled.places)
    result = Decoded(high.astype(np.float64), (low + high) / 2, filled.counts.astype(np.float64))
    for array in (result.high_ns, result.middle_ns, result.counts):
        array.setflags(write=False)  # the value is shared by the cache
    return result


def read(histogram: Histogram | None) -> Decoded | None:
    """Like `decode`; None for a missing or unreadable histogram."""
    try:
        return None if histogram is None else decode(histogram)
    except HistogramError:
        return None


def merge(parts: Iterable[Decoded]) -> Decoded:
    """Merged histograms of one trial's threads, steps or hosts, for display only."""
    present = [p for p in parts if p.counts.size]
    if not present:
        empty = np.empty(0)
        return Decoded(empty, empty, empty)
    high = np.concatenate([p.high_ns for p in present])
    middle = np.concatenate([p.middle_ns for p in present])
    counts = np.concatenate([p.counts for p in present])
    order = np.argsort(high, kind="stable")
    return Decoded(high[order], middle[order], counts[order])


def fill_gaps(histogram: Decoded, gaps: Sequence[Gap], throughput_per_s: float) -> Decoded:
    """Estimate at an even pace of requests: throughput x duration samples, uniform in (0, gap], per gap."""
    extra: list[Decoded] = []
    steps = (np.arange(FILL_POINTS) + 1.0) / FILL_POINTS
    for gap in gaps:
        samples = throughput_per_s * gap.duration_ms / 1000
        if samples <= 0:
            continue
        waits_ns = steps * gap.duration_ms * 1e6
        extra.append(Decoded(waits_ns, waits_ns, np.full(FILL_POINTS, samples / FILL_POINTS)))
    return merge([histogram, *extra])
