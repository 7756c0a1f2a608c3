"""The coverage of percentiles' intervals as the tables of docs/results/truth."""

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
    """Four tables as Markdown; some minutes with the default rounds."""
    rows: list[tuple[str, ...]] = []
    printed: list[float] = []
    mean_rows: list[tuple[str, ...]] = []
    for world in WORLDS:
        say(f"percentiles: {world.name}")
        found = [coverage(world, count, PERCENTILES, rounds) for count in COUNTS]
        plain = coverage(world, COUNTS[-1], PERCENTILES, rounds, rows=False)
        cells = [_cell(one[p]) for p in PERCENTILES for one in (*found, plain)]
        rows.append((world.name, world.told, *cells))
        printed += [one[p].printed for p in PERCENTILES for one in found]
        means = [mean_coverage(world, count, seconds, rounds) for count, seconds in MEANS]
        mean_rows.append((world.name, *(f"{m.below * 100:.1f} % ({m.upper:.2f})" for m in means)))
    counts = (*(f"n = {count:,}" for count in COUNTS), f"n = {COUNTS[-1]:,}, taken as independent")
    head = ("requests", "", *(f"p{p:g}, {words}" for p in PERCENTILES for words in counts))
    trials = [
        (world.name, world.told, *(f"{median_coverage(world, n, 4 * rounds) * 100:.1f} %" for n in TRIALS))
        for world in OVER_TRIALS
    ]
    parts = [
        prose(
            f"Seed {SEED}; {rounds:,} simulated trials per cell, {4 * rounds:,} experiments per cell of the "
            f"second table. **One trial** of {SECONDS} s: how often the printed 95 % interval of a "
            "percentile holds the true one, and in brackets how often its upper end is open. "
            f"{_printed(printed)} Where requests are independent it holds what it says, whatever their "
            "distribution. Where they share a queue or a pause, order statistics alone fall far short (the "
            "columns *taken as independent*); the printed intervals are widened by what the seconds show of "
            "it. They still fall short, to seven tenths at worst, wherever a queue is busy (the median of a "
            "short run no less than the tail) or slow requests come in groups, and where a second has too "
            "few requests to have a tail of its own. A longer window and fresh trials are the remedy."
        ),
        table(head, rows),
        prose(
            "**The mean of one trial**, by which `prony capacity` decides an objective of a mean: in how "
            "many trials the upper end of its interval lies below the true mean (aim 2.5 %), so that a rate "
            "holds which does not; in brackets the median of the upper ends ÷ the true mean. A queue that is "
            "nearly full remembers for longer than a short window lasts, and rare long requests that the "
            "window did not meet are in no interval: these miss the aim."
        ),
        table(("requests", *(f"{count:,} in {seconds} s" for count, seconds in MEANS)), mean_rows),
        prose(
            "**Over trials**: how often the interval of the median of the trials' p99 holds the true median. "
            "Trials are independent, so it covers at least 95 % in every world."
        ),
        table(("trials", "", *(f"n = {n}" for n in TRIALS)), trials),
    ]
    return "\n\n".join([*parts, *_of_levels(rounds, say)]) + "\n"


def _of_levels(rounds: int, say: Say) -> list[str]:
    rows: list[tuple[str, ...]] = []
    for world in LEVEL_WORLDS:
        say(f"percentiles of a fast server: {world.name}")
        found = [level_coverage(world, per_s, seconds, LEVEL_AT, rounds) for per_s, seconds in WINDOWS]
        rows.append((world.name, *(_of_level(one) for one in found)))
    return [
        prose(
            f"**A fast server**: its times spread by {TIMES_SPREAD:.0%} within a second, and its level "
            f"differs from second to second. How often the interval of p{LEVEL_AT:g} holds the true one; as "
            "how many independent requests those of the window count (median); how far the ends lie from the "
            "value (medians), and in brackets within how much of the true one 95 % of the values lie. "
            "Millions of requests in ten seconds know the level of ten seconds: they count as few, and more "
            "requests in the same seconds count no more. Where they count as fewer than a useful upper end "
            "takes, it is that of the longest requests, far too wide, and `samples` says that there is none. "
            "That seconds resemble the ones before shows in fifteen of them at least: a window of ten misses "
            "it."
        ),
        table(("seconds", *(f"{per_s:,}/s for {seconds} s" for per_s, seconds in WINDOWS)), rows),
    ]


def _of_level(found: LevelCovered) -> str:
    return (
        f"{found.held * 100:.1f} %; {found.counts_as:,.0f}; -{found.below * 100:.1f} %, "
        f"+{found.above * 100:.1f} % (±{found.error * 100:.1f} %)"
    )


def _cell(found: Covered) -> str:
    if not found.printed:
        return "not printed"
    return f"{found.held * 100:.1f} %" + (
        f" ({found.open * 100:.0f} % open)" if round(found.open * 100) else ""
    )


def _printed(shares: Sequence[float]) -> str:
    if min(shares) == 1:
        return "Every trial prints both percentiles."
    return f"Of a cell's trials {min(shares) * 100:.1f} % at least print them; the others are left out."
