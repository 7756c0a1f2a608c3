"""What runs on a host for the laboratory: a server and whatever reads it, or engines. Both use the same
classes as a trial on one host. Must not know the order of a trial.

Instants are those of the host's own monotonic clock; the laboratory puts them on its own.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import prony
from prony.conformance.result import Conformance
from prony.errors import EnvironmentFault
from prony.evidence.host import CpuPartition, Fingerprint, HostRow, HostWindow, Limits
from prony.evidence.hosts import Link, NetworkUse
from prony.evidence.server import (
    CgroupThrottle,
    JvmSnapshot,
    Probe,
    ProcessSample,
    ServerIdentity,
    ServiceUse,
    StartUp,
)
from prony.host.affinity import granted_cpus
from prony.host.fingerprint import fingerprint
from prony.host.link_watch import LinkWatch
from prony.host.proc import read_text
from prony.host.readings import io_uring_works
from prony.host.resource_limits import limits, raise_descriptors
from prony.host.sampler import HostSampler
from prony.host.sysctls import changed, read_sysctls
from prony.hosts import files
from prony.hosts.actor import LEASE_S, HostActor
from prony.hosts.way import link_to
from prony.load.contract import EngineLoad
from prony.load.engine import EngineRun, engine_version
from prony.load.reference import Certificate, reference_server
from prony.plan.target import Launch
from prony.plan.workload import Workload
from prony.server.address import Address
from prony.server.build import Built
from prony.server.catalogue import Catalogue
from prony.server.running import RunningServer
from prony.server.threads import Readings
from prony.server.tool import end_under_way
from prony.targets.launched import LaunchedServer
from prony.trial.preflight import Preflight, probe_workload

BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
MOST_EVENTS: Final = 200
"""In one reply: of an engine that tells more the rest comes with the next."""


@dataclass(frozen=True, slots=True)
class HostDescription:
    """A host as the laboratory plans for it."""

    cpus: tuple[int, ...]
    """Those that its worker may use."""
    limits: Limits
    fingerprint: Fingerprint
    boot_id: str | None
    """The same on all hosts that are one machine (network namespaces, containers)."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """What a host was and did over the window."""

    window: HostWindow
    network: NetworkUse | None
    round_trip_load_ms: float | None


@dataclass(frozen=True, slots=True)
class Started:
    """A server that was started."""

    url: str
    address: Address
    insecure: bool
    ca: bytes | None
    """The certificate to trust (PEM)."""
    identity: ServerIdentity
    cpus: tuple[int, ...]
    quota_cpus: float | None


@dataclass(frozen=True, slots=True)
class Reading:
    """The server at one moment."""

    process: ProcessSample | None
    jvm: JvmSnapshot | None
    throttle: tuple[CgroupThrottle, ...] | None
    threads: Readings
    services: Mapping[str, ProcessSample]


@dataclass(frozen=True, slots=True)
class Pulse:
    """Whether the server lives."""

    exit_description: str | None
    ended_service: str | None


class MeasuredHost(HostActor):
    """What both kinds of host do: they say what they are, are sampled, and send single requests."""

    def __init__(self, lease_s: float = LEASE_S) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="prony-host-")
        self._sampler: HostSampler | None = None
        self._link: LinkWatch | None = None
        raise_descriptors()
        super().__init__(lease_s)

    async def now_ns(self) -> int:
        """This host's monotonic clock; on the event loop, so that nothing is in the way."""
        return time.monotonic_ns()

    def describe(self) -> HostDescription:
        """What this host is."""
        software = {
            "prony": prony.__version__,
            "prony-engine": engine_version(),
            "python": ".".join(map(str, sys.version_info[:3])),
        }
        return HostDescription(
            cpus=granted_cpus(),
            limits=limits().model_copy(update={"io_uring": io_uring_works()}),
            fingerprint=fingerprint(software),
            boot_id=read_text(BOOT_ID),
        )

    def settings_changed(self, before: dict[str, str]) -> tuple[str, ...]:
        """Kernel settings that are no longer what they were."""
        return changed(before, read_sysctls())

    def probe(
        self,
        address: Address,
        workload: Workload,
        known: Mapping[str, str] | None,
        contents: Mapping[str, bytes],
    ) -> tuple[Probe, ...] | None:
        """Every step once, sent from here."""
        here = files.put(contents, Path(self._scratch.name))
        return probe_workload(address, files.moved_workload(workload, here), known)

    def link(self, address: str, port: int | None, declared_bits_per_s: float | None) -> Link | None:
        """The interface towards this address (of a server that listens here: with it), and the round trip
        where there is a port to ask; None where no interface can be told.
        """
        return link_to(address, port, declared_bits_per_s)

    def sample(self, cpus: Collection[int], interface: str | None, port: int) -> None:
        """Sample this host once a second from now on, and its link."""
        self.stop_sampling()
        with self._lock:
            sampler = self._new_sampler(cpus)
            if interface is not None:
                link = self._link = LinkWatch(interface, port, here=self._serves)
                sampler.watch("link", link.sample)
            self._sampler = sampler.start()

    def mark(self) -> float:
        """Read what is too expensive for every second; this host's clock."""
        return self._sampling().mark()

    def series(self, start_s: float) -> tuple[HostRow, ...]:
        """The rows so far, from this moment on."""
        return self._sampling().series(start_s)

    def window(self, open_s: float, close_s: float) -> Sampled:
        """This host between two moments."""
        found = self._sampling().window(open_s, close_s)
        link = self._link
        if link is None:
            return Sampled(found, None, None)
        return Sampled(found, link.use(open_s, close_s), link.round_trip_ms(open_s, close_s))

    def stop_sampling(self) -> None:
        """The rows stay until it is sampled anew."""
        with self._lock:
            if self._sampler is not None:
                self._sampler.stop()

    def stop_everything(self) -> None:
        """The sampler; the subclasses' processes."""
        self.stop_sampling()

    _serves = False

    def _new_sampler(self, cpus: Collection[int]) -> HostSampler:
        raise NotImplementedError

    def _sampling(self) -> HostSampler:
        if self._sampler is None:
            raise EnvironmentFault("this host is not sampled: its actor was started anew during the trial")
        return self._sampler


