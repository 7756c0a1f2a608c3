"""Coverage, false differences and power, simulated with the functions of reports. Pure; seeded."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import stats as untyped_stats

from prony.compare import BAND, Claim, Looks, RatioResult, Sample, compare, ratio
from prony.compare.claim import claim_of, margin_of
from prony.compare.ratio import repeated_ratio
from prony.compare.summary import CONFIDENCE
from prony_selftest.violations import ViolationWorld
from prony_selftest.worlds import World, log_normal

stats: Any = untyped_stats

SEED = 20261121
TRUTH = math.log(1.05)
"""The true log ratio of the coverage tables."""
DIFFERENT = frozenset({Claim.SHOWN, Claim.SHOWN_FOR_WINDOW})


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
        """Whether a true rate within [low, high] is compatible with the counts (exact binomial)."""
        exact = stats.binomtest(self.hits, self.rounds).proportion_ci(confidence, "exact")
        return bool(exact.low <= high and exact.high >= low)

    def __str__(self) -> str:
        return f"{self.share * 100:.1f} %"


def rate_of(rounds: int, seed: int, once: Callable[[np.random.Generator], bool]) -> Rate:
    """Share of `rounds` in which `once` is true."""
    rng = np.random.default_rng(seed)
    return Rate(sum(once(rng) for _ in range(rounds)), rounds)


def _shifted(
    world: World, rng: np.random.Generator, blocks: int, truth: float
) -> tuple[list[float], list[float]]:
    a, b = world.draw(rng, 2, blocks)
    return [float(v) for v in np.exp(a + truth)], [float(v) for v in np.exp(b)]


def _covers(low: float | None, high: float | None, truth: float) -> bool:
    return low is not None and high is not None and low <= math.exp(truth) <= high


def claimed(ratio: RatioResult) -> Claim:
    """What an interval alone shows."""
    return claim_of((ratio.low, ratio.high), None)


def coverage(
    world: World, blocks: int, rounds: int, method: Literal["paired", "welch"] = "paired", seed: int = SEED
) -> Rate:
    """Coverage of the 95 % interval of one comparison."""

    def once(rng: np.random.Generator) -> bool:
        a, b = _shifted(world, rng, blocks, TRUTH)
        places = None if method == "welch" else range(blocks)
        result = ratio(a, b, places, places)
        return _covers(result.low, result.high, TRUTH)

    return rate_of(rounds, seed, once)


def false_difference(world: World, blocks: int, servers: int, rounds: int, seed: int = SEED) -> Rate:
    """Rate at which one server under several names is shown to differ anywhere in the family."""

    def once(rng: np.random.Generator) -> bool:
        samples = [
            Sample(str(server), block, math.exp(value))
            for server, values in enumerate(world.draw(rng, servers, blocks))
            for block, value in enumerate(values)
        ]
        return any(pair.differs for pair in compare(samples).pairs)

    return rate_of(rounds, seed, once)


@dataclass(frozen=True, slots=True)
class ViolationRates:
    """Results for two equal servers in a world that breaks an assumption."""

    worst: Rate
    """Shown to differ, with missing trials at their worst."""
    alone: Rate
    """Shown to differ by the interval of the trials with a figure alone."""
    covered: Rate
    """The worst-case interval contains the true ratio 1."""
    drawn: Rate
    """Shown to differ by a permutation test of the design (5 %)."""


def permuted(samples: Sequence[Sample]) -> float:
    """P-value of a permutation test of the design: the order of every two blocks is drawn, so that their
    differences have either sign by chance. At least 2 ÷ 2^(groups of two blocks). Source: Fisher 1935.
    """
    logs: dict[int, float] = {}
    for one in samples:
        if one.value is not None:
            logs[one.block // 2] = logs.get(one.block // 2, 0.0) + math.log(one.value) * (
                1 if one.server == "a" else -1
            )
    sums = np.asarray(list(logs.values()))
    signs = 1 - 2 * (np.arange(1 << sums.size)[:, None] >> np.arange(sums.size) & 1)
    return float(np.mean(np.abs(signs @ sums) >= abs(float(sums.sum())) - 1e-12))


def violation_rates(world: ViolationWorld, blocks: int, rounds: int, seed: int = SEED) -> ViolationRates:
    """Experiments of a fixed number of blocks."""
    rng = np.random.default_rng(seed)
    worst = alone = covered = drawn = 0
    for _ in range(rounds):
        trials = world.trials(rng, blocks)
        (pair,) = compare(trials).pairs
        drawn += permuted(trials) <= 1 - CONFIDENCE
        worst += pair.differs
        alone += claim_of((pair.low, pair.high), None) in DIFFERENT
        covered += (pair.worst_low or 0.0) <= 1 <= (math.inf if pair.worst_high is None else pair.worst_high)
    return ViolationRates(*(Rate(hits, rounds) for hits in (worst, alone, covered, drawn)))


def false_until_clear(world: ViolationWorld, looks: Looks, rounds: int, seed: int = SEED) -> Rate:
    """Rate at which equal servers are shown to differ when blocks are added until the claim is clear."""
    rng = np.random.default_rng(seed)
    false = 0
    for _ in range(rounds):
        trials = world.trials(rng, looks.most)
        for blocks in range(looks.first, looks.most + 1):
            (pair,) = compare((sample for sample in trials if sample.block < blocks), looks=looks).pairs
            if pair.claim is not Claim.OPEN:
                false += pair.differs
                break
    return Rate(false, rounds)


def false_equivalence(world: World, blocks: int, rounds: int, seed: int = SEED) -> Rate:
    """Rate at which servers that differ by exactly the practical band are called equivalent within less."""

    def once(rng: np.random.Generator) -> bool:
        a, b = _shifted(world, rng, blocks, math.log1p(BAND))
        result = ratio(a, b, range(blocks), range(blocks))
        within = margin_of((result.low, result.high))
        return claimed(result) is Claim.EQUIVALENT and within is not None and within < BAND

    return rate_of(rounds, seed, once)


@dataclass(frozen=True, slots=True)
class Power:
    """Claims about a true difference, with this many trials."""

    right: Rate
    """Shown, in the right direction."""
    equivalent: Rate
    wrong: Rate
    """Shown, in the wrong direction."""
    blocks: float
    """Mean trials per server."""


def power(difference: float, blocks: int, spread: float, rounds: int, seed: int = SEED) -> Power:
    """Claims about a server faster by `difference` (0.05: 5 %), with this spread of trials."""
    rng = np.random.default_rng(seed)
    world = log_normal(spread)
    claims: list[DirectedClaim] = []
    for _ in range(rounds):
        a, b = _shifted(world, rng, blocks, math.log1p(difference))
        result = ratio(a, b, range(blocks), range(blocks))
        claims.append(DirectedClaim(claimed(result), result.ratio > 1))
    return _power(claims, float(blocks))


@dataclass(frozen=True, slots=True)
class DirectedClaim:
    """A claim, and its direction."""

    claim: Claim
    first_faster: bool

    @property
    def differs(self) -> bool:
        """Whether a difference is shown."""
        return self.claim in DIFFERENT


def _power(claims: Sequence[DirectedClaim], blocks: float) -> Power:
    def rate(holds: Callable[[DirectedClaim], bool]) -> Rate:
        return Rate(sum(holds(claim) for claim in claims), len(claims))

    return Power(
        rate(lambda claim: claim.differs and claim.first_faster),
        rate(lambda claim: claim.claim is Claim.EQUIVALENT),
        rate(lambda claim: claim.differs and not claim.first_faster),
        blocks,
    )


@dataclass(frozen=True, slots=True)
class Stopped:
    """An experiment that adds trials until the claim is clear."""

    blocks: int
    claim: DirectedClaim
    covered: bool
    """Whether the intervals of all looks would have covered the truth."""


Rule = Callable[[list[float], list[float], int], RatioResult]


def sequential_rule(looks: Looks) -> Rule:
    """Prony's rule: repeated confidence intervals."""
    return lambda a, b, n: repeated_ratio(a[:n], b[:n], range(n), range(n), looks)


