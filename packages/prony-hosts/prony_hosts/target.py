"""A server of the catalogue on another host as a target: `prony.targets.launched` over an actor."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from prony.errors import EnvironmentFault
from prony.evidence.conformance import Conformance
from prony.evidence.host import CpuPartition, Limits
from prony.evidence.server import (
    CgroupThrottle,
    JvmSnapshot,
    ProcessSample,
    ServerIdentity,
    ServiceUse,
    StartUp,
)
from prony.evidence.trial import Ceiling
from prony.load.preflight import Preflight, ReadyProbe
from prony.plan.target import Launch, TlsOptions
from prony.plan.trial import TrialPlan
from prony.plan.workload import Workload
from prony.server.address import Address
from prony.server.build import Built
from prony.server.launch import identity_of
from prony.server.spec import HttpVersion
from prony.server.threads import Readings
from prony.targets.base import OnLine, Placement
from prony.targets.launched import LaunchedServer
from prony_hosts import files
from prony_hosts.reach import Reached
from prony_hosts.server_host import Pulse, Reading, Started

BUILD_S = 3600.0
START_S = 120.0
STOP_S = 60.0
SAME_MOMENT_S = 0.1
"""Readings within this time share one call."""
PULSE_S = 0.2


@dataclass(slots=True)
class HostedServer:
    """A server of the catalogue on another host; server.yaml is read here (same version)."""

    launch: Launch
    here: LaunchedServer
    """Its catalogue entry; never started here."""
    host: Reached
    built: Built | None = None
    owned: bool = True
    unix: str | None = None
    destinations: int = 1

    @property
    def name(self) -> str:
        """With the host's name where several servers' hosts are compared."""
        return f"{self.here.name} on {self.host.name}" if self.host.host.group else self.here.name

    @property
    def identity(self) -> ServerIdentity:
        return identity_of(self.built or Built(self.here.spec)).model_copy(update={"name": self.name})

    @property
    def https(self) -> bool:
        return self.here.https

    @property
    def http_version(self) -> str | None:
        return self.here.http_version

    @property
    def closes_after(self) -> int | None:
        return self.here.closes_after

    @property
    def max_connections(self) -> int | None:
        return self.here.max_connections

    @property
    def has_services(self) -> bool:
        return self.here.has_services

    @property
    def workloads(self) -> tuple[str, ...]:
        return self.here.workloads

    def placement(self) -> Placement:
        """Empty: its CPUs are chosen on its host."""
        return Placement()

    def lacking(self) -> str | None:
        """What its host lacks; None when nothing."""
        lack = self.host.call("lacking", self.launch)
        return None if lack is None else f"{self.host.name}: {lack}"

    def prepare(self, on_line: OnLine) -> None:
        """Build it there."""
        if self.built is None:
            self.built, lines = self.host.call("prepare", self.launch, timeout_s=BUILD_S)
            for line in lines:
                on_line(self.name, line)

    def limits(self, local: Limits) -> Limits:
        """The load hosts' limits: ports in TIME_WAIT are theirs."""
        return self.here.limits(local)

    def ceilings(self, plan: TrialPlan, cpus: int) -> tuple[Ceiling, ...]:
        return self.here.ceilings(plan, cpus)

    def start(self, partition: CpuPartition) -> RunningHosted:
        """Raises EnvironmentFault."""
        self.prepare(lambda _name, _line: None)
        started = self.host.call("start", self.launch, partition, timeout_s=START_S)
        return RunningHosted(self.host, started, self.name)


