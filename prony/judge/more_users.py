"""Scaling probe: does the rate rise with more users, compared with the window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, NotNegative
from prony.judge.window import measured
from prony.numbers import percent
from prony.steady.detector import full_rows
from prony.steady.precision import t_quantile

CONFIDENCE = 0.95
INFLATION = 3.0
"""Variance factor of a mean of seconds for an autocorrelation of 0.5, as in `steady`."""
LEAST_ROWS = 2
FAILED_MOST = 0.01


class MoreUsersLimits(DeclaredLimits):
    bound_rise_max: NotNegative = 0.10
    """A smaller rise, interval included, shows a capacity: batching gains a full server some per cent."""


@dataclass(frozen=True, slots=True)
class Rise:
    gain: float
    low: float
    high: float
    more_users: float
    """Additional users ÷ users of the window."""


def rise(evidence: Evidence) -> Rise | None:
    """Rise under the probe; None without a probe, or with too few seconds."""
    probe, window, users = evidence.scaling_probe, measured(evidence), evidence.load.users
    if probe is None or window is None or evidence.engine is None or not users:
        return None
    rows = full_rows(evidence.engine.rows, window.opened_ms, window.opened_ms + window.duration_s * 1000)
    before, after = [row.completed_per_s for row in rows], list(probe.rates_per_s)
    if min(len(before), len(after)) < LEAST_ROWS or fmean(before) <= 0 or fmean(after) <= 0:
        return None
    ratio = fmean(after) / fmean(before)
    freedom = len(before) + len(after) - 2
    pooled = (_squares(before) + _squares(after)) / freedom
    error = ratio * math.sqrt(INFLATION * pooled * (1 / len(before) + 1 / len(after)))
    half = t_quantile(freedom, 0.5 + CONFIDENCE / 2) * error
    return Rise(ratio - 1, ratio - 1 - half, ratio - 1 + half, probe.users / users - 1)


@dataclass(frozen=True, slots=True)
class Probed:
    text: str
    high: float | None = None
    """Upper bound of the rise; None: not bounded ..."""
    level: bool = False
    rising: bool = False
    """The rate rises. Neither: undecided."""
    client_busy: bool = False
    """... because the load generator was busy: the rate could not rise."""


def probed(evidence: Evidence, limits: MoreUsersLimits, client_cpu_max: float) -> Probed | None:
    more, probe = rise(evidence), evidence.scaling_probe
    if more is None or probe is None:
        return None
    gain = f"{percent(more.gain)} ({percent(more.low)} to {percent(more.high)})"
    text = f"{percent(more.more_users)} more users: rate up {gain}"
    if probe.client_cpu is not None and probe.client_cpu >= client_cpu_max:
        return Probed(f"{text}, with the load generator at {percent(probe.client_cpu)} CPU", client_busy=True)
    if probe.failed_share > FAILED_MOST:
        return Probed(f"{text}, with {percent(probe.failed_share)} of requests failed")
    level = more.high <= limits.bound_rise_max
    return Probed(text, more.high, level, not level and more.low > 0)


def _squares(rates: Sequence[float]) -> float:
    mean = fmean(rates)
    return sum((rate / mean - 1) ** 2 for rate in rates)
