"""HdrHistograms as arrays: percentiles, moments, gap fill. Must not know who recorded them.

Histograms are merged within one trial only, for display: a percentile over several trials has no meaning.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from hdrh.histogram import HdrHistogram as UntypedHistogram
from numpy.typing import NDArray

from prony.evidence.engine import Gap, Histogram

HdrHistogram: Any = UntypedHistogram

PERCENTILES: tuple[float, ...] = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999)
"""The percentiles that may be printed, if the sample supports them."""
FILL_POINTS = 512
"""Number of equal steps for the uniform waits of one gap: finer than any printed digit."""


class HistogramError(ValueError):
    """Not an HdrHistogram in V2 compressed base64."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """The recorded buckets, ascending: highest and middle equivalent value (ns) and count of each."""

    high_ns: NDArray[np.float64]
    middle_ns: NDArray[np.float64]
    counts: NDArray[np.float64]

    @property
    def count(self) -> float:
        """All samples."""
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
        """The smallest recorded value that at least `percentile` percent of the samples do not exceed.

        Nearest rank, rounded up, highest equivalent value: the engine's own rule. None when empty.
        """
        total = self.count
        if total <= 0:
            return None
        rank = max(1.0, math.ceil(total * min(percentile, 100.0) / 100 - 1e-9))
        index = int(np.searchsorted(np.cumsum(self.counts), rank - 1e-9))
        return float(self.high_ns[min(index, self.high_ns.size - 1)])


@dataclass(frozen=True, slots=True)
class PercentilePoint:
    """One point of the latency-by-percentile curve; `inverse` is 1 / (1 - percentile / 100), the log axis."""

    percentile: float
    value_ms: float
    inverse: float


def needed_samples(percentile: float, confidence: float = 0.99) -> int:
    """Samples needed so that, with `confidence`, at least one of them lies beyond the percentile.

    1 - p^n >= confidence, so n >= ln(1 - confidence) / ln(p): 459 for p99, 4,603 for p99.9 (MLPerf LoadGen).
    """
    return math.ceil(math.log(1 - confidence) / math.log(percentile / 100))


def decode(histogram: Histogram) -> Decoded:
    """The buckets of a histogram. Raises HistogramError when the text cannot be read."""
    return _decode(histogram.v2)


@lru_cache(maxsize=64)
def _decode(text: str) -> Decoded:
    try:
        library = HdrHistogram.decode(text)
        counts = np.asarray(
            [library.get_count_at_index(i) for i in range(library.encoder.payload.counts_len)],
            dtype=np.float64,
        )
    except Exception as cause:  # the library raises anything from zlib.error to IndexError on damaged text
        raise HistogramError(f"not an HdrHistogram (V2 compressed, base64): {cause}") from cause
    indices = np.flatnonzero(counts > 0)
    low = [int(library.get_value_from_index(int(i))) for i in indices]
    high = np.asarray([library.get_highest_equivalent_value(v) for v in low], dtype=np.float64)
    low_ns = np.asarray(low, dtype=np.float64)
    result = Decoded(high, (low_ns + high) / 2, counts[indices])
    for array in (result.high_ns, result.middle_ns, result.counts):
        array.setflags(write=False)  # the value is shared by the cache
    return result


def merge(parts: Iterable[Decoded]) -> Decoded:
    """One distribution out of several of the *same trial* (threads, steps, hosts), for display only."""
    present = [p for p in parts if p.counts.size]
    if not present:
        empty = np.empty(0)
        return Decoded(empty, empty, empty)
    high = np.concatenate([p.high_ns for p in present])
    middle = np.concatenate([p.middle_ns for p in present])
    counts = np.concatenate([p.counts for p in present])
    order = np.argsort(high, kind="stable")
    return Decoded(high[order], middle[order], counts[order])


def percentiles_ms(
    histogram: Decoded, wanted: Sequence[float] = PERCENTILES, confidence: float = 0.99
) -> dict[float, float | None]:
    """Each wanted percentile in ms; None where the sample does not support it."""
    count = histogram.count
    found: dict[float, float | None] = {}
    for percentile in wanted:
        value = (
            histogram.percentile_ns(percentile) if count >= needed_samples(percentile, confidence) else None
        )
        found[percentile] = None if value is None else value / 1e6
    return found


def percentile_series(
    histogram: Decoded, steps_per_halving: int = 5, confidence: float = 0.99
) -> tuple[PercentilePoint, ...]:
    """The curve for a chart with a log axis in 1/(1-p): `steps_per_halving` points each time 1-p halves.

    Ends at the highest percentile that the sample supports, so a chart shows no tail that was not measured.
    """
    count = histogram.count
    points: list[PercentilePoint] = []
    step = 0
    while count > 0:
        beyond = 0.5 ** (step / steps_per_halving)
        percentile = 100 * (1 - beyond)
        if percentile > 0 and count < needed_samples(percentile, confidence):
            break
        value = histogram.percentile_ns(percentile)
        if value is None or step > 64 * steps_per_halving:
            break
        points.append(PercentilePoint(percentile, value / 1e6, 1 / beyond))
        step += 1
    return tuple(points)


def fill_gaps(histogram: Decoded, gaps: Sequence[Gap], throughput_per_s: float) -> Decoded:
    """An estimate of the distribution that requests sent at an even pace would have seen.

    For each gap, throughput x duration samples uniform in (0, gap] are added: a request due at a random
    moment of a freeze waits for the rest of it (the reasoning of HdrHistogram's correction of coordinated
    omission, on the gaps that were seen instead of on an assumed interval).
    """
    extra: list[Decoded] = []
    steps = (np.arange(FILL_POINTS) + 1.0) / FILL_POINTS
    for gap in gaps:
        samples = throughput_per_s * gap.duration_ms / 1000
        if samples <= 0:
            continue
        waits_ns = steps * gap.duration_ms * 1e6
        extra.append(Decoded(waits_ns, waits_ns, np.full(FILL_POINTS, samples / FILL_POINTS)))
    return merge([histogram, *extra])
