"""Residual drift in the trials of a cell together: pooled, in the table and in JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from prony.compare import Claim
from prony.evidence.trial import Evidence, Phase
from prony.judge.drift import claims_plateau, level_stretch, pooled_drift
from prony.judge.judging import judge
from prony.report.cell_view import TrialView
from prony.report.export import to_json
from prony.report.result import ResultView
from tests.judge import factory as f

from . import factory

SERVERS = ("spring-tomcat", "spring-jetty")


def level(seed: int, noise: float) -> Evidence:
    """52 rows with a window of 10 s: at 0.8 % noise a single trial cannot bound it narrowly, six can."""
    return f.engine(f.healthy(), rows=f.rows(f.noisy(8000, 52, noise, seed)))


def widest(trials: list[Evidence], horizon_s: float = 60.0) -> float:
    """The farther end of residual drift, as a log ratio."""
    later = pooled_drift([level_stretch(trial) for trial in trials], horizon_s)
    assert later is not None
    assert later.low <= 0 <= later.high, "they are level"
    return max(-later.low, later.high)


def test_trials_together_show_what_each_cannot() -> None:
    trials = [level(seed, 0.008) for seed in range(6)]
    assert widest(trials) < min(widest([trial]) for trial in trials)


def test_a_trial_whose_rows_cannot_tell_is_never_left_out() -> None:
    trials = [level(seed, 0.003) for seed in range(6)]
    assert (
        pooled_drift([level_stretch(trial) for trial in (*trials, f.engine(trials[0], rows=()))], 60.0)
        is None
    )


@pytest.mark.parametrize(("compilers", "elsewhere"), [((), 0), ((0, 1), 20)])
def test_rows_with_the_compilers_on_other_cpus_are_of_another_placement(
    compilers: tuple[int, ...], elsewhere: int
) -> None:
    """They bound the shape of the approach, not the level on the window's CPUs."""
    spans: list[tuple[Any, float, tuple[int, ...]]]
    spans = [("warm-up", 0.0, compilers), ("settle", 20.0, ()), ("window", 42.0, ())]
    phases = tuple(
        Phase(name=name, start_ms=s * 1000, end_ms=s * 1000, server_cpus=(0,), compiler_cpus=cpus)
        for name, s, cpus in spans
    )
    stretch = level_stretch(level(1, 0.003).model_copy(update={"phases": phases}))
    assert stretch is not None
    assert stretch.regime.tolist().count(0) == elsewhere


def test_of_a_protocol_no_plateau_is_claimed() -> None:
    assert claims_plateau(level(1, 0.008))
    assert not claims_plateau(f.part(level(1, 0.008), "load", claim="protocol"))


def result(noise: float, claim: str = "capacity") -> ResultView:
    """Six trials of each server, judged as they are: of one level, with figures a per cent apart at most."""
    trials: list[TrialView] = []
    for block in range(6):
        for place, server in enumerate(SERVERS):
            trial = factory.trial(factory.record(server, block, (place + block) % 2))
            evidence = f.part(level(10 * block + place, noise), "load", claim=claim)
            record = trial.record.model_copy(update={"evidence": evidence})
            trials.append(replace(trial, record=record, judgement=judge(evidence)))
    return factory.experiment(trials, SERVERS, quick=False, blocks=6, published=False)


@pytest.mark.parametrize(("noise", "narrow"), [(0.003, True), (0.03, False)])
def test_the_bound_of_a_cell_is_that_of_its_trials_together(noise: float, narrow: bool) -> None:
    view = result(noise)
    (cell, _) = view.cells
    assert cell.plateau is not None
    assert cell.plateau.low is not None
    assert cell.plateau.high is not None
    assert cell.plateau.low <= 0 <= cell.plateau.high
    assert (max(-cell.plateau.low, cell.plateau.high) < 0.01) is narrow
    assert to_json(view).parts[0].cells[0].plateau == cell.plateau


def test_without_a_plateau_claims_hold_for_the_window_alone() -> None:
    view = result(0.003, claim="protocol")
    assert [cell.plateau for cell in view.cells] == [None, None]
    assert all(pair.claim is not Claim.SHOWN for pair in view.parts[0].pairs)
    assert all(pair.later_low is None for pair in view.parts[0].pairs)


def test_the_horizon_that_trials_were_judged_by_holds_for_their_bound() -> None:
    view = result(0.008)
    trials = [
        replace(t, judgement=t.judgement.model_copy(update={"limits": {"steady_horizon_s": 300.0}}))
        for t in view.trials
    ]
    far = factory.experiment(trials, SERVERS, quick=False, blocks=6, published=False)
    near_one, far_one = view.cells[0].plateau, far.cells[0].plateau
    assert near_one is not None
    assert far_one is not None
    assert (near_one.horizon_s, far_one.horizon_s) == (60.0, 300.0)
    assert near_one.high is not None
    assert far_one.high is None or far_one.high > near_one.high
