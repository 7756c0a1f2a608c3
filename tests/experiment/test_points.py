"""Sweep and capacity over a made-up target: what counts, what is claimed, and what is shown."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest

from prony.cli.sweep import user_list
from prony.compare.capacity import End, Outcome
from prony.errors import UsageError
from prony.experiment.capacity import capacity, lowest_rate, outcome_of
from prony.experiment.points import PointTrial
from prony.experiment.sweep import sweep
from prony.judge.finding import Finding, Judgement, Status
from prony.plan.load import ClosedLoad, Load, OpenLoad
from prony.plan.objective import objectives

GOAL = objectives("p99<50ms")


def trial(
    load: Load, figures: dict[str, float], *findings: Finding, failure: str | None = None
) -> PointTrial:
    verdict = min((f.status for f in findings), key=_severity, default=Status.VALID)
    return PointTrial(load, "e-1", Judgement(verdict=verdict, findings=findings), failure, figures)


def _severity(status: Status) -> int:
    return [Status.INVALID, Status.SUSPECT, Status.UNKNOWN, Status.VALID].index(status)


def found(check: str, status: Status) -> Finding:
    return Finding(check=check, status=status, reason="said so")


@dataclass
class Made:
    """A target with a known capacity and a client with a known limit."""

    name: str = "http://127.0.0.1:1/"
    window_s: float = 10.0
    limit_per_s: float = 2000.0
    client_per_s: float = math.inf
    loads: list[Load] = field(default_factory=list)
    invalid_at: int | None = None

    def measure(self, load: Load) -> PointTrial:
        self.loads.append(load)
        if isinstance(load, ClosedLoad):
            per_s = 500 * load.users / (1 + 0.2 * (load.users - 1) + 0.001 * load.users * (load.users - 1))
            if load.users == self.invalid_at:
                return trial(load, {"requests_per_s": 9e9}, found("client", Status.INVALID))
            return trial(load, {"requests_per_s": per_s, "p50_ms": load.users / per_s * 1000})
        rate = load.rate_per_s or 0.0
        if rate > self.client_per_s:
            return trial(load, {"p99_ms": 900.0}, found("schedule", Status.INVALID))
        return trial(load, {"requests_per_s": rate, "p99_ms": 50 * (rate / self.limit_per_s) ** 4})


def quiet(_: str) -> None:
    return


class TestSweep:
    def test_every_round_measures_every_number_in_an_order_of_its_own(self) -> None:
        target = Made()
        made = sweep(target, (1, 2, 4, 8, 16), 3, seed=5, note=quiet)
        order = [load.users for load in target.loads if isinstance(load, ClosedLoad)]
        assert [sorted(order[i : i + 5]) for i in (0, 5, 10)] == [[1, 2, 4, 8, 16]] * 3
        assert len({tuple(order[i : i + 5]) for i in (0, 5, 10)}) > 1
        assert made.users == (1, 2, 4, 8, 16)
        again = Made()
        sweep(again, (1, 2, 4, 8, 16), 3, seed=5, note=quiet)
        assert again.loads == target.loads

    def test_the_law_is_found_without_the_rejected_trial(self) -> None:
        made = sweep(Made(invalid_at=4), (1, 2, 4, 8, 16, 32, 64), 1, seed=1, note=quiet)
        assert made.law is not None
        assert made.law.alpha.value == pytest.approx(0.2, rel=0.05)
        assert made.law.peak.value == pytest.approx(math.sqrt(0.8 / 0.001), rel=0.05)

    def test_too_few_points_are_said(self) -> None:
        made = sweep(Made(), (1, 2, 4), 1, seed=1, note=quiet)
        assert made.law is None


class TestCapacity:
    def test_it_is_found(self) -> None:
        made = capacity(Made(), GOAL, note=quiet)
        assert made.found.end is End.FOUND
        assert made.found.held_per_s is not None
        assert made.found.failed_per_s is not None
        assert made.found.held_per_s < 2000 <= made.found.failed_per_s
        assert made.closed is not None

    def test_the_client_is_no_server(self) -> None:
        made = capacity(Made(client_per_s=700.0), GOAL, note=quiet, start_per_s=100)
        assert made.found.end is End.CLIENT
        assert made.found.held_per_s is not None
        assert made.found.held_per_s <= 700
        assert made.found.failed_per_s is None

    def test_no_rate_too_low_for_its_percentile(self) -> None:
        assert lowest_rate(GOAL, 10.0) >= 45.9
        assert lowest_rate(objectives("p99.9<1s"), 10.0) >= 460
        made = capacity(Made(limit_per_s=1.0), GOAL, note=quiet, start_per_s=1000)
        assert made.found.end is End.NEVER
        assert min(t.rate_per_s for t in made.tried) >= 45.9

    def test_room_for_what_the_objective_allows(self) -> None:
        target = Made()
        capacity(target, objectives("p99<5s"), note=quiet, start_per_s=1000, most_trials=1)
        load = target.loads[0]
        assert isinstance(load, OpenLoad)
        assert (load.max_users or 0) >= 10_000

    @pytest.mark.parametrize(
        ("made", "expected"),
        [
            (trial(OpenLoad(rate_per_s=9), {"p99_ms": 49.0}), Outcome.MET),
            (trial(OpenLoad(rate_per_s=9), {"p99_ms": 50.0}), Outcome.MISSED),
            (trial(OpenLoad(rate_per_s=9), {}), Outcome.UNUSABLE),
            (trial(OpenLoad(rate_per_s=9), {"p99_ms": 1.0}, found("host", Status.INVALID)), Outcome.UNUSABLE),
            (trial(OpenLoad(rate_per_s=9), {"p99_ms": 1.0}, found("client", Status.INVALID)), Outcome.CLIENT),
            (
                trial(OpenLoad(rate_per_s=9), {"p99_ms": 90.0}, found("schedule", Status.SUSPECT)),
                Outcome.CLIENT,
            ),
            (trial(OpenLoad(rate_per_s=9), {"p99_ms": 1.0}, found("errors", Status.INVALID)), Outcome.MISSED),
            (trial(OpenLoad(rate_per_s=9), {}, failure="the server ended under load"), Outcome.MISSED),
        ],
    )
    def test_whose_fault_it_was(self, made: PointTrial, expected: Outcome) -> None:
        assert outcome_of(made, GOAL)[0] is expected

    def test_a_full_house_is_the_servers_unless_the_client_was_weak(self) -> None:
        full = trial(OpenLoad(rate_per_s=9), {"p99_ms": 1.0}, found("schedule", Status.INVALID))
        full = PointTrial(full.load, "e", full.judgement, None, full.figures, blocked=7)
        assert outcome_of(full, GOAL)[0] is Outcome.MISSED
        weak = (*full.judgement.findings, found("client", Status.SUSPECT))
        full = PointTrial(
            full.load, "e", Judgement(verdict=Status.INVALID, findings=weak), None, {}, blocked=7
        )
        assert outcome_of(full, GOAL)[0] is Outcome.CLIENT


class TestUserList:
    def test_it_doubles_between(self) -> None:
        assert user_list("1,8,16…128") == (1, 8, 16, 32, 64, 128)
        assert user_list("16...100") == (16, 32, 64, 100)
        assert user_list("5, 3,3") == (3, 5)

    @pytest.mark.parametrize("bad", ["", "0", "1,,2", "8…2", "a", "1…2…3", "-1", "1.5", "2000000"])
    def test_others_are_refused(self, bad: str) -> None:
        with pytest.raises(UsageError, match="expected"):
            user_list(bad)
