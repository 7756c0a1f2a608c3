"""The second pass: which rates, which plans, and what is shown of it."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from prony.cli.compare import _latency_passes
from prony.errors import EnvironmentFault
from prony.experiment.passes import rates, second_pass
from prony.plan import workload
from prony.plan.load import OpenLoad
from prony.plan.spec import ExperimentPlan
from prony.plan.trial import full_trial
from prony.report.export import to_json
from prony.report.html import render_html
from prony.report.passes import latency_pass
from prony.report.terminal import render
from tests.report import factory


def plan() -> ExperimentPlan:
    return ExperimentPlan(
        title="a vs b",
        servers=("a", "b"),
        trial=full_trial(workload.load("hello"), 10, None),
        trials=5,
        controls=1,
        until_clear=9,
        seed=3,
    )


def test_rates_are_seventy_per_cent_of_the_geometric_mean_and_of_the_lowest() -> None:
    found = rates({"a": [1000.0, 4000.0], "b": [900.0]}, ("a", "b"))
    assert found.own == {"a": 1400.0, "b": pytest.approx(630.0)}
    assert found.common == pytest.approx(630.0)
    assert rates({"a": [12_345.6]}, ("a",)).common == 8640.0
    assert rates({"a": [0.01]}, ("a",)).common == pytest.approx(0.007)


def test_a_server_without_a_capacity_has_no_share_of_it() -> None:
    with pytest.raises(EnvironmentFault, match="capacity of b"):
        rates({"a": [1.0], "b": []}, ("a", "b"))


def test_the_plans_are_the_first_in_an_open_loop() -> None:
    own, common = second_pass(plan(), rates({"a": [2000.0], "b": [1000.0]}, ("a", "b")))
    assert own.own_loads == {"a": OpenLoad(rate_per_s=1400), "b": OpenLoad(rate_per_s=700)}
    assert common.trial.load == OpenLoad(rate_per_s=700)
    assert not common.own_loads
    for second in (own, common):
        assert (second.trials, second.seed, second.controls, second.until_clear) == (5, 3, 0, None)
        assert second.trial.published_requests is None
        assert second.trial.measured == plan().trial.measured
        assert ExperimentPlan.model_validate(second.model_dump()) == second


def test_no_second_pass_without_capacities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prony.cli.viewing.experiment_view", lambda *_: factory.hopeless())
    wanted = plan().model_copy(update={"servers": factory.SERVERS})

    def run(_: ExperimentPlan) -> str:
        raise AssertionError("nothing may be started")

    with pytest.raises(EnvironmentFault, match="second pass"):
        _latency_passes(None, "x", wanted, run)  # type: ignore[arg-type]


def test_both_passes_run_and_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prony.cli.viewing.experiment_view", lambda *_: factory.experiment())
    wanted = plan().model_copy(update={"servers": factory.SERVERS})
    ran: list[ExperimentPlan] = []

    def run(second: ExperimentPlan) -> str:
        ran.append(second)
        return f"e-{len(ran)}"

    made = _latency_passes(None, "x", wanted, run)  # type: ignore[arg-type]
    assert len(ran) == 2
    assert [p.experiment_id for p in made] == ["e-1", "e-2"]
    assert len(made[0].rows) == len(factory.SERVERS)
    assert made[0].sentences
    shown = replace(factory.experiment(), passes=tuple(made))
    page = render_html(shown)
    assert "Latency at 70 % of each server" in page
    assert "which all can carry" in page
    console = Console(record=True, width=120, file=StringIO())
    render(shown, console)
    assert "Latency at 70 % of each server" in console.export_text()
    assert [p["id"] for p in to_json(shown)["passes"]] == ["e-1", "e-2"]
    assert to_json(factory.experiment())["passes"] == []


def test_rejected_trials_stay_visible_and_out() -> None:
    trials = factory.troubled().trials
    made = latency_pass("t", "e", factory.SERVERS, trials, dict.fromkeys(factory.SERVERS, 100.0))
    assert any(row[-1] == "2 of 3" for row in made.rows)
    nothing = latency_pass("t", "e", factory.SERVERS, [], dict.fromkeys(factory.SERVERS, 100.0))
    assert nothing.sentences == ()
    assert nothing.rows[0][2] == "–"