class LoadHost(MeasuredHost):
    """Runs engines."""

    def __init__(self, lease_s: float = LEASE_S) -> None:
        self._engines: dict[int, EngineRun] = {}
        self._faults: dict[int, Exception] = {}
        self._next = 0
        super().__init__(lease_s)

    def _new_sampler(self, cpus: Collection[int]) -> HostSampler:
        return HostSampler((), cpus, self._engine_pids)

    def _engine_pids(self) -> set[int]:
        with self._lock:
            return {pid for run in self._engines.values() for pid in run.pids}

    def start_engine(self, load: EngineLoad, contents: Mapping[str, bytes]) -> int:
        """A number for the engine. Raises EnvironmentFault."""
        here = files.put(contents, Path(self._scratch.name))
        run = EngineRun(files.moved(load, here))
        with self._lock:
            self._next += 1
            number = self._next
        self._keep(lambda: self._engines.update({number: run}), run.close)
        return number

    def send(self, number: int, command: dict[str, Any]) -> None:
        """A command of docs/engine.md."""
        self._engine(number).send(command)

    def events(self, number: int, timeout_s: float) -> list[dict[str, Any]] | None:
        """The next events as the engine wrote them; empty at the timeout, None after the last. Raises
        EnvironmentFault when the engine ended without a report.
        """
        run = self._engine(number)
        fault = self._faults.pop(number, None)
        if fault is not None:
            raise fault
        found: list[dict[str, Any]] = []
        event = run.next_event(timeout_s)
        while event is not None:
            found.append(event)
            if len(found) == MOST_EVENTS:
                break
            try:
                event = run.next_event(0.0)
            except EnvironmentFault as after:
                self._faults[number] = after
                break
        return None if not found and run.ended else found

    def close(self, number: int) -> None:
        """Make sure that the engine has ended."""
        with self._lock:
            run = self._engines.pop(number, None)
        if run is not None:
            run.close()

    def stop_everything(self) -> None:
        """Engines stop when their standard input closes."""
        with self._lock:
            runs, self._engines = list(self._engines.values()), {}
        for run in runs:
            run.close()
        super().stop_everything()

    def _engine(self, number: int) -> EngineRun:
        with self._lock:
            run = self._engines.get(number)
        if run is None:
            self.check_kept()
            raise EnvironmentFault("the engine has ended")
        return run


