"""What runs on a server's host for the laboratory: the server, its build, its conformance suite, reference
servers, and whatever reads them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from prony.conformance.result import Conformance
from prony.errors import EnvironmentFault
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
from prony.load.asked import Asked, Preflight
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
    """A server that was started, or found."""

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


class ServerHost(MeasuredHost):
    """Builds servers and runs one at a time, or reads one that somebody else started here."""

    _serves = True

    def __init__(self, address: str, lease_s: float = LEASE_S) -> None:
        self._address = address
        self._servers: dict[str, LaunchedServer] = {}
        self._running: RunningServer | RunningExternal | None = None
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
        http_version: HttpVersion,
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

        return check(
            built,
            moved,
            only=only,
            http_version=http_version,
            cpus=cpus,
            on_start=started,
            start_timeout_s=start_timeout_s,
        )

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

    def is_here(self, name: str) -> bool:
        """Whether this is an address of this host, or the name of one."""
        return is_own(name)

    def observe(self, at: Url) -> Started:
        """A server that somebody else started here: it is read, and left alone."""
        self.stop()
        found = RunningExternal(at)
        assert found.address is not None, "a Unix socket is refused with several hosts"
        self._keep(lambda: setattr(self, "_running", found), found.stop)
        return Started(
            url=found.url,
            address=found.address,
            insecure=at.tls.insecure,
            ca=None,
            identity=found.identity,
            cpus=found.cpus(),
            quota_cpus=found.quota_cpus(),
        )

    def wait_ready(
        self, preflight: Preflight | None, timeout_s: float, contents: Mapping[str, bytes]
    ) -> tuple[StartUp, Asked]:
        """Until it answers rightly: asked from here, so the network takes no part in its time to ready."""
        launched = self._it()
        assert not isinstance(launched, RunningExternal), "the laboratory asks what it did not launch"
        if preflight is None:
            return launched.wait_ready(None, timeout_s), Asked()
        here = files.put(contents, Path(self._scratch.name))
        asking = Preflight(files.moved(preflight.load, here))
        start_up = launched.wait_ready(asking, timeout_s)
        return start_up, asking.asked

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

    def cpus(self) -> tuple[int, ...]:
        """On which it may run now."""
        return self._it().cpus()

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
        """End it; whether it was gone then. None: there was none, or it is not ours to end."""
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
