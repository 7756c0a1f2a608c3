"""Backing services (a database, a cache): a fresh process with fresh data for each server."""

from __future__ import annotations

import getpass
import re
import shutil
import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import ClassVar

from prony.evidence.server import ProcessSample, ServiceUse
from prony.host.affinity import granted_cpus
from prony.server.command import fill, inherited
from prony.server.guarded import GuardedProcess, ProcessSpec, log_file, make_scratch, start_guard
from prony.server.sockets import free_port
from prony.server.spec import ServiceSpec

READY_TIMEOUT_S = 30.0
ANSWER_TIMEOUT_S = 1.0
LONGEST_RESPONSE_BYTES = 4096


@dataclass(slots=True, kw_only=True)
class RunningService(GuardedProcess):
    kind: ClassVar[str] = "service"

    spec: ServiceSpec
    cpus: tuple[int, ...]
    shares_server_cpus: bool
    version: str | None = None

    def wait_ready(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Wait until it listens on its port itself and answers as expected. Raises EnvironmentFault."""
        deadline_s = self.started_monotonic_s + timeout_s
        self._await_port(deadline_s)
        while (greeting := self._ask()) is None:
            self._poll(deadline_s, f"no response matching {self.spec.ready.expect!r}")
        self.version = greeting[1] if greeting.groups() else None

    def _ask(self) -> re.Match[str] | None:
        try:
            with socket.create_connection((self.host, self.port), ANSWER_TIMEOUT_S) as connection:
                connection.settimeout(ANSWER_TIMEOUT_S)
                connection.sendall(self.spec.ready.send.encode())
                said = connection.recv(LONGEST_RESPONSE_BYTES)
        except OSError:
            return None
        return re.match(self.spec.ready.expect, said.decode(errors="replace"))

    def placeholders(self) -> Mapping[str, str]:
        """Host and port, for a server's command."""
        return {f"{self.name}.host": self.host, f"{self.name}.port": str(self.port)}

    def use(self, opened: ProcessSample | None = None, closed: ProcessSample | None = None) -> ServiceUse:
        """Its resource use between two readings; None where either is missing."""
        wall_s = closed.t_monotonic_s - opened.t_monotonic_s if opened and closed else None
        return ServiceUse(
            name=self.name,
            title=self.spec.title,
            version=self.version,
            command=self.command,
            pid=self.pid,
            port=self.port,
            cpus=self.cpus,
            shares_server_cpus=self.shares_server_cpus,
            wall_s=wall_s,
            cpu_user_s=closed.cpu_user_s - opened.cpu_user_s if opened and closed else None,
            cpu_system_s=closed.cpu_system_s - opened.cpu_system_s if opened and closed else None,
            rss_end_bytes=closed.rss_bytes if closed else None,
            peak_rss_bytes=closed.peak_rss_bytes if closed else None,
        )


def start_services(
    specs: Sequence[ServiceSpec], *, host: str, cpus: Sequence[int], shares_server_cpus: bool
) -> tuple[RunningService, ...]:
    """Starts all services and waits until they are ready; if any fails, all are stopped. `cpus`: empty: all.
    Raises EnvironmentFault.
    """
    with ExitStack() as until_ready:
        running = []
        for spec in specs:
            service = _start(spec, host, cpus, shares_server_cpus)
            until_ready.push(service)
            service.wait_ready()
            running.append(service)
        until_ready.pop_all()
    return tuple(running)


def _start(spec: ServiceSpec, host: str, cpus: Sequence[int], shares_server_cpus: bool) -> RunningService:
    program = spec.find_program()
    port = free_port(host)
    scratch = make_scratch()
    try:
        places = {"host": host, "port": str(port), "tmp": str(scratch / "tmp"), "user": getpass.getuser()}
        command = [program, *(fill(word, places, spec.file) for word in spec.command[1:])]
        log = log_file(None, f"service-{spec.name}")
        own = tuple(sorted(cpus or granted_cpus()))
        process_spec = ProcessSpec(command, inherited(places["tmp"]), scratch, log, cpus=own, own_cpus=own)
        process, started = start_guard(process_spec, f"service {spec.name}")
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    return RunningService(
        name=spec.name,
        host=host,
        port=port,
        command=tuple(command),
        log=log,
        scratch=scratch,
        guard=process,
        pid=int(started["pid"]),
        started_monotonic_s=started["monotonic_ns"] / 1e9,
        spec=spec,
        cpus=own,
        shares_server_cpus=shares_server_cpus,
    )