class ServerHost(MeasuredHost):
    """Builds servers, and runs one at a time."""

    _serves = True

    def __init__(self, address: str, lease_s: float = LEASE_S) -> None:
        self._address = address
        self._servers: dict[str, LaunchedServer] = {}
        self._running: RunningServer | None = None
        self._checked: RunningServer | None = None
        """The one that is asked for its conformance."""
        self._references: dict[str, ExitStack] = {}
        super().__init__(lease_s)

    def _new_sampler(self, cpus: Collection[int]) -> HostSampler:
        sampler = HostSampler(cpus, (), self._server_pids)
        running = self._running
        if running is not None:
            sampler.watch("server", running.sample)
        return sampler

    def _server_pids(self) -> set[int]:
        running = self._running
        return set() if running is None else {*running.pids(), *running.service_pids()}

    # -- before it runs

    def lacking(self, asked: Launch) -> str | None:
        """What this host lacks to build and start it."""
        return self._server(asked).lacking()

    def prepare(self, asked: Launch) -> tuple[Built, list[str]]:
        """Build it unless it is in the cache of this host; also the lines of the build."""
        lines: list[str] = []
        server = self._server(asked)

        def tell(_name: str, line: str) -> None:
            self.check_kept()
            lines.append(line)

        server.prepare(tell)
        assert server.built is not None
        return server.built, lines

    def conformance(
        self,
        asked: Launch,
        workload: Workload,
        only: Sequence[str],
        cpus: Sequence[int],
        start_timeout_s: float,
        contents: Mapping[str, bytes],
    ) -> Conformance:
        """A fresh process, asked from this host (`prony.conformance.suite.check`)."""
        from prony.conformance.suite import check  # its own HTTP client

        built, _ = self.prepare(asked)
        here = files.put(contents, Path(self._scratch.name))
        moved = files.moved_workload(workload, here)

        def started(server: RunningServer) -> None:
            self._keep(lambda: setattr(self, "_checked", server), server.stop)

        return check(built, moved, only=only, cpus=cpus, on_start=started, start_timeout_s=start_timeout_s)

    def _server(self, asked: Launch) -> LaunchedServer:
        key = asked.model_dump_json()
        with self._lock:
            if key not in self._servers:
                server = LaunchedServer.of(asked, Catalogue.load())
                server.host = self._address
                self._servers[key] = server
            return self._servers[key]

    # -- its life

    def start(self, asked: Launch, partition: CpuPartition) -> Started:
        """It is not ready yet. Raises EnvironmentFault."""
        self.prepare(asked)
        self.stop()
        server = self._server(asked).start(partition)
        self._keep(lambda: setattr(self, "_running", server), server.stop)
        ca = server.tls.ca
        return Started(
            url=server.url,
            address=server.address,
            insecure=server.tls.insecure,
            ca=None if ca is None else ca.read_bytes(),
            identity=server.identity,
            cpus=server.cpus(),
            quota_cpus=server.quota_cpus(),
        )

    def wait_ready(
        self, preflight: Preflight | None, timeout_s: float, contents: Mapping[str, bytes]
    ) -> tuple[StartUp, tuple[Probe, ...]]:
        """Until it answers rightly: asked from here, so the network takes no part in its time to ready."""
        if preflight is None:
            return self._it().wait_ready(None, timeout_s), ()
        here = files.put(contents, Path(self._scratch.name))
        plan = preflight.plan
        moved = plan.model_copy(update={"workload": files.moved_workload(plan.workload, here)})
        asking = Preflight(moved, preflight.address)
        start_up = self._it().wait_ready(asking, timeout_s)
        return start_up, asking.probes

    def reading(self) -> Reading:
        """All that is read at an edge of the window."""
        it = self._it()
        return Reading(
            process=it.sample(),
            jvm=it.jvm(),
            throttle=it.throttle(),
            threads=it.thread_times(),
            services=dict(it.service_samples()),
        )

    def pulse(self) -> Pulse:
        """Whether it lives; also who listens on its port."""
        it = self._it()
        it.look()
        return Pulse(it.exit_description(), it.ended_service())

    def set_affinity(self, cpus: tuple[int, ...]) -> bool:
        """Move it."""
        return self._it().set_affinity(cpus)

    def jvm(self) -> JvmSnapshot | None:
        """The counters of its runtime now."""
        return self._it().jvm()

    def identity(self) -> ServerIdentity:
        """Which server this is, with what was seen of its port."""
        it = self._it()
        it.look()
        return it.identity

    def request_count(self) -> int | None:
        """By its own count."""
        return self._it().request_count()

    def connections_by_process(self) -> tuple[int, ...] | None:
        """Of each of its processes now."""
        return self._it().connections_by_process()

    def service_use(
        self, opened: Mapping[str, ProcessSample], closed: Mapping[str, ProcessSample]
    ) -> tuple[ServiceUse, ...]:
        """Its backing services between two readings."""
        return self._it().service_use(opened, closed)

    def stop(self) -> bool | None:
        """End it; whether it was gone then. None: there was none."""
        with self._lock:
            server = self._running
        return None if server is None else server.stop()

    def _it(self) -> RunningServer:
        running = self._running
        if running is None:
            raise EnvironmentFault("no server was started on this host")
        return running

    # -- the reference server

    def start_reference(
        self, options: Sequence[str], cpus: tuple[int, ...], pem: tuple[bytes, bytes, bytes] | None
    ) -> str:
        """Its URL. `pem`: authority, certificate and key where it speaks TLS."""
        kept = ExitStack()
        certificate = None
        if pem is not None:
            folder = Path(kept.enter_context(tempfile.TemporaryDirectory(prefix="prony-reference-")))
            paths = [folder / name for name in ("ca.pem", "cert.pem", "key.pem")]
            for path, contents in zip(paths, pem, strict=True):
                path.write_bytes(contents)
            certificate = Certificate(*paths)
        try:
            url = kept.enter_context(reference_server(options, cpus, certificate, self._address))
        except BaseException:
            kept.close()
            raise
        self._keep(lambda: self._references.update({url: kept}), kept.close)
        return url

    def stop_reference(self, url: str) -> None:
        """End it."""
        with self._lock:
            kept = self._references.pop(url, None)
        if kept is not None:
            kept.close()

    def stop_everything(self) -> None:
        """Builds, the server, its services, and reference servers."""
        end_under_way()
        with self._lock:
            checked, references = self._checked, list(self._references)
        if checked is not None:
            checked.stop()
        self.stop()
        for url in references:
            self.stop_reference(url)
        super().stop_everything()
