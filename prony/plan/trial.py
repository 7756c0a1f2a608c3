"""One trial as a value: what is offered, how the server is warmed up, what is measured, and how long each
phase may take.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from prony.evidence.base import Record
from prony.plan.load import (
    DRAIN_S,
    WHOLE_CAP_S,
    ClosedLoad,
    Connections,
    Load,
    Measured,
    OpenLoad,
    SteadyWindow,
    WholeRun,
)
from prony.plan.population import Population, last_end_s, misfit
from prony.plan.script import Script
from prony.plan.stage import Stage
from prony.plan.workload import Workload

PUBLISHED_REQUESTS = 10_000
"""Experiment C as published: ab -n 10000 against a fresh process."""


CONFORMANCE_S = 6.0
"""About how long a server is asked, in a process of its own, whether it answers a workload as declared."""


class WarmUpPlan(Record):
    """How a trial warms its server up under the trial's own load.

    `all-cpus`: the server may use every CPU while it warms up and is put on its own CPUs for the window; the
    JIT compiler's threads then do not compete with requests (same plateau, a third of the time). `pinned`: on
    its own CPUs from the start. `fixed`: pinned, for `cap_s`, and nobody watches whether that is enough.
    """

    method: Literal["all-cpus", "pinned", "fixed"] = "all-cpus"
    min_s: float = 12.0
    cap_s: float = 90.0
    settle_min_s: float = 6.0
    settle_cap_s: float = 90.0
    """Back on its own CPUs the server settles for at most so long."""
    settle_until: Literal["level", "shown"] = "shown"
    """What ends the settling before its cap. `level`: the rows are level and the JIT compiler is idle.
    `shown`: besides, at most 3 % residual drift can be expected of the window; with 1 % noise from second to
    second that takes about a minute, and a window of 10 s hardly ever shows it.
    """
    closed_users: Annotated[int, Field(ge=0)] | Literal["auto"] = "auto"
    """So many users without think time load a fresh process first, for `closed_s`; 0: none. A JIT compiler
    compiles what is called often: under a low rate it is at work for minutes. And it gets little of a CPU
    that many users keep busy. `auto`: FEW_USERS for half of `min_s`, before a load that would starve it.
    """
    closed_s: float = Field(default=30.0, gt=0)

    @field_validator("closed_users", mode="before")
    @classmethod
    def _none(cls, value: object) -> object:
        """Plans of earlier versions say null for 0."""
        return 0 if value is None else value

    @property
    def warm_s(self) -> float:
        """About how long the watch takes until the server is level."""
        return self._about(self.min_s, self.cap_s, LEVEL_AFTER)

    @property
    def settle_s(self) -> float:
        """About how long it settles on its own CPUs."""
        return self._about(self.settle_min_s, self.settle_cap_s, SETTLED_AFTER)

    @property
    def settle_new_s(self) -> float:
        """The same in a process that other workloads have warmed up: this one brings code of its own."""
        return self._about(self.settle_min_s, self.settle_cap_s, NEW_CODE_AFTER)

    @property
    def compiling_cap_s(self) -> float:
        """There it settles for at most so long while the JIT compiler is at work: as long as a fresh process
        has in all.
        """
        return self.cap_s + self.settle_cap_s

    def _about(self, min_s: float, cap_s: float, level_after: float) -> float:
        about_s = min_s + SETTLES * (cap_s - min_s)
        return about_s if self.settle_until == "shown" else min(about_s, level_after * min_s)


def fixed(seconds: float) -> WarmUpPlan:
    """A warm-up of exactly this length, without a look at whether the server is level after it."""
    return WarmUpPlan(method="fixed", min_s=seconds, cap_s=seconds, settle_min_s=0.0, settle_cap_s=0.0)


FEW_USERS = 4
"""Enough to call everything often, and too few to keep a JIT compiler from the CPU. Spring Boot on one CPU
under 64 users was ready to be measured after 36 s with them first and 64 s without (docs/benchmarks.md).
"""

QUICK_WARM_UP = WarmUpPlan(min_s=10.0, cap_s=60.0, settle_min_s=5.0, settle_cap_s=30.0, settle_until="level")
"""Too short to show of any but the quietest server that it is at its plateau: `steady` is then unknown. The
caps are for slow machines, where a JIT compiler is at work for more than a minute.
"""
SETTLES = 0.6
"""Share of the time between the least and the cap of a phase that it takes, about."""
LEVEL_AFTER, SETTLED_AFTER, NEW_CODE_AFTER = 2.5, 1.2, 2.0
"""About so many times the least that is waited, a JVM on a usual machine is level: warming up (FEW_USERS
before it included), back on its own CPUs, and there under a workload that its process has not had yet. Where
no more is waited for, only a slow machine comes near the cap.
"""

PROBE_MOST_S = 5.0
START_S, STOP_S, PUBLISHED_S = 6.0, 1.0, 9.0
"""About how long a server takes to start and to stop, and the published part to run."""
SLACK_S = 30.0
"""After a window of known length the engine waits so long for its end."""


class TrialPlan(Record):
    """What one trial does, from a fresh process to its end."""

    workload: Workload
    load: Load
    measured: Measured
    connections: Connections = Connections()
    warm_up: WarmUpPlan = WarmUpPlan()
    """Before a steady window; a whole run has a warm-up of its own, or none."""
    published_requests: int | None = None
    """Note when this many requests had completed since the start of the fresh process; None: do not."""
    published_cap_s: float = 30.0
    start_timeout_s: float = 60.0
    request_timeout_ms: int = 10_000
    connect_timeout_ms: int = 5_000
    driver: Literal["auto", "io_uring", "epoll"] = "auto"
    preflight: bool = True
    """One request per step is sent before the load, and its response checked. False: the server sees the load
    alone, as it does with the tool whose script this is; responses are then compared with each other.
    """
    source_addresses: tuple[str, ...] = ()
    """Addresses of the load host that connections come from; the kernel chooses when there are none."""
    script: Script | None = None
    """In Lua it says what is sent, in place of the workload's one step; in JavaScript blocks call it."""
    threads: int | None = Field(default=None, ge=1)
    """At most this many threads of the engine; one for each CPU of the load when not given."""
    rate_groups: int | None = None
    """Groups of users whose rates are counted."""
    rate_span_ms: int = Field(default=100, ge=1)
    """Over how long a time each of those rates is."""
    request_parts: bool = False
    """Takes the time of each request apart: connect, send, wait, receive; costs the client some CPU."""
    log: str | None = None
    """A file for one row per request."""
    before: Stage | None = None
    """A load of its own that ends before this one begins; nothing of it is judged."""
    after: Stage | None = None
    """One that begins when this one has ended."""
    beside: tuple[str, ...] = ()
    """Other load generators that offer the same load to the same process, in shuffled order,
    some before and some after this one.
    """
    scaling_probe: bool = True
    """A trial that claims a capacity ends with some seconds under half as many users again (outside the
    window), which show whether the rate still rises.
    """
    injected_faults: tuple[str, ...] = ()
    """Faults that the engine is to have (docs/engine.md). Only `prony selftest` sets them; a trial with any
    is invalid.
    """

    @model_validator(mode="after")
    def _fits(self) -> Self:
        whole = self.measured if isinstance(self.measured, WholeRun) else None
        if whole is not None and self.published_requests is not None:
            raise ValueError("published_requests applies to a steady window: a whole run is measured itself")
        if whole is not None and whole.iterations_per_user is not None and self.load.model == "open":
            raise ValueError("iterations_per_user applies to a closed load: a user of an open one walks once")
        if whole is None and isinstance(self.load, OpenLoad) and self.load.phases:
            raise ValueError("phases go with measured: whole; a steady window asks for one rate_per_s")
        phased = isinstance(self.load, OpenLoad) and bool(self.load.phases)
        if whole is not None and whole.drain_s is not None and (whole.duration_s is not None or not phased):
            raise ValueError("drain_s applies to the phases of an open load without duration_s")
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
            raise ValueError("iterations_per_user belongs in each population")
        ending = [one.name for one in self.populations if one.bounded]
        if ending and (whole is None or whole.warm_up_s):
            raise ValueError(
                f"the population '{ending[0]}' ends by itself, which goes with a whole run without a warm-up "
                "(measured: duration_s, total_requests, or nothing)"
            )

    @property
    def first_users(self) -> int:
        """So many users without think time load a fresh process first; 0: none."""
        asked = self.warm_up.closed_users
        if asked != "auto":
            return asked
        load = self.load
        busy = (
            isinstance(load, ClosedLoad)
            and load.users > FEW_USERS
            and load.think.kind == "none"
            and not load.populations
        )
        watched = isinstance(self.measured, SteadyWindow) and self.warm_up.method != "fixed"
        # A wait by design keeps no CPU busy; rows of data and a script's state are the load's own.
        own = self.script is not None or self.workload.feeders or self.workload.delay_ms
        return FEW_USERS if busy and watched and not own else 0

    @property
    def first_s(self) -> float:
        """For so long; 0 without them."""
        warm = self.warm_up
        if not self.first_users:
            return 0.0
        return warm.min_s / 2 if warm.closed_users == "auto" else warm.closed_s

    @property
    def _chosen_first_s(self) -> float:
        """What they take where the plan chose them."""
        return 0.0 if self.warm_up.closed_users == "auto" else self.first_s

    @property
    def populations(self) -> tuple[Population, ...]:
        """Of a closed load that has several groups of users."""
        return self.load.populations if isinstance(self.load, ClosedLoad) else ()

    def spoken(self, http_version: str | None) -> Self:
        """The same in the version of HTTP that a server asks for; None: as it is."""
        if http_version is None:
            return self
        connections = self.connections.model_copy(update={"http_version": http_version})
        return self.model_copy(update={"connections": connections})

    @property
    def load_name(self) -> str:
        """The load in a word, with what is unusual about its connections."""
        if not self.connections.keep_alive:
            return f"{self.load.name}-close"
        most = self.connections.max_requests
        name = self.load.name if most is None else f"{self.load.name}-{most}-each"
        depth = self.connections.pipeline
        if self.connections.http_version == "2":
            return name + _http2_name(self.connections)
        return name if depth == 1 else f"{name}-pipeline-{depth}"

    @property
    def measured_s(self) -> float:
        """About how long the measured part takes; unknown lengths are taken for 10 s."""
        match self.measured:
            case SteadyWindow(length_s=length_s):
                return length_s
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
    def probe_s(self) -> float:
        """How long the scaling probe takes: a second to connect and half the window, up to five; 0: none."""
        if not self.scaling_probe or not isinstance(self.measured, SteadyWindow):
            return 0.0
        closed = isinstance(self.load, ClosedLoad) and not self.populations
        if not closed or self.script is not None:
            return 0.0
        return min(PROBE_MOST_S, 1.0 + self.measured.length_s / 2)

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
            runs_s = (1 + len(self.beside)) * self.measured_s
            return START_S + self.measured.warm_up_s + runs_s + self.last_session_s + STOP_S
        if self.warm_up.method == "fixed":
            first_s = self._chosen_first_s
            return START_S + first_s + self.warm_up.cap_s + self.measured_s + self.probe_s + STOP_S
        plan = self.warm_up
        published_s = PUBLISHED_S if self.published_requests else 0
        return (
            START_S
            + self._chosen_first_s
            + published_s
            + self.load.started_s
            + plan.warm_s
            + plan.settle_s
            + self.measured_s
            + self.probe_s
            + STOP_S
        )

    @property
    def later_s(self) -> float:
        """About how long one trial takes in a process that another load has warmed up: it is not started, and
        settles only.
        """
        if isinstance(self.measured, WholeRun):
            return self.estimate_s - START_S - STOP_S
        if self.warm_up.method == "fixed":
            return self.warm_up.cap_s + self.measured_s + self.probe_s
        return self.load.started_s + self.warm_up.settle_s + self.measured_s + self.probe_s

    @property
    def later_new_s(self) -> float:
        """The same in a process that other workloads alone have warmed up."""
        if isinstance(self.measured, WholeRun) or self.warm_up.method == "fixed":
            return self.later_s
        warm = self.warm_up
        return self.later_s + self._chosen_first_s + warm.settle_new_s - warm.settle_s

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
        if warm.method == "fixed":
            return warm.cap_s + self.measured_s + SLACK_S
        longest = self.published_cap_s + warm.cap_s + warm.settle_cap_s + 3 * self.measured_s + 60
        return self.load.started_s + longest


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
            "closed_s": min(warm_up.closed_s, cap_s),
        }
    )


