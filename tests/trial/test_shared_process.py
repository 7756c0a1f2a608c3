"""Several trials of one process: the first starts it, the last stops it, and each settles by itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from prony.evidence.host import CpuPartition, Limits
from prony.host.affinity import granted_cpus
from prony.plan.load import ClosedLoad, OpenLoad, SteadyWindow
from prony.plan.response import Expectation
from prony.plan.step import Step
from prony.plan.target import Url
from prony.plan.trial import TrialPlan, WarmUpPlan, fixed
from prony.plan.workload import Workload
from prony.trial.process import SharedProcess
from prony.trial.run import TrialOutcome, run_trial
from prony.trial.surroundings import Surroundings
from tests.load.test_engine import Reference
from tests.trial.test_targets import HELLO, SHORT, TIDY, Heard, OnAnotherHost

WARM_UP = WarmUpPlan(min_s=1.0, cap_s=2.0, settle_min_s=1.0, settle_cap_s=2.0)
WATCHED = {"measured": SteadyWindow(window_s=1.0), "warm_up": WARM_UP, "scaling_probe": False}
ABSENT = Workload(name="absent", steps=(Step(name="x", path="/", expect=Expectation(status=(404,))),))


@pytest.fixture
def server() -> Iterator[OnAnotherHost]:
    reference = Reference()
    yield OnAnotherHost(Url(url=reference.url))
    reference.finish()


def trial(server: OnAnotherHost, process: SharedProcess, heard: Heard, **changes: object) -> TrialOutcome:
    values: dict[str, object] = {"workload": HELLO, "load": ClosedLoad(users=2), "measured": SHORT}
    plan = TrialPlan.model_validate(values | changes)
    cpus = tuple(granted_cpus())
    surroundings = Surroundings(CpuPartition(server=cpus, client=cpus), Limits())
    outcome = run_trial(plan, server, surroundings, heard, process=process)
    process.facts("x-001", plan.workload.name, plan.load_name)
    return outcome


def test_the_first_trial_starts_it_and_the_last_one_stops_it(server: OnAnotherHost) -> None:
    process, first, second = SharedProcess(), Heard(), Heard()
    one = trial(server, process, first)
    assert (one.failure, one.evidence.clean_stop, server.stops) == (None, None, [])
    assert first.phases == ["start", "window"]
    process.keeps = False
    other = trial(server, process, second, load=ClosedLoad(users=4))
    assert (other.failure, other.evidence.clean_stop, server.stops) == (None, True, ["stop"])
    assert second.phases == ["window", "stop"]
    assert other.evidence.probes, "it is asked again before its next load"
    assert other.evidence.start_up is None
    process.end()
    assert server.stops == ["stop"]


def test_a_later_load_only_settles_and_the_first_one_warms_up(server: OnAnotherHost) -> None:
    process = SharedProcess()
    one = trial(server, process, Heard(), **WATCHED)
    process.facts("x-1", HELLO.name, "closed-2")
    other = trial(server, process, Heard(), **WATCHED)
    process.end()
    assert [phase.name for phase in one.evidence.phases] == ["warm-up", "settle", "window"]
    assert [phase.name for phase in other.evidence.phases] == ["settle", "window"]
    found = other.evidence.warm_up
    assert found is not None
    assert (found.method, found.cap_s, found.time_to_steady_s) == ("settled", WARM_UP.settle_cap_s, None)


def test_a_closed_loop_warms_a_fresh_process_and_no_later_one(server: OnAnotherHost) -> None:
    process = SharedProcess()
    closed = WARM_UP.model_copy(update={"closed_users": 3, "closed_s": 0.5})
    slow = OpenLoad(rate_per_s=50)
    values = WATCHED | {"warm_up": closed, "load": slow}
    first, later = Heard(), Heard()
    one = trial(server, process, first, **values)
    process.facts("x-1", HELLO.name, "open-50")
    other = trial(server, process, later, **values)
    process.end()
    assert first.phases[:4] == ["start", "warm-up", "warm-up", "settle"]
    assert "warm-up" not in later.phases
    for outcome, users in ((one, 3), (other, None)):
        assert outcome.failure is None
        found = outcome.evidence.warm_up
        assert found is not None
        assert (found.closed_users, found.time_to_steady_s) == (users, None)
        assert outcome.evidence.load.model == "open"
        assert outcome.evidence.engine is not None
        assert outcome.evidence.engine.totals.completed < 1000, "the closed loop is not in the figures"


OTHER = HELLO.model_copy(update={"name": "other"})


def test_another_workload_settles_and_its_closed_loop_comes_again(server: OnAnotherHost) -> None:
    """Its code is new to a JIT compiler, which a low rate would keep at work for minutes."""
    process = SharedProcess()
    closed = WARM_UP.model_copy(update={"closed_users": 3, "closed_s": 0.5})
    values = WATCHED | {"warm_up": closed, "load": OpenLoad(rate_per_s=50)}
    heard: list[list[str]] = []
    for number, (workload, users) in enumerate(((HELLO, 3), (OTHER, 3), (OTHER, None))):
        listener = Heard()
        outcome = trial(server, process, listener, **(values | {"workload": workload}))
        assert outcome.failure is None
        found = outcome.evidence.warm_up
        assert found is not None
        assert (found.closed_users, found.method == "settled") == (users, number > 0)
        heard.append(listener.phases)
    process.end()
    assert heard[1] == ["warm-up", "settle", "window"]
    assert heard[2] == ["settle", "window"]


def test_what_a_clean_up_left_behind_is_not_left_to_the_next_workload(server: OnAnotherHost) -> None:
    process = SharedProcess()
    untidy = TIDY.cleanup[0].model_copy(update={"expect": Expectation(status=(404,))})
    outcome = trial(server, process, Heard(), workload=TIDY.model_copy(update={"cleanup": (untidy,)}))
    assert outcome.failure is None
    assert len(outcome.notes) == 1
    assert server.stops == ["stop"]
    assert process.running() is None


def test_a_ramp_is_over_before_a_later_load_settles(server: OnAnotherHost) -> None:
    process = SharedProcess()
    ramped = ClosedLoad(users=4, ramp_up_s=1.5)
    _, other = (trial(server, process, Heard(), load=ramped, **WATCHED) for _ in range(2))
    process.end()
    settle = other.evidence.phases[0]
    assert (settle.name, settle.start_ms >= 1500) == ("settle", True)


def test_a_fixed_warm_up_is_that_of_each_load(server: OnAnotherHost) -> None:
    process = SharedProcess()
    window = {"measured": SteadyWindow(window_s=1.0), "warm_up": fixed(1.0), "scaling_probe": False}
    both = [trial(server, process, Heard(), **window) for _ in range(2)]
    process.end()
    for one in both:
        assert [phase.name for phase in one.evidence.phases] == ["warm-up", "window"]
        assert one.evidence.warm_up is not None
        assert one.evidence.warm_up.method == "fixed"


def test_the_peak_of_memory_is_that_of_the_first_load_alone(server: OnAnotherHost) -> None:
    process = SharedProcess()
    one, other = (trial(server, process, Heard()) for _ in range(2))
    process.end()
    assert one.evidence.server_window is not None
    assert one.evidence.server_window.peak_rss_bytes is not None
    assert other.evidence.server_window is not None
    assert other.evidence.server_window.peak_rss_bytes is None


def test_a_trial_that_does_not_end_well_ends_the_process(server: OnAnotherHost) -> None:
    process = SharedProcess()
    trial(server, process, Heard())
    outcome = trial(server, process, Heard(), workload=ABSENT)
    assert outcome.fault is not None
    assert "status 200" in str(outcome.failure)
    assert server.stops == ["stop"]
    heard = Heard()
    assert trial(server, process, heard).failure is None
    assert heard.phases[0] == "start"
    process.end()


def test_an_interrupt_leaves_no_process_behind(server: OnAnotherHost) -> None:
    process = SharedProcess()
    trial(server, process, Heard())
    with pytest.raises(KeyboardInterrupt):
        trial(server, process, Heard(interrupt_at="window"))
    assert server.stops == ["stop"]
    assert process.running() is None


def test_facts_are_those_of_the_process_that_a_trial_used() -> None:
    process = SharedProcess()
    assert process.running() is None
    process.keep(OnAnotherHost(Url(url="http://127.0.0.1:1")).start(CpuPartition(server=(), client=())))
    assert not process.had("hello")
    first, second = process.facts("x-001", "hello", "closed-1"), process.facts("x-002", "hello", "closed-8")
    assert (first.id, first.place, first.after) == ("x-001", 0, "")
    assert (second.id, second.place, second.after) == ("x-001", 1, "closed-1")
    assert process.had("hello")
    assert not process.had("json")
    process.release(well=False)
    assert process.running() is None
    assert not process.had("hello"), "of that process"
    third = process.facts("x-003", "hello", "closed-64")
    assert (third.id, third.place, third.after) == ("x-003", 0, "")
