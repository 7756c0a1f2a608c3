"""The second pass: which rates, which plans, and what is shown of it."""

from __future__ import annotations

import pytest

from prony.errors import EnvironmentFault
from prony.experiment.passes import rates, second_pass
from prony.plan import workload
from prony.plan.load import OpenLoad
from prony.plan.spec import ExperimentPlan
from prony.plan.trial import full_trial


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
