"""A sweep over numbers of users: every point a judged trial, then the law of scaling. Must not print."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from prony.compare.scaling import Point, Scaling, scaling
from prony.experiment.points import Note, Points, PointTrial
from prony.plan.load import ClosedLoad


@dataclass(frozen=True, slots=True)
class Sweep:
    """All points of a sweep, by users and then in the order they ran."""

    target: str
    trials: tuple[PointTrial, ...]
    law: Scaling | None
    """None when fewer than four numbers of users have a trial that counts."""
    seed: int

    def of(self, users: int) -> tuple[PointTrial, ...]:
        """The trials with so many users."""
        return tuple(t for t in self.trials if users_of(t) == users)

    @property
    def users(self) -> tuple[int, ...]:
        """The numbers of users, ascending."""
        return tuple(sorted({users_of(t) for t in self.trials}))


def users_of(trial: PointTrial) -> int:
    """The users of a point of a sweep."""
    assert isinstance(trial.load, ClosedLoad)
    return trial.load.users


def sweep(points: Points, users: Sequence[int], repeats: int, seed: int, note: Note) -> Sweep:
    """Measure every number of users `repeats` times: each round in an order drawn from the seed, so that a
    machine that changes meanwhile does not look like a law.
    """
    source = random.Random(seed)
    made: list[PointTrial] = []
    total = len(users) * repeats
    for _ in range(repeats):
        order = list(users)
        source.shuffle(order)
        for number in order:
            note(f"point {len(made) + 1} of {total}: {number} users")
            made.append(points.measure(ClosedLoad(users=number)))
    return concluded(points.name, made, seed)


def concluded(target: str, made: Sequence[PointTrial], seed: int) -> Sweep:
    """What the trials come to. Trials that do not count stay visible and out of the law."""
    fit = [
        Point(float(users_of(t)), t.figures["requests_per_s"])
        for t in made
        if t.counts and t.figures.get("requests_per_s", 0) > 0
    ]
    return Sweep(target, tuple(sorted(made, key=users_of)), scaling(fit), seed)
