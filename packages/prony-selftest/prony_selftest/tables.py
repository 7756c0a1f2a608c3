"""Simulations as the tables of docs/results/truth."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prony.compare import Looks
from prony_selftest.statistics import (
    SEED,
    TRUTH,
    Power,
    coverage,
    false_difference,
    false_equivalence,
    false_until_clear,
    naive_rule,
    power,
    sequential_power,
    share,
    until_clear,
    violation_rates,
)
from prony_selftest.violations import VIOLATIONS
from prony_selftest.worlds import ONE_SIDED, WORLDS

TRIALS = (5, 10, 20)
DIFFERENCES = (0.01, 0.02, 0.05, 0.10)
SPREADS = (0.01, 0.02, 0.04)
LOOKS = Looks(5, 20)
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Repetitions:
    """Simulated experiments per cell."""

    intervals: int = 10_000
    claims: int = 4_000

    def times(self, share: float) -> Repetitions:
        """Scaled by `share`, at least 20."""
        return Repetitions(max(20, int(self.intervals * share)), max(20, int(self.claims * share)))


def statistics_tables(rounds: Repetitions, say: Say = lambda _: None) -> str:
    """All tables as Markdown; takes minutes with the default rounds. `say` receives the progress."""
    parts = [
        prose(
            f"Seed {SEED}; {rounds.intervals:,} simulated experiments per cell of the first table, "
            f"{rounds.claims:,} for the others. "
            f"A share of 5 % is known to ± {_error(rounds.claims) * 100:.1f} percentage points "
            "(95 %)."
        ),
        _worlds(),
        _coverage(rounds, say),
        _false(rounds, say),
        _until_clear(rounds, say),
        _power(rounds, say),
        _one_sided(rounds, say),
        _violations(rounds, say),
    ]
    return "\n\n".join(parts) + "\n"


def _error(rounds: int) -> float:
    return float(1.96 * (0.05 * 0.95 / rounds) ** 0.5)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)])


def prose(text: str) -> str:
    """A paragraph, wrapped at 100 characters."""
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def plus_minus(half: float) -> str:
    """A half width as a share; *open* if infinite."""
    percent = 100 * half
    return "open" if math.isinf(half) else f"± {percent:.2g} %" if percent < 99.5 else f"± {percent:,.0f} %"


def _worlds() -> str:
    rows = [(world.name, world.description) for world in (*WORLDS, *ONE_SIDED)]
    return "**The worlds.**\n\n" + table(("world", "model"), rows)


def _coverage(rounds: Repetitions, say: Say) -> str:
    rows = []
    for world in WORLDS:
        say(f"coverage: {world.name}")
        fixed = [coverage(world, trials, rounds.intervals) for trials in TRIALS]
        loose = [coverage(world, trials, rounds.intervals, "welch") for trials in TRIALS]
        rows.append((world.name, *fixed, *loose))
    head = ("world", *(f"paired t, n = {n}" for n in TRIALS), *(f"Welch, n = {n}" for n in TRIALS))
    text = (
        "**Coverage**: share of 95 % intervals of a ratio that contain the true ratio (1.05). The paired t"
        " interval (from ten blocks on with the correction for skewness) is used when blocks are "
        "complete, Welch's otherwise, which is too wide when the trials of a block are correlated."
    )
    return prose(text) + "\n\n" + table(head, rows)


def _false(rounds: Repetitions, say: Say) -> str:
    rows: list[tuple[object, ...]] = []
    for world in WORLDS:
        say(f"the same server under several names: {world.name}")
        two = [false_difference(world, trials, 2, rounds.claims) for trials in TRIALS]
        three = false_difference(world, TRIALS[0], 3, rounds.claims)
        same = [false_equivalence(world, trials, rounds.claims) for trials in TRIALS]
        rows.append((world.name, *two, three, *same))
    head = (
        "world",
        *(f"2 names, n = {n}" for n in TRIALS),
        "3 names, n = 5",
        *(f"*equivalent*, n = {n}" for n in TRIALS),
    )
    text = (
        "**The same server under several names** (A/A): share of experiments in which *any* pair is shown to "
        "differ (at most 5 %; Holm over the pairs). And servers that differ by exactly the practical "
        "band of 2 %: share called *equivalent* within less (at most 2.5 %)."
    )
    return prose(text) + "\n\n" + table(head, rows)


def _until_clear(rounds: Repetitions, say: Say) -> str:
    rows = []
    for world in WORLDS:
        say(f"trials added until it is clear: {world.name}")
        rule = until_clear(world, LOOKS, 0.0, rounds.claims)
        naive = until_clear(world, LOOKS, 0.0, rounds.claims, naive_rule())
        every = until_clear(world, LOOKS, TRUTH, rounds.claims, every_look=True)
        rows.append(
            (
                world.name,
                share(rule, lambda experiment: experiment.claim.differs),
                share(every, lambda experiment: experiment.covered),
                share(naive, lambda experiment: experiment.claim.differs),
            )
        )
    head = (
        "world",
        "false differences by the rule",
        "all intervals of all looks cover",
        "false differences with the ordinary interval at each look",
    )
    text = (
        f"**Trials added until the claim is clear**: looks after each block from {LOOKS.first} to "
        f"{LOOKS.most}. The rule promises at most 5 % in the first column and at least 95 % in the "
        "second; the last column is without a rule."
    )
    return prose(text) + "\n\n" + table(head, rows)


def _claims(power: Power) -> str:
    return f"{power.right} / {power.equivalent}" + (f" ({power.wrong} wrong)" if power.wrong.hits else "")


def _power(rounds: Repetitions, say: Say) -> str:
    rows = []
    for spread in SPREADS:
        for difference in DIFFERENCES:
            say(f"power: {difference:.0%} where trials differ by {spread:.0%}")
            fixed = [_claims(power(difference, n, spread, rounds.claims)) for n in TRIALS]
            added = sequential_power(difference, LOOKS, spread, rounds.claims // 2)
            rows.append(
                (
                    f"{spread * 100:g} %",
                    f"{difference * 100:g} %",
                    *fixed,
                    f"{_claims(added)}, {added.blocks:.1f} trials",
                )
            )
    head = ("trials differ by", "true difference", *(f"n = {n}" for n in TRIALS), "until clear, 5 to 20")
    text = (
        "**Power**: share *shown* / share *equivalent* (the rest is *open*; differences shown in the wrong "
        "direction would be marked), by the true difference and by the spread of trials of one server. The "
        "last column adds trials until the claim is clear, and gives the mean number per server."
    )
    return prose(text) + "\n\n" + table(head, rows)


def _one_sided(rounds: Repetitions, say: Say) -> str:
    rows = []
    for world in ONE_SIDED:
        say(f"limits of the method: {world.name}")
        fixed = [coverage(world, trials, rounds.intervals) for trials in TRIALS]
        added = until_clear(world, LOOKS, 0.0, rounds.claims)
        rows.append((world.name, *fixed, share(added, lambda experiment: experiment.claim.differs)))
    head = (
        "slow starts of one server only",
        *(f"coverage, n = {n}" for n in TRIALS),
        "false differences, until clear",
    )
    text = (
        "**Where it does not hold**: one of two servers has occasional slow starts. With few trials there "
        "may be none among them, and no method can know of it. A start with probability q is missing in n "
        "trials with probability (1 - q)ⁿ: after 5 trials a kind of start with a probability of up to 45 % "
        "may be missing (95 %), after 10 up to 26 %, after 20 up to 14 %. If you suspect such starts, run 20 "
        "trials or more."
    )
    return prose(text) + "\n\n" + table(head, rows)


def _violations(rounds: Repetitions, say: Say) -> str:
    rows = []
    for world in VIOLATIONS:
        say(f"assumptions broken: {world.name}")
        results = [violation_rates(world, trials, rounds.claims) for trials in TRIALS]
        added = false_until_clear(world, LOOKS, rounds.claims)
        cells = (f"{result.worst} ({result.alone}), {result.covered}" for result in results)
        rows.append((world.name, world.description, *cells, results[-1].drawn, added))
    drawn = f"permutation, n = {TRIALS[-1]}"
    head = ("world", "model", *(f"n = {n}" for n in TRIALS), drawn, "until clear, 5 to 20")
    text = (
        "**Broken assumptions**: share of experiments in which two equal servers are shown to differ, in "
        "brackets by the interval of the trials with a figure alone, and the coverage of the worst-case "
        "interval; last column: false differences when blocks are added until the claim is clear. At most 5 "
        "% is promised. Skewness is corrected from ten trials on, and at every look when trials are added. A "
        "fixed order makes carry-over look like a difference of the servers, which no test detects; in "
        "Prony's drawn orders tests separate the two. A trend over blocks, correlated blocks and carry-over "
        "that a test shows (5 % each) are sources of bias of the pair. A trial without a figure counts at "
        "its worst: as low or as high as any trial of either server. The permutation test flips the order "
        "of every two blocks, as it was drawn."
    )
    return prose(text) + "\n\n" + table(head, rows)


def replace_between(text: str, begin: str, end: str, new: str) -> str:
    """The text with everything between the two marks replaced. Raises ValueError without a mark."""
    if begin not in text or end not in text or text.index(begin) > text.index(end):
        raise ValueError(f"expected the lines '{begin}' and '{end}', in this order")
    return text[: text.index(begin) + len(begin)] + "\n" + new + text[text.index(end) :]
