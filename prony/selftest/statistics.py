"""How often the comparison is right where the truth is known: coverage, false differences, power.

Runs the functions that reports use, not copies of them. Pure but for its random numbers, which are seeded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import stats as untyped_stats

from prony.compare import Looks, RatioResult, Sample, Verdict, compare, ratio
from prony.compare.comparison import BAND
from prony.compare.ratio import repeated_ratio, verdict
from prony.selftest.unkind import UnkindWorld
from prony.selftest.worlds import World, log_normal

stats: Any = untyped_stats

SEED = 20261121
TRUTH = math.log(1.05)
"""The ratio that intervals must cover."""
DIFFERENT = frozenset({Verdict.FASTER, Verdict.SLOWER})


@dataclass(frozen=True, slots=True)
class Rate:
    """Hits among a number of simulated experiments."""

    hits: int
    rounds: int

    @property
    def share(self) -> float:
        """hits ÷ rounds."""
        return self.hits / self.rounds

    def could_be(self, low: float, high: float, confidence: float = 0.999) -> bool:
        """Whether some true chance in [low, high] is compatible with what was seen (exact binomial)."""
        exact = stats.binomtest(self.hits, self.rounds).proportion_ci(confidence, "exact")
        return bool(exact.low <= high and exact.high >= low)

    def __str__(self) -> str:
        return f"{self.share * 100:.1f} %"


def _count(rounds: int, seed: int, once: Callable[[np.random.Generator], bool]) -> Rate:
    rng = np.random.default_rng(seed)
    return Rate(sum(once(rng) for _ in range(rounds)), rounds)


def _shifted(
    world: World, rng: np.random.Generator, blocks: int, truth: float
) -> tuple[list[float], list[float]]:
    a, b = world.draw(rng, 2, blocks)
    return [float(v) for v in np.exp(a + truth)], [float(v) for v in np.exp(b)]


def _covers(low: float | None, high: float | None, truth: float) -> bool:
    return low is not None and high is not None and low <= math.exp(truth) <= high


def coverage(
    world: World, blocks: int, rounds: int, method: Literal["paired", "welch"] = "paired", seed: int = SEED
) -> Rate:
    """How often the 95 % interval of one comparison covers the true ratio."""

    def once(rng: np.random.Generator) -> bool:
        a, b = _shifted(world, rng, blocks, TRUTH)
        places = None if method == "welch" else range(blocks)
        found = ratio(a, b, places, places)
        return _covers(found.low, found.high, TRUTH)

    return _count(rounds, seed, once)


def false_difference(world: World, blocks: int, servers: int, rounds: int, seed: int = SEED) -> Rate:
    """How often the same server under several names is called faster or slower anywhere in the family."""

    def once(rng: np.random.Generator) -> bool:
        samples = [
            Sample(str(server), block, math.exp(value))
            for server, values in enumerate(world.draw(rng, servers, blocks))
            for block, value in enumerate(values)
        ]
        return any(pair.verdict in DIFFERENT for pair in compare(samples).pairs)

    return _count(rounds, seed, once)


def false_difference_in(world: UnkindWorld, blocks: int, rounds: int, seed: int = SEED) -> tuple[Rate, Rate]:
    """How often equal servers are called faster or slower: by the report, and by the interval alone of the
    trials that count.
    """
    rng = np.random.default_rng(seed)
    said = alone = 0
    for _ in range(rounds):
        (pair,) = compare(world.trials(rng, blocks)).pairs
        said += pair.verdict in DIFFERENT
        alone += verdict(pair.low, pair.high, BAND) in DIFFERENT
    return Rate(said, rounds), Rate(alone, rounds)


def false_until_clear(world: UnkindWorld, looks: Looks, rounds: int, seed: int = SEED) -> Rate:
    """How often equal servers are called faster or slower where blocks are added until it is clear: by the
    interval alone of the blocks without a rejected trial.
    """
    rng = np.random.default_rng(seed)
    false = 0
    for _ in range(rounds):
        trials = world.trials(rng, looks.most)
        gone = {one.block for one in trials if not one.valid}
        of = [
            [one.value or math.nan for one in trials if one.server == name and one.block not in gone]
            for name in "ab"
        ]
        for blocks in range(looks.first, len(of[0]) + 1):
            a, b = (values[:blocks] for values in of)
            found = repeated_ratio(a, b, range(blocks), range(blocks), looks)
            said = verdict(found.low, found.high, BAND)
            if said is not Verdict.INCONCLUSIVE:
                false += said is not Verdict.EQUIVALENT
                break
    return Rate(false, rounds)


def false_equivalence(world: World, blocks: int, rounds: int, seed: int = SEED) -> Rate:
    """How often servers that differ by exactly the practical band are called equivalent."""

    def once(rng: np.random.Generator) -> bool:
        a, b = _shifted(world, rng, blocks, math.log1p(BAND))
        found = ratio(a, b, range(blocks), range(blocks))
        return verdict(found.low, found.high, BAND) is Verdict.EQUIVALENT

    return _count(rounds, seed, once)


@dataclass(frozen=True, slots=True)
class Power:
    """What a comparison of this many trials says about a true difference."""

    right: Rate
    """The faster server is called faster."""
    equivalent: Rate
    wrong: Rate
    """The faster server is called slower."""
    blocks: float
    """Trials per server that were run, on average."""


def power(difference: float, blocks: int, spread: float, rounds: int, seed: int = SEED) -> Power:
    """Verdicts on a server that is faster by `difference` (0.05: 5 %) where trials differ by `spread`."""
    rng = np.random.default_rng(seed)
    world = log_normal(spread)
    said: list[Verdict] = []
    for _ in range(rounds):
        a, b = _shifted(world, rng, blocks, math.log1p(difference))
        found = ratio(a, b, range(blocks), range(blocks))
        said.append(verdict(found.low, found.high, BAND))
    return _power(said, float(blocks))


def _power(said: list[Verdict], blocks: float) -> Power:
    def rate(word: Verdict) -> Rate:
        return Rate(sum(v is word for v in said), len(said))

    return Power(rate(Verdict.FASTER), rate(Verdict.EQUIVALENT), rate(Verdict.SLOWER), blocks)


@dataclass(frozen=True, slots=True)
class Stopped:
    """One experiment in which trials were added until the verdict was clear."""

    blocks: int
    verdict: Verdict
    covered: bool
    """Whether the interval covered the truth at every look, had all of them been taken."""


Rule = Callable[[list[float], list[float], int], RatioResult]


def sequential_rule(looks: Looks) -> Rule:
    """Prony's: repeated confidence intervals."""
    return lambda a, b, n: repeated_ratio(a[:n], b[:n], range(n), range(n), looks)


