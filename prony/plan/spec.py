"""An experiment as a value: servers, workload, load, trials, and how long each part may take.

Must not know how it is run.
"""

from __future__ import annotations

import random
from typing import Literal, Self

from pydantic import Field, model_validator

from prony.evidence.base import Record
from prony.plan.load import ClosedLoad, Connections, Load, Measured, OpenLoad, SteadyWindow, WholeRun
from prony.plan.population import Population, last_end_s, misfit
from prony.plan.workload import Workload

PUBLISHED_REQUESTS = 10_000
"""Experiment C as published: ab -n 10000 against a fresh process."""


CONFORMANCE_S = 6.0
"""About how long a server is asked, in a process of its own, whether it answers as declared."""


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


QUICK_WARM_UP = WarmUpPlan(min_s=10.0, cap_s=35.0, settle_min_s=5.0, settle_cap_s=8.0)

START_S, STOP_S, PUBLISHED_S = 6.0, 1.0, 9.0
"""About how long a server takes to start and to stop, and the published part to run."""
WHOLE_CAP_S = 3600.0
"""A run that is bounded by requests or iterations alone is ended after this."""
DRAIN_S = 60.0
"""What is under way when the last arrival has come may take this long to end."""


class TrialPlan(Record):
    """What one trial does, from a fresh process to its end."""

    workload: Workload
    load: Load
    measured: Measured
    connections: Connections = Connections()
    warm_up: WarmUpPlan = WarmUpPlan()
    """Before a steady window; a whole run has a warm-up of its own, or none."""
    published_requests: int | None = None
    """Note when so many requests had completed since the start of the fresh process; None: do not."""
    published_cap_s: float = 30.0
    start_timeout_s: float = 60.0
    request_timeout_ms: int = 10_000
    driver: Literal["auto", "io_uring", "epoll"] = "auto"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        whole = self.measured if isinstance(self.measured, WholeRun) else None
        if whole is not None and self.published_requests is not None:
            raise ValueError("published_requests goes with a steady window: a whole run is measured itself")
        if whole is not None and whole.iterations_per_user is not None and self.load.model == "open":
            raise ValueError("iterations_per_user goes with a closed load: a user of an open one walks once")
        if whole is None and isinstance(self.load, OpenLoad) and self.load.phases:
            raise ValueError("phases go with measured: whole; a steady window asks for one rate_per_s")
        phased = isinstance(self.load, OpenLoad) and bool(self.load.phases)
        if whole is not None and whole.drain_s is not None and (whole.duration_s is not None or not phased):
            raise ValueError("drain_s goes with the phases of an open load, and without a duration_s")
        self._check_populations(whole)
        if whole is not None and not self._bounded(whole):
            raise ValueError(
                "nothing ends this run: give duration_s, total_requests, iterations_per_user, or phases"
            )
        return self

    def _bounded(self, whole: WholeRun) -> bool:
        given = (whole.duration_s, whole.total_requests, whole.iterations_per_user)
        if self.populations and all(one.bounded for one in self.populations):
            return True
        return any(bound is not None for bound in given) or bool(
            isinstance(self.load, OpenLoad) and self.load.phases
        )

    def _check_populations(self, whole: WholeRun | None) -> None:
        if not self.populations:
            return
        texts = self.workload.scenario_texts
        wrong = misfit(self.populations, texts, list(self.workload.feeders))
        if wrong is not None:
            raise ValueError(wrong)
        if whole is not None and whole.iterations_per_user is not None:
            raise ValueError("iterations_per_user stands in each population, and not beside them")
        ending = [one.name for one in self.populations if one.bounded]
        if ending and (whole is None or whole.warm_up_s):
            raise ValueError(
                f"the population '{ending[0]}' ends by itself, which goes with a whole run without a warm-up "
                "(measured: duration_s, total_requests, or nothing)"
            )
        if self.connections.pipeline > 1:
            raise ValueError("populations do not go with connections: pipeline")

    @property
    def populations(self) -> tuple[Population, ...]:
        """Of a closed load that has several groups of users."""
        return self.load.populations if isinstance(self.load, ClosedLoad) else ()

    @property
    def load_name(self) -> str:
        """The load in a word, with what is unusual about its connections."""
        if not self.connections.keep_alive:
            return f"{self.load.name}-close"
        most = self.connections.max_requests
        name = self.load.name if most is None else f"{self.load.name}-{most}-each"
        depth = self.connections.pipeline
        return name if depth == 1 else f"{name}-pipeline-{depth}"

    @property
    def measured_s(self) -> float:
        """About how long the measured part takes; unknown lengths are taken for 10 s."""
        match self.measured:
            case SteadyWindow(window_s=window_s):
                return window_s
            case WholeRun(duration_s=float(duration_s)):
                return duration_s
        if isinstance(self.load, OpenLoad) and self.load.total_s is not None:
            return self.load.total_s
        if self.populations:
            return max(10.0, *(self._population_s(one) for one in self.populations))
        loops = self.measured.iterations_per_user or 0
        return max(10.0, loops * self._walk_s + self.load.ramp_up_s)

    def _population_s(self, one: Population) -> float:
        """At least so long after the start of the run its last user ends, as far as is known."""
        walking_s = one.start_s + one.ramp_up_s + (one.iterations_per_user or 0) * self._walk_s
        return walking_s if one.end_s is None else min(one.end_s, walking_s or one.end_s)

    @property
    def last_session_s(self) -> float:
        """At least so long after the last arrival its user is still walking: pauses, and waits by design."""
        if not (isinstance(self.load, OpenLoad) and self.load.session == "user"):
            return 0.0
        return self._walk_s

    @property
    def _walk_s(self) -> float:
        """At least so long one walk takes: a pause and a wait by design for each of its requests."""
        each_ms = (self.workload.delay_ms or 0.0) + self.load.think.expected_ms
        return max(walk.length for walk in self.workload.walks) * each_ms / 1000

    @property
    def estimate_s(self) -> float:
        """About how long one trial takes: start, published part, warm-up, settling, window, stop."""
        if isinstance(self.measured, WholeRun):
            return START_S + self.measured.warm_up_s + self.measured_s + self.last_session_s + STOP_S
        warm = self.warm_up.min_s + 0.6 * (self.warm_up.cap_s - self.warm_up.min_s)
        settle = self.warm_up.settle_min_s + 2
        published_s = PUBLISHED_S if self.published_requests else 0
        return START_S + published_s + self.load.started_s + warm + settle + self.measured_s + STOP_S

    @property
    def deadline_s(self) -> float:
        """After this the engine stops by itself, whatever happens to the lab."""
        if isinstance(self.measured, WholeRun):
            if self.measured.duration_s is not None:
                return self.measured.duration_s
            if isinstance(self.load, OpenLoad) and self.load.total_s is not None:
                return self.load.total_s + (self.measured.drain_s or DRAIN_S)
            end_s = last_end_s(self.populations)
            return WHOLE_CAP_S if end_s is None else end_s + DRAIN_S
        warm = self.warm_up
        longest = self.published_cap_s + warm.cap_s + warm.settle_cap_s + 3 * self.measured_s + 60
        return self.load.started_s + longest


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
    band: float = Field(default=0.02, gt=0, lt=1)
    """Servers whose ratio is surely nearer to 1 than this are equivalent: no practical difference."""
    own_loads: dict[str, Load] = Field(default_factory=dict)
    """Loads of single servers, in place of the trial's: a share of each one's own capacity."""
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
        conformance = len(self.servers) * CONFORMANCE_S
        return trials + len(self.servers) * self.controls * controlled + conformance + 6


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
        load=ClosedLoad(users=users),
        measured=SteadyWindow(window_s=window_s or 10.0),
        published_requests=PUBLISHED_REQUESTS,
        warm_up=QUICK_WARM_UP,
    )


def full_trial(workload: Workload, users: int, window_s: float | None) -> TrialPlan:
    """The full form: a 30 s window, a warm-up of up to 90 s."""
    return TrialPlan(
        workload=workload,
        load=ClosedLoad(users=users),
        measured=SteadyWindow(window_s=window_s or 30.0),
        published_requests=PUBLISHED_REQUESTS,
    )
