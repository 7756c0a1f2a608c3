"""Starts a built server as a fresh process, observes and stops it (`prony.targets.base.RunningTarget`)."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

from prony.errors import EnvironmentFault
from prony.evidence.server import (
    CgroupThrottle,
    JvmSnapshot,
    ProcessSample,
    ServerIdentity,
    ServiceUse,
    StartUp,
)
from prony.host.affinity import granted_cpus
from prony.host.cgroup import cpu_quota, throttle
from prony.load.preflight import Preflight, ReadyProbe
from prony.plan.target import TlsOptions
from prony.server import certificates, proc, sockets
from prony.server.address import Address
from prony.server.agent import LONGEST_SOCKET_PATH, AgentClient
from prony.server.build import Built
from prony.server.command import environment, expand
from prony.server.container import Container
from prony.server.guarded import GuardedProcess, ProcessSpec, log_file, make_scratch, start_guard
from prony.server.listening import ListenerWatch, connections_by_process
from prony.server.probe import request_count, status_probe
from prony.server.service import RunningService, start_services
from prony.server.sockets import check_free, free_port
from prony.server.spec import find_services
from prony.server.threads import Compilers, Readings, pin_compilers, thread_times

ASKS_AFTER_S = 0.05
"""Longest pause between a wrong response and the next request."""
REPORT_PATIENCE_S = 10.0
"""After listening: time for the application to print its own figures."""
TLS_PATIENCE_S = 5.0
"""After listening: time until TLS must be agreed; what is not supported then never will be."""


def launch(
    built: Built,
    *,
    cpus: Sequence[int] = (),
    service_cpus: Sequence[int] = (),
    port: int | None = None,
    host: str = "127.0.0.1",
    agent: bool = True,
    log_dir: Path | None = None,
) -> RunningServer:
    """Start a fresh process; it is not ready yet. `cpus`: its own in the window and a JVM's processor count;
    empty: all that are granted. `service_cpus`: empty: its services share the server's. `port` None: a free
    one, unless the server has an address. `agent=False`: no agent in a JVM. Raises EnvironmentFault and
    UsageError.
    """
    spec = built.spec
    if spec.url is not None:
        parts = urlsplit(spec.url)
        host = parts.hostname or host
        port = parts.port or (443 if spec.tls else 80)
    if port is not None:
        check_free(host, port)
    with ExitStack() as until_started:
        backing = start_services(
            find_services(spec.services, spec.name, spec.folder.parent),
            host=host,
            cpus=service_cpus or cpus,
            shares_server_cpus=not service_cpus,
        )
        for service in backing:
            until_started.push(service)
        port = free_port(host) if port is None else port
        scratch = make_scratch()
        until_started.callback(shutil.rmtree, scratch, ignore_errors=True)
        socket_path = scratch / "agent.sock"
        with_agent = (
            agent and built.agent is not None and len(os.fsencode(socket_path)) <= LONGEST_SOCKET_PATH
        )
        log = log_file(log_dir, spec.name)
        flags = _jvm_flags(built, cpus, scratch, log, socket_path if with_agent else None)
        values = _placeholders(built, cpus, host, port, scratch / "tmp")
        for service in backing:
            values |= service.placeholders()
        made = certificates.make(scratch / "tls", host) if spec.scheme == "https" and not spec.url else None
        if made is not None:
            values |= made.placeholders()
        container = None if spec.image is None else Container.of(built.key or spec.image, cpus)
        if container is not None:
            until_started.callback(container.remove)
        command = expand(built, values, flags) if container is None else container.starting
        now = cpus or granted_cpus()
        process_spec = ProcessSpec(
            command,
            environment(built, values) if container is None else dict(os.environ),
            scratch,
            log,
            cpus=sorted(now),
            own_cpus=cpus,
            cwd=None if spec.workdir is None else spec.folder / spec.workdir,
            after=() if container is None else container.removing,
        )
        process, started = start_guard(process_spec, f"server {spec.name}")
        until_started.pop_all()
    return RunningServer(
        name=spec.name,
        built=built,
        own_cpus=tuple(cpus),
        host=host,
        port=port,
        command=tuple(command),
        log=log,
        scratch=scratch,
        guard=process,
        pid=int(started["pid"]),
        started_monotonic_s=started["monotonic_ns"] / 1e9,
        agent=AgentClient(socket_path) if with_agent else None,
        ca=made.ca if made is not None else None,
        services=backing,
        container=container,
    )


def _jvm_flags(
    built: Built, cpus: Sequence[int], scratch: Path, log: Path, socket_path: Path | None
) -> list[str]:
    """Without the processor count a JVM sizes itself for all CPUs. Crash reports go beside the log, because
    the working directory is removed.
    """
    if built.jdk is None:
        return []
    spec = built.spec
    flags = [f"-XX:ActiveProcessorCount={len(cpus)}"] if cpus else []
    flags += [f"-Xms{spec.heap}", f"-Xmx{spec.heap}"] if spec.heap is not None else []
    flags += [f"-Djava.io.tmpdir={scratch / 'tmp'}", f"-XX:ErrorFile={log.with_suffix('.crash')}"]
    if socket_path is not None:
        flags.append(f"-javaagent:{built.agent}={socket_path}")
    return [*flags, *spec.jvm_flags]


def _placeholders(built: Built, cpus: Sequence[int], host: str, port: int, tmp: Path) -> dict[str, str]:
    own = sorted(cpus) or sorted(granted_cpus())
    values = {
        "host": host,
        "port": str(port),
        "scheme": "https" if built.spec.tls else "http",
        "cpus": str(len(own)),
        "cpu_list": ",".join(map(str, own)),
        "tmp": str(tmp),
    }
    workers = built.spec.ceilings.workers(len(own))
    return values if workers is None else values | {"worker_threads": str(workers)}


@dataclass(slots=True, kw_only=True)
class RunningServer(GuardedProcess):
    """One fresh server process, everything that it started, and its services. Use it in a `with`."""

    kind: ClassVar[str] = "server"

    built: Built
    own_cpus: tuple[int, ...] = ()
    """For the window; empty: all that are granted."""
    agent: AgentClient | None = None
    ca: Path | None = None
    """The certificate to trust (PEM) when one was made for this run; gone after the stop."""
    services: Sequence[RunningService] = ()
    """Backing services: started before it, stopped after it, not among its processes."""
    container: Container | None = None
    """Where it is an image: `pid` is its client's until it has begun."""
    _owned_at_ready: bool | None = None
    _watch: ListenerWatch = field(init=False)
    _limit_at_ready: int | None = None
    _compilers: Compilers = field(default_factory=Compilers)

    def __post_init__(self) -> None:
        self._watch = ListenerWatch(self._listeners, self.pids)

    def _listeners(self) -> frozenset[int] | None:
        return sockets.listening_inodes(self.port, self.host)

    def pids(self) -> tuple[int, ...]:
        return GuardedProcess.pids(self) if self.container is None else self.container.pids()

    def sample(self) -> ProcessSample | None:
        return GuardedProcess.sample(self) if self.container is None else self.container.sample()

    def set_affinity(self, cpus: Iterable[int]) -> bool:
        """A container keeps its CPU set."""
        if self.container is not None:
            return set(cpus) == set(self.own_cpus)
        return GuardedProcess.set_affinity(self, cpus)

    def set_compiler_affinity(self, cpus: Collection[int]) -> bool:
        return self.container is None and pin_compilers(self.thread_times(), cpus)

    def _await_port(self, deadline_s: float) -> float:
        if self.container is None:
            return GuardedProcess._await_port(self, deadline_s)
        while (begun := self.container.begun()) is None:
            self._poll(deadline_s, "its container has not begun")
        self.pid = begun
        while not self._listeners():  # nobody's at the start, and another user's may not be readable
            self._poll(deadline_s, f"nothing listens on port {self.port}")
        return time.monotonic()

    @property
    def address(self) -> Address:
        return Address(self.host, self.port, self.built.spec.tls)

    @property
    def url(self) -> str:
        return self.address.url

    @property
    def addresses(self) -> tuple[str, ...]:
        return ()

    @property
    def tls(self) -> TlsOptions:
        """A certificate of the server's own cannot be checked."""
        return TlsOptions(ca=self.ca, insecure=self.built.spec.tls and self.ca is None)

    @property
    def identity(self) -> ServerIdentity:
        """Port ownership and descriptor limit are those at ready (a JVM raises its own limit)."""
        return identity_of(self.built).model_copy(
            update={
                "command": self.command,
                "pid": self.pid,
                "port": self.port,
                "owns_port": self._owned_at_ready,
                "owns_port_at_end": self._watch.owned,
                "other_listener": self._watch.other,
                "listeners": self._watch.most or None,
                "listeners_gone": self._watch.gone if self._watch.most else None,
                "descriptor_limit_soft": self._limit_at_ready,
            }
        )

    @property
    def own_probe(self) -> Preflight:
        """The `ready` request of its server.yaml."""
        ready = self.built.spec.ready
        return status_probe(self.host, self.port, ready.path, ready.status, self.built.spec.tls)

    def wait_ready(self, probe: ReadyProbe | None = None, timeout_s: float = 60.0) -> StartUp:
        """Wait until the server itself listens, has printed its figures (if it does) and `probe` (default
        `own_probe`) gets a right response; the log is no evidence. Its figures are awaited before the first
        request, which loads classes. Raises EnvironmentFault, with its last lines, when it exits, another
        process answers on its port, or `timeout_s` after its start.
        """
        deadline_s = self.started_monotonic_s + timeout_s
        listening_s = self._await_port(deadline_s)
        reported = self._await_report(min(deadline_s, listening_s + REPORT_PATIENCE_S))
        probe = probe or self.own_probe
        begun_s = time.monotonic()
        while (response := probe()) is None or not response.meets_expectation:
            answered = f"it listens but gives no response: {probe.result.no_response}"
            wrong = answered if response is None else response.why_not or answered
            elsewhere = response is not None and response.status == 404
            if probe.result.without_tls:
                deadline_s = min(deadline_s, listening_s + TLS_PATIENCE_S)
            self._poll(deadline_s, f"{wrong}; -w /PATH requests another path" if elsewhere else wrong)
            # Asking costs CPU time, which the server may need to start.
            time.sleep(min(time.monotonic() - begun_s, ASKS_AFTER_S))
            begun_s = time.monotonic()
        ready_s = probe.result.answered_monotonic_s or time.monotonic()
        self._owned_at_ready = self.owns_port()
        self._limit_at_ready = self.descriptor_limit
        return StartUp(
            time_to_listen_s=round(listening_s - self.started_monotonic_s, 4),
            time_to_ready_s=round(ready_s - self.started_monotonic_s, 4),
            reported=reported,
            jvm=self.jvm(),
            process=self.sample(),
        )

    def look(self) -> None:
        self._watch.look()

    def connections_by_process(self) -> tuple[int, ...] | None:
        self._watch.look_at_connections(self.port)
        return connections_by_process(self.pids(), self._listeners() or frozenset(), (self.port,))

    def _await_report(self, deadline_s: float) -> dict[str, float]:
        """The figures that the application prints at ready; empty when it prints none in time."""
        word = self.built.spec.reports
        while word is not None:
            figures = _reported(self.log, word)
            if figures is not None:
                return figures
            if time.monotonic() >= deadline_s:
                break
            self._poll(float("inf"), "")
        return {}

    def jvm(self) -> JvmSnapshot | None:
        """The agent's counters and the JIT compilers' CPU time; None without an answer."""
        snapshot = None if self.agent is None else self.agent.snapshot()
        if snapshot is None:
            return None
        return snapshot.model_copy(update={"compilers_cpu_s": self._compilers.cpu_s(self.thread_times())})

    @property
    def descriptor_limit(self) -> int | None:
        """Soft limit of open files of the first process."""
        return proc.descriptor_limit_soft(self.pid)

    def throttle(self) -> tuple[CgroupThrottle, ...] | None:
        return throttle(self.pid)

    def cpus(self) -> tuple[int, ...]:
        return tuple(self.own_cpus or granted_cpus())

    def quota_cpus(self) -> float | None:
        return cpu_quota(pid=self.pid)

    def thread_times(self) -> Readings:
        return thread_times(self.pids())

    def request_count(self) -> int | None:
        return request_count(self.address, self.built.spec.counts)

    def service_use(
        self, opened: Mapping[str, ProcessSample], closed: Mapping[str, ProcessSample]
    ) -> tuple[ServiceUse, ...]:
        return tuple(
            service.use(opened.get(service.name), closed.get(service.name)) for service in self.services
        )

    def service_pids(self) -> set[int]:
        return {pid for service in self.services for pid in service.pids()}

    def service_samples(self) -> Mapping[str, ProcessSample]:
        read = {service.name: service.sample() for service in self.services}
        return {name: sample for name, sample in read.items() if sample is not None}

    def ended_service(self) -> str | None:
        """`memcached: killed by SIGKILL` once a service has ended; None while all live."""
        ended = ((service.name, service.exit_description()) for service in self.services)
        return next((f"{name}: {how}" for name, how in ended if how is not None), None)

    def _poll(self, deadline_s: float, state: str) -> None:
        for service in self.services:
            if not service.alive():
                raise EnvironmentFault(
                    f"service {service.name} ended before server {self.name} was ready: "
                    f"{service.exit_description()} (log: {service.log})",
                    details=service.last_lines(),
                )
        GuardedProcess._poll(self, deadline_s, state)

    def _stop(self, grace_s: float) -> bool:
        if self.agent is not None:
            self.agent.close()
        gone = [GuardedProcess._stop(self, grace_s)]
        gone += [service.stop() for service in reversed(self.services)]
        return all(gone)


def identity_of(built: Built) -> ServerIdentity:
    spec, jdk = built.spec, built.jdk
    return ServerIdentity(
        name=spec.name,
        title=spec.title,
        versions=spec.versions | dict(built.versions) | ({"jdk": jdk.version} if jdk else {}),
        runtime=spec.runtime,
        forwards=spec.forwards,
        build_key=built.key,
    )


def _reported(log: Path, word: str) -> dict[str, float] | None:
    """The numbers in the JSON object after `word` at the start of a whole line; None without such a line."""
    try:
        content = log.read_bytes()
    except OSError:
        return None
    for line in content.split(b"\n")[:-1]:
        if line.startswith(word.encode() + b" "):
            try:
                figures = json.loads(line[len(word) :])
            except ValueError:
                return {}
            if not isinstance(figures, dict):
                return {}
            return {
                str(key): float(value) for key, value in figures.items() if isinstance(value, int | float)
            }
    return None
