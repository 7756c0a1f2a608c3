"""The rows that bound a window's residual drift, of a trial or pooled over a cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from prony.evidence.engine import IntervalRow
from prony.steady.approach import Approach, Floats, approach
from prony.steady.changes import MIN_SEGMENT_ROWS, log_levels, lone_rows
from prony.steady.detector import HOLD_ROWS, level_rows_at_end
from prony.steady.limits import SteadyLimits

Series = Literal["rate", "p50", "p99"]
LONE_SHARE = 0.1
"""Most rows left out as outliers, as a share; they belong to the check `stall`."""
FULL_SHARE = 0.8
"""Least share of the rows with a value of the series."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A series on the log scale over the window and the level rows before it, as `approach` takes it."""

    logs: Floats
    at_s: Floats
    """Middle of each row, s from the first request."""
    window: NDArray[np.bool_]
    regime: NDArray[np.int_]
    """0: on other CPUs than in the window; 1: on the window's."""

    @property
    def window_rows(self) -> int:
        return int(np.count_nonzero(self.window))

    @property
    def row_s(self) -> float:
        return median(np.diff(self.at_s).tolist()) if self.at_s.size > 1 else 1.0

    def ahead(self, window_s: float) -> Stretch:
        more = max(1, round(window_s / self.row_s))
        coming = self.at_s[-1] + self.row_s * np.arange(1, more + 1)
        return Stretch(
            np.concatenate([self.logs, np.full(more, np.nan)]),
            np.concatenate([self.at_s, coming]),
            np.concatenate([np.zeros(self.logs.size, dtype=bool), np.ones(more, dtype=bool)]),
            np.concatenate([self.regime, np.ones(more, dtype=int)]),
        )


@dataclass(frozen=True, slots=True)
class LevelRows:
    rows: Sequence[IntervalRow]
    before: int
    """Number of leading rows on other CPUs than the window's."""
    inside: int
    """Number of trailing rows in the window."""

    def of(self, series: Series) -> Stretch | None:
        """None without rows on the window's CPUs, or where too many lack a value."""
        rows = self.rows
        values = [_VALUES[series](row) for row in rows]
        there = np.ones(len(rows), dtype=bool) if series == "rate" else np.asarray(values) > 0
        if not rows or np.count_nonzero(there) < FULL_SHARE * len(rows):
            return None
        series_rows = Stretch(
            log_levels([value for value, has in zip(values, there, strict=True) if has]),
            np.asarray([(row.t_ms - row.duration_ms / 2) / 1000 for row in rows])[there],
            (np.arange(len(rows)) >= len(rows) - self.inside)[there],
            (np.arange(len(rows)) >= self.before).astype(int)[there],
        )
        kept = _without_lone(series_rows)
        return kept if kept.regime.any() else None


def level_up_to(
    own: Sequence[IntervalRow],
    elsewhere: Sequence[IntervalRow] = (),
    *,
    opens_ms: float | None = None,
    limits: SteadyLimits | None = None,
) -> LevelRows:
    """`own`: full rows on the window's CPUs; `elsewhere`: rows before; `opens_ms`: None if in the future."""
    limits = limits or SteadyLimits()
    inside = sum(1 for row in own if opens_ms is not None and row.t_ms - row.duration_ms >= opens_ms - 0.5)
    level = level_rows_at_end(own, limits, max(inside, min(HOLD_ROWS, len(own))))
    before = level_rows_at_end(elsewhere, limits, HOLD_ROWS) if len(elsewhere) >= HOLD_ROWS else ()
    return LevelRows([*before, *level], len(before), inside)


_VALUES: dict[Series, Callable[[IntervalRow], float]] = {
    "rate": lambda row: row.completed_per_s,
    "p50": lambda row: float(row.p50_ns or 0),
    "p99": lambda row: float(row.p99_ns or 0),
}


def residual_drift(stretches: Sequence[Stretch], *, horizon_s: float = math.inf) -> Approach | None:
    """Pooled over trials: levels differ, the approach is shared, so weak trends show. None: too few rows."""
    if not stretches:
        return None
    regimes = [2 * place + part.regime for place, part in enumerate(stretches)]
    return approach(
        np.concatenate([part.logs for part in stretches]),
        np.concatenate([part.at_s for part in stretches]),
        np.concatenate([part.window for part in stretches]),
        np.concatenate(regimes),
        horizon_s=horizon_s,
    )


def _without_lone(made: Stretch) -> Stretch:
    kept = np.ones(made.logs.size, dtype=bool)
    for number in (0, 1):
        rows = np.flatnonzero(made.regime == number)
        lone = lone_rows(made.logs[rows])
        if len(lone) <= LONE_SHARE * rows.size:
            kept[rows[list(lone)]] = False
        if rows.size and np.count_nonzero(kept[rows]) < MIN_SEGMENT_ROWS:
            kept[rows] = False
    return replace(
        made, logs=made.logs[kept], at_s=made.at_s[kept], window=made.window[kept], regime=made.regime[kept]
    )
