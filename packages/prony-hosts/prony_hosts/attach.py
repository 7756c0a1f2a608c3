"""Attaches the hosts of a file for one command: what is not up yet, scheduler and workers over ssh, is
started, and ended with it; versions must be equal.
"""

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
LOOK_S = 0.2
"""How often it is looked for workers that are to come."""


@contextlib.contextmanager
def attached(file: HostsFile, *, say: Callable[[str], None] = lambda _line: None) -> Iterator[Laboratory]:
    """All hosts of the file, for the time of one command: what is not up yet is started, and ended
    afterwards. A host that is missing or runs another version is refused. Raises EnvironmentFault,
    UsageError.
    """
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
    """Why no trial can use the host as it is; None when it can."""
    found = next((one for one in laboratory.hosts if one.host == host), None)
    if found is None:
        return EnvironmentFault(missing(host, file))
    here = facts()
    if host.role not in found.roles:
        return EnvironmentFault(
            f"{host.name}: its worker is for {', '.join(found.roles) or 'nothing'}, hosts.yaml says "
            f"{host.role}; {_by_hand(host, file)}"
        )
    if differs(here, found.facts):
        return EnvironmentFault(refusal(host.name, host.keys.ssh, here, found.facts))
    return None


@contextlib.contextmanager
def connected(
    file: HostsFile,
    *,
    say: Callable[[str], None] = lambda _line: None,
    keep: bool = False,
    start: bool = True,
) -> Iterator[Laboratory]:
    """Scheduler and workers, as far as they come; `faults` of the laboratory has the others. With `keep` what
    was started stays when the command ends, without `start` nothing is started. Raises EnvironmentFault.
    """
    from prony_hosts.node import prepare

    prepare()
    facts()  # here, before anything is started: without an engine there is no laboratory
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
            raise EnvironmentFault(
                f"another command uses the hosts at {file.lab.scheduler}; two loads at once would be "
                "measured together: wait until it has finished"
            )
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
            f"the scheduler at {file.lab.scheduler} does not let the laboratory in: {fault}; is it "
            "another one's, or of other certificates?"
        ) from fault


def _close(client: Any) -> None:
    with contextlib.suppress(Exception):
        client.close(timeout=5)


def _start_workers(
    laboratory: Laboratory, hosts: list[Host], file: HostsFile, keep: bool
) -> list[ssh.SshWorker]:
    """Those that came; the faults of the others are the laboratory's."""
    lives: Lives = "scheduler" if keep else "stdin"
    begun = [
        (host, laboratory.run(ssh.start(host, settings(host, file, lives), detached=keep))) for host in hosts
    ]
    found: list[ssh.SshWorker] = []
    for host, future in begun:
        try:
            found.append(future.result(timeout=ssh.CONNECT_S + ssh.READY_S + 5.0))
        except EnvironmentFault as fault:
            laboratory.faults[host.name] = fault
    return found


def _end_workers(laboratory: Laboratory, workers: list[ssh.SshWorker]) -> None:
    for ending in [laboratory.run(worker.end()) for worker in workers]:
        with contextlib.suppress(Exception):
            ending.result(timeout=2 * ssh.END_S)


def _register(laboratory: Laboratory, file: HostsFile, *, wait: bool) -> None:
    """Waits for workers that can still come, and names those that are there."""
    until_s = time.monotonic() + (REGISTERED_S if wait else 0.0)
    wanted = {host.worker for host in file.hosts() if host.name not in laboratory.faults}
    while wanted - (there := laboratory.workers()).keys() and time.monotonic() < until_s:
        time.sleep(LOOK_S)
    found = []
    for host in file.hosts():
        worker = there.get(host.worker)
        said = from_registration(worker.get("prony")) if worker else None
        if worker is not None and said is not None:
            found.append(Attached(host, worker["address"], said, tuple(worker["resources"])))
    laboratory.hosts = tuple(found)


def end_all(laboratory: Laboratory) -> None:
    """Ends the scheduler and with it every worker: those that Prony started end, those that somebody started
    wait for the next scheduler.
    """
    laboratory.terminate()


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
