"""An experiment as a value: servers, workload, load, trials, and how long each part may take.

Must not know how it is run.
"""

from __future__ import annotations

import random
from typing import Literal, Self

from pydantic import Field, model_validator

from prony.evidence.base import Record
from prony.plan.workload import Workload

PUBLISHED_REQUESTS = 10_000
"""Experiment C as published: ab -n 10000 against a fresh process."""


class WarmUpPlan(Record):
    """How a trial warms its server up under the trial's own load.

    `all-cpus`: the server may use every CPU while it warms up and is put on its own CPUs for the window; the
    JIT compiler's threads then do not compete with requests (same plateau, a third of the time).
    `pinned`: on its own CPUs from the start.
    """

    method: Literal["all-cpus", "pinned"] = "all-cpus"
    min_s: float = 12.0
    cap_s: float = 90.0
    settle_min_s: float = 6.0
    settle_cap_s: float = 20.0


class TrialPlan(Record):
    """What one trial does, from a fresh process to its end."""

    workload: Workload
    users: int = Field(ge=1)
    window_s: float = Field(gt=0)
    warm_up: WarmUpPlan = WarmUpPlan()
    published_requests: int | None = PUBLISHED_REQUESTS
    """Note when so many requests had completed since the start of the fresh process; None: do not."""
    published_cap_s: float = 30.0
    start_timeout_s: float = 60.0
    request_timeout_ms: int = 10_000
    driver: Literal["auto", "io_uring", "epoll"] = "auto"

    @property
    def estimate_s(self) -> float:
        """About how long one trial takes: start, published part, warm-up, settling, window, stop."""
        warm = self.warm_up.min_s + 0.6 * (self.warm_up.cap_s - self.warm_up.min_s)
        settle = self.warm_up.settle_min_s + 2
        return 6 + (9 if self.published_requests else 0) + warm + settle + self.window_s + 1

    @property
    def deadline_s(self) -> float:
        """After this the engine stops by itself, whatever happens to the lab."""
        warm = self.warm_up
        return self.published_cap_s + warm.cap_s + warm.settle_cap_s + 3 * self.window_s + 60


class ExperimentPlan(Record):
    """Servers x trials, in randomised blocks: every block holds one trial of each server."""

    title: str
    servers: tuple[str, ...] = Field(min_length=1)
    trial: TrialPlan
    trials: int = Field(ge=1)
    controls: int = 0
    """Extra trials per server that are pinned from the start: do both ways of warming up agree?"""
    until_clear: int | None = Field(default=None, ge=1)
    """After `trials` blocks add blocks, up to so many, until every pair is clear; the intervals then hold at
    every look (docs/method.md). None: exactly `trials`.
    """
    quick: bool = False
    seed: int = 0

    @model_validator(mode="after")
    def _last_look_after_the_first(self) -> Self:
        if self.until_clear is not None and not 3 <= self.trials <= self.until_clear:
            raise ValueError(
                f"until_clear is {self.until_clear} and trials is {self.trials}; expected a first look after "
                "at least 3 trials, and not after the last"
            )
        return self

    def order(self) -> list[tuple[int, int, str]]:
        """(block, position, server) in the order in which they run, drawn from the seed."""
        source = random.Random(self.seed)
        rows: list[tuple[int, int, str]] = []
        for block in range(self.most_trials):
            servers = list(self.servers)
            source.shuffle(servers)
            rows += [(block, position, server) for position, server in enumerate(servers)]
        return rows

    @property
    def most_trials(self) -> int:
        """Trials per server at the most."""
        return self.until_clear or self.trials

    @property
    def estimate_s(self) -> float:
        """About how long the whole experiment takes at the most, builds apart."""
        controlled = self.trial.model_copy(update={"warm_up": pinned(self.trial.warm_up)}).estimate_s
        trials = len(self.servers) * self.most_trials * self.trial.estimate_s
        return trials + len(self.servers) * self.controls * controlled + 6


def pinned(warm_up: WarmUpPlan) -> WarmUpPlan:
    """The same warm-up on the server's own CPUs from the start: it needs about three times as long."""
    return warm_up.model_copy(
        update={"method": "pinned", "min_s": 3 * warm_up.min_s, "cap_s": 3 * warm_up.cap_s}
    )


def capped(warm_up: WarmUpPlan, cap_s: float) -> WarmUpPlan:
    """The same warm-up, of at most `cap_s`; settling takes no longer than warming up."""
    settle_s = min(warm_up.settle_cap_s, cap_s)
    return warm_up.model_copy(
        update={
            "cap_s": cap_s,
            "min_s": min(warm_up.min_s, cap_s),
            "settle_cap_s": settle_s,
            "settle_min_s": min(warm_up.settle_min_s, settle_s),
        }
    )


def quick_trial(workload: Workload, users: int, window_s: float | None) -> TrialPlan:
    """The quick form: a 10 s window and a warm-up capped at 35 s, for a first look.

    A JVM on one CPU was measured to be level after 24 s of load; the watch needs 10 more to see it.
    """
    return TrialPlan(
        workload=workload,
        users=users,
        window_s=window_s or 10.0,
        warm_up=WarmUpPlan(min_s=10.0, cap_s=35.0, settle_min_s=5.0, settle_cap_s=8.0),
    )


def full_trial(workload: Workload, users: int, window_s: float | None) -> TrialPlan:
    """The full form: a 30 s window, a warm-up of up to 90 s."""
    return TrialPlan(workload=workload, users=users, window_s=window_s or 30.0)
