"""Which credentials the engine is told to keep out of the request log."""

from __future__ import annotations

from prony.load.contract import engine_load, engine_plan
from prony.plan.load import ClosedLoad, SteadyWindow
from prony.plan.step import Step
from prony.plan.trial import TrialPlan
from prony.plan.workload import Workload


def test_the_log_hides_what_the_plan_sends_and_a_tools_own_does_not() -> None:
    step = Step(path="/x?api_key=s3cret-key&a=1", headers={"Authorization": "Bearer s3cret-token"})
    workload, window = Workload(name="x", steps=(step,)), SteadyWindow(window_s=1)
    plan = TrialPlan(workload=workload, load=ClosedLoad(users=1), measured=window, log="x.csv")

    def hidden(**changes: object) -> object:
        load = engine_load(plan.model_copy(update=changes), url="http://127.0.0.1:1/", cpus=(), seed=1)
        return engine_plan(load).get("log_hides")

    assert hidden() == ["s3cret-token", "s3cret-key"]
    assert (hidden(log_as_sent=True), hidden(log=None)) == (None, None)
    assert "log_as_sent" not in plan.model_copy(update={"log_as_sent": True}).model_dump()
