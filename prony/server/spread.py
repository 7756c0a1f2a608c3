"""How a server's connections are spread over its processes.

With SO_REUSEPORT the kernel gives each new connection to a process by a hash; with a shared listening socket
to whoever accepts first. Threads of one process cannot be told apart.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable

from prony.host.diag import established_inodes

MOST_DESCRIPTORS = 2_000
"""Beyond this many the reading would cost too much of the client's CPU: 9 µs each."""
MOST_PROCESSES = 256
"""So would so many directories."""


def connections_by_process(
    pids: Iterable[int], listening: Collection[int], ports: Iterable[int]
) -> tuple[int, ...] | None:
    """Established connections to `ports` of each process that serves, most first: it holds one, or a socket
    of `listening` (inodes) that no other process has. One that holds a shared socket and no connection may be
    the primary, which accepts none. None where they cannot be read, or there are too many; empty for a
    single process.
    """
    pids = tuple(pids)
    if len(pids) < 2:
        return ()
    if len(pids) > MOST_PROCESSES:
        return None
    established: set[int] = set()
    for port in ports:
        found = established_inodes(port)
        if found is None:
            return None
        established |= found
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
    """The inode of a socket; None for anything else."""
    try:
        target = os.readlink(f"/proc/{pid}/fd/{descriptor}")  # noqa: PTH115 - a name, not a path
    except OSError:
        return None
    return int(target[8:-1]) if target.startswith("socket:[") else None
