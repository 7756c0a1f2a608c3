"""Coverage of the intervals of the scalability law. Pure; seeded."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from prony.compare.scaling import Estimate, Point, Scaling, scaling, throughput
from prony_selftest.statistics import SEED, Rate
from prony_selftest.tables import Say, prose, table

USERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
RATE_1 = 1000.0
"""Requests per second of one user."""


NOISE = 0.04
"""Standard deviation (log) between trials."""
REPEATS = (1, 3, 5)
ROUNDS = 500
"""Simulated sweeps per row of the table."""


@dataclass(frozen=True, slots=True)
class Law:
    """A server with a known law."""

    name: str
    alpha: float
    beta: float

    @property
    def peak(self) -> float:
        """Users of the highest throughput."""
        return math.sqrt((1 - self.alpha) / self.beta) if self.beta else math.inf


LAWS = (
    Law("peak at 31 users", 0.05, 1e-3),
    Law("peak at 310 users, beyond the range", 0.05, 1e-5),
    Law("no peak, α = 0.02", 0.02, 0.0),
    Law("nearly linear, α = 0.001", 0.001, 0.0),
)


def draw(
    law: Law, repeats: int, noise: float, rng: np.random.Generator, freedom: float | None = None
) -> list[Point]:
    """A sweep, `repeats` trials per number of users; noise is normal or Student's t (`freedom`)."""
    rates = throughput(np.asarray(USERS, dtype=np.float64), RATE_1, law.alpha, law.beta)
    shape = (repeats, len(USERS))
    errors = rng.normal(0, noise, shape) if freedom is None else noise * rng.standard_t(freedom, shape)
    return [
        Point(users, float(rate * math.exp(error)))
        for row in errors
        for users, rate, error in zip(USERS, rates, row, strict=True)
    ]


ESTIMATES: Mapping[str, Callable[[Scaling], Estimate]] = {
    "one user": lambda result: result.rate_1,
    "α": lambda result: result.alpha,
    "β": lambda result: result.beta,
    "peak": lambda result: result.peak,
}


def coverage(
    law: Law, repeats: int, noise: float, rounds: int, *, freedom: float | None = None, seed: int = SEED
) -> dict[str, Rate]:
    """Coverage of the 95 % interval of each of ESTIMATES."""
    rng = np.random.default_rng(seed)
    truth = dict(zip(ESTIMATES, (RATE_1, law.alpha, law.beta, law.peak), strict=True))
    hits = dict.fromkeys(ESTIMATES, 0)
    for _ in range(rounds):
        result = scaling(draw(law, repeats, noise, rng, freedom))
        assert result is not None
        for name, of in ESTIMATES.items():
            hits[name] += _contains(of(result), truth[name])
    return {name: Rate(count, rounds) for name, count in hits.items()}


def _contains(estimate: Estimate, truth: float) -> bool:
    return (
        estimate.low is not None
        and estimate.high is not None
        and estimate.low - 1e-12 <= truth <= estimate.high + 1e-12
    )


def usl_table(share: float = 1.0, say: Say = lambda _: None) -> str:
    """Coverage of the intervals as Markdown; `share` of the usual number of rounds."""
    rounds = max(2, int(ROUNDS * share))
    rows = []
    for law in LAWS:
        for repeats, freedom in (*((count, None) for count in REPEATS), (3, 3.0)):
            say(f"law: {law.name}, {repeats} trials per number of users")
            rates = coverage(law, repeats, NOISE, rounds, freedom=freedom)
            noise = "normal" if freedom is None else "Student's t, 3 degrees of freedom"
            rows.append((law.name, repeats, noise, *(rates[name] for name in ESTIMATES)))
    text = (
        f"Seed {SEED}; {rounds:,} simulated sweeps per row over {', '.join(map(str, USERS))} users; trials "
        f"differ by {NOISE * 100:g} %. Share of 95 % intervals that contain the truth. Where β is 0, its "
        "interval and the peak's contain the truth more often than 95 %, as β cannot be below 0."
    )
    head = ("law", "trials per number", "noise", *ESTIMATES)
    return prose(text) + "\n\n" + table(head, rows) + "\n"
