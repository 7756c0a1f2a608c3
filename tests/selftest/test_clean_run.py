"""Which findings of a clean run are false alarms and which another process explains: the rule on made-up
findings.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from prony.evidence.host import CpuPartition
from prony.evidence.trial import Evidence
from prony.judge.finding import Finding, Judgement, Kind
from prony_selftest.faults import clean_run, edited
from prony_selftest.faults import trial as trials
from prony_selftest.faults.clean_run import conclude, run_clean
from prony_selftest.faults.model import Setup, SetupResult
from tests.judge import factory as f

QUIET, BUSY = 0.0, 0.3


def attempt(others: float = QUIET, **conforms: bool) -> SetupResult:
    """A trial with these findings, on a host of which other processes take this share."""
    findings = tuple(
        Finding(check=check, code="ok" if fine else "wrong", conforms=fine, reason=f"of {check}")
        for check, fine in conforms.items()
    )
    evidence = f.part(f.healthy(), "host_window", others_on_server_cpus=others, others_on_client_cpus=0.0)
    return SetupResult(evidence, Judgement(conforms=all(conforms.values()), findings=findings), {})


def test_conforming_at_once() -> None:
    conclusion = conclude([attempt(errors=True)])
    assert not conclusion.false_alarms
    assert conclusion.summary == "conforms, requests/s +0 to +0 %"


def test_what_disappears_was_the_machines() -> None:
    conclusion = conclude([attempt(schedule=False), attempt(schedule=True)])
    assert not conclusion.false_alarms
    assert "attempt 2" in conclusion.summary
    assert "schedule" in conclusion.summary


def test_what_stays_is_a_false_alarm() -> None:
    conclusion = conclude([attempt(counts=False, little=False), attempt(counts=False)])
    assert conclusion.false_alarms == {"counts": "of counts"}
    assert conclusion.gone == ("little",)


def test_another_process_in_every_attempt_explains_its_effects() -> None:
    conclusion = conclude([attempt(BUSY, schedule=False)] * 4)
    assert not conclusion.false_alarms
    assert conclusion.summary.startswith("does not conform")
    assert "schedule" in conclusion.summary
    once_quiet = [attempt(BUSY, schedule=False), attempt(QUIET, schedule=False)]
    assert "schedule" in conclude(once_quiet).false_alarms


def test_on_one_cpu_client_and_server_disturb_each_other() -> None:
    quiet = attempt(schedule=False, errors=False)
    shared = CpuPartition(server=(0,), client=(0,), shared=True)
    one_cpu = replace(quiet, evidence=quiet.evidence.model_copy(update={"partition": shared}))
    assert set(conclude([quiet] * 4).false_alarms) == {"schedule", "errors"}
    assert set(conclude([one_cpu] * 4).false_alarms) == {"errors"}


@pytest.mark.parametrize("check", ["errors", "connections", "content", "counts", "arrivals"])
def test_another_process_explains_nothing_else(check: str) -> None:
    assert check in conclude([attempt(BUSY, **{check: False})] * 4).false_alarms


def test_a_clean_run_is_repeated_until_it_conforms(monkeypatch: pytest.MonkeyPatch) -> None:
    results = iter([attempt(errors=False), attempt(errors=True)])
    monkeypatch.setattr(clean_run, "run_setup", lambda _setup, _seed, **_: next(results))
    monkeypatch.setattr(clean_run, "PAUSES_S", (0.0, 0.0, 0.0))
    monkeypatch.setattr(clean_run, "_known", [])
    setup = Setup(serve=("--work", "77us"))
    assert run_clean(setup).attempts == 2
    assert run_clean(setup).attempts == 2, "it was run again although it had conformed"


def test_four_attempts_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome: list[int] = []

    def guilty(_setup: Setup, seed: int, *, kept: bool) -> SetupResult:
        assert kept
        outcome.append(seed)
        return attempt(errors=False)

    monkeypatch.setattr(clean_run, "run_setup", guilty)
    monkeypatch.setattr(clean_run, "PAUSES_S", (0.0, 0.0, 0.0))
    monkeypatch.setattr(clean_run, "_known", [])
    assert run_clean(Setup()).false_alarms == {"errors": "of errors"}
    assert outcome == [1, 2, 3, 4]


def test_evidence_that_is_edited_costs_one_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault, its clean run and that of other entries are made of the same trial; a repeat has another,
    and so has a trial that nobody keeps.
    """
    measured: list[int] = []

    def trial(_setup: Setup, seed: int) -> Evidence:
        measured.append(seed)
        return f.healthy()

    monkeypatch.setattr(trials, "_measured", trial)
    monkeypatch.setattr(trials, "_trials", [])
    dips, level = Setup(edited=edited.clock_dips), Setup(edited=edited.clock_level)
    assert trials.run_setup(dips).kind("host") is Kind.BUDGET
    assert trials.run_setup(level).kind("host") is Kind.FINE
    assert measured == [1]
    trials.run_setup(level, 2)
    assert measured == [1, 2]
    monkeypatch.setattr(clean_run, "_known", [])
    run_clean(Setup())
    assert measured == [1, 2]
    trials.run_setup(Setup())
    assert measured == [1, 2, 1]
