"""Simulated warm-ups as the tables of docs/results/truth."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from prony_selftest.proportion import CONFIDENCE, upper_bound
from prony_selftest.steady_windows import FULL, HORIZON_S, QUICK, SEED, Judged, Protocol, Server, simulate
from prony_selftest.tables import Say, plus_minus, prose, table

TRIALS = 100
"""Default number of each kind per cell."""
GAPS = (0.05, 0.4)
TIME_CONSTANTS_S = (10.0, 300.0)
NOISES = (0.005, 0.01, 0.02, 0.05)
AUTOCORRELATIONS = (0.0, 0.3, 0.7)
REPRODUCED = (
    ("30 % to gain in 60 s, 1 % noise, quick", Server(0.3, 60.0, 0.01, 0.0), QUICK),
    ("20 % to gain in 120 s, 2 % noise, full", Server(0.2, 120.0, 0.02, 0.0), FULL),
)
"""Windows that look level."""


def steady_tables(trials: int = TRIALS, say: Say = lambda _: None) -> str:
    """Both tables as Markdown; takes about twenty minutes with the default number of trials."""
    rng = np.random.default_rng(SEED)
    return "\n\n".join([_intro(trials), _grid(trials, rng, say), _reproduced(trials, rng, say)]) + "\n"


def _intro(trials: int) -> str:
    return prose(
        f"Seed {SEED}; {trials} simulated trials of each kind per row, through the watch that ends a real "
        "warm-up and the bound of the check. *Rising*: a gap of 5 to 40 % that closes with a time constant "
        "of 10 to 300 s, both log-uniform; *level*: no gap. *Held*: the "
        f"true level {HORIZON_S:g} s after the window lies within the printed bounds (aim: 95 %). A window "
        "is *off* when its true mean is more than 3 % from that level. Full trials: windows of 30 s. "
        f"*At least*: the exact one-sided binomial bound, {CONFIDENCE:.0%}."
    )


def _grid(trials: int, rng: np.random.Generator, say: Say) -> str:
    rows = []
    judged: list[Judged] = []
    for noise in NOISES:
        for rho in AUTOCORRELATIONS:
            say(f"steady: noise {noise:.1%}, autocorrelation {rho}")
            rising = [simulate(_drawn(rng, noise, rho), FULL, rng) for _ in range(trials)]
            level = [simulate(Server(0.0, 10.0, noise, rho), FULL, rng) for _ in range(trials)]
            judged += [*rising, *level]
            warm_up_s = f"{np.mean([trial.warm_up_s for trial in level]):.0f} s"
            rows.append((f"{noise * 100:g} %", f"{rho}", *_held(rising), *_held(level), warm_up_s))
    rows.append(("all", "", *_held(judged), "", "", ""))
    head = (
        "noise per second", "autocorrelation", "rising: held", "half width", "level: held", "half width",
        "warm-up of level servers",
    )  # fmt: skip
    return "**Residual drift.**\n\n" + table(head, rows)


def _held(of: Sequence[Judged]) -> tuple[str, str]:
    """Share that holds the level at the horizon, and the median half width."""
    half = float(np.median([trial.half for trial in of])) if of else math.inf
    return share(sum(trial.covered for trial in of), len(of)), plus_minus(math.expm1(half))


def _reproduced(trials: int, rng: np.random.Generator, say: Say) -> str:
    rows = []
    for name, server, protocol in REPRODUCED:
        say(f"steady: {name}")
        judged = reproduced(server, protocol, trials, rng)
        off = [trial for trial in judged if trial.off]
        rows.append((name, f"{len(off)} of {len(judged)}", *_held(off)))
    head = ("server", "off", "off windows: held", "half width")
    return "**Two windows that look level.**\n\n" + table(head, rows)


def reproduced(server: Server, protocol: Protocol, trials: int, rng: np.random.Generator) -> list[Judged]:
    """Simulates `trials` trials of one server."""
    return [simulate(server, protocol, rng) for _ in range(trials)]


def _drawn(rng: np.random.Generator, noise: float, rho: float) -> Server:
    def between(ends: tuple[float, float]) -> float:
        return float(np.exp(rng.uniform(np.log(ends[0]), np.log(ends[1]))))

    return Server(between(GAPS), between(TIME_CONSTANTS_S), noise, rho)


def share(hits: int, count: int) -> str:
    """A share with its exact lower bound: two of two are at least 22 %."""
    if not count:
        return "none"
    least = 1 - upper_bound(count - hits, count)
    return f"{100 * hits / count:.0f} % ({hits} of {count}, at least {100 * least:.0f} %)"
