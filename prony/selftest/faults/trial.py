"""Runs one trial of a set-up: the real reference server, the real engine, the trial and the judge that every
experiment uses. Must not know which fault it is.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from prony.errors import EnvironmentFault
from prony.evidence.engine import IntervalRow
from prony.evidence.host import CpuPartition
from prony.host.partition import partition
from prony.host.resource_limits import limits_to_own_servers
from prony.judge.figures import figures
from prony.judge.verdict import judge
from prony.plan.target import CountKeys
from prony.plan.trial import TrialPlan, WarmUpPlan
from prony.selftest.faults.disturbances import STEERING, can_limit_cpu
from prony.selftest.faults.model import RunningSetup, Setup, SetupResult
from prony.server.build import Built
from prony.server.running import RunningServer
from prony.server.spec import Ceilings, ServerSpec
from prony.targets import LaunchedServer
from prony.trial.run import run_trial
from prony.trial.surroundings import Surroundings

WARM_UP = WarmUpPlan(method="pinned", min_s=1.0, cap_s=2.0, settle_min_s=1.0, settle_cap_s=2.0)
SERVE = ("{engine}", "serve", "--listen", "{host}:{port}", "--cpus", "{cpu_list}")
TLS = ("--tls", "--cert", "{tls_cert}", "--key", "{tls_key}")


def missing_for(setup: Setup) -> str | None:
    """What this host lacks for a set-up, in words; None when it can be run."""
    have = {
        "root": (os.geteuid() == 0, "the rights of root, for a network namespace"),
        "cgroup": (
            os.geteuid() == 0 and can_limit_cpu(),
            "a control group with a CPU quota that we may make",
        ),
        "tc": (shutil.which("tc") is not None, "tc (Debian: iproute2)"),
        "steering": (STEERING.exists(), "a kernel with receive packet steering"),
        "two-cpus": (not partition().shared, "two CPUs, one for each side"),
    }
    missing = [have[need][1] for need in setup.needs if not have[need][0]]
    return "; ".join(missing) or None


def run_setup(setup: Setup, seed: int = 1) -> SetupResult:
    """One trial of this set-up, judged. Raises EnvironmentFault and UsageError as an experiment does."""
    with setup.around():
        return _run(setup, seed)


class Silent:
    """A listener that prints nothing; `at_window` is called when the window opens."""

    def __init__(self, at_window: Callable[[], object] = lambda: None) -> None:
        self._at_window = at_window

    def phase(self, name: str, expected_s: float | None) -> None:
        del expected_s
        if name == "window":
            self._at_window()

    def row(self, row: IntervalRow) -> None:
        pass

    def note(self, text: str) -> None:
        pass


@dataclass(slots=True)
class Disturbed(LaunchedServer):
    """A launched server whose process is known to the disturbance."""

    at_start: Callable[[RunningServer], object] | None = None
    """Called as soon as it has been started."""
    _running: RunningServer | None = None

    @property
    def running(self) -> RunningServer:
        """Of the trial that has been started last."""
        assert self._running is not None
        return self._running

    def start(self, partition: CpuPartition) -> RunningServer:
        self._running = LaunchedServer.start(self, partition)
        if self.at_start is not None:
            self.at_start(self._running)
        return self._running


def _run(setup: Setup, seed: int) -> SetupResult:
    chosen = partition()
    if setup.shared_cpus:
        chosen = CpuPartition(server=chosen.client, client=chosen.client, shared=True)
    spec = spec_of(setup)
    plan = TrialPlan(
        workload=setup.workload,
        load=setup.load,
        measured=setup.measured,
        connections=setup.connections,
        warm_up=WARM_UP,
        injected_faults=setup.injected_faults,
    )
    with ExitStack() as active:

        def disturb(server: RunningServer) -> None:
            if setup.disturbance is not None:
                running = RunningSetup(chosen.server, chosen.client, server.pid, server.port)
                active.enter_context(setup.disturbance(running))

        target = Disturbed(spec, Built(spec), at_start=None if setup.in_window else disturb)
        listener = Silent(lambda: disturb(target.running)) if setup.in_window else Silent()
        surroundings = Surroundings(chosen, limits_to_own_servers())
        outcome = run_trial(plan, target, surroundings, listener, seed=seed)
    if outcome.failure is not None:
        raise EnvironmentFault(outcome.failure)
    evidence = outcome.evidence if setup.edited is None else setup.edited(outcome.evidence)
    return SetupResult(evidence, judge(evidence), figures(evidence).numbers())


def spec_of(setup: Setup) -> ServerSpec:
    """The reference server with this set-up's arguments, or another server without a request counter."""
    if setup.command is not None:
        return ServerSpec(
            name="selftest", file=Path.cwd() / "server.yaml", title="Another server", command=setup.command
        )
    return ServerSpec(
        name="selftest",
        file=Path.cwd() / "server.yaml",
        title="Prony's reference server",
        command=(*SERVE, *(TLS if setup.tls else ()), *setup.serve),
        scheme="https" if setup.tls else "http",
        ceilings=Ceilings(worker_threads=setup.worker_threads),
        counts=CountKeys(path="/__prony/stats", pointer="/requests"),
    )
