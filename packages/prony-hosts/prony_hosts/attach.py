"""Connects a file's hosts for one command: starts and ends scheduler and ssh workers, compares versions."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from prony.errors import EnvironmentFault
from prony_hosts import certificates, ssh
from prony_hosts.certificates import Identity
from prony_hosts.facts import differs, facts, from_registration, refusal
from prony_hosts.file import Host, HostsFile
from prony_hosts.laboratory import Attached, Laboratory
from prony_hosts.process import Lives, Settings

REGISTERED_S = 10.0
POLL_S = 0.2
"""Poll interval while workers are awaited."""


@contextlib.contextmanager
def attached(file: HostsFile, *, say: Callable[[str], None] = lambda _line: None) -> Iterator[Laboratory]:
    """All hosts during one command. Raises EnvironmentFault (missing, another version), UsageError."""
    with connected(file, say=say) as laboratory:
        for host in file.hosts():
            fault = laboratory.faults.get(host.name) or fault_of(host, file, laboratory)
            if fault is not None:
                raise fault
        try:
            yield laboratory
        finally:
            laboratory.end()


def fault_of(host: Host, file: HostsFile, laboratory: Laboratory) -> EnvironmentFault | None:
    """Why the host cannot take part in a trial; None when it can."""
    worker = next((attached for attached in laboratory.hosts if attached.host == host), None)
    if worker is None:
        return EnvironmentFault(missing(host, file))
    here = facts()
    if host.role not in worker.roles:
        return EnvironmentFault(
            f"{host.name}: its worker serves as {', '.join(worker.roles) or 'nothing'}, hosts.yaml says "
            f"{host.role}; {_by_hand(host, file)}"
        )
    if differs(here, worker.facts):
        return EnvironmentFault(refusal(host.name, host.keys.ssh, here, worker.facts))
    return None


@contextlib.contextmanager
def connected(
    file: HostsFile,
    *,
    say: Callable[[str], None] = lambda _line: None,
    keep: bool = False,
    start: bool = True,
) -> Iterator[Laboratory]:
    """Scheduler and workers that could be reached; the rest is in `faults` of the laboratory. With `keep`
    started processes outlive the command; without `start` nothing is started. Raises EnvironmentFault.
    """
    from prony_hosts.node import prepare

    prepare()
    facts()  # fails without an engine, before anything is started
    own = identity(file)
    with contextlib.ExitStack() as stack:
        if not listens(file):
            if not start:
                raise EnvironmentFault(f"nothing listens at {file.lab.scheduler}: the hosts are not up")
            scheduler = start_scheduler(file, own, lives="ever" if keep else "stdin")
            if not keep:
                stack.callback(_end_scheduler, scheduler)
        client = _client(file, own)
        stack.callback(_close, client)
        laboratory = Laboratory(client)
        stack.callback(laboratory.close)
        if start and not laboratory.alone():
            raise EnvironmentFault(f"{file.lab.scheduler}: hosts in use by another command; wait for its end")
        if start:
            there = laboratory.workers()
            missing_ssh = [host for host in file.hosts() if host.keys.ssh and host.worker not in there]
            if missing_ssh:
                say(f"starting workers over ssh: {', '.join(host.name for host in missing_ssh)}")
                stack.callback(_end_workers, laboratory, _start_workers(laboratory, missing_ssh, file, keep))
        _register(laboratory, file, wait=start)
        yield laboratory


def _client(file: HostsFile, own: Identity | None) -> Any:
    from prony_hosts.node import LabClient

    try:
        return LabClient(
            file.lab.scheduler,
            security=own.security() if own else None,
            timeout=REGISTERED_S,
            set_as_default=False,
            direct_to_workers=True,
        )
    except (OSError, TimeoutError) as fault:
        raise EnvironmentFault(
            f"the scheduler at {file.lab.scheduler} refuses the laboratory: {fault}; does it "
            "belong to another laboratory or use other certificates?"
        ) from fault


def _close(client: Any) -> None:
    with contextlib.suppress(Exception):
        client.close(timeout=5)


def _start_workers(
    laboratory: Laboratory, hosts: list[Host], file: HostsFile, keep: bool
) -> list[ssh.SshWorker]:
    """The workers that started; faults of the rest go to `laboratory.faults`."""
    lives: Lives = "scheduler" if keep else "stdin"
    begun = [
        (host, laboratory.run(ssh.start(host, settings(host, file, lives), detached=keep))) for host in hosts
    ]
    started: list[ssh.SshWorker] = []
    for host, future in begun:
        try:
            started.append(future.result(timeout=ssh.CONNECT_S + ssh.READY_S + 5.0))
        except EnvironmentFault as fault:
            laboratory.faults[host.name] = fault
    return started


def _end_workers(laboratory: Laboratory, workers: list[ssh.SshWorker]) -> None:
    for ending in [laboratory.run(worker.end()) for worker in workers]:
        with contextlib.suppress(Exception):
            ending.result(timeout=2 * ssh.END_S)


def _register(laboratory: Laboratory, file: HostsFile, *, wait: bool) -> None:
    """Waits for outstanding workers and lists the registered hosts."""
    until_s = time.monotonic() + (REGISTERED_S if wait else 0.0)
    wanted = {host.worker for host in file.hosts() if host.name not in laboratory.faults}
    while wanted - (there := laboratory.workers()).keys() and time.monotonic() < until_s:
        time.sleep(POLL_S)
    registered = []
    for host in file.hosts():
        worker = there.get(host.worker)
        remote_facts = from_registration(worker.get("prony")) if worker else None
        if worker is not None and remote_facts is not None:
            registered.append(Attached(host, worker["address"], remote_facts, tuple(worker["resources"])))
    laboratory.hosts = tuple(registered)


def end_all(laboratory: Laboratory) -> None:
    """Ends the scheduler, and workers that Prony started; those started by hand wait for the next."""
    laboratory.terminate()


def identity(file: HostsFile) -> Identity | None:
    """The laboratory's certificates; None with plain TCP. Raises UsageError."""
    folder = file.lab.certificates
    if not file.lab.scheduler.startswith("tls://") or folder is None:
        return None
    return certificates.identity(folder, certificates.LAB)


