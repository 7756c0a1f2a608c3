"""Worlds that break assumptions of a comparison: trials of two equal servers."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from prony.compare import Sample
from prony.plan.balanced import drawn_orders
from prony_selftest.worlds import BLOCK_SPREAD, SLOW_START, TRIAL_SPREAD

Floats = NDArray[np.float64]
Orders = Callable[[np.random.Generator], Iterator[tuple[int, ...]]]

CARRIED = math.log(0.95)
"""Effect (log) of server a on the trial after it."""
TAIL = 0.05
"""Scale of the skewed server's long tail, and its mean."""
SLOW_SHARE = 0.15
GROWTH = math.log(0.99)
"""Effect (log) of the data that one trial of server a leaves to the next."""
STATE, STAYS = math.log(1.05) / 2, 0.9
"""Effect (log) of the host's state on server a, plus or minus; chance that the next block has the same."""
EVERY_FOURTH = math.log(0.9)


@dataclass(frozen=True, slots=True)
class ViolationWorld:
    """`trials(rng, blocks)`: samples of servers a and b, which are equal on average."""

    name: str
    description: str
    """Its model, for the table."""
    trials: Callable[[np.random.Generator, int], list[Sample]]


def _samples(logs: Floats, orders: Iterator[tuple[int, ...]], missing: Floats | None = None) -> list[Sample]:
    samples = []
    for block, order in enumerate(islice(orders, logs.shape[1])):
        for position, server in enumerate(order):
            gone = missing is not None and bool(missing[server, block])
            samples.append(
                Sample(
                    "ab"[server],
                    block,
                    math.exp(logs[server, block]),
                    conforms=not gone,
                    why="errors: slow start",
                    position=position,
                )
            )
    return samples


def _drawn(rng: np.random.Generator) -> Iterator[tuple[int, ...]]:
    """Prony's."""
    return drawn_orders(2, random.Random(int(rng.integers(1 << 30))))


def _fixed(_rng: np.random.Generator) -> Iterator[tuple[int, ...]]:
    while True:
        yield 0, 1


def _noise(rng: np.random.Generator, blocks: int, spreads: tuple[float, float]) -> Floats:
    own = np.stack([rng.normal(0, spread, blocks) for spread in spreads])
    return np.asarray(own + rng.normal(0, BLOCK_SPREAD, blocks), dtype=np.float64)


def _unequal(rng: np.random.Generator, blocks: int) -> list[Sample]:
    return _samples(_noise(rng, blocks, (0.01, 0.06)), _drawn(rng))


def _skewed(rng: np.random.Generator, blocks: int) -> list[Sample]:
    logs = _noise(rng, blocks, (0.0, 0.01))
    logs[0] += TAIL - rng.exponential(TAIL, blocks)
    return _samples(logs, _drawn(rng))


def _growing(rng: np.random.Generator, blocks: int) -> list[Sample]:
    logs = _noise(rng, blocks, (TRIAL_SPREAD, TRIAL_SPREAD))
    logs[0] += GROWTH * np.arange(blocks)
    return _samples(logs, _drawn(rng))


def _two_states(rng: np.random.Generator, blocks: int) -> list[Sample]:
    logs = _noise(rng, blocks, (TRIAL_SPREAD, TRIAL_SPREAD))
    changes = np.where(rng.random(blocks) < STAYS, 1, -1)
    logs[0] += rng.choice((-STATE, STATE)) * np.cumprod(changes)
    return _samples(logs, _drawn(rng))


def _periodic(rng: np.random.Generator, blocks: int) -> list[Sample]:
    logs = _noise(rng, blocks, (TRIAL_SPREAD, TRIAL_SPREAD))
    ran = list(islice(_drawn(rng), blocks))
    for at, server in enumerate(server for order in ran for server in order):
        logs[server, at // 2] += EVERY_FOURTH if at % 4 == 0 else 0.0
    return _samples(logs, iter(ran))


def _carried(orders: Orders) -> Callable[[np.random.Generator, int], list[Sample]]:
    def trials(rng: np.random.Generator, blocks: int) -> list[Sample]:
        logs = _noise(rng, blocks, (TRIAL_SPREAD, TRIAL_SPREAD))
        ran = list(islice(orders(rng), blocks))
        before = None
        for block, order in enumerate(ran):
            for server in order:
                logs[server, block] += CARRIED if before == 0 else 0.0
                before = server
        return _samples(logs, iter(ran))

    return trials


def _selected(both: bool) -> Callable[[np.random.Generator, int], list[Sample]]:
    def trials(rng: np.random.Generator, blocks: int) -> list[Sample]:
        slow = rng.random((2, blocks)) < SLOW_SHARE
        if not both:
            slow[1] = False
        logs = _noise(rng, blocks, (TRIAL_SPREAD, TRIAL_SPREAD)) + np.where(slow, SLOW_START, 0.0)
        if not both:
            logs[0] -= SLOW_SHARE * SLOW_START
        missing = slow.astype(np.float64)
        missing[1] = 0
        return _samples(logs, _drawn(rng), missing)

    return trials


VIOLATIONS: tuple[ViolationWorld, ...] = (
    ViolationWorld("unequal spread", "trials of a differ by 1 %, those of b by 6 %", _unequal),
    ViolationWorld("one skewed server", "a has a long tail to slow trials (exponential, 5 %)", _skewed),
    ViolationWorld("carry-over, fixed order", "after a, a trial is 5 % slow; a always goes first",
        _carried(_fixed)),
    ViolationWorld("carry-over, drawn", "the same; Prony's orders", _carried(_drawn)),
    ViolationWorld("periodic", "every fourth trial is 10 % slow", _periodic),
    ViolationWorld("growing data", "a slows by 1 % with each of its trials; equal at the first", _growing),
    ViolationWorld("two-state host", "a is 2.5 % slow or fast for ten blocks on average; equal over time",
        _two_states),
    ViolationWorld("slow starts without a figure",
        "15 % of the starts of both are 20 % slow; those of a do not conform", _selected(both=True)),
    ViolationWorld("only a has them",
        "only a has slow starts, which do not conform; equal on average with them",
        _selected(both=False)),
)  # fmt: skip
