"""Histograms of several engines as one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prony.evidence.engine import Histogram
from prony.load.histograms import Counts, added, encoded, unpacked


def quantile_ns(counts: Counts, quantile: float) -> int | None:
    """Nearest rank, rounded up, highest value of its bucket: the engine's own rule. None when empty."""
    total = counts.total
    if total == 0:
        return None
    rank = max(1, int(np.ceil(quantile * total - 1e-9)))
    at = int(np.searchsorted(np.cumsum(counts.counts), rank))
    return int(counts.bounds_ns(counts.places[at : at + 1])[1][0])


def added_up(parts: Sequence[Histogram | None]) -> Histogram | None:
    filled = [part for part in parts if part is not None and part.count > 0]
    if not filled:
        return None
    if len(filled) == 1:
        return filled[0]
    count = sum(part.count for part in filled)
    means = [part.mean_ns * part.count for part in filled if part.mean_ns is not None]
    smallest = [part.min_ns for part in filled if part.min_ns is not None]
    longest = [part.max_ns for part in filled if part.max_ns is not None]
    return Histogram(
        unit=filled[0].unit,
        count=count,
        mean_ns=sum(means) / count if len(means) == len(filled) else None,
        min_ns=min(smallest, default=None),
        max_ns=max(longest, default=None),
        saturated=sum(part.saturated for part in filled),
        v2=encoded(added([unpacked(part.v2) for part in filled])),
    )
