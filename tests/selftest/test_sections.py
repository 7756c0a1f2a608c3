"""docs/results/truth has a page for the tables of every section, with the columns that the code prints;
docs/truth.md links to each.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from prony.errors import EnvironmentFault
from prony.host import affinity as affinity_module
from prony_selftest import explained as explained_module
from prony_selftest import slow as slow_module
from prony_selftest import steady_tables as steady_tables_module
from prony_selftest.cover import tables as cover_module
from prony_selftest.cover.tables import claim_tables, cover_tables, use_tables
from prony_selftest.cover.worlds import KINDS
from prony_selftest.explained import explain_tables
from prony_selftest.faults import clean_trials as clean_trials_module
from prony_selftest.faults import entries as entries_module
from prony_selftest.faults.clean_run import BUSY
from prony_selftest.faults.entries import ALL
from prony_selftest.faults.model import SetupResult
from prony_selftest.faults.single_trial import EntryResult, markdown
from prony_selftest.gate_rule import gate_tables
from prony_selftest.laws import usl_table
from prony_selftest.percentile_tables import percentile_tables
from prony_selftest.sections import SECTIONS, SectionRequest, marks, written
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


def entry(number: int) -> EntryResult:
    return EntryResult(number, f"fault {number}", "", reported="new")


def test_entries_of_the_catalogue_are_written_one_by_one_and_other_rows_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(number: int, *, tools: bool) -> EntryResult:
        assert tools
        if number == 3:
            raise KeyboardInterrupt
        return entry(number)

    monkeypatch.setattr(entries_module, "run_number", run)
    monkeypatch.setattr(affinity_module, "pin_self", lambda _: None)
    file = tmp_path / "catalogue.md"
    old = markdown([replace(entry(number), reported="old") for number in (2, 4, 10)])
    file.write_text("\n".join(("before", marks("catalogue")[0], old, marks("catalogue")[1], "after")))
    with pytest.raises(KeyboardInterrupt):
        written(SectionRequest("catalogue", numbers=(1, 2, 3, 4)), file, lambda _: None)
    rows = [line.split(" | ") for line in file.read_text().splitlines() if line.startswith("| ")]
    states = {row[0]: row[3] for row in rows[1:]}
    assert states == {"| 1": "new", "| 2": "new", "| 4": "old", "| 10": "old"}
    assert list(states)[-1] == "| 10"


def test_an_entry_whose_trial_does_not_run_fails_and_the_others_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object, **__: object) -> EntryResult:
        raise EnvironmentFault("port 1 is taken")

    monkeypatch.setattr(entries_module, "run_entry", fails)
    result = entries_module.run_number(1)
    assert (result.number, result.name, result.failures) == (1, "client saturated", ("port 1 is taken",))


def test_a_clean_trial_that_does_not_run_does_not_conform(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> SetupResult:
        raise EnvironmentFault("port 1 is taken")

    monkeypatch.setattr(clean_trials_module, "run_setup", fails)
    trials = list(clean_trials_module.clean_trials(2, None, lambda _: None))
    assert [trial.problems for trial in trials] == [{"not measured": "port 1 is taken"}] * 2
