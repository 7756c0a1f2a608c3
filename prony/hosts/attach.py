"""Attaches the hosts of a file for one command: what is not up yet, scheduler and workers over ssh, is
started, and ended with it; versions must be equal. Must not know what is measured.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from prony.errors import EnvironmentFault
from prony.hosts import certificates, ssh
from prony.hosts.certificates import Identity
from prony.hosts.extra import require
from prony.hosts.facts import differs, facts, from_registration, refusal
from prony.hosts.file import Host, HostsFile
from prony.hosts.laboratory import LOOK_S, Attached, Laboratory
from prony.hosts.process import Lives, Settings

REGISTERED_S = 10.0


@dataclass
class _Started:
    """What one command started for its own time."""

    scheduler: subprocess.Popen[str] | None = None
    workers: list[ssh.SshWorker] = field(default_factory=list)


@contextlib.contextmanager
def attached(
    file: HostsFile, *, say: Callable[[str], None] = lambda _line: None, check: bool = True
) -> Iterator[Laboratory]:
    """All hosts of the file, for the time of one command: what is not up yet is started, and ended
    afterwards. With `check` a host that runs another version is refused. Raises EnvironmentFault, UsageError.
    """
    require()
    here = facts()
    with connected(file, say=say) as laboratory:
        found: list[Attached] = []
        workers = laboratory.workers()
        for host in file.hosts():
            worker = workers.get(host.worker)
            if worker is None:
                raise EnvironmentFault(missing(host, file))
            there = from_registration(worker.get("prony"))
            if there is None:
                raise EnvironmentFault(
                    f"{host.name}: the worker there is not one of Prony's; {_by_hand(host, file)}"
                )
            if host.role not in worker["resources"]:
                raise EnvironmentFault(
                    f"{host.name}: its worker is for {', '.join(worker['resources']) or 'nothing'}, "
                    f"hosts.yaml says {host.role}; {_by_hand(host, file)}"
                )
            if check and differs(here, there):
                raise EnvironmentFault(refusal(host.name, host.keys.ssh, here, there))
            found.append(Attached(host, worker["address"], there))
        laboratory.hosts = tuple(found)
        try:
            yield laboratory
        finally:
            laboratory.end()


@contextlib.contextmanager
def connected(file: HostsFile, *, say: Callable[[str], None], lives: Lives = "stdin") -> Iterator[Laboratory]:
    """Scheduler and workers, without looking at versions. Who is late by ten seconds is left out."""
    from distributed import Client

    from prony.hosts.node import prepare

    prepare()
    own = identity(file)
    begun = _Started()
    client: Any = None
    try:
        if not listens(file):
            begun.scheduler = start_scheduler(file, own, lives="stdin")
        try:
            client = Client(
                file.lab.scheduler,
                security=own.security() if own else None,
                timeout=REGISTERED_S,
                set_as_default=False,
                direct_to_workers=True,
            )
        except (OSError, TimeoutError) as fault:
            raise EnvironmentFault(
                f"the scheduler at {file.lab.scheduler} does not let the laboratory in: {fault}; is it "
                "another one's, or of other certificates?"
            ) from fault
        laboratory = Laboratory(client)
        there = laboratory.workers()
        by_ssh = [host for host in file.hosts() if host.keys.ssh and host.worker not in there]
        if by_ssh:
            say(f"starting workers over ssh: {', '.join(host.name for host in by_ssh)}")
        for future in [laboratory.run(ssh.start(host, settings(host, file, lives))) for host in by_ssh]:
            begun.workers.append(future.result(timeout=ssh.CONNECT_S + ssh.READY_S + 5.0))
        _until_registered(laboratory, file)
        yield laboratory
    finally:
        for ending in [laboratory.run(worker.end()) for worker in begun.workers]:
            with contextlib.suppress(Exception):
                ending.result(timeout=2 * ssh.END_S)
        if client is not None:
            with contextlib.suppress(Exception):
                client.close(timeout=5)
        if begun.scheduler is not None:
            _end_scheduler(begun.scheduler)


def _until_registered(laboratory: Laboratory, file: HostsFile) -> None:
    until_s = time.monotonic() + REGISTERED_S
    wanted = {host.worker for host in file.hosts()}
    while wanted - laboratory.workers().keys() and time.monotonic() < until_s:
        time.sleep(LOOK_S)


def identity(file: HostsFile) -> Identity | None:
    """The laboratory's certificates; None with plain TCP. Raises UsageError."""
    folder = file.lab.certificates
    if not file.lab.scheduler.startswith("tls://") or folder is None:
        return None
    return certificates.identity(folder, certificates.LAB)


def settings(host: Host, file: HostsFile, lives: Lives) -> Settings:
    """What a worker over ssh is told. Its certificate goes through the connection and into no file."""
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
    """The scheduler as a process of this host. Raises EnvironmentFault with what it says is wrong."""
    process = subprocess.Popen(
        [sys.executable, "-m", "prony.hosts.process"],
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
        said = json.loads(line)
    except ValueError:
        said = {"fault": f"the scheduler did not start (exit code {process.wait()})"}
    if "fault" in said:
        raise EnvironmentFault(said["fault"])
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
    """The sentence for a host whose worker did not come."""
    return (
        f"{host.name}: no worker called '{host.worker}' has come to {file.lab.scheduler}; "
        f"{_by_hand(host, file)}"
    )


def _by_hand(host: Host, file: HostsFile) -> str:
    tls = " --certificates DIR" if file.lab.certificates else ""
    return (
        f"start it on that host: prony hosts worker {file.lab.scheduler} --name {host.worker} "
        f"--role {host.role}{tls}"
    )
