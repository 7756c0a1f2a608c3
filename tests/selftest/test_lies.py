"""The catalogue of lies on this machine: every lie is named by its check, no honest twin is accused.

A twin that something else on the machine disturbed is repeated; the findings that say so are forgiven.
"""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from prony.cli.main import app
from prony.judge.finding import Status
from prony.selftest.lies import twins
from prony.selftest.lies.book import ALL, prove_entry, titles
from prony.selftest.lies.catalogue import ENTRIES
from prony.selftest.lies.honest import Honest, honest_table
from prony.selftest.lies.prove import Told, markdown

ISSUED = set(range(1, 28))


def test_the_catalogue_is_whole() -> None:
    assert set(ALL) == ISSUED
    assert [number for number, title in titles() if title] == list(ALL)


@pytest.fixture(autouse=True)
def two_attempts_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A twin that only a neighbour disturbs is not waited for any longer: what a third attempt could change
    is the sentence in the table, which is not asserted here.
    """
    monkeypatch.setattr(twins, "PATIENCE", 2)


@pytest.mark.parametrize("number", ALL)
def test_the_lie_is_named_and_its_twin_is_not(number: int) -> None:
    told = prove_entry(number)
    if told.lacking:
        pytest.skip(f"entry {number} needs {told.lacking}")
    assert not told.faults, told


def test_a_lie_that_nobody_names_is_a_fault() -> None:
    """The prover itself: an honest set-up put in a lie's place is not named, and that is said."""
    from dataclasses import replace

    from prony.selftest.lies.prove import prove

    harmless = replace(ENTRIES[4], setup=ENTRIES[4].twin)
    assert harmless.name == "keep-alive silently off"
    told = prove(harmless)
    assert len(told.faults) == 1
    assert "was not named by connections" in told.faults[0]


def test_the_list_runs_nothing() -> None:
    shown = CliRunner().invoke(app, ["selftest", "--list"])
    assert shown.exit_code == 0
    assert len(shown.stdout.splitlines()) == len(ALL)


def test_the_table_says_what_could_not_be_put_on() -> None:
    rows = [
        Told(1, "a", "b", plain="wrk 3/s", said="invalid, client: x|y", twin="valid"),
        Told(2, "c", "d", lacking="two CPUs"),
    ]
    lines = markdown(rows).splitlines()
    assert lines[2] == "| 1 | **a**: b | wrk 3/s | invalid, client: x/y | valid |"
    assert "not put on: it needs two CPUs" in lines[3]


def test_the_shares_of_false_accusations() -> None:
    accused: dict[str, tuple[Status, str]] = {
        "isolation": (Status.INVALID, "a neighbour"),
        "host": (Status.UNKNOWN, "no clock"),
    }
    trials = [Honest("x", Status.VALID, {})] * 3 + [Honest("y", Status.INVALID, accused, others=True)]
    shown = honest_table(trials)
    assert shown.startswith("4 honest trials: 3 valid, 1 invalid; in 1 of them the machine's own readings")
    assert "| isolation | 0 % | 0 % | 25 % | 1 (1) | y | a neighbour |" in shown
    assert "| host | 25 % | 0 % | 0 % |  | y | no clock |" in shown
    assert honest_table(trials[:3]).startswith("3 honest trials: 3 valid; in 0 of them")
    assert "|" not in honest_table(trials[:3])


def test_every_file_of_the_catalogue_says_what_it_must_not_know() -> None:
    folder = Path(__file__).resolve().parents[2] / "prony" / "selftest" / "lies"
    for file in folder.glob("*.py"):
        if file.name != "__init__.py":
            assert "Must not" in file.read_text(encoding="utf-8").split('"""')[1], file
