"""Simulated trials of equal servers, with a known truth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], Floats]

TRIAL_SPREAD = 0.02
"""Standard deviation (log) between fresh processes; 1 to 3 % is usual."""
BLOCK_SPREAD = 0.03
"""Standard deviation (log) between blocks, which pairing removes."""
SLOW_START = math.log(0.8)
"""Effect (log) of a slow start: 20 %."""
DRIFT = math.log(0.9)
"""Slow-down (log) of the host from the first trial to the last."""


@dataclass(frozen=True, slots=True)
class World:
    """`draw(rng, servers, blocks)` gives log figures, a row per server; all servers are equal on average."""

    name: str
    description: str
    """Its model, for the table."""
    draw: Draw


def log_normal(spread: float = TRIAL_SPREAD) -> World:
    """Trials with this spread, in blocks."""

    def draw(rng: np.random.Generator, servers: int, blocks: int) -> Floats:
        return rng.normal(0, BLOCK_SPREAD, blocks) + rng.normal(0, spread, (servers, blocks))

    return World("log-normal", f"trials differ by {spread * 100:g} %, blocks by 3 %", draw)


_PLAIN = log_normal().draw


def _slow_starts(rng: np.random.Generator, servers: int, blocks: int, share: float) -> Floats:
    """Minus their mean, so that the servers stay equal on average."""
    return np.where(rng.random((servers, blocks)) < share, SLOW_START, 0.0) - share * SLOW_START


def _bimodal(rng: np.random.Generator, servers: int, blocks: int) -> Floats:
    return _PLAIN(rng, servers, blocks) + _slow_starts(rng, servers, blocks, 0.5)


def _drifting(rng: np.random.Generator, servers: int, blocks: int) -> Floats:
    """All trials lie on the slope, in random order within their block."""
    places = np.stack([rng.permutation(servers) for _ in range(blocks)], axis=1) + servers * np.arange(blocks)
    return DRIFT * places / (servers * blocks - 1) + rng.normal(0, TRIAL_SPREAD, (servers, blocks))


def _heavy(rng: np.random.Generator, servers: int, blocks: int) -> Floats:
    shared = rng.normal(0, BLOCK_SPREAD, blocks)
    return np.asarray(shared + TRIAL_SPREAD * rng.standard_t(3, (servers, blocks)), dtype=np.float64)


def _one_sided(share: float) -> Draw:
    def draw(rng: np.random.Generator, servers: int, blocks: int) -> Floats:
        logs = _PLAIN(rng, servers, blocks)
        logs[0] += _slow_starts(rng, 1, blocks, share)[0]
        return logs

    return draw


WORLDS: tuple[World, ...] = (
    log_normal(),
    World("bimodal by start", "besides, every second start of each server is 20 % slow", _bimodal),
    World("drifting", "the host slows down by 10 % from the first trial to the last", _drifting),
    World("heavy-tailed", "trials differ by Student's t with 3 degrees of freedom x 2 %", _heavy),
)
"""Worlds in which the method must hold its promises."""
ONE_SIDED: tuple[World, ...] = (
    World("one start in two", "only one of the servers has slow starts, one in two", _one_sided(0.5)),
    World("one start in four", "the same, one in four", _one_sided(0.25)),
    World("one start in ten", "the same, one in ten", _one_sided(0.1)),
)
"""Worlds in which no method can, with few trials: unseen starts are not in the interval."""
