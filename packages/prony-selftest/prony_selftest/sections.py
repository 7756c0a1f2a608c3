"""The self-test's sections by name, and their pages in docs/results/truth."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from prony.errors import UsageError
from prony_selftest.cover.tables import PAIRS, WINDOWS, claim_tables, cover_tables, use_tables
from prony_selftest.cover.tables import TRIALS as COVERED
from prony_selftest.duet_runs import duet_blocks
from prony_selftest.explained import explain_tables
from prony_selftest.gate_rule import ROUNDS as GATES
from prony_selftest.gate_rule import gate_tables
from prony_selftest.gate_runs import real_gates
from prony_selftest.laws import usl_table
from prony_selftest.percentile_coverage import ROUNDS
from prony_selftest.percentile_tables import percentile_tables
from prony_selftest.shared_processes import ROUNDS as SHARED
from prony_selftest.shared_processes import shared_tables
from prony_selftest.steady_tables import TRIALS, steady_tables
from prony_selftest.tables import Repetitions, Say, replace_between, statistics_tables

Simulated = Callable[[float, Say], str]
SIMULATED: Mapping[str, Simulated] = {
    "statistics": lambda share, say: statistics_tables(Repetitions().times(share), say),
    "percentiles": lambda share, say: percentile_tables(max(20, int(ROUNDS * share)), say),
    "usl": usl_table,
    "shared": lambda share, say: shared_tables(max(20, int(SHARED * share)), say),
    "gate-rule": lambda share, say: gate_tables(max(20, int(GATES * share)), say),
    "explain": explain_tables,
    "steady": lambda share, say: steady_tables(max(2, round(TRIALS * share)), say),
    "cover": lambda share, say: cover_tables(_of(COVERED, share), _of(WINDOWS, share), say),
    "claims": lambda share, say: claim_tables(_of(PAIRS, share), say),
    "use": lambda share, say: use_tables(_of(COVERED, share), _of(PAIRS, share), say),
}
"""Simulated sections: share of the usual number of rounds -> tables."""
RUNS = {"staged": 3, "gate": 40, "honest": 60, "duet": 10, "canary": 12}
"""Sections that take a number of runs, with its default."""
SECTIONS = (*SIMULATED, "catalogue", *RUNS)


@dataclass(frozen=True, slots=True)
class SectionRequest:
    """Options of a section."""

    section: str
    rounds_percent: int = 100
    runs: int | None = None
    server: str | None = None
    numbers: tuple[int, ...] = ()
    """Entries of the catalogue; empty: all."""


def _of(count: int, share: float) -> int:
    return max(1, round(count * share))


def marks(section: str) -> tuple[str, str]:
    """The marker lines around a section's tables."""
    page = f"docs/results/truth/{section}.md"
    begin = f"<!-- {section}: begin (prony selftest --section {section} --write {page}) -->"
    return begin, f"<!-- {section}: end -->"


def written(request: SectionRequest, page: Path, say: Say) -> None:
    """Fills a page with the tables, after each trial with those so far; of the catalogue, other
    entries' rows stay. Raises UsageError, before the first trial, if the page lacks its marks.
    """
    begin, end = marks(request.section)
    try:
        replace_between(page.read_text(encoding="utf-8"), begin, end, "")
        for filled in tables(request, say):
            text = page.read_text(encoding="utf-8")
            if request.section == "catalogue":
                filled = _with_other_rows(filled, text.partition(begin)[2].partition(end)[0])
            page.write_text(replace_between(text, begin, end, "\n" + filled + "\n"), encoding="utf-8")
    except (OSError, ValueError) as fault:
        raise UsageError(f"{page}: {fault}") from fault


ROW = re.compile(r"^\| (\d+) \|.*\n", re.M)


def _with_other_rows(new: str, old: str) -> str:
    rows = {int(row[1]): row[0] for text in (old, new) for row in ROW.finditer(text)}
    return ROW.sub("", new) + "".join(rows[number] for number in sorted(rows))


def tables(request: SectionRequest, say: Say) -> Iterator[str]:
    """A section's tables as Markdown, on this host after each trial. Raises UsageError if unknown."""
    if request.section not in SECTIONS:
        raise UsageError(f"no section {request.section}; expected one of {', '.join(SECTIONS)}")
    if request.section in SIMULATED:
        yield SIMULATED[request.section](request.rounds_percent / 100, say)
        return
    runs = request.runs if request.runs is not None else RUNS.get(request.section, 0)
    if request.section == "gate":
        yield from real_gates(runs, say)
    elif request.section == "duet":
        yield from duet_blocks(runs, say)
    else:
        yield from _on_this_host(request, runs, say)


def _on_this_host(request: SectionRequest, runs: int, say: Say) -> Iterator[str]:
    from prony.host.affinity import pin_self
    from prony.host.partition import partition
    from prony.host.resource_limits import raise_descriptors
    from prony_selftest.canary_runs import canary_blocks
    from prony_selftest.cover.staged import staged_tables
    from prony_selftest.faults.clean_trials import CleanTrial, clean_trials, clean_trials_table
    from prony_selftest.faults.entries import ALL, run_number
    from prony_selftest.faults.single_trial import EntryResult, markdown

    raise_descriptors()
    pin_self(partition().client)
    if request.section == "honest":
        trials: list[CleanTrial] = []
        for trial in clean_trials(runs, request.server, say):
            trials.append(trial)
            yield clean_trials_table(trials) + "\n"
        return
    if request.section in ("staged", "canary"):
        yield from (staged_tables if request.section == "staged" else canary_blocks)(runs, say)
        return
    results: list[EntryResult] = []
    for number in request.numbers or ALL:
        results.append(run_number(number, tools=True))
        say(f"{number}: {results[-1].reported}; clean: {results[-1].clean} {' '.join(results[-1].failures)}")
        yield markdown(results) + "\n"
