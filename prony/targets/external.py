"""A running server (a URL): found by its listening socket, observed where permitted. On another host, in
another network namespace, or in another user's process, everything is None.
"""

from __future__ import annotations

import os
import socket
import ssl
import time
from collections.abc import Collection
from dataclasses import dataclass

from prony.errors import EnvironmentFault, UsageError
from prony.evidence.host import CpuPartition, Limits
from prony.evidence.server import (
    CgroupThrottle,
    Probe,
    ProcessSample,
    ServerIdentity,
)
from prony.host.cgroup import cpu_quota, members, throttle
from prony.host.resource_limits import towards
from prony.load.preflight import ReadyProbe
from prony.plan.target import TlsOptions, Url
from prony.server import proc, sockets
from prony.server.address import Address
from prony.server.listening import ListenerWatch, connections_by_process
from prony.server.probe import request_count
from prony.server.threads import Readings, allowed_cpus, thread_times
from prony.targets.base import OnLine, Placement, RunningTarget, ServerUnderTest

INIT = 1
CONNECT_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class ExternalServer(ServerUnderTest):
    """Nothing to prepare; what it declares is not known."""

    at: Url
    owned: bool = False
    closes_after: int | None = None
    max_connections: int | None = None
    http_version: str | None = None
    built: None = None

    @property
    def name(self) -> str:
        return self.at.url

    @property
    def identity(self) -> ServerIdentity:
        return ServerIdentity(name=self.at.url, port=self.at.port, owned=False)

    @property
    def https(self) -> bool:
        return self.at.https

    @property
    def unix(self) -> str | None:
        return self.at.unix

    @property
    def destinations(self) -> int:
        return max(1, len(self.at.every_address))

    def placement(self) -> Placement:
        return RunningExternal(self.at).placement()

    def __post_init__(self) -> None:
        """Raises UsageError for a Unix socket with addresses, and for a TLS file that is none."""
        if self.unix is not None and self.at.addresses:
            raise UsageError(f"{self.at.url} is a Unix socket: it has no other addresses; leave them out")
        for file in self.at.tls.files:
            if not file.is_file():
                raise UsageError(f"{file}, named for {self.at.url}, is not a file; name a PEM file")

    def prepare(self, on_line: OnLine) -> None:
        """Nothing: it runs."""

    def limits(self, found: Limits) -> Limits:
        """On loopback the kernel may give a port out again after a second; a Unix socket has no ports."""
        return found if self.unix is not None else towards(found, self.at.first_address)

    def start(self, partition: CpuPartition) -> RunningTarget:
        del partition  # it runs where it is
        return RunningExternal(self.at)


def _not_known(host: str) -> EnvironmentFault:
    return EnvironmentFault(f"the host '{host}' is not known; correct the name, or the resolver")


