"""Share of A/A experiments, drawn from a server's trials, that call it different from itself."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from prony.compare.claim import BAND, Margins
from prony.compare.comparison import compare
from prony.compare.samples import Sample
from prony.compare.summary import clopper_pearson
from prony.plan.balanced import drawn_orders

NAMES = ("a", "b")
FEWEST_EACH = 3


@dataclass(frozen=True, slots=True)
class FalseDifferences:
    """Numbers of experiments drawn, and of those that called the server different from itself."""

    experiments: int
    different: int
    low: float
    high: float
    """95 % interval of the share (Clopper-Pearson) over `independent` experiments, as those drawn share
    trials. Over all draws it varies no more than over disjoint ones (Hoeffding 1948, U-statistics).
    """
    trials: int
    each: int
    """Trials per name in an experiment."""
    half_width: float | None
    """Median over experiments, as a share: about the smallest detectable difference."""

    @property
    def share(self) -> float:
        return self.different / self.experiments

    @property
    def independent(self) -> int:
        return self.trials // (2 * self.each)


def false_differences(
    trials: Sequence[Sample],
    figure: str = "requests_per_s",
    *,
    each: int,
    experiments: int,
    seed: int,
    band: float = BAND,
) -> FalseDifferences | None:
    """Draws experiments of `each` blocks, without replacement, from a server's trials in order of time.

    A block is two consecutive trials, named in an order drawn as a plan's. None with fewer than 2 x `each`
    trials that count, or `each` below FEWEST_EACH.
    """
    counting = sum(trial.conforms and trial.value is not None for trial in trials)
    if each < FEWEST_EACH or counting < 2 * each:
        return None
    source = random.Random(seed)
    starts = [begin for begin in range(2) if (len(trials) - begin) // 2 >= each]
    possible = sum(math.comb((len(trials) - begin) // 2, each) for begin in starts)
    drawn: set[tuple[int, ...]] = set()
    different, widths, margins = 0, [], Margins(band, 0.0)
    while len(drawn) < min(experiments, possible):
        begin = source.choice(starts)
        pairs = range(begin, len(trials) - 1, 2)
        chosen = tuple(sorted(source.sample(pairs, each)))
        if chosen in drawn:
            continue
        drawn.add(chosen)
        (pair,) = compare(_named(trials, chosen, source), figure, servers=NAMES, margins=margins).pairs
        different += pair.differs
        if pair.low and pair.high:
            widths.append(math.sqrt(pair.high / pair.low) - 1)
    alone = counting // (2 * each)
    low, high = clopper_pearson(different / len(drawn) * alone, alone)
    middle = sorted(widths)[len(widths) // 2] if widths else None
    return FalseDifferences(len(drawn), different, low, high, counting, each, middle)


def _named(trials: Sequence[Sample], blocks: Sequence[int], source: random.Random) -> list[Sample]:
    orders = islice(drawn_orders(len(NAMES), source), len(blocks))
    return [
        trials[at + place]._replace(server=NAMES[name], block=number, position=place)
        for number, (at, order) in enumerate(zip(blocks, orders, strict=True))
        for place, name in enumerate(order)
    ]
