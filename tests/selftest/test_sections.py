"""docs/results/truth has a page for the tables of every section, with the columns that the code prints;
docs/truth.md links to each.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from prony_selftest import explained as explained_module
from prony_selftest import slow as slow_module
from prony_selftest import steady_tables as steady_tables_module
from prony_selftest.cover import tables as cover_module
from prony_selftest.cover.tables import claim_tables, cover_tables, use_tables
from prony_selftest.cover.worlds import KINDS
from prony_selftest.explained import explain_tables
from prony_selftest.faults.clean_run import BUSY
from prony_selftest.faults.entries import ALL
from prony_selftest.faults.single_trial import markdown
from prony_selftest.gate_rule import gate_tables
from prony_selftest.laws import usl_table
from prony_selftest.percentile_tables import percentile_tables
from prony_selftest.sections import SECTIONS, marks
from prony_selftest.shared_processes import shared_tables
from prony_selftest.steady_tables import steady_tables
from prony_selftest.tables import Repetitions, replace_between, statistics_tables

DOCS = Path(__file__).resolve().parents[2] / "docs"
TRUTH = DOCS / "truth.md"


def page(section: str) -> str:
    """The page with the tables of a section."""
    return (DOCS / "results" / "truth" / f"{section}.md").read_text(encoding="utf-8")


def printed(section: str) -> str:
    """What the code prints today, with as few simulations as make every table."""
    if section == "statistics":
        return statistics_tables(Repetitions(2, 2))
    if section == "percentiles":
        return percentile_tables(2)
    if section == "gate-rule":
        return gate_tables(1)
    if section == "steady":
        return steady_tables(1)
    if section == "shared":
        return shared_tables(2)
    if section == "explain":
        return explain_tables(1, lambda _: None)
    if section == "cover":
        return cover_tables(1, 1)
    if section == "claims":
        return claim_tables(1)
    if section == "use":
        return use_tables(1, 1)
    return usl_table(0.0) if section == "usl" else markdown([])


def headings(text: str) -> list[str]:
    """The heading row of every table."""
    return [row for row, below in pairwise(text.splitlines()) if below.startswith("|---")]


@pytest.mark.parametrize("section", SECTIONS)
def test_the_page_has_its_marks(section: str) -> None:
    changed = replace_between(page(section), *marks(section), "\nTABLE\n")
    assert changed.count("TABLE\n") == 1
    assert f"(results/truth/{section}.md)" in TRUTH.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "section",
    [
        "statistics",
        "percentiles",
        "usl",
        "catalogue",
        "steady",
        "gate-rule",
        "shared",
        "explain",
        "cover",
        "claims",
        "use",
    ],
)
def test_the_tables_of_the_page_have_the_columns_that_are_printed(
    section: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steady_tables_module, "NOISES", (0.01,))  # rows are not asked for
    monkeypatch.setattr(steady_tables_module, "AUTOCORRELATIONS", (0.0,))
    monkeypatch.setattr(explained_module, "STAGED", ())
    monkeypatch.setattr(cover_module, "KINDS", KINDS[:2])
    short = tuple(replace(one, seconds=6.0) for one in (slow_module.STAGED[0], slow_module.STAGED[-1]))
    monkeypatch.setattr(slow_module, "STAGED", short)
    begin, end = marks(section)
    _, _, rest = page(section).partition(begin)
    wanted = headings(printed(section))
    assert wanted
    assert headings(rest.partition(end)[0]) == wanted


def test_the_page_lists_the_checks_that_a_busy_host_excuses() -> None:
    listed = re.search(
        r"another process on the same CPUs\s+can keep from conforming \(([^)]+)\)",
        TRUTH.read_text(),
    )
    assert listed is not None
    assert set(re.findall(r"`(\w+)`", listed[1])) == BUSY


def test_the_catalogues_table_has_a_row_for_every_entry() -> None:
    begin, end = marks("catalogue")
    table = page("catalogue").partition(begin)[2].partition(end)[0]
    assert tuple(int(number) for number in re.findall(r"^\| (\d+) \|", table, re.M)) == ALL
