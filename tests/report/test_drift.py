"""What is still to come in the trials of a cell together: in sentence, verdict, table and JSON."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from rich.console import Console

from prony.compare import Looks, Sample, compare
from prony.evidence.trial import Evidence
from prony.experiment.clear import UntilClear
from prony.judge.drift import drift
from prony.judge.finding import Judgement, Status
from prony.judge.verdict import judge
from prony.report import reading
from prony.report.export import to_json
from prony.report.result import ResultView, TrialView
from prony.report.terminal import render
from prony.steady.limits import SteadyLimits
from tests.judge import factory as f

from . import factory

SERVERS = ("spring-tomcat", "spring-jetty")


def level(seed: int, noise: float) -> Evidence:
    """52 rows with a window of 10 s: at 0.8 % noise no single trial shows that it is level, six do."""
    return f.engine(f.healthy(), rows=f.rows(f.noisy(8000, 52, noise, seed)))


def samples(apart: float = 1.0) -> list[Sample]:
    return [
        Sample(
            server, block, 8000.0 * (apart if server == "a" else 1.0) * (1 + 0.001 * ((block + place) % 2))
        )
        for block in range(8)
        for place, server in enumerate(("a", "b"))
    ]


def test_trials_together_show_what_each_cannot() -> None:
    trials = [level(seed, 0.008) for seed in range(6)]
    alone = [one for trial in trials if (one := drift([trial])) is not None]
    together = drift(trials)
    assert together is not None
    assert together < 0.03 < min(alone)


def test_a_trial_whose_rows_cannot_tell_is_never_left_out() -> None:
    trials = [level(seed, 0.003) for seed in range(6)]
    assert drift([*trials, f.engine(trials[0], rows=())]) == math.inf


def test_where_no_plateau_is_claimed_it_is_not_asked() -> None:
    assert drift([]) is None
    assert drift([f.part(level(1, 0.008), "load", claim="protocol")]) is None


def test_equivalent_is_not_said_beyond_the_bound() -> None:
    assert compare(samples()).pairs[0].verdict == "equivalent"
    assert compare(samples(), drift={"a": 0.015, "b": 0.01}).pairs[0].verdict == "equivalent"
    drifting = compare(samples(), drift={"a": 0.01, "b": 0.05}).pairs[0]
    assert drifting.verdict == "inconclusive"
    assert "b may still change by 5 %, too much for *equivalent*" in drifting.sentence
    untold = compare(samples(), drift={"a": math.inf}).pairs[0]
    assert untold.verdict == "inconclusive"
    assert "the rows of a cannot tell how much is still to come" in untold.sentence


def test_a_difference_is_said_whatever_the_bound() -> None:
    assert compare(samples(1.5), drift={"a": 0.05, "b": 0.05}).pairs[0].verdict == "faster"


def test_blocks_are_added_until_equivalence_is_shown() -> None:
    """The same rule as in the report: the interval is narrow at once, the bound is not."""

    def over(noise: float) -> bool:
        watch = UntilClear(("a", "b"), Looks(5, 20))
        for block in range(5):
            for place, server in enumerate(watch.servers):
                record = factory.record(server, block).model_copy(
                    update={"evidence": level(10 * block + place, noise)}
                )
                made = {"requests_per_s": 8000.0 + block % 2}
                watch.add(record, Judgement(verdict=Status.VALID, findings=()), made)
        return watch.need() == 0

    assert over(0.003)
    assert not over(0.03)


def result(noise: float) -> ResultView:
    """Six trials of each server, judged as they are."""
    trials: list[TrialView] = []
    for block in range(6):
        for place, server in enumerate(SERVERS):
            one = factory.trial(factory.record(server, block, (place + block) % 2))
            evidence = level(10 * block + place, noise)
            record = one.record.model_copy(update={"evidence": evidence})
            trials.append(replace(one, record=record, judgement=judge(evidence)))
    return factory.experiment(trials, SERVERS, quick=False, blocks=6, published=False)


def shown(view: ResultView) -> str:
    stream = io.StringIO()
    render(view, Console(file=stream, width=200))
    return " ".join(stream.getvalue().split())


def test_a_bound_over_all_trials_makes_no_trial_valid() -> None:
    """Ten level trials and two that rise have a good mean: each trial keeps its own verdict."""
    view = result(0.008)
    cell = view.cells[0]
    assert {trial.status for trial in cell.trials} == {Status.UNKNOWN}
    assert cell.drift is not None
    assert cell.drift < 0.03
    assert cell.status is Status.UNKNOWN
    text = shown(view)
    assert "still to come, at most" in text
    assert "6 pooled" in text
    assert to_json(view).parts[0].cells[0].verdict == "unknown"


def test_a_cell_whose_bound_does_not_hold_stays_unknown_and_prints_its_figures() -> None:
    view = result(0.03)
    assert view.cells[0].status is Status.UNKNOWN
    text = shown(view)
    assert text.startswith("UNKNOWN")
    assert "requests/s" in text
    assert "spring-tomcat vs spring-jetty" in text or "spring-jetty" in text


def test_the_limits_that_trials_were_judged_by_hold_for_their_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []

    def recorded(trials: Sequence[Evidence], limits: SteadyLimits | None = None) -> float | None:
        seen.append((limits or SteadyLimits()).penalty)
        return drift(trials, limits)

    monkeypatch.setattr(reading, "drift", recorded)
    view = result(0.008)
    assert set(seen) == {SteadyLimits().penalty}
    seen.clear()
    trials = [
        replace(t, judgement=t.judgement.model_copy(update={"limits": {"steady_penalty": 60.0}}))
        for t in view.trials
    ]
    factory.experiment(trials, SERVERS, quick=False, blocks=6, published=False)
    assert set(seen) == {60.0}
