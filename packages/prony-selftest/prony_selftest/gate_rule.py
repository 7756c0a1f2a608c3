"""Error rates and power of a gate, simulated with the function that reports use. Pure; seeded."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from prony.compare import Looks, Sample
from prony.compare.noninferiority import Change, MarginTest, changes
from prony_selftest.statistics import SEED, Rate
from prony_selftest.tables import Say, prose, table
from prony_selftest.violations import VIOLATIONS, ViolationWorld
from prony_selftest.worlds import WORLDS, World, log_normal

LOOKS = Looks(5, 20)
MARGIN = 0.03
SLOWER = 0.05
BASE, CANDIDATE = "a", "b"
FIGURES = ("first", "second", "third")
ROUNDS = 1000
SPREADS = (0.0025, 0.005, 0.01, 0.02)
IN_A_GATE = ("unequal spread", "one skewed server", "carry-over, drawn", "slow starts without a figure")
"""Worlds that break an assumption and can occur in a round-robin gate."""

Losses = Sequence[float]
"""Per figure, the share by which the candidate is worse."""
Draw = Callable[[np.random.Generator, int], list[Sample]]
"""Samples of one figure of two equal servers, in this many blocks."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Result of one gate."""

    change: Change
    blocks: int


def of_world(world: World) -> Draw:
    """A world's trials as samples."""

    def draw(rng: np.random.Generator, blocks: int) -> list[Sample]:
        return [
            Sample(name, block, math.exp(value))
            for name, values in zip((BASE, CANDIDATE), world.draw(rng, 2, blocks), strict=True)
            for block, value in enumerate(values)
        ]

    return draw


def of_violation(world: ViolationWorld) -> Draw:
    """A world's trials, with their order and missing figures."""
    return world.trials


def gates(
    draw: Draw, losses: Losses, rounds: int, *, looks: Looks = LOOKS, margin: float = MARGIN, seed: int = SEED
) -> list[Ended]:
    """Gates over `len(losses)` independent figures (the most false alarms); lower is better."""
    rng = np.random.default_rng(seed)
    names = FIGURES[: len(losses)]
    test = MarginTest(BASE, CANDIDATE, dict.fromkeys(names, False), margin)
    return [_one(draw, dict(zip(names, losses, strict=True)), test, looks, rng) for _ in range(rounds)]


def _one(
    draw: Draw, losses: dict[str, float], test: MarginTest, looks: Looks, rng: np.random.Generator
) -> Ended:
    drawn = {
        figure: [
            sample
            if sample.value is None or sample.server != CANDIDATE
            else sample._replace(value=sample.value * (1 + loss))
            for sample in draw(rng, looks.most)
        ]
        for figure, loss in losses.items()
    }
    for blocks in range(looks.first, looks.most + 1):
        so_far = {figure: [s for s in samples if s.block < blocks] for figure, samples in drawn.items()}
        result = changes(so_far, test, looks, ended=blocks == looks.most)
        if result.change is not Change.CANNOT_TELL:
            break
    return Ended(result.change, blocks)


def share(ended: Sequence[Ended], change: Change) -> Rate:
    """Share of gates with this result."""
    return Rate(sum(gate.change is change for gate in ended), len(ended))


def single_runs(draw: Draw, rounds: int, *, margin: float = MARGIN, seed: int = SEED) -> Rate:
    """False alarms of a fixed threshold on the first block, conforming or not."""
    rng = np.random.default_rng(seed)
    false = 0
    for _ in range(rounds):
        by_server = {
            sample.server: sample.value or math.nan for sample in draw(rng, LOOKS.most) if sample.block == 0
        }
        false += by_server[CANDIDATE] / by_server[BASE] > 1 + margin
    return Rate(false, rounds)


def gate_tables(rounds: int, say: Say = lambda _: None) -> str:
    """All tables, as Markdown."""
    head = prose(
        f"Seed {SEED}; {rounds:,} simulated gates per cell, margin {MARGIN * 100:g} %, looks after each "
        f"block from {LOOKS.first} to {LOOKS.most}. A share of 2.5 % is known to ± "
        f"{196 * math.sqrt(0.025 * 0.975 / rounds):.1f} percentage points (95 %)."
    )
    return "\n\n".join((head, _errors(rounds, say), _power(rounds, say))) + "\n"


def _errors(rounds: int, say: Say) -> str:
    rows = []
    violating = [(world.name, of_violation(world)) for world in VIOLATIONS if world.name in IN_A_GATE]
    for name, draw in [*((world.name, of_world(world)) for world in WORLDS), *violating]:
        say(f"gates: {name}")
        same = gates(draw, (0.0, 0.0, 0.0), rounds)
        edge = gates(draw, (MARGIN, MARGIN, MARGIN), rounds)
        ended = gates(draw, (MARGIN, 0.0, 0.0), rounds)
        rows.append(
            (
                name,
                share(same, Change.WORSE),
                share(edge, Change.WORSE),
                share(ended, Change.NO_WORSE),
                single_runs(draw, rounds),
            )
        )
    head = (
        "world",
        "unchanged, called worse",
        "all three at the margin, called worse",
        "one of three at the margin, called no worse",
        "unchanged, called worse by a threshold on single runs",
    )
    text = (
        "**False alarms and false passes** of gates over three figures. At most 5 % of gates may err when a "
        "loss equals the margin, which is the hardest case: half of them as *worse*, half as *no worse*. An "
        "unchanged candidate is further from an alarm. The last column is a fixed threshold on single runs."
    )
    return prose(text) + "\n\n" + table(head, rows)


def _power(rounds: int, say: Say) -> str:
    rows = []
    for spread in SPREADS:
        say(f"gates: power where trials differ by {spread:.2%}")
        draw = of_world(log_normal(spread))
        same = gates(draw, (0.0, 0.0, 0.0), rounds)
        slower = gates(draw, (SLOWER, SLOWER, SLOWER), rounds)
        rows.append((f"{spread * 100:g} %", *_cells(same, Change.NO_WORSE), *_cells(slower, Change.WORSE)))
    head = (
        "trials differ by", "unchanged: no worse", "cannot tell", "blocks",
        f"{SLOWER * 100:g} % slower: worse", "cannot tell", "blocks",
    )  # fmt: skip
    text = (
        "**Power**: results for an unchanged candidate, and for a candidate that is "
        f"{SLOWER * 100:g} % slower in all three figures, by the spread of fresh processes of one build; and "
        "the mean number of blocks."
    )
    return prose(text) + "\n\n" + table(head, rows)


def _cells(ended: Sequence[Ended], right: Change) -> tuple[str, str, str]:
    blocks = sum(gate.blocks for gate in ended) / len(ended)
    return str(share(ended, right)), str(share(ended, Change.CANNOT_TELL)), f"{blocks:.1f}"