def settings(host: Host, file: HostsFile, lives: Lives) -> Settings:
    """A worker's settings over ssh. Its certificate is never written to a file."""
    folder = file.lab.certificates
    tls = file.lab.scheduler.startswith("tls://") and folder is not None
    return Settings(
        scheduler=file.lab.scheduler,
        lives=lives,
        identity=certificates.identity(folder, certificates.ON_HOST) if tls and folder else None,
        name=host.worker,
        role=host.role,
        listen=host.keys.listen or "",
    )


def listens(file: HostsFile) -> bool:
    """Whether something listens at the scheduler's address."""
    parts = urlsplit(file.lab.scheduler)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 0), timeout=3.0).close()
    except OSError:
        return False
    return True


def start_scheduler(file: HostsFile, own: Identity | None, *, lives: Lives) -> subprocess.Popen[str]:
    """The scheduler as a process here. Raises EnvironmentFault with its own message."""
    process = subprocess.Popen(
        [sys.executable, "-m", "prony_hosts.process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,  # Ctrl-C reaches the laboratory only
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(Settings(file.lab.scheduler, lives, own).line())
    process.stdin.flush()
    if lives != "stdin":
        process.stdin.close()
    line = process.stdout.readline()
    try:
        reply = json.loads(line)
    except ValueError:
        reply = {"fault": f"the scheduler did not start (exit code {process.wait()})"}
    if "fault" in reply:
        raise EnvironmentFault(reply["fault"])
    return process


def _end_scheduler(process: subprocess.Popen[str]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def missing(host: Host, file: HostsFile) -> str:
    """Error message for a host whose worker did not register."""
    return (
        f"{host.name}: no worker '{host.worker}' is registered at {file.lab.scheduler}; "
        f"{_by_hand(host, file)}"
    )


def _by_hand(host: Host, file: HostsFile) -> str:
    tls = " --certificates DIR" if file.lab.certificates else ""
    return (
        f"start it on that host: prony hosts worker {file.lab.scheduler} --name {host.worker} "
        f"--role {host.role}{tls}"
    )
