"""Tables of coverage, claims and usefulness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from prony_selftest.cover.claims import BLOCKS, CREEPING, FASTER, FIGURE_OF, Claimed, claimed, creeping
from prony_selftest.cover.coverage import FigureCoverage, WorldCoverage, coverage_of, plateaus
from prony_selftest.cover.queue import World
from prony_selftest.cover.worlds import BUSY, FIGURES, KINDS, LOADS, WINDOW_S, Kind
from prony_selftest.proportion import CONFIDENCE, upper_bound
from prony_selftest.tables import Say, plus_minus, prose, table

SEED = 20261127
TRIALS, PAIRS, WINDOWS = 25, 6, 40
"""Default repetitions per cell."""
HEAD = {
    "requests_per_s": "requests/s", "mean_ms": "mean", "p50_ms": "p50", "p99_ms": "p99",
    "server_cpu_us_per_request": "CPU",
}  # fmt: skip
CLAIM_LOADS = ("saturating", "open")
OPEN, QUIET_AIM, BUSY_AIM = "open", 0.05, 0.15
CREEPING_WORLDS = {
    "level": World(noise=0.015),
    "15 % to come, time constant 60 s": World(noise=0.015, creeps=CREEPING),
}


def cover_tables(trials: int = TRIALS, windows: int = WINDOWS, say: Say = lambda _: None) -> str:
    """Coverage by kind of world and load."""
    results: dict[tuple[str, str], WorldCoverage] = {}
    for place, (kind, load) in enumerate(every()):
        say(f"cover: {kind.name}, {load}")
        results[kind.name, load] = coverage_of(kind, load, trials, SEED + place)
    rows = [
        (kind.name, load, *(_inside(results[kind.name, load].figures.get(name)) for name in FIGURES))
        for kind, load in every()
    ]
    figures = [of for result in results.values() for of in result.figures.values()]
    counted, inside = (sum(of.conforming for of in figures), sum(of.covered for of in figures))
    interval_only = sum(of.interval_only for of in figures)
    total = (
        f"Inside in total: {inside} of {counted} ({_percent(inside, counted)}; aim 95 %); in the statistical "
        f"interval alone: {_percent(interval_only, counted)}."
    )
    parts = [
        prose(
            f"Seed {SEED}; {trials} simulated trials per row, each with a disturbance of random size, in "
            f"windows of {WINDOW_S:g} s. A cell: conforming trials in which the figure of an undisturbed "
            "server lies inside the interval widened by the budget; and the median half width of the budget."
        ),
        "**The worlds.**\n\n" + table(("world", "disturbance"), [(k.name, k.description) for k in KINDS]),
        "**Inside.**\n\n" + table(("world", "load", *(HEAD[name] for name in FIGURES)), rows),
        prose(total),
        _checks(results),
        _plateaus(windows, say),
    ]
    return "\n\n".join(parts) + "\n"


def every() -> list[tuple[Kind, str]]:
    """Kinds of worlds, each with its loads."""
    return [(kind, load) for kind in KINDS for load in kind.loads]


def _inside(of: FigureCoverage | None) -> str:
    if of is None:
        return ""
    if not of.conforming:
        return "none conforms"
    lost = "" if of.conforming == of.trials else f", {of.trials - of.conforming} do not conform"
    return f"{of.covered}/{of.conforming}{lost}; {width(of.halves)}"


def width(halves: Sequence[float]) -> str:
    """The median half width, or *open*."""
    return plus_minus(median(halves))


def _percent(hits: int, count: int) -> str:
    return f"{100 * hits / count:.1f} %" if count else "none"


def _checks(results: dict[tuple[str, str], WorldCoverage]) -> str:
    names = sorted({check for result in results.values() for check in (*result.checks, *result.refused)})
    rows = []
    for name in names:
        largest = max((result.checks.get(name, 0.0) for result in results.values()), default=0.0)
        needed = sum(result.needed.get(name, 0) for result in results.values())
        refused = sum(result.refused.get(name, 0) for result in results.values())
        bound = OPEN if math.isinf(largest) else f"{100 * math.expm1(largest):.2g} %"
        rows.append((f"`{name}`", bound, needed, refused))
    text = (
        "**By check**: its largest bound, figures whose truth lies outside without it, and trials that it "
        "kept from conforming."
    )
    return prose(text) + "\n\n" + table(("check", "largest bound", "needed", "does not conform"), rows)


def _plateaus(windows: int, say: Say) -> str:
    rows = []
    for name, world in CREEPING_WORLDS.items():
        for window_s in (10.0, 30.0):
            say(f"plateau: {name}, {window_s:g} s")
            of = plateaus(world, window_s, windows, SEED)
            rows.append((name, f"{window_s:g} s", f"{of.covered}/{of.windows}", width(of.halves)))
    text = (
        "**Residual drift**: printed plateau intervals that hold the server's level 60 s after the window, "
        "with 1.5 % noise from second to second, after 10 s of warm-up."
    )
    return prose(text) + "\n\n" + table(("server", "window", "inside", "half width, median"), rows)


def claim_tables(pairs: int = PAIRS, say: Say = lambda _: None) -> str:
    """Claims about pairs with a known ratio."""
    rows, claimed_pairs = [], list[Claimed]()
    for place, (kind, load) in enumerate(pair for pair in every() if pair[1] in CLAIM_LOADS):
        if kind.disturbed_truth and kind.busy:
            continue
        cells = []
        for ratio in (1.0, FASTER):
            say(f"claims: {kind.name}, {load}, {ratio:g}")
            claimed_pairs.append(claimed(kind, load, ratio, pairs, SEED + place))
            cells.append(_claims(claimed_pairs[-1]))
        rows.append((kind.name, load, FIGURE_OF[load], *cells))
    say("claims: creeping")
    of = creeping(pairs * 3, SEED)
    counted = (*claimed_pairs, of)
    false = [claim for each in counted for claim in each.false_claims]
    beyond = [claim for each in counted for claim in each.beyond]
    shown = sum(each.shown for each in counted)
    claims = shown + sum(each.equivalent for each in counted)
    summary = (
        "False (no difference, one in the other direction, or more than *equivalent* allows): "
        f"{len(false)} of {claims} claims, which is at most {_most(len(false), claims)} with "
        f"{CONFIDENCE:.0%} confidence; aim 1 %. Differences whose near end exceeds the true one: "
        f"{len(beyond)} of {shown}, at most {_most(len(beyond), shown)}; the 95 % interval alone promises "
        f"2.5 %. A server that gains 15 %, against a server at its plateau: {of.shown} of {of.pairs} shown "
        f"for the window, {of.plain} of them as a lasting difference; aim 0."
        + "".join(f" False: {claim}." for claim in false)
        + "".join(f" Beyond: {claim}." for claim in beyond)
    )
    head = ("world", "load", "figure", "equal", f"{(FASTER - 1) * 100:.0f} % apart")
    text = (
        f"{pairs} pairs per cell, {BLOCKS} trials each, every trial with a disturbance of random size: shown "
        "/ equivalent / open."
    )
    return prose(text) + "\n\n" + table(head, rows) + "\n\n" + prose(summary) + "\n"


def _most(hits: int, count: int) -> str:
    return f"{100 * upper_bound(hits, max(1, count)):.1f} %"


def _claims(of: Claimed) -> str:
    wrong = f", **{of.false} false**" if of.false else ""
    return f"{of.shown} / {of.equivalent} / {of.open}{wrong}"


def use_tables(trials: int = TRIALS, pairs: int = PAIRS, say: Say = lambda _: None) -> str:
    """Widths of the budgets, conforming trials, and differences of 10 % that are shown."""
    rows = []
    hosts: tuple[tuple[str, Kind, float], ...] = (("quiet", KINDS[0], QUIET_AIM), ("busy", BUSY, BUSY_AIM))
    for host, kind, aim in hosts:
        for place, load in enumerate(LOADS):
            say(f"use: {host}, {load}")
            figures = coverage_of(kind, load, trials, SEED + place).figures
            conforming = figures[FIGURES[0]].conforming
            rows.append(
                (
                    f"{host}, aim ± {aim:.0%}",
                    load,
                    f"{conforming}/{trials}",
                    *(_off(figures[name]) for name in FIGURES),
                    _shown(kind, load, pairs) if load in FIGURE_OF else "",
                )
            )
    head = ("host", "load", "conform", *(HEAD[name] for name in FIGURES), "10 % apart: shown")
    text = (
        f"Median half width of the budget over {trials} trials, and how far the figure itself is from that "
        "of an undisturbed server (median): no bound is narrower than half of it. And how many of "
        f"{pairs} pairs that differ by 10 % are shown after {BLOCKS} trials each. Busy: "
        f"{BUSY.description.removeprefix('as ')}."
    )
    return prose(text) + "\n\n" + table(head, rows) + "\n"


def _off(of: FigureCoverage) -> str:
    return f"{width(of.halves)}, off by {100 * median(of.offs):.2g} %" if of.halves else "none conforms"


def _shown(kind: Kind, load: str, pairs: int) -> str:
    of = claimed(kind, load, FASTER, pairs, SEED)
    return f"{of.shown}/{of.pairs} ({FIGURE_OF[load]})" + (f", **{of.false} false**" if of.false else "")
