"""Listening sockets under load, and how connections spread over processes. With SO_REUSEPORT another process
may listen at the same address at any time and gets its share of new connections; one that leaves takes the
connections with it that it had not accepted yet.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from prony.host.diag import established_inodes
from prony.server import proc, sockets

MOST_DESCRIPTORS = 2_000
"""Beyond this many the reading costs too much of the client's CPU: 9 µs each."""
MOST_PROCESSES = 256


@dataclass(slots=True)
class ListenerWatch:
    """Polled each second. A foreign socket, once seen, is not forgotten."""

    find: Callable[[], frozenset[int] | None]
    """Inodes of the listening sockets; None where they cannot be read."""
    pids: Callable[[], Iterable[int]]
    owned: bool | None = None
    """Whether all of them were the server's at every poll; None: not known, or nobody listened."""
    other: str | None = None
    """The other listener, in words."""
    most: int = 0
    """Sockets at the same time, at most."""
    gone: int = 0
    """Sockets closed at two later polls in a row, at most."""
    _missing: int = 0
    _known: frozenset[int] = field(default=frozenset())

    def look(self) -> None:
        """Reads the kernel's listening sockets; descriptors only when a socket is new."""
        inodes = self.find()
        if inodes is None:
            return
        self.most = max(self.most, len(inodes))
        missing = self.most - len(inodes)
        self.gone = max(self.gone, min(self._missing, missing))
        self._missing = missing
        if self.owned is False or not inodes or inodes == self._known:
            return
        owned = sockets.owned_by(inodes, self.pids())
        if owned is None:
            self.owned = None
            return
        # One that was closed between the two readings has no owner any more.
        foreign = inodes - owned
        if foreign:
            still = self.find()
            if still is None:
                return
            foreign &= still
        self.owned = not foreign
        if foreign:
            pid = min(sockets.holders(foreign), default=None)
            self.other = "a process that this user cannot see" if pid is None else f"PID {proc.describe(pid)}"
        else:
            self._known = inodes

    def look_at_connections(self, port: int) -> None:
        """Finds another process that has accepted connections to `port`: one that shares the server's own
        listening socket. Reads all descriptors of the server.
        """
        inodes = (established_inodes(port) or set()) - {0}  # 0: in the queue, not yet accepted
        found = sockets.owned_by(inodes, self.pids()) if 0 < len(inodes) <= MOST_DESCRIPTORS // 4 else None
        if found is None:
            return
        foreign = (inodes - found) & (established_inodes(port) or set())
        # A worker may have begun since.
        pid = min(sockets.holders(foreign) - {*self.pids()}, default=None)
        if pid is not None:
            self.owned = False
            self.other = f"PID {proc.describe(pid)} has {len(foreign)} of {len(inodes)} connections"


def connections_by_process(
    pids: Iterable[int], listening: Collection[int], ports: Iterable[int]
) -> tuple[int, ...] | None:
    """Established connections to `ports` of each serving process, most first: one that holds any, or a socket
    of `listening` (inodes) alone. None where they cannot be read, or are too many; empty for a single
    process.
    """
    pids = tuple(pids)
    if len(pids) < 2:
        return ()
    if len(pids) > MOST_PROCESSES:
        return None
    established: set[int] = set()
    for port in ports:
        on_port = established_inodes(port)
        if on_port is None:
            return None
        established |= on_port
    held: list[tuple[set[int], int]] = []
    looked = 0
    for pid in pids:
        try:
            names = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208 - names are enough, and there may be many
        except OSError:
            continue
        looked += len(names)
        if looked > MOST_DESCRIPTORS:
            return None
        inodes = {inode for name in names if (inode := _inode(pid, name)) is not None}
        held.append((inodes & set(listening), len(inodes & established)))
    holders = Counter(inode for sockets, _ in held for inode in sockets)
    counts = [count for sockets, count in held if count or any(holders[inode] == 1 for inode in sockets)]
    return tuple(sorted(counts, reverse=True)) if len(counts) > 1 else ()


def _inode(pid: int, descriptor: str) -> int | None:
    try:
        target = os.readlink(f"/proc/{pid}/fd/{descriptor}")  # noqa: PTH115 - a name, not a path
    except OSError:
        return None
    return int(target[8:-1]) if target.startswith("socket:[") else None
