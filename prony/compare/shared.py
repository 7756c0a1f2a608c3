"""Loads measured in shared processes: ratios paired by process, which is the sample, and effects of order."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prony.compare.assumptions import by_order
from prony.compare.bias import ORDER, Source
from prony.compare.claim import holm_levels
from prony.compare.position import PositionEffect, dummies, fit, position_effect
from prony.compare.ratio import RatioResult, ratio
from prony.compare.summary import CONFIDENCE
from prony.special import special

Floats = NDArray[np.float64]

EACH = 0.975
"""Confidence of place and of carry-over: at most 5 % false effects together."""


class LoadSample(NamedTuple):
    server: str
    process: str
    load: str
    value: float
    place: int
    after: str = ""
    """The load before it in the process; empty for the first."""


@dataclass(frozen=True, slots=True)
class LoadRatio:
    """A server's figure under `load` ÷ that under `other`. `low` and `high` are None below three processes
    with both, and have an effect of the order of its loads at its worst.
    """

    server: str
    load: str
    other: str
    ratio: float
    low: float | None
    high: float | None
    confidence: float
    """Of this interval, by Holm's level over the neighbouring loads of all servers."""
    processes: int
    paired: bool


@dataclass(frozen=True, slots=True)
class CarryOver:
    """Effect of the preceding load, over all servers."""

    p_value: float
    """F test of an effect of the preceding load."""
    after: str
    """The preceding load with the clearest difference from the mean effect."""
    ratio: float
    low: float
    high: float
    """The interval of `ratio`, Bonferroni over the loads."""
    found: bool


@dataclass(frozen=True, slots=True)
class OrderEffects:
    """Those of loads within processes; None where not estimable."""

    place: PositionEffect | None
    """Per position within the process, with the interval at `EACH`."""
    carry_over: CarryOver | None
    processes: int
    trials: int

    @property
    def found(self) -> bool:
        return any(effect is not None and effect.found for effect in (self.place, self.carry_over))


def load_ratios(samples: Sequence[LoadSample], *sweeps: Sequence[str]) -> tuple[LoadRatio, ...]:
    """Each load of a sweep ÷ the preceding one, per server; paired by process as servers are by block."""
    pairs = [
        (server, load, other)
        for server in dict.fromkeys(sample.server for sample in samples)
        for loads in sweeps
        for other, load in pairwise(loads)
    ]
    first = {pair: result for pair in pairs if (result := _ratio(samples, *pair, CONFIDENCE)) is not None}
    tested = [pair for pair, result in first.items() if result.p_value is not None]
    chances = [result.p_value for pair in tested if (result := first[pair]).p_value is not None]
    levels = dict(zip(tested, holm_levels(chances, 1 - CONFIDENCE), strict=True))
    ratios = []
    for pair, result in first.items():
        level = levels.get(pair)
        final = result if level is None else _ratio(samples, *pair, 1 - level) or result
        bends = order_between(samples, *pair)
        low = None if final.low is None else final.low * math.exp(-bends.down)
        high = None if final.high is None else final.high * math.exp(bends.up)
        ratios.append(LoadRatio(*pair, final.ratio, low, high, final.confidence, final.n, final.paired))
    return tuple(ratios)


def _ratio(
    samples: Sequence[LoadSample], server: str, load: str, other: str, confidence: float
) -> RatioResult | None:
    of_load, of_other = (
        [sample for sample in samples if sample.server == server and sample.load == name]
        for name in (load, other)
    )
    if not of_load or not of_other:
        return None
    numbers = {
        name: number for number, name in enumerate(dict.fromkeys(sample.process for sample in samples))
    }
    return ratio(
        [sample.value for sample in of_load],
        [sample.value for sample in of_other],
        [numbers[sample.process] for sample in of_load],
        [numbers[sample.process] for sample in of_other],
        confidence=confidence,
    )


