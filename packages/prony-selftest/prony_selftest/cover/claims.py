"""Pairs of simulated servers with a known ratio: the claims, and whether they are true."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from prony.analysis import later
from prony.compare import Claim, Pair, Sample, compare
from prony.evidence.trial import Evidence
from prony.judge.checks.steady import SteadyWindowLimits
from prony.judge.figures import figures
from prony.judge.judging import judge
from prony_selftest.cover.queue import World, level
from prony_selftest.cover.worlds import LOADS, Kind, trial, truth

BLOCKS = 5
"""The default of a comparison."""
SHORT_S = 10.0
STARTS = 0.01
"""Standard deviation (log) between fresh processes of one server."""
FASTER = 1.1
SLACK = 1e-3
"""Tolerance for the sampling error of the truth."""
CREEPING = 0.15
FIGURE_OF = {"saturating": "requests_per_s", "half busy": "requests_per_s", "open": "p99_ms"}
OPENS_LATE_S = 20.0
"""Time under load at the middle of the window of a creeping server: warm-up plus half of the window."""


@dataclass(slots=True)
class Claimed:
    """Claims about pairs of one kind."""

    pairs: int = 0
    shown: int = 0
    plain: int = 0
    """Differences shown for the horizon, too."""
    equivalent: int = 0
    open: int = 0
    false_claims: list[str] = field(default_factory=list)
    """False claims: the claim, and the truth."""
    beyond: list[str] = field(default_factory=list)
    """Differences in the right direction of which the near end exceeds the truth."""

    @property
    def false(self) -> int:
        """Number of false claims."""
        return len(self.false_claims)

    def add(self, pair: Pair, window: float, then: float) -> None:
        """Adds a pair whose true ratio is `window` without a disturbance, and `then` at the horizon."""
        self.pairs += 1
        self.shown += pair.differs
        self.plain += pair.claim is Claim.SHOWN
        self.equivalent += pair.claim is Claim.EQUIVALENT
        self.open += pair.claim is Claim.OPEN
        line = f"{pair.claim.value} {pair.at_least or 1:.4f} of {window:.4f}, later {then:.4f}"
        if is_false(pair, window, then):
            self.false_claims.append(line)
        elif pair.differs and _true(pair, window, then) < (pair.at_least or 1.0) * (1 - SLACK):
            self.beyond.append(line)


def is_false(pair: Pair, window: float, then: float) -> bool:
    """Whether an equivalent pair differs by more than its margin, or a shown direction is wrong."""
    if pair.claim is Claim.EQUIVALENT:
        return abs(math.log(window)) > math.log1p(pair.within or 0.0) + SLACK
    return pair.differs and _true(pair, window, then) <= 1 + SLACK


def _true(pair: Pair, window: float, then: float) -> float:
    true = then if pair.claim is Claim.SHOWN else window
    return true if (pair.ratio or 1.0) > 1 else 1 / true


def claimed(kind: Kind, load: str, ratio: float, pairs: int, seed: int) -> Claimed:
    """Pairs in which a is `ratio` times as fast as b; each trial has its own disturbance."""
    rng = np.random.default_rng(seed)
    base = LOADS[load]
    worlds = {"a": replace(base, cpu_ms=base.cpu_ms / ratio), "b": base}
    figure, claims = FIGURE_OF[load], Claimed()
    a, b = (truth(world)[figure] for world in worlds.values())
    for _ in range(pairs):
        claims.add(_pair(worlds, kind, figure, rng), a / b, a / b)
    return claims


def creeping(pairs: int, seed: int) -> Claimed:
    """Pairs in which b gains CREEPING with 1.5 % noise, up to the level that a has throughout."""
    rng = np.random.default_rng(seed)
    quiet = Kind("creeping", "", lambda _: LOADS["saturating"].disturbance)
    worlds = {"a": World(noise=0.015), "b": World(noise=0.015, creeps=CREEPING)}
    claims = Claimed()
    for _ in range(pairs):
        pair = _pair(worlds, quiet, "requests_per_s", rng)
        at_s = np.asarray([OPENS_LATE_S - SHORT_S / 2, OPENS_LATE_S + (pair.horizon_s or 0.0)])
        window, then = (1 / level(worlds["b"], at_s)).tolist()
        claims.add(pair, window, then)
    return claims


def _pair(worlds: dict[str, World], kind: Kind, figure: str, rng: np.random.Generator) -> Pair:
    """One comparison: BLOCKS trials each, judged and compared as in an experiment."""
    samples: list[Sample] = []
    conforming: dict[str, list[Evidence]] = {name: [] for name in worlds}
    for block in range(BLOCKS):
        for position, (name, world) in enumerate(worlds.items()):
            start = float(np.exp(STARTS * rng.standard_normal()))
            ran = replace(world, cpu_ms=world.cpu_ms * start, disturbance=kind.drawn(rng))
            evidence = trial(ran, rng, SHORT_S)
            judgement = judge(evidence)
            value = figures(evidence).numbers().get(figure)
            budget = {line.finding.check: line.bias for line in judgement.budget(figure)}
            samples.append(Sample(name, block, value, judgement.conforms, position=position, budget=budget))
            if judgement.conforms:
                conforming[name].append(evidence)
    known = {name: trials for name, trials in conforming.items() if trials}
    coming = later(known, figure, SteadyWindowLimits())
    (pair,) = compare(samples, figure, servers=tuple(worlds), later=coming).pairs
    return pair
