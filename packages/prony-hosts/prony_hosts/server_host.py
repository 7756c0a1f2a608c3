"""The actor on a server's host: builds, servers, conformance, reference servers, readings."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from prony import seams
from prony.errors import EnvironmentFault
from prony.evidence.conformance import Conformance
from prony.evidence.host import CpuPartition
from prony.evidence.server import (
    CgroupThrottle,
    JvmSnapshot,
    ProcessSample,
    ServerIdentity,
    ServiceUse,
    StartUp,
)
from prony.host.sampler import HostSampler
from prony.load.preflight import Preflight, Responses
from prony.load.reference import Certificate, reference_server
from prony.plan.target import Launch, Url
from prony.plan.workload import Workload
from prony.server.address import Address
from prony.server.build import Built
from prony.server.catalogue import Catalogue
from prony.server.launch import RunningServer
from prony.server.spec import HttpVersion
from prony.server.threads import Readings
from prony.server.tool import end_under_way
from prony.targets.external import RunningExternal
from prony.targets.launched import LaunchedServer
from prony_hosts import files
from prony_hosts.actor import LEASE_S
from prony_hosts.actors import MeasuredHost
from prony_hosts.network_path import is_own


@dataclass(frozen=True, slots=True)
class Started:
    """A server that was started or is observed."""

    url: str
    address: Address
    insecure: bool
    ca: bytes | None
    """Certificate to trust (PEM)."""
    identity: ServerIdentity
    cpus: tuple[int, ...]
    quota_cpus: float | None


@dataclass(frozen=True, slots=True)
class Reading:
    """The server's readings at one instant."""

    process: ProcessSample | None
    jvm: JvmSnapshot | None
    throttle: tuple[CgroupThrottle, ...] | None
    threads: Readings
    services: Mapping[str, ProcessSample]


@dataclass(frozen=True, slots=True)
class Pulse:
    """Whether the server and its services are alive."""

    exit_description: str | None
    ended_service: str | None


class ServerHost(MeasuredHost):
    """Builds servers and runs one at a time, or observes a running one."""

    _serves = True

    def __init__(self, address: str, lease_s: float = LEASE_S) -> None:
        self._address = address
        self._servers: dict[str, LaunchedServer] = {}
        self._running: RunningServer | RunningExternal | None = None
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

    def lacking(self, launch: Launch) -> str | None:
        """What this host lacks to build and start it; None when nothing."""
        return self._server(launch).lacking()

    def prepare(self, launch: Launch) -> tuple[Built, list[str]]:
        """Builds it unless cached on this host. Also returns the lines of the build."""
        lines: list[str] = []
        server = self._server(launch)

        def tell(_name: str, line: str) -> None:
            self.check_kept()
            lines.append(line)

        server.prepare(tell)
        assert server.built is not None
        return server.built, lines

    def conformance(
        self,
        workload: Workload,
        only: Sequence[str],
        http_version: HttpVersion,
        contents: Mapping[str, bytes],
    ) -> Conformance | None:
        """Checks the running server from this host; None where the package that asks is not installed."""
        check = seams.found(seams.HOOKS, "conformance")
        here = files.put(contents, Path(self._scratch.name))
        moved = files.moved_workload(workload, here)
        result: Conformance | None = check and check(self._it(), moved, only=only, http_version=http_version)
        return result

    def _server(self, launch: Launch) -> LaunchedServer:
        key = launch.model_dump_json()
        with self._lock:
            if key not in self._servers:
                server = LaunchedServer.of(launch, Catalogue.load())
                server.host = self._address
                self._servers[key] = server
            return self._servers[key]

    # -- its life

    def start(self, launch: Launch, partition: CpuPartition) -> Started:
        """Starts it without waiting for readiness. Raises EnvironmentFault."""
        self.prepare(launch)
        self.stop()
        server = self._server(launch).start(partition)
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

    def is_here(self, name: str) -> bool:
        """Whether this address or name is this host's."""
        return is_own(name)

    def observe(self, at: Url) -> Started:
        """Observes a running server without ending it."""
        self.stop()
        observed = RunningExternal(at)
        assert observed.address is not None, "a Unix socket is refused with several hosts"
        self._keep(lambda: setattr(self, "_running", observed), observed.stop)
        return Started(
            url=observed.url,
            address=observed.address,
            insecure=at.tls.insecure,
            ca=None,
            identity=observed.identity,
            cpus=observed.cpus(),
            quota_cpus=observed.quota_cpus(),
        )

    def wait_ready(
        self, preflight: Preflight | None, timeout_s: float, contents: Mapping[str, bytes]
    ) -> tuple[StartUp, Responses]:
        """Waits until it answers correctly; probed from here, so the network adds nothing."""
        launched = self._it()
        assert not isinstance(launched, RunningExternal), "an external server is probed by the laboratory"
        if preflight is None:
            return launched.wait_ready(None, timeout_s), Responses()
        here = files.put(contents, Path(self._scratch.name))
        asking = Preflight(files.moved(preflight.load, here))
        start_up = launched.wait_ready(asking, timeout_s)
        return start_up, asking.result

    def reading(self) -> Reading:
        """All readings for an edge of the window."""
        it = self._it()
        return Reading(
            process=it.sample(),
            jvm=it.jvm(),
            throttle=it.throttle(),
            threads=it.thread_times(),
            services=dict(it.service_samples()),
        )

    def pulse(self) -> Pulse:
        """Whether it runs; also checks the owner of its port."""
        it = self._it()
        it.look()
        return Pulse(it.exit_description(), it.ended_service())

    def set_affinity(self, cpus: tuple[int, ...]) -> bool:
        """Moves it to these CPUs."""
        return self._it().set_affinity(cpus)

    def cpus(self) -> tuple[int, ...]:
        """CPUs on which it may run now."""
        return self._it().cpus()

    def jvm(self) -> JvmSnapshot | None:
        """Current counters of its runtime."""
        return self._it().jvm()

    def identity(self) -> ServerIdentity:
        """The server's identity, with the owner of its port."""
        it = self._it()
        it.look()
        return it.identity

    def request_count(self) -> int | None:
        """Requests by the server's own count."""
        return self._it().request_count()

    def connections_by_process(self) -> tuple[int, ...] | None:
        """Current connections per process."""
        return self._it().connections_by_process()

    def service_use(
        self, opened: Mapping[str, ProcessSample], closed: Mapping[str, ProcessSample]
    ) -> tuple[ServiceUse, ...]:
        """Use of its backing services between two readings."""
        return self._it().service_use(opened, closed)

    def stop(self) -> bool | None:
        """Ends it. Returns whether it exited; None when there was none, or it is external."""
        with self._lock:
            server = self._running
            if isinstance(server, RunningExternal):
                self._running = server = None
        return None if server is None else server.stop()

    def _it(self) -> RunningServer | RunningExternal:
        running = self._running
        if running is None:
            raise EnvironmentFault("no server was started on this host")
        return running

    # -- the reference server

    def start_reference(
        self, options: Sequence[str], cpus: tuple[int, ...], pem: tuple[bytes, bytes, bytes] | None
    ) -> str:
        """Starts a reference server and returns its URL. `pem`: authority, certificate and key for TLS."""
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
        """Ends the reference server."""
        with self._lock:
            kept = self._references.pop(url, None)
        if kept is not None:
            kept.close()

    def stop_everything(self) -> None:
        """Ends builds, the server, its services, and reference servers."""
        end_under_way()
        with self._lock:
            references = list(self._references)
        self.stop()
        for url in references:
            self.stop_reference(url)
        super().stop_everything()
