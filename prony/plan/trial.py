"""The plan of a trial: load, warm-up, measured part, and the time of each phase."""

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


class WarmUpPlan(Record):
    """Warm-up of the server under the trial's own load.

    `all-cpus`: every CPU for the warm-up (of a JVM for its JIT compiler alone, which then does not compete
    with requests: same plateau in less time), the server's own CPUs for the window. `pinned`: its own CPUs
    from the start. `fixed`: pinned, for exactly `cap_s`, not watched.
    """

    method: Literal["all-cpus", "pinned", "fixed"] = "all-cpus"
    min_s: float = 12.0
    cap_s: float = 90.0
    settle_min_s: float = 6.0
    settle_cap_s: float = 90.0
    """Longest settling on its own CPUs."""
    settle_until: Literal["level", "shown"] = "shown"
    """End of settling before its cap. `level`: level rows and an idle JIT compiler. `shown`: also at most 3 %
    expected residual drift of the window, which takes about a minute with 1 % noise per second, and which a
    window of 10 s hardly ever shows.
    """
    closed_users: Annotated[int, Field(ge=0)] | Literal["auto"] = "auto"
    """Users without think time that load a fresh process first, for `closed_s`; 0: none. Under a low rate a
    JIT compiler works for minutes, and many users keep the CPU from it. `auto`: FEW_USERS for half of `min_s`
    before a load that would starve it.
    """
    closed_s: float = Field(default=30.0, gt=0)

    @field_validator("closed_users", mode="before")
    @classmethod
    def _none(cls, value: object) -> object:
        """Plans of earlier versions say null for 0."""
        return 0 if value is None else value

    @property
    def warm_s(self) -> float:
        return self._about(self.min_s, self.cap_s, LEVEL_AFTER)

    @property
    def settle_s(self) -> float:
        return self._about(self.settle_min_s, self.settle_cap_s, SETTLED_AFTER)

    @property
    def settle_new_s(self) -> float:
        """As `settle_s`, in a process warmed up by other workloads, whose code differs."""
        return self._about(self.settle_min_s, self.settle_cap_s, NEW_CODE_AFTER)

    @property
    def compiling_cap_s(self) -> float:
        """Cap of that while the JIT compiler is at work: the total of a fresh process."""
        return self.cap_s + self.settle_cap_s

    def _about(self, min_s: float, cap_s: float, level_after: float) -> float:
        about_s = min_s + SETTLES * (cap_s - min_s)
        return about_s if self.settle_until == "shown" else min(about_s, level_after * min_s)


def fixed(seconds: float) -> WarmUpPlan:
    return WarmUpPlan(method="fixed", min_s=seconds, cap_s=seconds, settle_min_s=0.0, settle_cap_s=0.0)


FEW_USERS = 4
"""Enough to call everything often, too few to starve a JIT compiler. Spring Boot on a CPU under 64 users was
ready after 36 s with them first and 64 s without (docs/benchmarks.md).
"""

QUICK_WARM_UP = WarmUpPlan(min_s=10.0, cap_s=60.0, settle_min_s=5.0, settle_cap_s=30.0, settle_until="level")
"""Too short to show a plateau of any but the quietest server. The caps are for slow machines."""
SETTLES = 0.6
"""Typical duration of a phase as a share of the way from its least to its cap."""
LEVEL_AFTER, SETTLED_AFTER, NEW_CODE_AFTER = 1.5, 1.2, 2.0
"""Typical time ÷ the least time of a JVM: warming up, back on its own CPUs, there with new code."""

PROBE_MOST_S = 5.0
START_S, STOP_S, PUBLISHED_S = 6.0, 1.0, 9.0
SLACK_S = 30.0
"""Engine's wait for the end after a window of known length."""


