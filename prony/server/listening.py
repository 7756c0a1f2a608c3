"""Who listens where a server is reached, while it is under load.

With SO_REUSEPORT another process may listen at the same address at any time, and gets its share of the new
connections; one that leaves takes the connections with it that it had not accepted yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from prony.server import proc, sockets


@dataclass(slots=True)
class ListenerWatch:
    """Looks each second. Once a socket of somebody else's was seen it is not forgotten."""

    find: Callable[[], frozenset[int] | None]
    """The inodes of the sockets that listen there now; None, no look, where that cannot be read."""
    pids: Callable[[], Iterable[int]]
    """The server's living processes."""
    owned: bool | None = None
    """Whether all of them were the server's whenever they were looked at; None: it was not looked at, could
    not be told, or nobody listened.
    """
    other: str | None = None
    """Who else listened, in words."""
    most: int = 0
    """Sockets at the same time, at most ..."""
    gone: int = 0
    """... and how many of those were closed at two later looks in a row, at most."""
    _missing: int = 0
    """At the last look."""
    _known: frozenset[int] = field(default=frozenset())

    def look(self) -> None:
        """Reads the kernel's table of listening sockets; descriptors only when a socket is new."""
        inodes = self.find()
        if inodes is None:
            return
        self.most = max(self.most, len(inodes))
        missing = self.most - len(inodes)
        self.gone = max(self.gone, min(self._missing, missing))
        self._missing = missing
        if self.owned is False or not inodes or inodes == self._known:
            return
        found = sockets.owned_by(inodes, self.pids())
        if found is None:
            self.owned = None
            return
        # One that was closed between the two readings has no owner any more.
        foreign = inodes - found
        if foreign:
            still = self.find()
            if still is None:
                return
            foreign &= still
        self.owned = not foreign
        if foreign:
            self.other = _holder(foreign)
        else:
            self._known = inodes


def _holder(inodes: Iterable[int]) -> str:
    pid = min(sockets.holders(tuple(inodes)), default=None)
    return "a process that this user cannot see" if pid is None else f"PID {proc.describe(pid)}"