def naive_rule() -> Rule:
    """What people do: the ordinary interval after each further trial."""
    return lambda a, b, n: ratio(a[:n], b[:n], range(n), range(n))


def until_clear(
    world: World,
    looks: Looks,
    truth: float,
    rounds: int,
    rule: Rule | None = None,
    seed: int = SEED,
    every_look: bool = False,
) -> list[Stopped]:
    """Experiments that add blocks until the verdict is clear or the last look is reached.

    With `every_look` the looks go on after the verdict, to see whether all of them covered.
    """
    rng = np.random.default_rng(seed)
    use = rule or sequential_rule(looks)
    ended: list[Stopped] = []
    for _ in range(rounds):
        a, b = _shifted(world, rng, looks.most, truth)
        first: tuple[int, Verdict] | None = None
        covered = True
        for blocks in range(looks.first, looks.most + 1):
            found = use(a, b, blocks)
            covered = covered and _covers(found.low, found.high, truth)
            said = verdict(found.low, found.high, BAND)
            if first is None and (said is not Verdict.INCONCLUSIVE or blocks == looks.most):
                first = blocks, said
            if first is not None and not (every_look and covered):
                break
        assert first is not None
        ended.append(Stopped(*first, covered))
    return ended


def share(ended: list[Stopped], what: Callable[[Stopped], bool]) -> Rate:
    """In how many of these experiments that holds."""
    return Rate(sum(what(one) for one in ended), len(ended))


def sequential_power(difference: float, looks: Looks, spread: float, rounds: int) -> Power:
    """As `power`, where trials are added until the verdict is clear."""
    ended = until_clear(log_normal(spread), looks, math.log1p(difference), rounds)
    return _power([one.verdict for one in ended], sum(one.blocks for one in ended) / len(ended))
