"""Starts a built server as a fresh process: its CPUs, its port, its folders, its guard."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from prony.host.affinity import granted_cpus
from prony.server import certificates, services
from prony.server.agent import LONGEST_SOCKET_PATH, AgentClient
from prony.server.build import Built
from prony.server.command import environment, expand
from prony.server.running import RunningServer
from prony.server.service import start_services
from prony.server.sockets import check_free, free_port
from prony.server.starting import ProcessSpec, log_file, make_scratch, start_guard

__all__ = ["RunningServer", "launch"]


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
    """Start a fresh process; it is not ready yet (`RunningServer.wait_ready`).

    `cpus`: those that are its own in the window, told to a JVM as its processor count; empty means all that
    we have. `service_cpus`: where its services run,
    which are started first; empty means that they share the server's. `port` None picks a free one, unless
    the server has an address of its own. `agent=False` leaves the agent out of a JVM. Raises EnvironmentFault
    (port taken, cannot be executed, no room for its folders, a service without its program or that is not
    ready) and UsageError (a placeholder or a service that nobody knows).
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
            services.find(spec.services, spec.name, spec.folder.parent),
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
        command = expand(built, values, flags)
        now = cpus or granted_cpus()
        process_spec = ProcessSpec(
            command, environment(built, values), scratch, log, cpus=sorted(now), own_cpus=cpus
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
    )


def _jvm_flags(
    built: Built, cpus: Sequence[int], scratch: Path, log: Path, socket_path: Path | None
) -> list[str]:
    """The JVM flags that Prony adds. Without the processor count the JVM would size itself for all CPUs:
    another collector, other pools. Crash reports go beside the log, because the working directory is removed.
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
