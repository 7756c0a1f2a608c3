"""A server that somebody else started (`prony load URL`): found by its listening socket, watched where that
is permitted.

Must not start, pin or stop it. On another host, or in another user's process, everything is None.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from prony.evidence.server import CgroupThrottle, JvmSnapshot, ProcessSample, ServerIdentity
from prony.server import proc, sockets, throttle


class ForeignServer:
    """The processes that hold the socket listening at `host`:`port` on this machine, or the Unix socket at
    this path, and their descendants.
    """

    def __init__(self, host: str, port: int, unix: str | None = None) -> None:
        self._unix = unix
        self._host = host
        self._port = port
        self._holders = self._find()

    def _find(self) -> tuple[int, ...]:
        """Parents before children, so that the first one is the server's main process."""
        if self._unix is None:
            inodes = {listener.inode for listener in sockets.listeners(self._port, self._host)}
        else:
            inodes = sockets.unix_listeners(self._unix)
        holders = sockets.holders(inodes)
        return tuple(sorted(holders, key=lambda pid: (proc.parent_of(pid) in holders, pid)))

    @property
    def identity(self) -> ServerIdentity:
        """What can be told from outside; the versions are not known."""
        pid = self._holders[0] if self._holders else None
        return ServerIdentity(
            name=f"{self._host}:{self._port}" if self._unix is None else f"unix:{self._unix}",
            runtime="" if pid is None else proc.program(pid),
            command=() if pid is None else proc.command_line(pid),
            pid=pid,
            port=self._port,
            owned=False,
            descriptor_limit_soft=None if pid is None else proc.descriptor_limit_soft(pid),
        )

    def pids(self) -> tuple[int, ...]:
        """All its living processes that can be found; empty when it runs elsewhere or cannot be seen."""
        found: dict[int, None] = {}
        for holder in self._holders:
            if proc.alive(holder):
                found |= dict.fromkeys((holder, *proc.descendants(holder)))
        return tuple(found)

    def granted_cpus(self) -> float:
        """On how many CPUs its main process may run; all of this machine's when that cannot be told."""
        try:
            return float(len(os.sched_getaffinity(self._holders[0])))
        except (IndexError, OSError):
            return float(os.cpu_count() or 1)

    def sample(self) -> ProcessSample | None:
        """CPU, memory and threads of its processes; None when they cannot be seen."""
        return proc.sample(self.pids())

    def jvm(self) -> JvmSnapshot | None:
        """None: the agent is only in servers that Prony starts."""
        return None

    def throttle(self) -> CgroupThrottle | None:
        """CPU quota counters of its cgroup; None when they cannot be read."""
        return throttle.throttle(self._holders[0]) if self._holders else None

    def service_samples(self) -> Mapping[str, ProcessSample]:
        """None: what it stands on is not known."""
        return {}

    def ended_service(self) -> str | None:
        """None: what it stands on is not known."""
        return None

    def exit_description(self) -> str | None:
        """A sentence once all its known processes are gone; None while one lives or when none was known."""
        if not self._holders or any(proc.alive(holder) for holder in self._holders):
            return None
        return f"the process that listened on port {self._port} (PID {self._holders[0]}) has ended"