def naive_rule() -> Rule:
    """The ordinary interval after each further trial."""
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
    """Blocks are added until the claim is clear; with `every_look` later looks update `covered`."""
    rng = np.random.default_rng(seed)
    use = rule or sequential_rule(looks)
    ended: list[Stopped] = []
    for _ in range(rounds):
        a, b = _shifted(world, rng, looks.most, truth)
        first: tuple[int, DirectedClaim] | None = None
        covered = True
        for blocks in range(looks.first, looks.most + 1):
            result = use(a, b, blocks)
            covered = covered and _covers(result.low, result.high, truth)
            claim = DirectedClaim(claimed(result), result.ratio > 1)
            if first is None and (claim.claim is not Claim.OPEN or blocks == looks.most):
                first = blocks, claim
            if first is not None and not (every_look and covered):
                break
        assert first is not None
        ended.append(Stopped(*first, covered))
    return ended


def share(ended: list[Stopped], what: Callable[[Stopped], bool]) -> Rate:
    """Share of experiments with this property."""
    return Rate(sum(what(experiment) for experiment in ended), len(ended))


def sequential_power(difference: float, looks: Looks, spread: float, rounds: int) -> Power:
    """As `power`, with trials added until the claim is clear."""
    ended = until_clear(log_normal(spread), looks, math.log1p(difference), rounds)
    return _power(
        [experiment.claim for experiment in ended],
        sum(experiment.blocks for experiment in ended) / len(ended),
    )
