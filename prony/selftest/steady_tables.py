"""The simulated warm-ups as the tables of docs/truth.md. Must not simulate, nor know where the text goes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prony.selftest.proportion import CONFIDENCE, upper_bound
from prony.selftest.steady_windows import FULL, QUICK, SEED, Judged, Lab, Server, simulate
from prony.selftest.tables import Say, prose, table

TRIALS = 100
"""Of each kind in each cell, by default."""
GAPS = (0.05, 0.4)
TIME_CONSTANTS_S = (10.0, 300.0)
NOISES = (0.005, 0.01, 0.02, 0.05)
AUTOCORRELATIONS = (0.0, 0.3, 0.7)
REPRODUCED = (
    ("30 % to gain in 60 s, 1 % noise, quick", Server(0.3, 60.0, 0.01, 0.0), QUICK),
    ("20 % to gain in 120 s, 2 % noise, full", Server(0.2, 120.0, 0.02, 0.0), FULL),
)
"""Windows of which 97 and 92 % were once called valid."""


def steady_tables(trials: int = TRIALS, say: Say = lambda _: None) -> str:
    """Both tables as Markdown; about twenty minutes with the default number of trials."""
    rng = np.random.default_rng(SEED)
    return "\n\n".join([_intro(trials), _grid(trials, rng, say), _reproduced(trials, rng, say)]) + "\n"


def _intro(trials: int) -> str:
    return prose(
        f"Seed {SEED}; {trials} simulated trials of each kind per row, each through the watch that ends a "
        "real warm-up and the bound of the check. *Rising*: a gap of 5 to 40 % that closes with a "
        "time constant of 10 to 300 s, both drawn evenly on the log scale; *level*: no gap. A "
        "window is *off* when its true mean is more than 3 % from the plateau. Full trials: windows "
        "of 30 s. What is not valid is *unknown* here; the change points, which make windows "
        "suspect or invalid besides, are left out. *At most*: the exact one-sided binomial bound, "
        f"{CONFIDENCE:.0%}."
    )


def _grid(trials: int, rng: np.random.Generator, say: Say) -> str:
    rows = []
    every: list[Judged] = []
    for noise in NOISES:
        for rho in AUTOCORRELATIONS:
            say(f"steady: noise {noise:.1%}, autocorrelation {rho}")
            rising = [simulate(_drawn(rng, noise, rho), FULL, rng) for _ in range(trials)]
            level = [simulate(Server(0.0, 10.0, noise, rho), FULL, rng) for _ in range(trials)]
            every += rising
            rows.append(
                (
                    f"{noise * 100:g} %",
                    f"{rho}",
                    _share(level, [one for one in level if one.valid]),
                    *_risks(rising),
                    f"{np.mean([one.warm_up_s for one in level]):.0f} s",
                )
            )
    rows.append(("all", "", "", *_risks(every), ""))
    head = (
        "noise per second",
        "autocorrelation",
        "level windows valid (aim: 80 % at 1 %)",
        "off windows valid",
        "of valid rising windows, off (aim: at most 5 %)",
        "warm-up of the level ones",
    )
    return "**Which windows are called valid.**\n\n" + table(head, rows)


def _risks(rising: Sequence[Judged]) -> tuple[str, str]:
    """Of the windows that are off the valid ones, and of the valid ones those that are off."""
    off = [one for one in rising if one.off]
    valid = [one for one in rising if one.valid]
    return _share(off, [one for one in off if one.valid]), _share(valid, [one for one in valid if one.off])


def _reproduced(trials: int, rng: np.random.Generator, say: Say) -> str:
    rows = []
    for told, server, lab in REPRODUCED:
        say(f"steady: {told}")
        found = reproduced(server, lab, trials, rng)
        off = [one for one in found if one.off]
        rows.append((told, _share(found, off), _share(off, [one for one in off if one.valid])))
    return "**Two windows that look level.**\n\n" + table(("server", "off", "off windows valid"), rows)


def reproduced(server: Server, lab: Lab, trials: int, rng: np.random.Generator) -> list[Judged]:
    """So many trials of one server."""
    return [simulate(server, lab, rng) for _ in range(trials)]


def _drawn(rng: np.random.Generator, noise: float, rho: float) -> Server:
    def between(ends: tuple[float, float]) -> float:
        return float(np.exp(rng.uniform(np.log(ends[0]), np.log(ends[1]))))

    return Server(between(GAPS), between(TIME_CONSTANTS_S), noise, rho)


def _share(of: Sequence[Judged], hits: Sequence[Judged]) -> str:
    return share(len(hits), len(of))


def share(hits: int, count: int) -> str:
    """With its exact upper bound: of two windows none is at most 78 %."""
    if not count:
        return "none"
    return f"{100 * hits / count:.0f} % ({hits} of {count}, at most {100 * upper_bound(hits, count):.0f} %)"