class RunningHosted:
    """A server on another host in one trial. A lost host raises HostLost in the window only."""

    def __init__(self, host: Reached, started: Started, name: str) -> None:
        self._host, self._started, self._name = host, started, name
        self._identity = started.identity
        self._reading: tuple[float, Reading] | None = None
        self._pulse: tuple[float, Pulse] | None = None
        self._clean: bool | None = None
        self._stopped = False
        self._folder = tempfile.TemporaryDirectory(prefix="prony-ca-")
        self._ca: Path | None = None
        if started.ca is not None:
            self._ca = Path(self._folder.name) / "ca.pem"
            self._ca.write_bytes(started.ca)

    @property
    def url(self) -> str:
        return self._started.url

    @property
    def tls(self) -> TlsOptions:
        return TlsOptions(ca=self._ca, insecure=self._started.insecure)

    @property
    def addresses(self) -> tuple[str, ...]:
        return ()

    @property
    def address(self) -> Address:
        return self._started.address

    @property
    def identity(self) -> ServerIdentity:
        """The last known identity, once its host is lost."""
        if not self._stopped:
            with suppress(EnvironmentFault):
                self._identity = self._host.call("identity")
        return self._identity.model_copy(update={"name": self._name})

    def wait_ready(self, probe: ReadyProbe | None, timeout_s: float) -> StartUp | None:
        """Probed from its own host."""
        assert probe is None or isinstance(probe, Preflight)
        asking = None if probe is None else Preflight(probe.load)
        contents = {} if asking is None else files.of_load(asking.load)
        start_up, requests = self._host.call(
            "wait_ready", asking, timeout_s, contents, timeout_s=timeout_s + START_S
        )
        if probe is not None:
            probe.result = requests
        started: StartUp = start_up
        if started.process is None:
            return started
        return started.model_copy(update={"process": self._here(started.process)})

    def set_affinity(self, cpus: tuple[int, ...]) -> bool:
        return bool(self._host.call("set_affinity", cpus))

    def checked(
        self, workload: Workload, only: tuple[str, ...], http_version: HttpVersion
    ) -> Conformance | None:
        """Runs the conformance suite on its host."""
        words = (workload, only, http_version, files.of_workload(workload))
        result: Conformance | None = self._host.call("conformance", *words, timeout_s=BUILD_S)
        return result

    def set_compiler_affinity(self, cpus: tuple[int, ...]) -> bool:
        """False: only this host's own servers have their compilers moved."""
        del cpus
        return False

    def cpus(self) -> tuple[int, ...]:
        """Of its host."""
        return self._started.cpus

    def quota_cpus(self) -> float | None:
        return self._started.quota_cpus

    def thread_times(self) -> Readings:
        return self._read().threads

    def pids(self) -> tuple[int, ...]:
        """Empty: none of its processes runs on this host."""
        return ()

    def service_pids(self) -> set[int]:
        return set()

    def sample(self) -> ProcessSample | None:
        """A fresh reading, with everything else for an edge of the window."""
        self._reading = None
        process = self._read().process
        return None if process is None else self._here(process)

    def jvm(self) -> JvmSnapshot | None:
        cached = self._reading
        if cached is not None and time.monotonic() - cached[0] <= SAME_MOMENT_S:
            return cached[1].jvm
        counters: JvmSnapshot | None = self._host.call("jvm")
        return counters

    def throttle(self) -> tuple[CgroupThrottle, ...] | None:
        return self._read().throttle

    def service_samples(self) -> Mapping[str, ProcessSample]:
        return {name: self._here(sample) for name, sample in self._read().services.items()}

    def service_use(
        self, opened: Mapping[str, ProcessSample], closed: Mapping[str, ProcessSample]
    ) -> tuple[ServiceUse, ...]:
        with suppress(EnvironmentFault):
            use: tuple[ServiceUse, ...] = self._host.call("service_use", dict(opened), dict(closed))
            return use
        return ()

    def request_count(self) -> int | None:
        count: int | None = self._host.call("request_count")
        return count

    def exit_description(self) -> str | None:
        return self._beat().exit_description

    def ended_service(self) -> str | None:
        return self._beat().ended_service

    def look(self) -> None:
        """No-op: each pulse does it."""

    def connections_by_process(self) -> tuple[int, ...] | None:
        counts: tuple[int, ...] | None = self._host.call("connections_by_process")
        return counts

    def stop(self) -> bool | None:
        """None where its host is lost or silent: that host ends the server by itself."""
        if not self._stopped:
            with suppress(EnvironmentFault):
                self._identity = self._host.call("identity")
                self._clean = self._host.call("stop", timeout_s=STOP_S)
            self._stopped = True
            self._folder.cleanup()
        return self._clean

    def _read(self) -> Reading:
        cached = self._reading
        if cached is None or time.monotonic() - cached[0] > SAME_MOMENT_S:
            cached = self._reading = (time.monotonic(), self._host.call("reading"))
        return cached[1]

    def _beat(self) -> Pulse:
        cached = self._pulse
        if cached is None or time.monotonic() - cached[0] > PULSE_S:
            cached = self._pulse = (time.monotonic(), self._host.call("pulse"))
        return cached[1]

    def _here(self, sample: ProcessSample) -> ProcessSample:
        """The sample on the laboratory's clock."""
        return sample.model_copy(update={"t_monotonic_s": self._host.lab_s(sample.t_monotonic_s)})