def _http2_name(connections: Connections) -> str:
    if connections.count is not None:
        return f"-h2-on-{connections.count}"
    return "-h2" if connections.streams == 1 else f"-h2-{connections.streams}-streams"


def quick_trial(workload: Workload, users: int, window_s: float | None) -> TrialPlan:
    """The quick form: a 10 s window, a warm-up that ends when the server is level, and neither scaling probe
    nor published protocol, for a first look.

    A JVM on one CPU was measured to be level after 24 s of load; the watch needs 10 more to see it. On a
    virtual machine a quarter as fast the JIT compiler was at work for longer than a minute.
    """
    return TrialPlan(
        workload=workload,
        load=ClosedLoad(users=users),
        measured=SteadyWindow(window_s=window_s or 10.0),
        warm_up=QUICK_WARM_UP,
        scaling_probe=False,
    )


def full_trial(workload: Workload, users: int, window_s: float | None) -> TrialPlan:
    """The full form: a 30 s window, a warm-up of up to 90 s."""
    return TrialPlan(
        workload=workload,
        load=ClosedLoad(users=users),
        measured=SteadyWindow(window_s=window_s or 30.0),
        published_requests=PUBLISHED_REQUESTS,
    )


def gate_trial(workload: Workload, users: int, window_s: float | None) -> TrialPlan:
    """For many trials in a short time: a 10 s window after the warm-up of a quick one, about a minute in all.

    Processes differ more than windows of one do, so that a budget buys more certainty with more processes
    than with longer windows; how level a server is, is judged over all its trials together.
    """
    return TrialPlan(
        workload=workload,
        load=ClosedLoad(users=users),
        measured=SteadyWindow(window_s=window_s or 10.0),
        warm_up=QUICK_WARM_UP,
    )


def protocol(trial: TrialPlan, warm_up_s: float, run_s: float) -> TrialPlan:
    """The same load as a fixed protocol: a run of `warm_up_s` that is not measured, then one of `run_s` that
    is. It claims nothing beyond itself: no plateau, no capacity.
    """
    return trial.model_copy(
        update={
            "measured": WholeRun(duration_s=run_s, warm_up_s=warm_up_s),
            "published_requests": None,
            "scaling_probe": False,
        }
    )
