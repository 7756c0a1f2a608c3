"""Runs one trial of a set-up, with the reference server, engine, trial and judge of every experiment."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from prony.errors import EnvironmentFault
from prony.evidence.engine import IntervalRow
from prony.evidence.host import CpuPartition
from prony.evidence.trial import Evidence
from prony.experiment.calibrating import Calibrations
from prony.host.affinity import granted_cpus, pin_process
from prony.host.partition import partition
from prony.host.resource_limits import limits_to_own_servers
from prony.judge.figures import figures
from prony.judge.judging import judge
from prony.load.reference import Certificate, reference_server
from prony.plan.target import CountKeys, TlsOptions, Url
from prony.plan.trial import TrialPlan, WarmUpPlan
from prony.server import certificates
from prony.server.build import Built
from prony.server.launch import RunningServer
from prony.server.sockets import free_port, listeners
from prony.server.spec import Ceilings, ServerSpec
from prony.targets import ExternalServer, LaunchedServer, ServerUnderTest
from prony.trial.run import run_trial
from prony.trial.surroundings import Surroundings
from prony_selftest.faults.disturbances import CPU_FILES, MEMORY_FILES, STEERING, can_limit, killed_after
from prony_selftest.faults.model import RunningSetup, Setup, SetupResult

WARM_UP = WarmUpPlan(method="pinned", min_s=1.0, cap_s=1.5, settle_min_s=1.0, settle_cap_s=1.5)
"""Phases start and end with rows of a second: two rows each."""
SERVE = ("{engine}", "serve", "--listen", "{host}:{port}", "--cpus", "{cpu_list}")
HOST = "127.0.0.1"
LISTENS_S = 20.0
COUNTS = CountKeys(path="/__prony/stats", pointer="/requests")
TLS = ("--tls", "--cert", "{tls_cert}", "--key", "{tls_key}")


def missing_for(setup: Setup) -> str | None:
    """Missing requirements of a set-up on this host, in words; None if there are none."""
    have = {
        "root": (os.geteuid() == 0, "the rights of root"),
        "cgroup": (
            os.geteuid() == 0 and can_limit(CPU_FILES),
            "the right to create a control group with a CPU quota",
        ),
        "memory": (
            os.geteuid() == 0 and can_limit(MEMORY_FILES),
            "the right to create a control group with a memory limit",
        ),
        "tc": (shutil.which("tc") is not None, "tc (Debian: iproute2)"),
        "steering": (STEERING.exists(), "a kernel with receive packet steering"),
        "ipv6": (Path("/proc/net/if_inet6").exists(), "IPv6"),
        "two-cpus": (not partition().shared, "two CPUs, one for each side"),
    }
    missing = [have[need][1] for need in setup.needs if not have[need][0]]
    return "; ".join(missing) or None


def run_setup(setup: Setup, seed: int = 1, *, kept: bool = False) -> SetupResult:
    """One judged trial, or with `kept` the stored one. Raises EnvironmentFault and UsageError."""
    if setup.edited is not None:
        evidence = setup.edited(_stored_trial(replace(setup, edited=None), seed))
    else:
        evidence = _stored_trial(setup, seed) if kept else _measured(setup, seed)
    return SetupResult(evidence, judge(evidence), figures(evidence).numbers())


_trials: list[tuple[Setup, int, Evidence]] = []


def _stored_trial(setup: Setup, seed: int) -> Evidence:
    """A trial that edited faults, their clean runs and other entries' share; another per repeat."""
    known = next((evidence for done, of, evidence in _trials if (done, of) == (setup, seed)), None)
    if known is None:
        known = _measured(setup, seed)
        _trials.append((setup, seed, known))
    return known


class SilentListener:
    """A silent listener; `at_window` is called when the window opens."""

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
    """A launched server that hands its process to a disturbance."""

    at_start: Callable[[RunningServer], object] | None = None
    """Called when it has started."""
    _running: RunningServer | None = None

    @property
    def running(self) -> RunningServer:
        """The server of the last trial."""
        assert self._running is not None
        return self._running

    def start(self, partition: CpuPartition) -> RunningServer:
        self._running = LaunchedServer.start(self, partition)
        if self.at_start is not None:
            self.at_start(self._running)
        return self._running


def _measured(setup: Setup, seed: int) -> Evidence:
    with setup.context():
        return _run(setup, seed)


def _run(setup: Setup, seed: int) -> Evidence:
    chosen = partition()
    if setup.shared_cpus:
        chosen = CpuPartition(server=chosen.client, client=chosen.client, shared=True)
    chosen = chosen.model_copy(update={"client": chosen.client * setup.client_threads})
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

        listener = SilentListener()
        if setup.foreign:
            target: ServerUnderTest = ExternalServer(active.enter_context(_external_server(setup)))
        else:
            spec = spec_of(setup)
            ours = target = Disturbed(
                spec, Built(spec), host=setup.host, at_start=None if setup.in_window else disturb
            )
            if setup.in_window:
                listener = SilentListener(lambda: disturb(ours.running))
        surroundings = Surroundings(chosen, target.limits(limits_to_own_servers()))
        outcome = run_trial(plan, target, surroundings, listener, seed=seed)
    if outcome.failure is not None:
        raise EnvironmentFault(outcome.failure)
    return _calibrated(setup, plan, outcome.evidence, surroundings)


_calibrations = Calibrations()


def _calibrated(setup: Setup, plan: TrialPlan, evidence: Evidence, surroundings: Surroundings) -> Evidence:
    """With the client's ceiling, if the set-up requests it; experiments always have it."""
    if not setup.calibrated:
        return evidence
    known = _calibrations.known(plan, evidence) or _calibrations.measure(
        plan, evidence, SilentListener(), surroundings
    )
    return evidence.model_copy(update={"calibration": known})


@contextmanager
def _external_server(setup: Setup) -> Iterator[Url]:
    """The server, started outside Prony."""
    if setup.command is not None:
        with _other_server(setup.command) as url:
            yield Url(url=url)
        return
    with ExitStack() as active:
        certificate = None
        if setup.tls:
            folder = active.enter_context(tempfile.TemporaryDirectory(prefix="prony-selftest-"))
            files = certificates.make(Path(folder) / "tls")
            certificate = Certificate(files.ca, files.cert, files.key)
        url = active.enter_context(reference_server(setup.serve, (), certificate))
        tls = TlsOptions() if certificate is None else TlsOptions(ca=certificate.ca)
        yield Url(url=url, tls=tls, counts=COUNTS)


@contextmanager
def _other_server(command: Sequence[str]) -> Iterator[str]:
    """Its URL once it listens, on any CPU. Raises EnvironmentFault."""
    port = free_port(HOST)
    with killed_after([part.format(host=HOST, port=port) for part in command]) as process:
        pin_process(process.pid, granted_cpus())
        until_s = time.monotonic() + LISTENS_S
        while not listeners(port, HOST):
            if process.poll() is not None or time.monotonic() > until_s:
                raise EnvironmentFault(f"port {port}: the set-up's server did not listen in {LISTENS_S:g} s")
            time.sleep(0.02)
        yield f"http://{HOST}:{port}"


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
        counts=COUNTS,
    )
