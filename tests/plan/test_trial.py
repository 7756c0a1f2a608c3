"""The order of trials: complete blocks, drawn from the seed."""

import pytest

from prony.plan import workload
from prony.plan.cell import cell_of
from prony.plan.load import ClosedLoad, OpenLoad, RatePhase, WholeRun
from prony.plan.part import Part
from prony.plan.plan import MAIN, Plan
from prony.plan.target import Launch
from prony.plan.think import Think
from prony.plan.trial import QUICK_WARM_UP, TrialPlan, WarmUpPlan, fixed, full_trial, pinned, quick_trial

SERVERS = ("a", "b", "c")


def plan(seed: int, trials: int = 5) -> Plan:
    trial = quick_trial(workload.load("hello"), 10, None)
    cells = tuple(cell_of(MAIN, server, Launch(address=server), trial, trials) for server in SERVERS)
    part = Part(name=MAIN, title="t", shape="comparison")
    return Plan(name="t", command="compare", title="t", parts=(part,), cells=cells, seed=seed)


def order(seed: int) -> list[tuple[int, int, str]]:
    """(block, position, server)."""
    made = plan(seed)
    return [(one.block, one.position, made.cell(one.cell).server) for one in made.order()]


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_every_block_holds_every_server_once(seed: int) -> None:
    rows = order(seed)
    assert len(rows) == 15
    for block in range(5):
        assert {server for b, _, server in rows if b == block} == set(SERVERS)
        assert [position for b, position, _ in rows if b == block] == [0, 1, 2]


def test_the_seed_decides_and_reproduces() -> None:
    assert order(7) == order(7)
    assert len({tuple(order(seed)) for seed in range(20)}) > 10


def test_the_first_place_is_not_always_the_same_servers() -> None:
    firsts = [row[2] for seed in range(60) for row in order(seed) if row[1] == 0]
    assert all(60 < firsts.count(server) < 140 for server in SERVERS)


def test_a_quick_plan_takes_less_than_a_full_one_and_pinned_longer() -> None:
    hello = workload.load("hello")
    quick, full = quick_trial(hello, 10, None), full_trial(hello, 10, None)
    assert quick.estimate_s < full.estimate_s
    assert full.model_copy(update={"warm_up": pinned(full.warm_up)}).estimate_s > full.estimate_s


def test_the_last_session_is_part_of_the_estimate() -> None:
    """Fifty pages of 150 ms are 7.5 s after the last user has come."""
    walk = workload.load("hello-delay").model_copy(update={"loops": 50})
    load = OpenLoad(phases=(RatePhase(duration_s=5, from_per_s=100, to_per_s=100),), session="user")
    trial = TrialPlan(workload=walk, load=load, measured=WholeRun())
    single = trial.model_copy(update={"load": load.model_copy(update={"session": "request"})})
    assert trial.estimate_s == pytest.approx(single.estimate_s + 7.5)


def test_the_quick_demo_is_estimated_below_twelve_minutes() -> None:
    assert plan(0, trials=3).estimate_s < 12 * 60


def test_the_engine_gives_up_after_the_longest_trial_only() -> None:
    trial = full_trial(workload.load("hello"), 10, None)
    longest = trial.published_cap_s + trial.warm_up.cap_s + trial.warm_up.settle_cap_s + trial.measured_s
    assert trial.deadline_s > longest


def test_a_closed_loop_before_the_warm_up_is_in_the_time_of_a_fresh_process_only() -> None:
    plain = full_trial(workload.load("hello"), 10, None)
    warm = plain.warm_up.model_copy(update={"closed_users": 4, "closed_s": 45.0})
    trial = plain.model_copy(update={"warm_up": warm})
    assert trial.estimate_s == pytest.approx(plain.estimate_s + 45)
    assert trial.later_s == pytest.approx(plain.later_s)


def test_a_few_users_come_first_where_many_would_starve_a_compiler() -> None:
    many = full_trial(workload.load("hello"), 64, None)
    assert (many.first_users, many.first_s) == (4, many.warm_up.min_s / 2)
    thinks = ClosedLoad(users=64, think=Think(kind="constant", ms=100))
    feeder = workload.load("hello").model_copy(update={"feeders": {"rows": None}})
    for other in (
        {"load": ClosedLoad(users=4)},
        {"load": thinks},
        {"load": OpenLoad(rate_per_s=1000)},
        {"measured": WholeRun(duration_s=10.0)},
        {"warm_up": fixed(5.0)},
        {"warm_up": many.warm_up.model_copy(update={"closed_users": 0})},
        {"workload": workload.load("hello-delay")},
        {"workload": feeder},
    ):
        trial = many.model_copy(update=other)
        assert (trial.first_users, trial.first_s) == (0, 0.0), other
    chosen = many.warm_up.model_copy(update={"closed_users": 2, "closed_s": 7.0})
    for load in (ClosedLoad(users=1), thinks, OpenLoad(rate_per_s=1000)):
        trial = many.model_copy(update={"load": load, "warm_up": chosen})
        assert (trial.first_users, trial.first_s) == (2, 7.0), "as the plan says, whatever the load"


def test_a_warm_up_of_an_earlier_version_has_no_users_first() -> None:
    assert WarmUpPlan.model_validate({"closed_users": None}).closed_users == 0


def test_a_plan_that_waits_for_a_level_server_only_is_estimated_for_a_usual_machine() -> None:
    """Its caps are for slow ones. A quick trial is still about a minute."""
    quick = quick_trial(workload.load("hello"), 10, None)
    patient = QUICK_WARM_UP.model_copy(update={"settle_until": "shown"})
    assert quick.estimate_s < 60
    assert quick.estimate_s < quick.model_copy(update={"warm_up": patient}).estimate_s
    assert quick.later_s < quick.estimate_s
    assert quick.deadline_s > QUICK_WARM_UP.cap_s + QUICK_WARM_UP.settle_cap_s + quick.measured_s


def test_a_warm_up_that_an_earlier_version_stored_waits_for_what_it_waited_for() -> None:
    stored = {"method": "all-cpus", "min_s": 10, "cap_s": 35, "settle_min_s": 5, "settle_cap_s": 6}
    assert WarmUpPlan.model_validate(stored).settle_until == "shown"


def test_every_request_of_a_walk_has_its_pause_in_the_estimate() -> None:
    """Ten walks of six requests with a second between them are a minute, not ten seconds."""
    think = Think(kind="uniform", min_ms=500, max_ms=1500)
    trial = TrialPlan(
        workload=workload.load("person-crud"),
        load=ClosedLoad(users=1000, think=think, ramp_up_s=5),
        measured=WholeRun(iterations_per_user=10),
    )
    assert trial.measured_s == pytest.approx(10 * 6 * 1.0 + 5)
