"""Weighted values and the statistics that tools print of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prony.evidence.engine import Counters


@dataclass(frozen=True, slots=True)
class CountedValues:
    """Ascending values with their counts."""

    values: NDArray[np.float64]
    counts: NDArray[np.float64]

    @classmethod
    def of(cls, pairs: Sequence[tuple[float, float]]) -> CountedValues:
        """From pairs of value and count."""
        table = np.asarray(pairs, dtype=np.float64).reshape(-1, 2)
        return cls(table[:, 0], table[:, 1])

    @property
    def count(self) -> float:
        """All samples."""
        return float(self.counts.sum())

    @property
    def mean(self) -> float:
        """0 when empty."""
        return float(np.dot(self.values, self.counts) / self.count) if self.count else 0.0

    @property
    def stdev(self) -> float:
        """Sample standard deviation (n - 1); 0 below two samples."""
        if self.count < 2:
            return 0.0
        return float(np.sqrt(np.dot((self.values - self.mean) ** 2, self.counts) / (self.count - 1)))

    @property
    def lowest(self) -> float:
        """0 when empty."""
        return float(self.values[0]) if self.values.size else 0.0

    @property
    def highest(self) -> float:
        """0 when empty."""
        return float(self.values[-1]) if self.values.size else 0.0

    @property
    def within_stdev(self) -> float:
        """Per cent of the samples within one standard deviation of the mean."""
        near = np.abs(self.values - self.mean) <= self.stdev
        return float(self.counts[near].sum() / self.count * 100) if self.count else 0.0

    def percentile(self, percent: float) -> float:
        """Nearest rank; 0 when empty."""
        if not self.count:
            return 0.0
        rank = percent / 100 * self.count
        return float(
            self.values[min(int(np.searchsorted(np.cumsum(self.counts), rank)), self.values.size - 1)]
        )


def body_bytes(counters: Counters) -> int:
    """Bytes of all bodies; responses beyond the listed ones count with the listed ones' mean."""
    listed = sum(response.count * response.body_bytes for response in counters.answers)
    count = sum(response.count for response in counters.answers)
    if not count or not counters.answers_other:
        return listed
    return round(listed * (count + counters.answers_other) / count)
