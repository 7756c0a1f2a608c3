"""Disturbances of the simulated worlds, their sizes, and the true figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from prony.evidence.trial import Evidence
from prony_selftest.cover.queue import Disturbance, Requests, World, run
from prony_selftest.cover.synthetic_evidence import OPENS_S, evidence

WINDOW_S = 20.0
AFTER_S = 0.5
TRUTH_S = 300
"""Length of an undisturbed run that gives the truth."""
LOADS: Mapping[str, World] = {
    "saturating": World(),
    "half busy": World(users=3, wait_ms=3.0),
    "thinking": World(users=50, think_ms=80.0),
    "open": World(rate_per_s=500.0),
}
FIGURES = ("requests_per_s", "mean_ms", "p50_ms", "p99_ms", "server_cpu_us_per_request")
PERCENTILES = {"p50_ms": 50, "p99_ms": 99}

Drawn = Callable[[np.random.Generator], Disturbance]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of disturbance; `drawn` gives a random size."""

    name: str
    description: str
    drawn: Drawn
    busy: bool = True
    """Whether other processes run on the host."""
    loads: tuple[str, ...] = tuple(LOADS)
    figures: tuple[str, ...] = FIGURES
    disturbed_truth: bool = False
    """Whether the truth is the disturbed server's own behaviour (for arrivals)."""


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    """Log-uniform."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


KINDS: tuple[Kind, ...] = (
    Kind("quiet", "nothing", lambda _: Disturbance(), busy=False, disturbed_truth=True),
    Kind(
        "steal",
        "the hypervisor takes 0.2 to 30 % of the server's CPU, 1 to 50 ms at a time",
        lambda rng: Disturbance(stolen=_between(rng, 0.002, 0.3), slice_ms=_between(rng, 1, 50)),
    ),
    Kind(
        "other processes",
        "other processes take 0.2 to 30 % of it, 1 to 20 ms at a time",
        lambda rng: Disturbance(others=_between(rng, 0.002, 0.3), slice_ms=_between(rng, 1, 20)),
    ),
    Kind(
        "slow client",
        "responses wait in the client for 0.02 to 2 ms, and the next request is as late",
        lambda rng: Disturbance(client_ms=_between(rng, 0.02, 2), pause_ms=_between(rng, 0.02, 2)),
    ),
    Kind(
        "lost segments",
        "0.01 to 1 % of the requests wait 200 ms for a segment",
        lambda rng: Disturbance(resent=_between(rng, 0.0001, 0.01)),
    ),
    Kind(
        "delayed acknowledgements",
        "0.1 to 50 % of the requests wait 40 ms",
        lambda rng: Disturbance(acks_delayed=_between(rng, 0.001, 0.5)),
    ),
    Kind(
        "errors",
        "0.02 to 0.9 % of the requests end at once with an error",
        lambda rng: Disturbance(failed=_between(rng, 0.0002, 0.009)),
    ),
    Kind(
        "late sends",
        "requests are sent 0.02 to 1 ms after they are due",
        lambda rng: Disturbance(late_ms=_between(rng, 0.02, 1)),
        loads=("open",),
    ),
    Kind(
        "skewed worker",
        "one worker in four stands still for 2 to 20 % of the time, 300 ms each; p99 of arrivals",
        lambda rng: Disturbance(frozen=_between(rng, 0.02, 0.2)),
        loads=("half busy",),
        figures=("p99_ms",),
        disturbed_truth=True,
    ),
    Kind(
        "several at once",
        "steal, a slow client and lost segments",
        lambda rng: Disturbance(
            stolen=_between(rng, 0.002, 0.1),
            client_ms=_between(rng, 0.02, 0.5),
            resent=_between(rng, 0.0001, 0.003),
        ),
    ),
)
BUSY = Kind(
    "busy",
    "as on a shared host: other processes take 1 to 5 % of the server's CPU, the hypervisor 0.5 to 2 %",
    lambda rng: Disturbance(
        stolen=_between(rng, 0.005, 0.02), others=_between(rng, 0.01, 0.05), slice_ms=_between(rng, 1, 10)
    ),
)


def trial(world: World, rng: np.random.Generator, window_s: float = WINDOW_S) -> Evidence:
    """Evidence of one trial."""
    return evidence(world, run(world, OPENS_S + window_s + AFTER_S, rng), window_s)


@lru_cache(maxsize=256)
def truth(world: World) -> Mapping[str, float]:
    """Figures of a long undisturbed run; with a frozen worker, of arrivals at that load's rate."""
    rng = np.random.default_rng(11)
    made = run(world, TRUTH_S, rng)
    begin = made.done > OPENS_S
    rate = float(begin.sum()) / (float(made.done.max()) - OPENS_S)
    if world.disturbance.frozen:
        made = run(replace(world, rate_per_s=rate), TRUTH_S, rng)
        begin = made.done > OPENS_S
    return _figures(made, begin, rate)


def _figures(
    made: Requests, begin: np.ndarray[tuple[int], np.dtype[np.bool_]], rate: float
) -> dict[str, float]:
    took_ms = 1000 * (made.done - made.due)[begin]
    return {
        "requests_per_s": rate,
        "mean_ms": float(took_ms.mean()),
        **{name: float(np.percentile(took_ms, at)) for name, at in PERCENTILES.items()},
        "server_cpu_us_per_request": 1e6 * float(made.cpu_s[begin].mean()),
    }
