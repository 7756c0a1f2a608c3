"""HdrHistogram's percentile distribution (.hgrm), in ms, for its plotters. Pure.

Layout and steps are those of `outputPercentileDistribution` in HdrHistogram's library, with five ticks per
half distance: from level p (per cent) the next is 100 / (5 · 2^(⌊log2(100 / (100 − p))⌋ + 1)) further.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from prony.errors import UsageError
from prony.evidence.engine import Histogram
from prony.judge.histogram import Decoded, HistogramError, decode
from prony.report.exports import Exported, Format
from prony.report.result import ResultView
from prony_frontends._exports.recorded import note, recorded

NS_PER_MS = 1e6
TICKS_PER_HALF_DISTANCE = 5


def write(view: ResultView) -> Exported:
    """Distribution of the first included trial. Raises UsageError when there is none."""
    included = recorded(view)
    return Exported(distribution(included[0].times), note(view, included))


def distribution(times: Histogram) -> str:
    """The lines for one histogram. Raises UsageError for a damaged histogram."""
    try:
        decoded = decode(times)
    except HistogramError as fault:
        raise UsageError(f"the stored histogram is damaged: {fault}") from fault
    total = round(decoded.count)
    lines = [f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}", ""]
    for value_ns, level, count in steps(decoded):
        inverse = f" {1 / (1 - level / 100):14.2f}" if level < 100 else ""
        lines.append(f"{value_ns / NS_PER_MS:12.3f} {level / 100:2.12f} {count:10d}{inverse}")
    middle_ns = decoded.middle_ns + np.where(decoded.high_ns > decoded.middle_ns, 0.5, 0.0)
    mean_ns = float(np.dot(middle_ns, decoded.counts)) / total
    deviation_ns = math.sqrt(float(np.dot((middle_ns - mean_ns) ** 2, decoded.counts)) / total)
    lines += [
        f"#[Mean    = {mean_ns / NS_PER_MS:12.3f}, StdDeviation   = {deviation_ns / NS_PER_MS:12.3f}]",
        f"#[Max     = {decoded.max_ns / NS_PER_MS:12.3f}, Total count    = {total:12d}]",
    ]
    return "\n".join(lines) + "\n"


def steps(decoded: Decoded) -> Iterator[tuple[float, float, int]]:
    """Value (ns), level (per cent) and cumulative count, level by level up to 100 %."""
    total = round(decoded.count)
    up_to = np.cumsum(decoded.counts)
    level = 0.0
    for value_ns, count in zip(decoded.high_ns, up_to, strict=True):
        while 100.0 * count / total >= level:
            yield float(value_ns), level, round(count)
            half_distances = math.floor(math.log(100.0 / (100.0 - level)) / math.log(2)) + 1
            level += 100.0 / (TICKS_PER_HALF_DISTANCE * 2**half_distances)
            if count >= total:
                yield float(value_ns), 100.0, total
                return


FORMAT = Format("HdrHistogram's percentile distribution, in ms", write, ".hgrm", one_trial=True)