def order_effects(samples: Sequence[LoadSample]) -> OrderEffects | None:
    """Effects of a load's position in its process and of the preceding load; None for single loads."""
    if not any(sample.place for sample in samples):
        return None
    return OrderEffects(
        place=position_effect(
            [sample.value for sample in samples],
            _numbers((sample.server, sample.load) for sample in samples),
            _numbers(sample.process for sample in samples),
            [sample.place for sample in samples],
            EACH,
        ),
        carry_over=_carry_over(samples),
        processes=len({sample.process for sample in samples}),
        trials=len(samples),
    )


def _columns(samples: Sequence[LoadSample], loads: Sequence[str]) -> tuple[Floats, Floats, Floats, Floats]:
    """Logs, levels of cells and processes, places, and the loads before."""
    cells = dummies(_numbers((sample.server, sample.load) for sample in samples))
    processes = dummies(_numbers(sample.process for sample in samples))[:, 1:]
    after = [[sample.after == load for load in loads] for sample in samples]
    return (
        np.log([sample.value for sample in samples]),
        np.column_stack([cells, processes]),
        np.asarray([sample.place for sample in samples], dtype=np.float64),
        np.asarray(after, dtype=np.float64),
    )


def _carry_over(samples: Sequence[LoadSample]) -> CarryOver | None:
    loads = sorted({sample.after for sample in samples if sample.place})
    if len(loads) < 2:
        return None
    logs, levels, places, after = _columns(samples, loads)
    fitted = fit(logs, np.column_stack([levels, places, places == 0]).astype(np.float64), after)
    if fitted is None:
        return None
    contrasts = np.eye(len(loads)) - 1 / len(loads)
    seen = contrasts @ fitted.effects
    errors = np.sqrt(np.maximum(np.diag(contrasts @ fitted.spread @ contrasts.T), 1e-24))
    clearest = int(np.argmax(np.abs(seen) / errors))
    share = (1 - EACH) / len(loads)
    half = float(special.stdtrit(fitted.freedom, 1 - share / 2)) * float(errors[clearest])
    centre = float(seen[clearest])
    return CarryOver(
        p_value=fitted.p_value,
        after=loads[clearest],
        ratio=math.exp(centre),
        low=math.exp(centre - half),
        high=math.exp(centre + half),
        found=fitted.p_value < 1 - EACH,
    )


def order_of_one(samples: Sequence[LoadSample], a: str, b: str, load: str) -> Source:
    """Bias of a ÷ b under a load by an order of loads that acts on the two differently: the 95 % interval of
    the difference of their effects of place and preceding load, if significant (F test, 5 %).
    """
    both = [sample for sample in samples if sample.server in (a, b)]
    mine = np.asarray([sample.server == a for sample in both], dtype=np.float64)
    here = np.asarray([sample.server == a and sample.load == load for sample in both])
    loads = sorted({sample.after for sample in both if sample.place})
    if not loads or not here.any():
        return Source(ORDER, 0.0, 0.0)
    logs, levels, places, after = _columns(both, loads)
    orders = np.column_stack([places, after])
    own = orders * mine[:, None]
    return by_order(fit(logs, np.column_stack([levels, orders]), own), own[here].mean(axis=0))


def order_between(samples: Sequence[LoadSample], server: str, load: str, other: str) -> Source:
    """Bias of a server's figure under `load` ÷ that under `other` by the order of its loads: the effects of
    place and preceding load on the trials of the two, if significant (F test, 5 %).
    """
    own = [sample for sample in samples if sample.server == server]
    loads = sorted({sample.after for sample in own if sample.place})
    if not loads:
        return Source(ORDER, 0.0, 0.0)
    logs, levels, places, after = _columns(own, loads)
    orders = np.column_stack([places, after])
    upper, lower = (orders[[sample.load == name for sample in own]].mean(axis=0) for name in (load, other))
    return by_order(fit(logs, levels, orders), upper - lower)


def _numbers(names: Iterable[Hashable]) -> list[int]:
    indices: dict[Hashable, int] = {}
    return [indices.setdefault(name, len(indices)) for name in names]
