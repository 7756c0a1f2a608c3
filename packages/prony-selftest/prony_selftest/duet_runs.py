"""Real blocks in both designs, `--duet` and sequential: the same build twice, and one with 5 % more work."""

from __future__ import annotations

import math
import random
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Literal

from scipy import stats as untyped_stats

from prony.store import Store
from prony_selftest.gate_runs import SLOWER_WORK_US, WORK_US, run_prony, write_server
from prony_selftest.proportion import upper_bound
from prony_selftest.tables import Say, prose, table

stats: Any = untyped_stats

Design = Literal["duet", "sequential"]
DESIGNS: tuple[Design, ...] = ("duet", "sequential")
OPTIONS = ("--quick", "--trials", "1", "--window", "6", "--warm-up-cap", "3", "--users", "8")
"""The reference server needs no warm-up."""
FIGURES = {"requests_per_s": "requests/s", "server_cpu_us_per_request": "server CPU per request"}
EACH = 5
"""Blocks of an experiment that may give a false alarm."""
DECIDED = math.log(SLOWER_WORK_US / WORK_US)
CONFIDENCE = 0.95
TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class Block:
    """One block of two servers: ln of the candidate's figure ÷ the base's, by figure; empty: it failed."""

    candidate: str
    design: Design
    logs: dict[str, float]


def duet_blocks(runs: int, say: Say, seed: int = 1) -> Iterator[str]:
    """`runs` blocks of each design and candidate, in drawn order; after each round, as Markdown."""
    source = random.Random(seed)
    blocks: list[Block] = []
    with tempfile.TemporaryDirectory(prefix="prony-duets-") as made:
        folder = Path(made)
        for name, work_us in (("base", WORK_US), ("again", WORK_US), ("slower", SLOWER_WORK_US)):
            write_server(folder / name, work_us)
        for number in range(1, runs + 1):
            coming = [(candidate, design) for candidate in ("again", "slower") for design in DESIGNS]
            source.shuffle(coming)
            for candidate, design in coming:
                blocks.append(_block(folder, candidate, design, source.randrange(2**31)))
                logs = " ".join(f"{log:+.4f}" for log in blocks[-1].logs.values()) or "failed"
                say(f"{number}/{runs} {candidate} {design}: {logs}")
            yield duet_table(blocks)


def _block(folder: Path, candidate: str, design: Design, seed: int) -> Block:
    words = ["compare", "./base", f"./{candidate}", *OPTIONS, "--seed", str(seed), "--json"]
    database = folder / "blocks.db"
    try:
        done = run_prony(folder, [*words, "--duet" if design == "duet" else "--no-duet"], database, TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return Block(candidate, design, {})
    if not database.exists() or not done.stdout:
        return Block(candidate, design, {})
    store = Store.open(str(database))
    try:
        newest = store.experiments()[0].id
        figures = {trial.record.server: trial.figures for trial in store.trials(newest)}
    finally:
        store.close()
    base, other = figures.get("base", {}), figures.get(candidate, {})
    logs = {name: math.log(other[name] / base[name]) for name in FIGURES if name in base and name in other}
    return Block(candidate, design, logs if len(logs) == len(FIGURES) else {})


def duet_table(blocks: Sequence[Block]) -> str:
    """Noise of a block's ratio in both designs, what it means for 5 %, and false alarms."""
    head = ("candidate", "figure", "design", "blocks", "mean", "standard deviation of the log ratio, %",
            "blocks to decide 5 %", "variance ÷ sequential")  # fmt: skip
    rows: list[tuple[object, ...]] = []
    alarms: dict[Design, tuple[int, int]] = dict.fromkeys(DESIGNS, (0, 0))
    for candidate, label in (
        ("again", "the same build"),
        ("slower", f"{SLOWER_WORK_US / WORK_US - 1:.0%} more work"),
    ):
        for name, figure in FIGURES.items():
            of = {
                design: [
                    block.logs[name]
                    for block in blocks
                    if block.candidate == candidate and block.design == design and block.logs
                ]
                for design in DESIGNS
            }
            rows += [_row(label, figure, design, of[design], of["sequential"]) for design in DESIGNS]
            if candidate == "again":
                for design in DESIGNS:
                    wrong, count = _alarms(of[design])
                    alarms[design] = (alarms[design][0] + wrong, alarms[design][1] + count)
    failed = sum(not block.logs for block in blocks)
    shares = "; ".join(
        f"{design}: {wrong} of {count} (at most {upper_bound(wrong, count):.0%})"
        if count
        else f"{design}: none"
        for design, (wrong, count) in alarms.items()
    )
    words = " ".join(OPTIONS)
    summary = (
        f"Each block is `prony compare ./base ./CANDIDATE {words}`, with `--duet` or `--no-duet`, in an "
        f"order drawn for each round. Intervals: {CONFIDENCE:.0%}. Blocks to decide: for a t interval that "
        "excludes 1 in four of five. False alarms, of two figures over "
        f"{EACH} blocks of the same build each: {shares}. Failed blocks: {failed}."
    )
    return table(head, rows) + "\n\n" + prose(summary) + "\n"


def _row(
    label: str, figure: str, design: Design, logs: Sequence[float], sequential: Sequence[float]
) -> tuple[object, ...]:
    if len(logs) < 2:
        return (label, figure, design, len(logs), "", "", "", "")
    spread, (low, high) = stdev(logs), spread_interval(logs)
    half = stats.t.ppf((1 + CONFIDENCE) / 2, len(logs) - 1) * spread / math.sqrt(len(logs))
    ratio = ""
    if design == "duet" and len(sequential) > 1:
        ratio = f"{(spread / stdev(sequential)) ** 2:.2f} (p = {variance_p(logs, sequential):.2g})"
    return (
        label,
        figure,
        design,
        len(logs),
        f"{100 * math.expm1(mean(logs)):+.1f} % ± {100 * half:.1f}",
        f"{100 * spread:.1f} ({100 * low:.1f}–{100 * high:.1f})",
        blocks_to_decide(spread),
        ratio,
    )


def spread_interval(logs: Sequence[float]) -> tuple[float, float]:
    """Of the standard deviation, by chi-square."""
    free = len(logs) - 1
    tail = (1 - CONFIDENCE) / 2
    low, high = (stats.chi2.ppf(p, free) for p in (1 - tail, tail))
    return stdev(logs) * math.sqrt(free / low), stdev(logs) * math.sqrt(free / high)


def variance_p(first: Sequence[float], other: Sequence[float]) -> float:
    """Two-sided p-value of equal variances (F test)."""
    below = stats.f.cdf((stdev(first) / stdev(other)) ** 2, len(first) - 1, len(other) - 1)
    return float(2 * min(below, 1 - below))


def blocks_to_decide(spread: float) -> int:
    """Least number of blocks of which the t interval excludes 1 at a difference of 5 %, with power 80 %."""
    count = 2
    while count < 10_000:
        free = count - 1
        critical = stats.t.ppf((1 + CONFIDENCE) / 2, free)
        if stats.nct.sf(critical, free, DECIDED * math.sqrt(count) / spread) >= 0.8:
            return count
        count += 1
    return count


def _alarms(logs: Sequence[float]) -> tuple[int, int]:
    """(experiments of EACH blocks whose t interval excludes 1, all of them)."""
    groups = [logs[at : at + EACH] for at in range(0, len(logs) - EACH + 1, EACH)]
    critical = stats.t.ppf((1 + CONFIDENCE) / 2, EACH - 1)
    wrong = sum(abs(mean(group)) > critical * stdev(group) / math.sqrt(EACH) for group in groups)
    return wrong, len(groups)