class RunningExternal(RunningTarget):
    """The processes that hold the listening sockets at a URL's addresses or a Unix socket's path, and their
    descendants: a socket may be shared after a fork, and several may listen at one address (SO_REUSEPORT).
    """

    def __init__(self, at: Url) -> None:
        self._at = at
        self._host, self._port = at.first_address
        # A name is asked for once: its resolver is no part of what is watched each second.
        self._asked = [(port, sockets.resolved(host)) for host, port in at.every_address]
        self._holders = self._find()
        self._watch = ListenerWatch(self._listeners, self._tree)

    @property
    def url(self) -> str:
        return self._at.url

    @property
    def tls(self) -> TlsOptions:
        return self._at.tls

    @property
    def addresses(self) -> tuple[str, ...]:
        return self._at.addresses

    @property
    def address(self) -> Address | None:
        return None if self._at.unix is not None else Address(self._host, self._port, self._at.https)

    def _find(self) -> tuple[int, ...]:
        """Parents before children: the first one is the server's main process."""
        if not (each := self._by_address()) or not all(each):
            return ()  # a part of the server is somewhere else: what can be read is not the whole
        inodes = frozenset[int]().union(*each)
        holders = sockets.holders(inodes)
        if not inodes <= (sockets.owned_by(inodes, holders) or set()):
            return ()  # one of them belongs to a process that may not be inspected
        holders -= {INIT}  # it opened the socket for a service (systemd), which holds it too
        return tuple(sorted(holders, key=lambda pid: (proc.parent_of(pid) in holders, pid)))

    def _listeners(self) -> frozenset[int] | None:
        each = self._by_address()
        return None if each is None else frozenset[int]().union(*each)

    def _by_address(self) -> list[frozenset[int]] | None:
        if self._at.unix is not None:
            inodes = sockets.unix_listeners(self._at.unix)
            return None if inodes is None else [frozenset(inodes)]
        each = []
        for port, asked in self._asked:
            found = sockets.answering(port, asked)
            if found is None:
                return None
            each.append(frozenset(one.inode for one in found))
        return each

    @property
    def identity(self) -> ServerIdentity:
        pid = self._holders[0] if self._holders else None
        watched = pid is not None and self._watch.most > 0
        return ServerIdentity(
            name=f"{self._host}:{self._port}" if self._at.unix is None else f"unix:{self._at.unix}",
            runtime="" if pid is None else proc.program(pid),
            command=() if pid is None else proc.command_line(pid),
            pid=pid,
            port=self._port,
            owned=False,
            owns_port_at_end=self._watch.owned,
            other_listener=self._watch.other,
            listeners=self._watch.most if watched else None,
            listeners_gone=self._watch.gone if watched else None,
            descriptor_limit_soft=None if pid is None else proc.descriptor_limit_soft(pid),
        )

    def wait_ready(self, probe: ReadyProbe | None, timeout_s: float) -> None:
        """A refused or cut-off connection is an error at once; a silent server may have a queue to work off,
        and is asked until it answers or the time is up. The caller judges the response.
        """
        if probe is None:
            self._connect()
            return
        begun_s = time.monotonic()
        while self._ask(probe) is None:
            waited_s = time.monotonic() - begun_s
            silence = probe.result.no_response
            if not probe.result.timed_out and self._speaks_tls():
                raise EnvironmentFault(
                    f"{self.url} gives no response: the server speaks TLS on this port; give https://"
                )
            if not probe.result.timed_out:
                raise EnvironmentFault(
                    f"{self.url} gives no response: {silence}; start the server first, or correct the URL"
                )
            if waited_s >= timeout_s:
                raise EnvironmentFault(
                    f"{self.url} gives no response within {waited_s:.0f} s: {silence}; see why the server is "
                    "silent, or correct the URL"
                )

    def _ask(self, probe: ReadyProbe) -> Probe | None:
        try:
            return probe()
        except UsageError as fault:
            asked = zip(self._at.every_address, self._asked, strict=True)
            unknown = [host for (host, _), (_, found) in asked if not found]
            if unknown:
                raise _not_known(unknown[0]) from fault
            raise

    def _speaks_tls(self) -> bool:
        """Where plain HTTP got no response."""
        if self._at.https or self._at.unix is not None:
            return False
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            with socket.create_connection((self._host, self._port), CONNECT_TIMEOUT_S) as plain:
                context.wrap_socket(plain, server_hostname=self._at.host).close()
        except OSError:
            return False
        return True

    def _connect(self) -> None:
        try:
            if self._at.unix is None:
                socket.create_connection((self._host, self._port), CONNECT_TIMEOUT_S).close()
                return
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                client.settimeout(CONNECT_TIMEOUT_S)
                client.connect(self._at.unix)
        except socket.gaierror as fault:
            raise _not_known(self._host) from fault
        except OSError as fault:
            where, remedy = f"{self._host}:{self._port}", "address and port"
            if self._at.unix is not None:
                where, remedy = f"unix:{self._at.unix}", "path"
            raise EnvironmentFault(
                f"nothing takes connections at {where} ({fault.strerror or 'no response in time'}): "
                f"start the server first, or correct the {remedy}"
            ) from fault

    def set_affinity(self, cpus: tuple[int, ...]) -> bool:
        del cpus
        return False

    def cpus(self) -> tuple[int, ...]:
        """Where any of its threads may run."""
        return tuple(sorted(self.placement().all_cpus))

    def placement(self) -> Placement:
        """A process that has handed its socket down (nginx's master) serves nothing: it may run anywhere."""
        below = {holder: set(proc.descendants(holder)) for holder in self._holders}
        masters = {holder for holder, children in below.items() if children & set(self._holders)}
        found = {pid: allowed_cpus(pid) for pid in self._theirs(self._tree()) if pid not in masters}
        hidden = not self._holders and self._is_here()
        return Placement({pid: cpus for pid, cpus in found.items() if cpus}, hidden)

    def _is_here(self) -> bool:
        """Whether sockets of this host listen at all the addresses."""
        each = self._by_address()
        return bool(each) and all(each or ())

    def quota_cpus(self) -> float | None:
        return cpu_quota(pid=self._holders[0]) if self._holders else None

    def thread_times(self) -> Readings:
        return thread_times(self.pids())

    def pids(self) -> tuple[int, ...]:
        """With those of its control groups."""
        return self._theirs((*self._tree(), *(pid for holder in self._holders for pid in members(holder))))

    def _theirs(self, pids: Collection[int]) -> tuple[int, ...]:
        """Never Prony's own, whose ancestor may be the server."""
        own = os.getpid()
        prony = {own, *proc.descendants(own)} if own in pids else set()
        return tuple(pid for pid in dict.fromkeys(pids) if pid not in prony)

    def _tree(self) -> tuple[int, ...]:
        found: dict[int, None] = {}
        for holder in self._holders:
            if proc.alive(holder):
                found |= dict.fromkeys((holder, *proc.descendants(holder)))
        return tuple(found)

    def sample(self) -> ProcessSample | None:
        return proc.sample(self.pids())

    def throttle(self) -> tuple[CgroupThrottle, ...] | None:
        return throttle(self._holders[0]) if self._holders else None

    def request_count(self) -> int | None:
        return None if self.address is None else request_count(self.address, self._at.counts)

    def exit_description(self) -> str | None:
        """Once all known processes are gone."""
        if not self._holders or any(proc.alive(holder) for holder in self._holders):
            return None
        return f"the process that listened on port {self._port} (PID {self._holders[0]}) has ended"

    def look(self) -> None:
        if self._holders:
            self._watch.look()

    def connections_by_process(self) -> tuple[int, ...] | None:
        """None also for a Unix socket, whose ends have no port."""
        pids = self.pids()
        if not pids or (self._at.unix is not None and len(pids) > 1):
            return None
        ports = {port for port, _ in self._asked}
        return connections_by_process(pids, self._listeners() or frozenset(), ports)

    def stop(self) -> None:
        """Not ours to stop."""
