"""Simulated warm-ups of servers with a known plateau: coverage of the printed plateau interval for the level
at its horizon. Seconds go through the watch that ends a real warm-up, windows through the bound of the check
`steady`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prony.evidence.engine import IntervalRow
from prony.judge.checks.steady import SteadyWindowLimits
from prony.plan.trial import QUICK_WARM_UP, WarmUpPlan
from prony.steady.detector import HOLD_ROWS
from prony.steady.stretch import level_up_to, residual_drift
from prony.trial.warming import NextWindow, SteadyWatch

SEED = 20261122
OFF = 0.03
"""Distance from the level at the horizon above which a window only looks level."""
HORIZON_S = SteadyWindowLimits().steady_horizon_s
LEVEL_PER_S = 100_000.0
USERS = 10

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Server:
    """Warm-up of a simulated server: a gap that closes exponentially, and noise from second to second."""

    gap: float
    """Share of the plateau missing at the first request."""
    time_constant_s: float
    noise: float
    autocorrelation: float


@dataclass(frozen=True, slots=True)
class Protocol:
    """Protocol of its trial."""

    name: str
    warm_up: WarmUpPlan
    window_s: int


FULL = Protocol("full", WarmUpPlan(), 30)
QUICK = Protocol("quick", QUICK_WARM_UP, 10)


@dataclass(frozen=True, slots=True)
class Judged:
    """One simulated trial."""

    covered: bool
    """Whether the level at the horizon lies within the printed bounds."""
    half: float
    """Half width of the bounds (log); infinite without bounds."""
    off: bool
    """Whether the window's true mean is further than OFF from that level."""
    warm_up_s: int


def simulate(server: Server, protocol: Protocol, rng: np.random.Generator) -> Judged:
    """One trial: warm-up on all CPUs until level, settling on the server's CPUs as planned, the window. On
    one CPU the plateau is half as high, which is not part of the gap.
    """
    warm = protocol.warm_up
    longest = round(warm.cap_s + warm.settle_cap_s) + protocol.window_s + 2
    at_s = np.arange(longest) + 0.5
    truth = np.log1p(-server.gap * np.exp(-at_s / server.time_constant_s))
    logs = truth + _noise(rng, longest, server)
    rows = _rows(logs, 0, LEVEL_PER_S)
    first = SteadyWatch(warm.min_s, warm.cap_s, 0.0, HOLD_ROWS)
    moved = _followed(first, rows)
    rows = [*rows[:moved], *_rows(logs[moved:], moved, LEVEL_PER_S / 2)]
    hold = max(3, min(HOLD_ROWS, round(warm.settle_min_s)))
    shown = warm.settle_until == "shown"
    ahead = NextWindow(protocol.window_s, other_cpus=rows[:moved]) if shown else None
    settle = SteadyWatch(warm.settle_min_s, warm.settle_cap_s, moved * 1000.0, hold, ahead)
    opened = moved + _followed(settle, rows[moved:])
    closed = opened + protocol.window_s
    level = level_up_to(rows[moved:closed], rows[:moved], opens_ms=opened * 1000.0).of("rate")
    bound = None if level is None else residual_drift([level], horizon_s=HORIZON_S)
    later = math.log1p(-server.gap * math.exp(-(closed + HORIZON_S) / server.time_constant_s))
    coming = later - float(truth[opened:closed].mean())
    return Judged(
        covered=bound is None or bound.low <= coming <= bound.high,
        half=math.inf if bound is None else (bound.high - bound.low) / 2,
        off=coming > OFF,
        warm_up_s=opened,
    )


def _followed(watch: SteadyWatch, rows: Sequence[IntervalRow]) -> int:
    """Rows that the watch takes until it ends."""
    for seen, row in enumerate(rows, start=1):
        if watch.row(row, None):
            return seen
    raise AssertionError("a watch ends at its cap")


def _noise(rng: np.random.Generator, rows: int, server: Server) -> Floats:
    """Stationary autoregressive noise."""
    rho, before = server.autocorrelation, 50
    drawn = rng.standard_normal(rows + before)
    noise = np.empty_like(drawn)
    noise[0] = drawn[0]
    for at in range(1, drawn.size):
        noise[at] = rho * noise[at - 1] + math.sqrt(1 - rho * rho) * drawn[at]
    return np.asarray(server.noise * noise[before:], dtype=np.float64)


def _rows(logs: Floats, first_s: int, level_per_s: float) -> list[IntervalRow]:
    return [
        IntervalRow(
            t_ms=(first_s + place + 1) * 1000.0,
            duration_ms=1000.0,
            completed=round(level_per_s * math.exp(value)),
            users=USERS,
            in_flight=USERS,
            connections_open=USERS,
            p50_ns=round(USERS / level_per_s * math.exp(-value) * 1e9),
        )
        for place, value in enumerate(logs)
    ]
