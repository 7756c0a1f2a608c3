"""Loads that were measured one after the other in shared processes: ratios between loads, paired by process,
and what the order of the loads does to a figure. Where workloads share a process too, a load is here one
load of one workload.

The process is the sample: what one start has in common under all its loads (layout in memory, what the
compiler decided) cancels between its loads, and stays in the interval of every ratio between servers.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special as untyped_special

from prony.compare.family import holm_levels
from prony.compare.position import FEWEST_FREEDOM, PositionEffect, dummies, position_effect
from prony.compare.ratio import RatioResult, ratio
from prony.compare.summary import CONFIDENCE

special: Any = untyped_special
Floats = NDArray[np.float64]

RANK = 1e-9
"""Singular values below this share of the largest are rounding."""
EACH = 0.975
"""Of place and carry-over: together they find an effect that is not there in at most 5 %."""


class LoadSample(NamedTuple):
    """One figure of one trial that counts."""

    server: str
    process: str
    load: str
    value: float
    """Positive."""
    place: int
    """Of the load within the process, from 0."""
    after: str = ""
    """The load before it in the process; empty for the first."""


@dataclass(frozen=True, slots=True)
class LoadRatio:
    """A figure under `load` ÷ the same under `other`, of one server. Without an interval (fewer than three
    processes have both) `low` and `high` are None.
    """

    server: str
    load: str
    other: str
    ratio: float
    low: float | None
    high: float | None
    confidence: float
    """Of this interval, from Holm's level over the neighbouring loads of all servers."""
    processes: int
    """That had both loads."""
    paired: bool


@dataclass(frozen=True, slots=True)
class CarryOver:
    """What the load before leaves behind, of all servers together."""

    p_value: float
    """F test: does it matter which load came before?"""
    after: str
    """The load after which the figure differs most clearly from what it is after a load on average."""
    ratio: float
    low: float
    high: float
    """The interval of `ratio`, Bonferroni over the loads."""
    found: bool


@dataclass(frozen=True, slots=True)
class OrderEffects:
    """What the order of the loads within processes does to a figure; None where that cannot be told."""

    place: PositionEffect | None
    """Per place within the process, with the interval at `EACH`."""
    carry_over: CarryOver | None
    processes: int
    trials: int

    @property
    def found(self) -> bool:
        """Whether either is there."""
        return any(one is not None and one.found for one in (self.place, self.carry_over))


def load_ratios(samples: Sequence[LoadSample], *sweeps: Sequence[str]) -> tuple[LoadRatio, ...]:
    """Each load of a sweep ÷ the one before it, server by server: paired by process where processes are
    complete, as servers are by block.
    """
    pairs = [
        (server, load, other)
        for server in dict.fromkeys(one.server for one in samples)
        for loads in sweeps
        for other, load in pairwise(loads)
    ]
    first = {pair: found for pair in pairs if (found := _ratio(samples, *pair, CONFIDENCE)) is not None}
    tested = [pair for pair, found in first.items() if found.p_value is not None]
    chances = [found.p_value for pair in tested if (found := first[pair]).p_value is not None]
    levels = dict(zip(tested, holm_levels(chances, 1 - CONFIDENCE), strict=True))
    made = []
    for pair, found in first.items():
        level = levels.get(pair)
        said = found if level is None else _ratio(samples, *pair, 1 - level) or found
        made.append(LoadRatio(*pair, said.ratio, said.low, said.high, said.confidence, said.n, said.paired))
    return tuple(made)


def _ratio(
    samples: Sequence[LoadSample], server: str, load: str, other: str, confidence: float
) -> RatioResult | None:
    of_load, of_other = (
        [one for one in samples if one.server == server and one.load == name] for name in (load, other)
    )
    if not of_load or not of_other:
        return None
    numbers = {name: number for number, name in enumerate(dict.fromkeys(one.process for one in samples))}
    return ratio(
        [one.value for one in of_load],
        [one.value for one in of_other],
        [numbers[one.process] for one in of_load],
        [numbers[one.process] for one in of_other],
        confidence=confidence,
    )


def order_effects(samples: Sequence[LoadSample]) -> OrderEffects | None:
    """Whether the place of a load in its process matters, and which load came before it; None without a
    process that had two.
    """
    if not any(one.place for one in samples):
        return None
    return OrderEffects(
        place=position_effect(
            [one.value for one in samples],
            _numbers((one.server, one.load) for one in samples),
            _numbers(one.process for one in samples),
            [one.place for one in samples],
            EACH,
        ),
        carry_over=_carry_over(samples),
        processes=len({one.process for one in samples}),
        trials=len(samples),
    )


def _carry_over(samples: Sequence[LoadSample]) -> CarryOver | None:
    """Least squares on logarithms: a level for each load of each server and for each process, a slope over
    places and a step after the first, against the same with a level for each load that came before.
    """
    loads = sorted({one.after for one in samples if one.place})
    if len(loads) < 2:
        return None
    logs = np.log([one.value for one in samples])
    places = np.asarray([one.place for one in samples], dtype=np.float64)
    cells = dummies(_numbers((one.server, one.load) for one in samples))
    processes = dummies(_numbers(one.process for one in samples))[:, 1:]
    without = np.column_stack([cells, processes, places, places == 0]).astype(np.float64)
    after = np.asarray([[one.after == load for load in loads] for one in samples], dtype=np.float64)
    rank = int(np.linalg.matrix_rank(without))
    more = int(np.linalg.matrix_rank(np.column_stack([without, after]))) - rank
    freedom = len(samples) - rank - more
    if more < 1 or freedom < FEWEST_FREEDOM:
        return None
    rest = _without(without, logs)
    left = _without(without, after)
    effects = np.linalg.lstsq(left, rest, rcond=RANK)[0]
    unexplained = max(float(((rest - left @ effects) ** 2).sum()), 1e-24)
    explained = max(float((rest**2).sum()) - unexplained, 0.0)
    p_value = float(special.fdtrc(more, freedom, explained / more / (unexplained / freedom)))
    spread = np.linalg.pinv(left.T @ left, rcond=RANK) * unexplained / freedom
    contrasts = np.eye(len(loads)) - 1 / len(loads)
    seen = contrasts @ effects
    errors = np.sqrt(np.maximum(np.diag(contrasts @ spread @ contrasts.T), 1e-24))
    clearest = int(np.argmax(np.abs(seen) / errors))
    share = (1 - EACH) / len(loads)
    half = float(special.stdtrit(freedom, 1 - share / 2)) * float(errors[clearest])
    centre = float(seen[clearest])
    return CarryOver(
        p_value=p_value,
        after=loads[clearest],
        ratio=math.exp(centre),
        low=math.exp(centre - half),
        high=math.exp(centre + half),
        found=p_value < 1 - EACH,
    )


def _without(levels: Floats, values: Floats) -> Floats:
    """What the levels do not explain."""
    return np.asarray(values - levels @ np.linalg.lstsq(levels, values, rcond=None)[0], dtype=np.float64)


def _numbers(names: Iterable[Hashable]) -> list[int]:
    """A number for each name, in the order in which they come."""
    known: dict[Hashable, int] = {}
    return [known.setdefault(name, len(known)) for name in names]
