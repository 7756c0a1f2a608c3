"""Loads that share a process, where the truth is known: do intervals cover, is an order that matters found?
Simulated.

Runs the functions that reports use, with the orders that plans draw. Pure but for its random numbers, which
are seeded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from prony.compare import RatioResult, ratio
from prony.compare.shared import LoadSample, load_ratios, order_effects
from prony.plan.processes import LoadOrders
from prony_selftest.statistics import SEED, TRUTH, Rate
from prony_selftest.tables import Say, prose, table
from prony_selftest.worlds import BLOCK_SPREAD, TRIAL_SPREAD

LOADS = ("10", "100", "1000", "5000")
LEVELS = (0.0, 0.3, 0.4, 0.35)
"""Of the loads, on the log scale."""
WINDOW_SPREAD = 0.01
"""Of a window about the level of its process under its load."""
CARRIED = math.log(0.95)
"""What the largest load takes off the load after it."""
WARMING = math.log(1.01)
"""By so much each place in the process is faster than the one before."""
BLOCKS = (5, 10, 20)
ROUNDS = 300


@dataclass(frozen=True, slots=True)
class SharedWorld:
    """Two servers, a faster than b by `TRUTH`, each with one process a block that has all loads in turn."""

    name: str
    told: str
    processes: float = TRIAL_SPREAD
    """Standard deviation of the log figure from one process to the next."""
    carried: tuple[float, float] = (0.0, 0.0)
    """Of each server: what the largest load adds to the load after it."""
    warming: float = 0.0
    """Added at each place of the process."""

    def trials(
        self, rng: np.random.Generator, blocks: int, *, balanced: bool = True
    ) -> dict[str, list[LoadSample]]:
        """Server -> its trials, block by block in the order of `LOADS`."""
        orders = LoadOrders(str(int(rng.integers(1 << 30))))
        shared = rng.normal(0, BLOCK_SPREAD, blocks)
        made: dict[str, list[LoadSample]] = {"a": [], "b": []}
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
                made[server] += [samples[load] for load in range(len(LOADS))]
        return made


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
    """How often the interval of a ÷ b under one load covers the truth: paired by block, a process each."""

    def once(rng: np.random.Generator) -> bool:
        made = world.trials(rng, blocks)
        a, b = ([one.value for one in made[server] if one.load == LOADS[1]] for server in "ab")
        return _covers(ratio(a, b, range(blocks), range(blocks)), TRUTH)

    return _count(rounds, seed, once)


def pooled_covered(world: SharedWorld, blocks: int, rounds: int, seed: int = SEED) -> Rate:
    """The same of the ratio over all loads, had each load of a process been taken for a sample of its own."""

    def once(rng: np.random.Generator) -> bool:
        made = world.trials(rng, blocks)
        a, b = ([one.value for one in made[server]] for server in "ab")
        places = range(blocks * len(LOADS))
        return _covers(ratio(a, b, places, places), TRUTH)

    return _count(rounds, seed, once)


def loads_covered(
    world: SharedWorld, blocks: int, rounds: int, *, balanced: bool = True, seed: int = SEED
) -> Rate:
    """How often the interval of one load ÷ the one before it covers the truth, paired by process; each of the
    ratios that a report prints by itself.
    """
    rng = np.random.default_rng(seed)
    hits = tried = 0
    for _ in range(rounds):
        made = world.trials(rng, blocks, balanced=balanced)
        for one in load_ratios(made["a"], LOADS):
            truth = LEVELS[LOADS.index(one.load)] - LEVELS[LOADS.index(one.other)]
            hits += one.low is not None and one.high is not None and one.low <= math.exp(truth) <= one.high
            tried += 1
    return Rate(hits, tried)


def unpaired_width(world: SharedWorld, blocks: int, rounds: int, seed: int = SEED) -> float:
    """The width of the interval of two loads had each trial had a process of its own ÷ its width paired by
    process, both on the log scale; the geometric mean over experiments.
    """
    rng = np.random.default_rng(seed)
    logs = []
    for _ in range(rounds):
        made = world.trials(rng, blocks)
        first, second = ([one.value for one in made["a"] if one.load == load] for load in LOADS[:2])
        other = [one.value for one in made["b"] if one.load == LOADS[1]]  # another process of the block
        shared = ratio(second, first, range(blocks), range(blocks))
        apart = ratio(other, first, range(blocks), range(blocks))
        logs.append(math.log(_width(apart) / _width(shared)))
    return math.exp(sum(logs) / len(logs))


def order_found(world: SharedWorld, blocks: int, rounds: int, seed: int = SEED) -> Rate:
    """How often an effect of the order of loads is found, by place or carry-over, over both servers."""

    def once(rng: np.random.Generator) -> bool:
        made = world.trials(rng, blocks)
        found = order_effects([*made["a"], *made["b"]])
        return found is not None and found.found

    return _count(rounds, seed, once)


def _width(found: RatioResult) -> float:
    assert found.low is not None
    assert found.high is not None
    return math.log(found.high / found.low)


def _covers(found: RatioResult, truth: float) -> bool:
    return found.low is not None and found.high is not None and found.low <= math.exp(truth) <= found.high


def _count(rounds: int, seed: int, once: Callable[[np.random.Generator], bool]) -> Rate:
    rng = np.random.default_rng(seed)
    return Rate(sum(once(rng) for _ in range(rounds)), rounds)


def shared_tables(rounds: int = ROUNDS, say: Say = lambda _: None) -> str:
    """The tables, as Markdown."""
    worlds = table(("world", "what happens there"), [(world.name, world.told) for world in WORLDS])
    intro = (
        f"Seed {SEED}; {rounds:,} made-up experiments per cell: two servers, one 5 % faster, one process of "
        f"each a block, {len(LOADS)} loads in each process, in the orders that a plan draws."
    )
    between = (
        "**Between servers, under one load**: how often the 95 % interval covers the true ratio, with the "
        "process as the sample; and in the last column the ratio over all loads, had every load of a process "
        "been taken for a sample of its own, with 10 processes."
    )
    within = (
        "**Between loads of one server**, paired by process (Holm over the three neighbouring pairs, so each "
        "covers at least 95 %): coverage; with 10 processes in a fixed order, smallest load first; and how "
        "much wider the interval would be with a process for each load."
    )
    order = (
        "**The order of the loads**: how often an effect of place or of the load before is found (at most "
        "5 % where no effect exists), over both servers."
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
    return table(("world", *(f"n = {n}" for n in BLOCKS), "every load a sample"), rows)


def _within(rounds: int, say: Say) -> str:
    rows: list[Sequence[object]] = []
    for world in WORLDS:
        say(f"shared processes, between loads: {world.name}")
        covered = [loads_covered(world, blocks, rounds) for blocks in BLOCKS]
        fixed = loads_covered(world, 10, rounds, balanced=False)
        rows.append((world.name, *covered, fixed, f"{unpaired_width(world, 10, rounds):.1f} times"))
    head = ("world", *(f"n = {n}" for n in BLOCKS), "fixed order, n = 10", "a process for each load")
    return table(head, rows)


def _order(rounds: int, say: Say) -> str:
    rows: list[Sequence[object]] = []
    for world in WORLDS:
        say(f"shared processes, order: {world.name}")
        rows.append((world.name, *(order_found(world, blocks, rounds) for blocks in BLOCKS)))
    return table(("world", *(f"found, n = {n}" for n in BLOCKS)), rows)
