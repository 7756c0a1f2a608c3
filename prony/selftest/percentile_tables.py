"""The coverage of percentiles' intervals as the tables of docs/truth.md. Must not simulate."""

from __future__ import annotations

from prony.selftest.percentile_coverage import (
    COUNTS,
    OVER_TRIALS,
    PERCENTILES,
    ROUNDS,
    SEED,
    TRIALS,
    WORLDS,
    coverage,
    median_coverage,
)
from prony.selftest.tables import Say, prose, table


def percentile_tables(rounds: int = ROUNDS, say: Say = lambda _: None) -> str:
    """Two tables as Markdown; a minute or two with the default rounds."""
    rows = []
    for world in WORLDS:
        say(f"percentiles: {world.name}")
        found = [coverage(world, count, PERCENTILES, rounds) for count in COUNTS]
        cells = [f"{one[p] * 100:.1f} %" for p in PERCENTILES for one in found]
        rows.append((world.name, world.told, *cells))
    head = ("requests", "", *(f"p{p:g}, n = {count:,}" for p in PERCENTILES for count in COUNTS))
    trials = [
        (world.name, world.told, *(f"{median_coverage(world, n, 4 * rounds) * 100:.1f} %" for n in TRIALS))
        for world in OVER_TRIALS
    ]
    parts = [
        prose(
            f"Seed {SEED}; {rounds:,} simulated trials per cell, {4 * rounds:,} experiments per cell of the "
            "second table. **One trial**: how often the 95 % interval of a percentile holds the true one. "
            "Where requests are independent it holds what it says, whatever their distribution. Where "
            "they are not it falls short, the more the longer the queue or the pause that they share; "
            "more requests do not help, since they bring more of the same. "
            "What helps is fresh trials."
        ),
        table(head, rows),
        prose(
            "**Over trials**: how often the interval of the median of the trials' p99 holds the true median. "
            "Trials are independent, so it covers at least 95 % in every world."
        ),
        table(("trials", "", *(f"n = {n}" for n in TRIALS)), trials),
    ]
    return "\n\n".join(parts) + "\n"
