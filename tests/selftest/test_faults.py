"""The catalogue of injected faults on this host: each is found by its check, and its clean run conforms.

A clean run that another process disturbed is repeated; what that explains is no failure.
"""

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from prony.cli.main import app
from prony.errors import UsageError
from prony.judge.finding import Bias, Judgement, Kind
from prony_selftest.faults import clean_run, single_trial
from prony_selftest.faults.catalogue import ENTRIES
from prony_selftest.faults.clean_trials import CleanTrial, clean_trials_table
from prony_selftest.faults.entries import ALL, run_number, titles
from prony_selftest.faults.single_trial import EntryResult, markdown, run_entry
from prony_selftest.faults.trial import run_setup

ISSUED = {*range(1, 56), *range(61, 68)}
EVERYDAY = (5, 10, 13, 16, 24, 26)
"""Of six checks (connections, schedule, little, content, samples, counts), each by what it counts: no other
process can hide them.
"""


def test_the_catalogue_is_whole() -> None:
    assert set(ALL) >= ISSUED
    assert [number for number, title in titles() if title] == list(ALL)


@pytest.fixture(autouse=True)
def two_attempts_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disturbed clean run is not repeated further: a third attempt could only change the sentence in the
    table, which is not asserted here.
    """
    monkeypatch.setattr(clean_run, "PATIENCE", 2)


@pytest.mark.rarely
@pytest.mark.parametrize(
    "number", [pytest.param(entry, marks=pytest.mark.everyday if entry in EVERYDAY else ()) for entry in ALL]
)
def test_the_fault_is_found_and_its_clean_run_conforms(number: int) -> None:
    result = run_number(number)
    if result.missing:
        pytest.skip(f"entry {number} needs {result.missing}")
    if result.failures and result.disturbed and number not in EVERYDAY:
        pytest.skip(f"another process disturbed every attempt of entry {number}: {result.failures}")
    assert not result.failures, result


@pytest.mark.rarely
def test_an_undetected_fault_is_a_failure() -> None:
    """The runner itself: a clean set-up in a fault's place is not detected, and is reported as a failure."""
    harmless = replace(ENTRIES[4], setup=ENTRIES[4].clean)
    assert harmless.name == "keep-alive silently off"
    result = run_entry(harmless)
    assert len(result.failures) == 1
    assert "connections" in result.failures[0]


@pytest.mark.rarely
def test_a_run_with_injected_faults_does_not_conform_and_a_run_that_hides_them_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Late timers are no fault of a load without think times: every other check is content with this run."""
    harmless = replace(
        ENTRIES[4],
        setup=replace(ENTRIES[4].clean, injected_faults=("late_timers",)),
        named_by=("injected_faults",),
    )
    outcome = run_setup(harmless.setup)
    assert not outcome.judgement.conforms
    assert outcome.reason("injected_faults") == "the load generator ran with injected faults: late_timers"
    assert outcome.kind("errors") is Kind.FINE
    monkeypatch.setattr(
        single_trial, "run_setup", lambda *_: replace(outcome, judgement=without(outcome.judgement))
    )
    assert "injected" in run_entry(harmless).failures[-1]


@pytest.mark.parametrize("busy", [True, False])
@pytest.mark.rarely
def test_a_faulty_trial_is_repeated_where_another_process_disturbed_it(
    monkeypatch: pytest.MonkeyPatch, busy: bool
) -> None:
    missed, found = run_setup(ENTRIES[4].clean), run_setup(ENTRIES[4].setup)
    results = iter([missed, found])
    monkeypatch.setattr(single_trial, "run_setup", lambda *_: next(results))
    monkeypatch.setattr(single_trial, "disturbed", lambda outcome: busy and outcome is missed)
    result = run_entry(ENTRIES[4])
    assert bool(result.failures) is not busy
    assert ("second attempt" in result.reported) is busy
    assert len(list(results)) == (0 if busy else 1)


def without(judgement: Judgement) -> Judgement:
    """What a judge would say that does not look at injected faults."""
    kept = tuple(finding for finding in judgement.findings if finding.check != "injected_faults")
    return judgement.model_copy(update={"findings": kept})


def test_the_list_runs_nothing() -> None:
    shown = CliRunner().invoke(app, ["selftest", "--list"])
    assert shown.exit_code == 0
    assert len(shown.stdout.splitlines()) == len(ALL) + 1


@pytest.mark.parametrize(
    "words", [("9", "--section", "use"), ("999", "--section", "catalogue"), ("999",), ("--write", "x")]
)
def test_what_cannot_be_run_is_refused(words: tuple[str, ...]) -> None:
    refused = CliRunner().invoke(app, ["selftest", *words])
    assert isinstance(refused.exception, UsageError)
    assert refused.stdout == ""


def test_the_table_says_what_could_not_be_run() -> None:
    rows = [
        EntryResult(
            1, "a", "b", other_tools="wrk 3/s", reported="does not conform, client: x|y", clean="conforms"
        ),
        EntryResult(2, "c", "d", missing="two CPUs"),
    ]
    lines = markdown(rows).splitlines()
    assert lines[2] == "| 1 | **a**: b | wrk 3/s | does not conform, client: x/y | conforms |"
    assert "not run: needs two CPUs" in lines[3]


def test_the_table_of_clean_trials() -> None:
    narrow, wide = ({"requests_per_s": {"isolation": Bias(high=high)}} for high in (0.02, 0.5))
    trials = [CleanTrial("x", {}, narrow)] * 3 + [
        CleanTrial("y", {}, wide, conditions=("host",), host="with other processes"),
        CleanTrial("y", {"errors": "many"}, {}, host="with other processes"),
    ]
    shown = clean_trials_table(trials)
    assert shown.startswith("Do not conform: 1 of 5")
    assert "| quiet, aim ± 5 % | 3 | ± 1 %, ± 1 %, 0 |" in shown
    assert "| with other processes, aim ± 15 % | 2 | ± 22 %, ± 22 %, 0 |" in shown
    assert "| isolation | 4 | ± 1 % | 0 | 0 | x; y |  |" in shown
    assert "| errors | 0 |  | 0 | 1 | y | many |" in shown