class TrialPlan(Record):
    """A trial, from a fresh process to its end."""

    workload: Workload
    load: Load
    measured: Measured
    connections: Connections = Connections()
    warm_up: WarmUpPlan = WarmUpPlan()
    published_requests: int | None = None
    published_cap_s: float = 30.0
    start_timeout_s: float = 60.0
    request_timeout_ms: int = 10_000
    connect_timeout_ms: int = 5_000
    driver: Literal["auto", "io_uring", "epoll"] = "auto"
    preflight: bool = True
    """False: the server sees only the load; responses are then compared with each other."""
    source_addresses: tuple[str, ...] = ()
    script: Script | None = None
    threads: int | None = Field(default=None, ge=1)
    rate_groups: int | None = None
    rate_span_ms: int = Field(default=100, ge=1)
    request_parts: bool = False
    log: str | None = None
    log_as_sent: bool = Field(default=False, exclude=True)
    """Whether the log has credentials, too: a tool's own, deleted once it is read."""
    before: Stage | None = None
    after: Stage | None = None
    beside: tuple[str, ...] = ()
    """Peer tools with the same load on the same process, in random order before and after."""
    scaling_probe: bool = True
    """Whether a capacity trial ends with seconds under half as many users again."""
    instructions: bool = False
    """Whether the server's instructions are counted in the window."""
    injected_faults: tuple[str, ...] = ()
    """Faults of the engine (docs/engine.md) for `prony selftest`; such a trial does not conform."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        whole = self.measured if isinstance(self.measured, WholeRun) else None
        if whole is not None and self.published_requests is not None:
            raise ValueError("published_requests applies to a steady window, not to a whole run")
        if whole is not None and whole.iterations_per_user is not None and self.load.model == "open":
            raise ValueError(
                "iterations_per_user applies to a closed load; a user of an open load walks once"
            )
        if whole is None and isinstance(self.load, OpenLoad) and self.load.phases:
            raise ValueError("phases need a whole run; a steady window needs a single rate_per_s")
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
        if self.populations and all(group.bounded for group in self.populations):
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
        ending = [group.name for group in self.populations if group.bounded]
        if ending and (whole is None or whole.warm_up_s):
            raise ValueError(
                f"the population '{ending[0]}' ends by itself, which needs a whole run without a warm-up "
                "(measured: duration_s, total_requests, or nothing)"
            )

    @property
    def first_users(self) -> int:
        """Users without think time that load a fresh process first; 0: none."""
        users = self.warm_up.closed_users
        if users != "auto":
            return users
        load = self.load
        busy = (
            isinstance(load, ClosedLoad)
            and load.users > FEW_USERS
            and load.think.kind == "none"
            and not load.populations
        )
        watched = isinstance(self.measured, SteadyWindow) and self.warm_up.method != "fixed"
        # A declared delay keeps no CPU busy; feeders and scripts belong to the load itself.
        own = self.script is not None or self.workload.feeders or self.workload.delay_ms
        return FEW_USERS if busy and watched and not own else 0

    @property
    def first_s(self) -> float:
        warm = self.warm_up
        if not self.first_users:
            return 0.0
        return warm.min_s / 2 if warm.closed_users == "auto" else warm.closed_s

    @property
    def _chosen_first_s(self) -> float:
        """Duration of the first users where the plan chose them."""
        return 0.0 if self.warm_up.closed_users == "auto" else self.first_s

    @property
    def populations(self) -> tuple[Population, ...]:
        return self.load.populations if isinstance(self.load, ClosedLoad) else ()

    def in_http_version(self, http_version: str | None) -> Self:
        if http_version is None:
            return self
        connections = self.connections.model_copy(update={"http_version": http_version})
        return self.model_copy(update={"connections": connections})

    @property
    def load_name(self) -> str:
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
        """Estimated duration of the measured part; 10 s if not known."""
        match self.measured:
            case SteadyWindow(length_s=length_s):
                return length_s
            case WholeRun(duration_s=float(duration_s)):
                return duration_s
        if isinstance(self.load, OpenLoad) and self.load.total_s is not None:
            return self.load.total_s
        if self.populations:
            return max(10.0, *(self._population_s(group) for group in self.populations))
        loops = self.measured.iterations_per_user or 0
        return max(10.0, loops * self._walk_s + self.load.ramp_up_s)

    def _population_s(self, group: Population) -> float:
        """Earliest known end of its last user, from the start of the run."""
        walking_s = group.start_s + group.ramp_up_s + (group.iterations_per_user or 0) * self._walk_s
        return walking_s if group.end_s is None else min(group.end_s, walking_s or group.end_s)

    @property
    def probe_s(self) -> float:
        """Duration of the scaling probe: 1 s to connect plus half the window, up to 5 s; 0: none."""
        if not self.scaling_probe or not isinstance(self.measured, SteadyWindow):
            return 0.0
        closed = isinstance(self.load, ClosedLoad) and not self.populations
        if not closed or self.script is not None:
            return 0.0
        return min(PROBE_MOST_S, 1.0 + self.measured.length_s / 2)

    @property
    def last_session_s(self) -> float:
        """Least duration of the last session: pauses and declared delays."""
        if not (isinstance(self.load, OpenLoad) and self.load.session == "user"):
            return 0.0
        return self._walk_s

    @property
    def _walk_s(self) -> float:
        """Least duration of a walk: a pause and the declared delay per request."""
        each_ms = (self.workload.delay_ms or 0.0) + self.load.think.expected_ms
        return max(walk.length for walk in self.workload.walks) * each_ms / 1000

    @property
    def estimate_s(self) -> float:
        if isinstance(self.measured, WholeRun):
            runs_s = (1 + len(self.beside)) * self.measured_s
            return START_S + self.measured.warm_up_s + runs_s + self.last_session_s + STOP_S
        if self.warm_up.method == "fixed":
            first_s = self._chosen_first_s
            return START_S + first_s + self.warm_up.cap_s + self.measured_s + self.probe_s + STOP_S
        plan = self.warm_up
        before_s = START_S + self._chosen_first_s + (PUBLISHED_S if self.published_requests else 0)
        warming_s = self.load.started_s + plan.warm_s + plan.settle_s
        return before_s + warming_s + self.measured_s + self.probe_s + STOP_S

    @property
    def later_s(self) -> float:
        """Estimated duration in a process warmed up by another load: without start, settling only."""
        if isinstance(self.measured, WholeRun):
            return self.estimate_s - START_S - STOP_S
        if self.warm_up.method == "fixed":
            return self.warm_up.cap_s + self.measured_s + self.probe_s
        return self.load.started_s + self.warm_up.settle_s + self.measured_s + self.probe_s

    @property
    def later_new_s(self) -> float:
        """The same in a process warmed up by other workloads only."""
        if isinstance(self.measured, WholeRun) or self.warm_up.method == "fixed":
            return self.later_s
        warm = self.warm_up
        return self.later_s + self._chosen_first_s + warm.settle_new_s - warm.settle_s

    @property
    def deadline_s(self) -> float:
        """The engine's own deadline, in case the laboratory is lost."""
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
    """The same warm-up on the server's own CPUs from the start, with three times the time."""
    return warm_up.model_copy(
        update={"method": "pinned", "min_s": 3 * warm_up.min_s, "cap_s": 3 * warm_up.cap_s}
    )


