"""Coverage of percentile intervals as the tables of docs/results/truth."""

from __future__ import annotations

from collections.abc import Sequence

from prony_selftest.level_coverage import TIMES_SPREAD, WINDOWS, LevelCovered, level_coverage
from prony_selftest.level_coverage import WORLDS as LEVEL_WORLDS
from prony_selftest.percentile_coverage import (
    COUNTS,
    MEANS,
    OVER_TRIALS,
    PERCENTILES,
    ROUNDS,
    SECONDS,
    SEED,
    TRIALS,
    WORLDS,
    Covered,
    coverage,
    mean_coverage,
    median_coverage,
)
from prony_selftest.tables import Say, prose, table

LEVEL_AT = 99.0


def percentile_tables(rounds: int = ROUNDS, say: Say = lambda _: None) -> str:
    """Four tables as Markdown; takes minutes with the default rounds."""
    rows: list[tuple[str, ...]] = []
    printed: list[float] = []
    mean_rows: list[tuple[str, ...]] = []
    for world in WORLDS:
        say(f"percentiles: {world.name}")
        covered = [coverage(world, count, PERCENTILES, rounds) for count in COUNTS]
        plain = coverage(world, COUNTS[-1], PERCENTILES, rounds, rows=False)
        cells = [_cell(by_count[p]) for p in PERCENTILES for by_count in (*covered, plain)]
        rows.append((world.name, world.description, *cells))
        printed += [by_count[p].printed for p in PERCENTILES for by_count in covered]
        means = [mean_coverage(world, count, seconds, rounds) for count, seconds in MEANS]
        mean_rows.append((world.name, *(f"{m.below * 100:.1f} % ({m.upper:.2f})" for m in means)))
    counts = (*(f"n = {count:,}" for count in COUNTS), f"n = {COUNTS[-1]:,}, taken as independent")
    head = ("requests", "", *(f"p{p:g}, {words}" for p in PERCENTILES for words in counts))
    trials = [
        (
            world.name,
            world.description,
            *(f"{median_coverage(world, n, 4 * rounds) * 100:.1f} %" for n in TRIALS),
        )
        for world in OVER_TRIALS
    ]
    parts = [
        prose(
            f"Seed {SEED}; {rounds:,} simulated trials per cell, {4 * rounds:,} experiments per cell of the "
            f"second table. **One trial** of {SECONDS} s: share of printed 95 % intervals of a percentile "
            f"that hold the truth, and in brackets the share with an open upper end. {_printed(printed)} "
            "With independent requests coverage is nominal for any distribution. With a shared queue or "
            "pauses, order statistics alone fall far short (columns *taken as independent*); printed "
            "intervals are widened by the correlation that the seconds show. They still fall short, to seven "
            "tenths at worst, where a queue is busy (for the median of a short run, too), where slow "
            "requests come in groups, and where a second has too few requests to show its tail. Use a longer "
            "window and fresh trials."
        ),
        table(head, rows),
        prose(
            "**The mean of one trial**, by which `prony capacity` decides an objective of a mean: share of "
            "intervals whose upper end is below the true mean (aim 2.5 %), so that an infeasible rate "
            "passes; in brackets the median upper end ÷ the true mean. A nearly full queue is correlated for "
            "longer than a short window, and rare long requests that the window missed are in no interval: "
            "these miss the aim."
        ),
        table(("requests", *(f"{count:,} in {seconds} s" for count, seconds in MEANS)), mean_rows),
        prose(
            "**Over trials**: share of intervals of the median of the trials' p99 that hold the true median. "
            "Trials are independent, so coverage is at least 95 % in every world."
        ),
        table(("trials", "", *(f"n = {n}" for n in TRIALS)), trials),
    ]
    return "\n\n".join([*parts, *_of_levels(rounds, say)]) + "\n"


def _of_levels(rounds: int, say: Say) -> list[str]:
    rows: list[tuple[str, ...]] = []
    for world in LEVEL_WORLDS:
        say(f"percentiles of a fast server: {world.name}")
        covered = [level_coverage(world, per_s, seconds, LEVEL_AT, rounds) for per_s, seconds in WINDOWS]
        rows.append((world.name, *(_of_level(cell) for cell in covered)))
    return [
        prose(
            f"**A fast server**: its times spread by {TIMES_SPREAD:.0%} within a second, and its level "
            f"varies from second to second. Share of intervals of p{LEVEL_AT:g} that hold the truth; "
            "effective number of independent requests (median); distances of the ends from the value "
            "(medians), and in brackets the relative error of 95 % of the values. Millions of requests in "
            "ten seconds know ten levels: their effective number is small, and more requests in the same "
            "seconds do not raise it. If it is too small for a useful upper end, the longest requests give "
            "the end, far too wide, and `samples` says so. Correlated seconds show in fifteen seconds at "
            "least: a window of ten misses them."
        ),
        table(("seconds", *(f"{per_s:,}/s for {seconds} s" for per_s, seconds in WINDOWS)), rows),
    ]


def _of_level(covered: LevelCovered) -> str:
    return (
        f"{covered.covered * 100:.1f} %; {covered.counts_as:,.0f}; -{covered.below * 100:.1f} %, "
        f"+{covered.above * 100:.1f} % (±{covered.error * 100:.1f} %)"
    )


def _cell(covered: Covered) -> str:
    if not covered.printed:
        return "not printed"
    return f"{covered.covered * 100:.1f} %" + (
        f" ({covered.open * 100:.0f} % open)" if round(covered.open * 100) else ""
    )


def _printed(shares: Sequence[float]) -> str:
    if min(shares) == 1:
        return "Every trial prints both percentiles."
    return f"At least {min(shares) * 100:.1f} % of a cell's trials print them; the others are left out."
