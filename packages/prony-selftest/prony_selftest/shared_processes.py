"""Loads that share a process, simulated: coverage of intervals, detection of order effects. Runs the
functions that reports use, with the orders that plans draw. Pure; seeded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from prony.compare import RatioResult, Sample, compare, ratio
from prony.compare.shared import LoadSample, load_ratios, order_effects, order_of_one
from prony.plan.processes import LoadOrders
from prony_selftest.statistics import SEED, TRUTH, Rate, rate_of
from prony_selftest.tables import Say, prose, table
from prony_selftest.worlds import BLOCK_SPREAD, TRIAL_SPREAD

LOADS = ("10", "100", "1000", "5000")
LEVELS = (0.0, 0.3, 0.4, 0.35)
"""Log levels of the loads."""
WINDOW_SPREAD = 0.01
"""Standard deviation (log) of windows around the level of process and load."""
CARRIED = math.log(0.95)
"""Effect (log) of the largest load on the next load."""
WARMING = math.log(1.01)
"""Speed-up (log) per position in the process."""
BLOCKS = (5, 10, 20)
ROUNDS = 300


@dataclass(frozen=True, slots=True)
class SharedWorld:
    """Two servers, a faster than b by `TRUTH`, each with one process per block that runs all loads."""

    name: str
    description: str
    processes: float = TRIAL_SPREAD
    """Standard deviation (log) between processes."""
    carried: tuple[float, float] = (0.0, 0.0)
    """Per server, effect (log) of the largest load on the next load."""
    warming: float = 0.0
    """Log effect per position in the process."""

    def trials(
        self, rng: np.random.Generator, blocks: int, *, balanced: bool = True
    ) -> dict[str, list[LoadSample]]:
        """Server -> trials, by block in the order of `LOADS`."""
        orders = LoadOrders(str(int(rng.integers(1 << 30))))
        shared = rng.normal(0, BLOCK_SPREAD, blocks)
        trials: dict[str, list[LoadSample]] = {"a": [], "b": []}
        for block in range(blocks):
            order = orders.order(LOADS, block) if balanced else tuple(range(len(LOADS)))
            for server, ahead, carried in (("a", TRUTH, self.carried[0]), ("b", 0.0, self.carried[1])):
                level = ahead + float(shared[block]) + rng.normal(0, self.processes)
                samples: dict[int, LoadSample] = {}
                for place, load in enumerate(order):
                    after = LOADS[order[place - 1]] if place else ""
                    log = level + LEVELS[load] + self.warming * place + rng.normal(0, WINDOW_SPREAD)
                    log += carried if after == LOADS[-1] else 0.0
                    process = f"{server}{block}"
                    samples[load] = LoadSample(server, process, LOADS[load], math.exp(log), place, after)
                trials[server] += [samples[load] for load in range(len(LOADS))]
        return trials


WORLDS = (
    SharedWorld("processes differ", "processes differ by 2 %, windows of one by 1 %, blocks by 3 %"),
    SharedWorld("windows differ more", "processes differ by 0.5 %, windows by 1 %", processes=0.005),
    SharedWorld("warming", "besides the first, each place in a process is 1 % faster", warming=WARMING),
    SharedWorld(
        "carry-over", "besides the first, 5 % less after the largest load", carried=(CARRIED, CARRIED)
    ),
    SharedWorld("carry-over of one", "the same, of server a only", carried=(CARRIED, 0.0)),
)


def servers_covered(world: SharedWorld, blocks: int, rounds: int, seed: int = SEED) -> Rate:
    """Coverage of a ÷ b under one load at its worst, paired by block with a process per trial."""

    def once(rng: np.random.Generator) -> bool:
        trials = world.trials(rng, blocks)
        order = partial(order_of_one, [*trials["a"], *trials["b"]], load=LOADS[1])
        samples = [
            Sample(server, block, sample.value)
            for server, mine in trials.items()
            for block, sample in enumerate(sample for sample in mine if sample.load == LOADS[1])
        ]
        (pair,) = compare(samples, servers=("a", "b"), order_of=order).pairs
        low, high = pair.worst_low, pair.worst_high
        return low is not None and high is not None and low <= math.exp(TRUTH) <= high

    return rate_of(rounds, seed, once)


def pooled_covered(world: SharedWorld, blocks: int, rounds: int, seed: int = SEED) -> Rate:
    """Coverage of the ratio over all loads, with each load wrongly taken as an independent sample."""

    def once(rng: np.random.Generator) -> bool:
        trials = world.trials(rng, blocks)
        a, b = ([sample.value for sample in trials[server]] for server in "ab")
        places = range(blocks * len(LOADS))
        return _covers(ratio(a, b, places, places), TRUTH)

    return rate_of(rounds, seed, once)


def loads_covered(
    world: SharedWorld, blocks: int, rounds: int, *, balanced: bool = True, seed: int = SEED
) -> Rate:
    """Coverage of the printed ratios of neighbouring loads, paired by process."""
    rng = np.random.default_rng(seed)
    hits = tried = 0
    for _ in range(rounds):
        trials = world.trials(rng, blocks, balanced=balanced)
        for result in load_ratios(trials["a"], LOADS):
            truth = math.exp(LEVELS[LOADS.index(result.load)] - LEVELS[LOADS.index(result.other)])
            hits += result.low is not None and result.high is not None and result.low <= truth <= result.high
            tried += 1
    return Rate(hits, tried)


def unpaired_width(world: SharedWorld, blocks: int, rounds: int, seed: int = SEED) -> float:
    """Width without pairing ÷ width paired by process, log scale; geometric mean of experiments."""
    rng = np.random.default_rng(seed)
    logs = []
    for _ in range(rounds):
        trials = world.trials(rng, blocks)
        first, second = (
            [sample.value for sample in trials["a"] if sample.load == load] for load in LOADS[:2]
        )
        other = [
            sample.value for sample in trials["b"] if sample.load == LOADS[1]
        ]  # another process of the block
        shared = ratio(second, first, range(blocks), range(blocks))
        apart = ratio(other, first, range(blocks), range(blocks))
        logs.append(math.log(_width(apart) / _width(shared)))
    return math.exp(sum(logs) / len(logs))


def order_found(world: SharedWorld, blocks: int, rounds: int, seed: int = SEED) -> Rate:
    """Detection rate of an effect of the order of loads, by position or carry-over, over both servers."""

    def once(rng: np.random.Generator) -> bool:
        trials = world.trials(rng, blocks)
        effects = order_effects([*trials["a"], *trials["b"]])
        return effects is not None and effects.found

    return rate_of(rounds, seed, once)


def _width(ratio: RatioResult) -> float:
    assert ratio.low is not None
    assert ratio.high is not None
    return math.log(ratio.high / ratio.low)


def _covers(ratio: RatioResult, truth: float) -> bool:
    return ratio.low is not None and ratio.high is not None and ratio.low <= math.exp(truth) <= ratio.high


def shared_tables(rounds: int = ROUNDS, say: Say = lambda _: None) -> str:
    """The tables, as Markdown."""
    worlds = table(("world", "model"), [(world.name, world.description) for world in WORLDS])
    intro = (
        f"Seed {SEED}; {rounds:,} simulated experiments per cell: two servers, one 5 % faster, one process "
        f"each per block, {len(LOADS)} loads per process, in the orders that a plan draws."
    )
    between = (
        "**Between servers, under one load**: share of 95 % intervals, with an effect of the order on one "
        "server at its worst, that cover the true ratio; the process is the sample. Last column: the ratio "
        "over all loads with 10 processes, each load wrongly taken as a sample."
    )
    within = (
        "**Between loads of one server**, paired by process (Holm over the three neighbouring pairs, so each "
        "covers at least 95 %): coverage; with 10 processes in a fixed order, smallest load first; and how "
        "much wider the interval would be with a process per load."
    )
    order = (
        "**The order of the loads**: detection rate of an effect of the position or of the previous load (at "
        "most 5 % without an effect), over both servers."
    )
    return (
        "\n\n".join(
            [
                prose(intro),
                "**The worlds.**\n\n" + worlds,
                prose(between) + "\n\n" + _between(rounds, say),
                prose(within) + "\n\n" + _within(rounds, say),
                prose(order) + "\n\n" + _order(rounds, say),
            ]
        )
        + "\n"
    )


def _between(rounds: int, say: Say) -> str:
    rows: list[Sequence[object]] = []
    for world in WORLDS:
        say(f"shared processes, between servers: {world.name}")
        fixed = [servers_covered(world, blocks, rounds) for blocks in BLOCKS]
        rows.append((world.name, *fixed, pooled_covered(world, 10, rounds)))
    return table(("world", *(f"n = {n}" for n in BLOCKS), "each load a sample"), rows)


def _within(rounds: int, say: Say) -> str:
    rows: list[Sequence[object]] = []
    for world in WORLDS:
        say(f"shared processes, between loads: {world.name}")
        covered = [loads_covered(world, blocks, rounds) for blocks in BLOCKS]
        fixed = loads_covered(world, 10, rounds, balanced=False)
        rows.append((world.name, *covered, fixed, f"{unpaired_width(world, 10, rounds):.1f} times"))
    head = ("world", *(f"n = {n}" for n in BLOCKS), "fixed order, n = 10", "a process per load")
    return table(head, rows)


def _order(rounds: int, say: Say) -> str:
    rows: list[Sequence[object]] = []
    for world in WORLDS:
        say(f"shared processes, order: {world.name}")
        rows.append((world.name, *(order_found(world, blocks, rounds) for blocks in BLOCKS)))
    return table(("world", *(f"detected, n = {n}" for n in BLOCKS)), rows)