def capped(warm_up: WarmUpPlan, cap_s: float) -> WarmUpPlan:
    """The same warm-up, and its settling, of at most `cap_s`."""
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
    """The quick form: a 10 s window after a quick warm-up, without scaling probe and published protocol."""
    return gate_trial(workload, users, window_s).model_copy(update={"scaling_probe": False})


def full_trial(workload: Workload, users: int, window_s: float | None) -> TrialPlan:
    return TrialPlan(
        workload=workload,
        load=ClosedLoad(users=users),
        measured=SteadyWindow(window_s=window_s or 30.0),
        published_requests=PUBLISHED_REQUESTS,
    )


def gate_trial(workload: Workload, users: int, window_s: float | None) -> TrialPlan:
    """For many short trials, as processes vary more than windows: a 10 s window after a quick warm-up."""
    return TrialPlan(
        workload=workload,
        load=ClosedLoad(users=users),
        measured=SteadyWindow(window_s=window_s or 10.0),
        warm_up=QUICK_WARM_UP,
    )


def protocol(trial: TrialPlan, warm_up_s: float, run_s: float) -> TrialPlan:
    """The same load as a fixed protocol: an unmeasured run of `warm_up_s`, then a measured one of `run_s`."""
    return trial.model_copy(
        update={
            "measured": WholeRun(duration_s=run_s, warm_up_s=warm_up_s),
            "published_requests": None,
            "scaling_probe": False,
        }
    )
