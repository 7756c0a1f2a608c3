"""Coverage and width of the printed bounds, and the checks that make them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from prony.judge.estimate import Estimate, estimates
from prony.judge.figures import figures
from prony.judge.finding import added
from prony.judge.judging import judge
from prony.judge.window import measured
from prony_selftest.cover.queue import SKEW, World, level
from prony_selftest.cover.synthetic_evidence import OPENS_S
from prony_selftest.cover.worlds import FIGURES, LOADS, Kind, trial, truth

ROUNDING = 0.002
"""Tolerance for the digits of a histogram and the sampling error of the truth."""


@dataclass(slots=True)
class FigureCoverage:
    """Counts of one figure in one kind of world."""

    trials: int = 0
    conforming: int = 0
    covered: int = 0
    interval_only: int = 0
    """Inside the statistical interval without the budget."""
    halves: list[float] = field(default_factory=list)
    """Half width of the budget, as a share; infinite if a side is open."""
    offs: list[float] = field(default_factory=list)
    """Distance of the figure from the truth, as a share of the smaller."""
    missed: list[str] = field(default_factory=list)


@dataclass(slots=True)
class WorldCoverage:
    """Results for one kind of world under one load."""

    figures: dict[str, FigureCoverage]
    checks: dict[str, float] = field(default_factory=dict)
    """Check -> its largest bound over trials and figures (log)."""
    needed: dict[str, int] = field(default_factory=dict)
    """Check -> figures whose truth lies outside without its bound."""
    refused: dict[str, int] = field(default_factory=dict)
    """Check -> trials that it kept from conforming."""


def coverage_of(kind: Kind, load: str, trials: int, seed: int) -> WorldCoverage:
    """Simulates `trials` trials, each with a disturbance of random size."""
    rng = np.random.default_rng(seed)
    results = WorldCoverage({name: FigureCoverage() for name in FIGURES if name in kind.figures})
    for _ in range(trials):
        world = replace(LOADS[load], disturbance=kind.drawn(rng))
        add_trial(results, world, truth(world if kind.disturbed_truth else world.undisturbed), rng)
    return results


def add_trial(
    results: WorldCoverage, world: World, true: Mapping[str, float], rng: np.random.Generator
) -> None:
    """Adds one trial of a world to the results."""
    evidence = trial(world, rng)
    judgement = judge(evidence)
    window, numbers = measured(evidence), figures(evidence).numbers()
    printed = estimates(evidence, judgement, numbers)
    for finding in judgement.not_conforming:
        results.refused[finding.check] = results.refused.get(finding.check, 0) + 1
    for name, of in results.figures.items():
        of.trials += 1
        estimate = printed.get(name)
        if not judgement.conforms or estimate is None:
            continue
        of.conforming += 1
        estimate = _sampled(name, estimate, 0 if window is None else window.completed)
        holds = covers(estimate, true[name])
        of.covered += holds
        of.interval_only += covers(replace(estimate, bias_low=0.0, bias_high=0.0), true[name])
        of.halves.append(estimate.bias.half)
        of.offs.append(math.expm1(abs(math.log(estimate.value / true[name]))))
        if not holds:
            low, high = estimate.uncertainty.worst
            of.missed.append(
                f"{true[name] / estimate.value - 1:+.2%} of {_end(low)} to {_end(high)}, {world.disturbance}"
            )
        lines = judgement.budget(name)
        for line in lines:
            check = line.finding.check
            results.checks[check] = max(results.checks.get(check, 0.0), line.bias.size)
            rest = added(other.bias for other in lines if other.finding.check != check)
            without = replace(estimate, bias_low=rest.low, bias_high=rest.high)
            if holds and not covers(without, true[name]):
                results.needed[check] = results.needed.get(check, 0) + 1


def _sampled(name: str, estimate: Estimate, requests: int) -> Estimate:
    """With the interval known here, if none is printed."""
    if estimate.low is not None or name != "server_cpu_us_per_request" or not requests:
        return estimate
    error = 1.96 * math.sqrt(math.expm1(SKEW**2) / requests)
    return replace(estimate, low=estimate.value * (1 - error), high=estimate.value * (1 + error))


def covers(estimate: Estimate, true: float) -> bool:
    """Whether the interval with the budget at its worst holds it."""
    low, high = estimate.uncertainty.worst
    off = true / estimate.value - 1
    return (low is None or off >= low - ROUNDING) and (high is None or off <= high + ROUNDING)


def _end(end: float | None) -> str:
    return "open" if end is None else f"{end:+.2%}"


@dataclass(frozen=True, slots=True)
class Plateaus:
    """Windows of one server: plateau intervals that hold the level at the horizon; half widths."""

    windows: int
    covered: int
    halves: tuple[float, ...]


def plateaus(world: World, window_s: float, windows: int, seed: int) -> Plateaus:
    """Plateau intervals of the rate, from the end of the window to the horizon."""
    rng = np.random.default_rng(seed)
    holds, halves = 0, []
    for _ in range(windows):
        evidence = trial(world, rng, window_s)
        judgement = judge(evidence)
        numbers = figures(evidence).numbers()
        estimate = estimates(evidence, judgement, numbers)["requests_per_s"]
        ends_s = OPENS_S + window_s
        at_s = np.asarray([ends_s, ends_s + (estimate.horizon_s or 0.0)])
        true = PER_S / world.cpu_ms * level(world, at_s)
        low = estimate.plateau_low or 0.0
        high = math.inf if estimate.plateau_high is None else estimate.plateau_high
        holds += low <= float(true.max()) * (1 + ROUNDING) and float(true.max()) <= high * (1 + ROUNDING)
        halves.append(math.inf if low <= 0 or math.isinf(high) else math.sqrt(high / low) - 1)
    return Plateaus(windows, holds, tuple(halves))


PER_S = 1000.0
