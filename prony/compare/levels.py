"""Variance within and between processes, and the cheapest mix (Kalibera & Jones 2013)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prony.special import special

FEWEST_PROCESSES = 3
MOST_WINDOWS = 100


@dataclass(frozen=True, slots=True)
class Levels:
    """Standard deviations of the logarithm of a figure: 0.02 is about 2 %."""

    within: float
    """Of windows about their process's level."""
    between: float
    """Of processes about their server's level; 0 where windows explain it."""
    windows: int
    processes: int
    window_s: float
    process_s: float
    """Cost of a further process without windows (start, warm-up, stop); `window_s`: of a further window."""
    between_low: float = 0.0
    of_one_window: bool = False
    """The windows are equal parts of a process's only window."""

    @property
    def cheapest_windows(self) -> int:
        """The cheaper integer (1 to MOST_WINDOWS) next to sqrt(process_s ÷ window_s) x within ÷ between."""
        if self.between <= 0:
            return MOST_WINDOWS if self.within > 0 else 1
        best = math.sqrt(self.process_s / self.window_s) * self.within / self.between
        candidates = (max(1, min(MOST_WINDOWS, number)) for number in (math.floor(best), math.ceil(best)))
        return min(candidates, key=self._time)

    def relative_time(self, windows: int) -> float:
        """Time to a given width with this many windows per process ÷ that of the cheapest mix."""
        return self._time(windows) / self._time(self.cheapest_windows)

    def _time(self, windows: int) -> float:
        variance = self.between**2 + self.within**2 / windows
        return variance * (self.process_s + windows * self.window_s)


def levels(
    servers: Sequence[Sequence[Sequence[float]]],
    *,
    window_s: float,
    process_s: float,
    of_one_window: bool = False,
) -> Levels | None:
    """`servers` x processes x windows: one-way analysis of variance on logarithms; `between_low` by F (Searle
    1971, 9.9). None with fewer than two windows or FEWEST_PROCESSES, or without a positive cost.
    """
    sizes = {len(process) for server in servers for process in server}
    if not servers or len(sizes) != 1 or min(len(server) for server in servers) < FEWEST_PROCESSES:
        return None
    (windows,) = sizes
    if windows < 2 or window_s <= 0 or process_s <= 0:
        return None
    within = between = 0.0
    processes = 0
    for server in servers:
        logs = np.log(np.asarray(server, dtype=np.float64))
        means = logs.mean(axis=1)
        within += float(((logs - means[:, None]) ** 2).sum())
        between += windows * float(((means - means.mean()) ** 2).sum())
        processes += len(server)
    mean_within = within / (processes * (windows - 1))
    mean_between = between / (processes - len(servers))
    edge = float(special.fdtri(processes - len(servers), processes * (windows - 1), 0.975))
    return Levels(
        within=math.sqrt(mean_within),
        between=math.sqrt(max(0.0, (mean_between - mean_within) / windows)),
        windows=windows,
        processes=processes,
        window_s=window_s,
        process_s=process_s,
        between_low=math.sqrt(max(0.0, (mean_between / edge - mean_within) / windows)),
        of_one_window=of_one_window,
    )
