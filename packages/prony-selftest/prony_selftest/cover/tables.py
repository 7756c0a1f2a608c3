"""The tables of what is covered, what is claimed, and of what use it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from prony_selftest.cover.claims import BLOCKS, CREEPING, FASTER, FIGURE_OF, Claimed, claimed, creeping
from prony_selftest.cover.held import Found, Held, held, plateaus
from prony_selftest.cover.queue import World
from prony_selftest.cover.worlds import BUSY, FIGURES, KINDS, LOADS, WINDOW_S, Kind
from prony_selftest.proportion import CONFIDENCE, upper_bound
from prony_selftest.tables import Say, plus_minus, prose, table

SEED = 20261127
TRIALS, PAIRS, WINDOWS = 25, 6, 40
"""In each cell, by default."""
HEAD = {
    "requests_per_s": "requests/s",
    "mean_ms": "mean",
    "p50_ms": "p50",
    "p99_ms": "p99",
    "server_cpu_us_per_request": "CPU",
}
CLAIM_LOADS = ("saturating", "open")
OPEN, QUIET_AIM, BUSY_AIM = "open", 0.05, 0.15
CREEPING_WORLDS = {
    "level": World(noise=0.015),
    "15 % to come, time constant 60 s": World(noise=0.015, creeps=CREEPING),
}


def cover_tables(trials: int = TRIALS, windows: int = WINDOWS, say: Say = lambda _: None) -> str:
    """How often the truth is inside, by kind of world and load."""
    found: dict[tuple[str, str], Found] = {}
    for place, (kind, load) in enumerate(every()):
        say(f"cover: {kind.name}, {load}")
        found[kind.name, load] = held(kind, load, trials, SEED + place)
    rows = [
        (kind.name, load, *(_inside(found[kind.name, load].figures.get(name)) for name in FIGURES))
        for kind, load in every()
    ]
    figures = [of for one in found.values() for of in one.figures.values()]
    counted, inside = (sum(of.conforming for of in figures), sum(of.inside for of in figures))
    alone = sum(of.alone for of in figures)
    said = (
        f"Inside in all: {inside} of {counted} ({_percent(inside, counted)}; aim 95 %); in the statistical "
        f"interval alone: {_percent(alone, counted)}."
    )
    parts = [
        prose(
            f"Seed {SEED}; {trials} simulated trials per row, each with a disturbance of its own size, in "
            f"windows of {WINDOW_S:g} s. In a cell: in how many conforming trials the figure of an "
            "undisturbed server lies inside the interval widened by the budget; and half the width of the "
            "budget (median)."
        ),
        "**The worlds.**\n\n" + table(("world", "what goes wrong"), [(k.name, k.told) for k in KINDS]),
        "**Inside.**\n\n" + table(("world", "load", *(HEAD[name] for name in FIGURES)), rows),
        prose(said),
        _checks(found),
        _plateaus(windows, say),
    ]
    return "\n\n".join(parts) + "\n"


def every() -> list[tuple[Kind, str]]:
    """Kinds of worlds with the loads that they are for."""
    return [(kind, load) for kind in KINDS for load in kind.loads]


def _inside(of: Held | None) -> str:
    if of is None:
        return ""
    if not of.conforming:
        return "none conforms"
    lost = "" if of.conforming == of.trials else f", {of.trials - of.conforming} do not conform"
    return f"{of.inside}/{of.conforming}{lost}; {width(of.halves)}"


def width(halves: Sequence[float]) -> str:
    """The median of half the width; of most of them open: that."""
    return plus_minus(median(halves))


def _percent(hits: int, count: int) -> str:
    return f"{100 * hits / count:.1f} %" if count else "none"


def _checks(found: dict[tuple[str, str], Found]) -> str:
    names = sorted({check for one in found.values() for check in (*one.checks, *one.refused)})
    rows = []
    for name in names:
        largest = max((one.checks.get(name, 0.0) for one in found.values()), default=0.0)
        needed = sum(one.needed.get(name, 0) for one in found.values())
        refused = sum(one.refused.get(name, 0) for one in found.values())
        said = OPEN if math.isinf(largest) else f"{100 * math.expm1(largest):.2g} %"
        rows.append((f"`{name}`", said, needed, refused))
    text = (
        "**By check**: its largest bound, in how many figures the truth would be outside without it, and how "
        "many trials it kept from conforming."
    )
    return prose(text) + "\n\n" + table(("check", "largest bound", "needed", "does not conform"), rows)


def _plateaus(windows: int, say: Say) -> str:
    rows = []
    for name, world in CREEPING_WORLDS.items():
        for window_s in (10.0, 30.0):
            say(f"plateau: {name}, {window_s:g} s")
            of = plateaus(world, window_s, windows, SEED)
            rows.append((name, f"{window_s:g} s", f"{of.held}/{of.windows}", width(of.halves)))
    text = (
        "**Residual drift**: how often the level of a server 60 s after the window lies in the "
        "printed plateau interval, with 1.5 % noise from second to second, after 10 s of warm-up."
    )
    return prose(text) + "\n\n" + table(("server", "window", "inside", "half width, median"), rows)


def claim_tables(pairs: int = PAIRS, say: Say = lambda _: None) -> str:
    """What is claimed of pairs whose true ratio is known."""
    rows, found = [], list[Claimed]()
    for place, (kind, load) in enumerate(one for one in every() if one[1] in CLAIM_LOADS):
        if kind.honest and kind.busy:
            continue
        cells = []
        for ratio in (1.0, FASTER):
            say(f"claims: {kind.name}, {load}, {ratio:g}")
            found.append(claimed(kind, load, ratio, pairs, SEED + place))
            cells.append(_claims(found[-1]))
        rows.append((kind.name, load, FIGURE_OF[load], *cells))
    say("claims: creeping")
    of = creeping(pairs * 3, SEED)
    told = [one for each in (*found, of) for one in each.told]
    claims = sum(each.shown + each.equivalent for each in (*found, of))
    said = (
        f"False: {len(told)} of {claims} claims, which is at most "
        f"{100 * upper_bound(len(told), max(1, claims)):.1f} % with {CONFIDENCE:.0%} confidence; aim 1 %. "
        "A server with 15 % to come, held against one that is already where it will be: "
        f"{of.shown} of {of.pairs} shown for the window, {of.plain} of them as a difference that "
        "stays; aim none." + "".join(f" Not true: {one}." for one in told)
    )
    head = ("world", "load", "figure", "equal", f"{(FASTER - 1) * 100:.0f} % apart")
    text = (
        f"{pairs} pairs per cell, {BLOCKS} trials each, every one with a disturbance of its own size: shown "
        "/ equivalent / open."
    )
    return prose(text) + "\n\n" + table(head, rows) + "\n\n" + prose(said) + "\n"


def _claims(of: Claimed) -> str:
    wrong = f", **{of.false} false**" if of.false else ""
    return f"{of.shown} / {of.equivalent} / {of.open}{wrong}"


def use_tables(trials: int = TRIALS, pairs: int = PAIRS, say: Say = lambda _: None) -> str:
    """How wide the budgets are, what conforms, and what is shown of a difference of 10 %."""
    rows = []
    hosts: tuple[tuple[str, Kind, float], ...] = (("quiet", KINDS[0], QUIET_AIM), ("busy", BUSY, BUSY_AIM))
    for host, kind, aim in hosts:
        for place, load in enumerate(LOADS):
            say(f"use: {host}, {load}")
            found = held(kind, load, trials, SEED + place).figures
            conforming = found[FIGURES[0]].conforming
            rows.append(
                (
                    f"{host}, aim ± {aim:.0%}",
                    load,
                    f"{conforming}/{trials}",
                    *(width(found[name].halves) for name in FIGURES),
                    _shown(kind, load, pairs) if load in FIGURE_OF else "",
                )
            )
    head = ("host", "load", "conform", *(HEAD[name] for name in FIGURES), "10 % apart: shown")
    text = (
        f"Half the width of the budget, median of {trials} trials that conform; and how many of {pairs} "
        f"pairs that differ by 10 % are shown after {BLOCKS} trials each. Busy, as "
        f"{BUSY.told.removeprefix('as ')}."
    )
    return prose(text) + "\n\n" + table(head, rows) + "\n"


def _shown(kind: Kind, load: str, pairs: int) -> str:
    of = claimed(kind, load, FASTER, pairs, SEED)
    return f"{of.shown}/{of.pairs} ({FIGURE_OF[load]})" + (f", **{of.false} false**" if of.false else "")
