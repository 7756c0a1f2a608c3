"""Rows of several engines, second by second: those of one second wait until all are there, and become one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import NamedTuple

from prony.evidence.engine import IntervalRow
from prony_hosts.load.adding import merged_row
from prony_hosts.load.host_engine import Row


class Missing(NamedTuple):
    """A second that some hosts have told, and others have not."""

    second: int
    hosts: frozenset[str]
    since_s: float


class Seconds:
    """By second and name of the host: the rows that wait."""

    def __init__(self) -> None:
        self._waiting: dict[int, dict[str, Row]] = {}
        self._since: tuple[int, float] | None = None
        """Which second is waited for, and since when."""

    def add(self, host: str, row: Row) -> None:
        """One more; the second is that in which it ended."""
        second = -round(-row[0].t_ms // 1000)
        self._waiting.setdefault(second, {})[host] = row

    def complete(self, going: Set[str]) -> Iterator[IntervalRow]:
        """The merged rows of seconds that every host has told from which rows still come."""
        for second in sorted(self._waiting):
            there = self._waiting[second]
            if going - there.keys():
                return
            del self._waiting[second]
            yield merged(there)

    def missing(self, going: Set[str], now_s: float) -> Missing | None:
        """What the earliest second that waits lacks; None where none waits."""
        if not self._waiting:
            self._since = None
            return None
        second = min(self._waiting)
        if self._since is None or self._since[0] != second:
            self._since = (second, now_s)
        return Missing(second, frozenset(going - self._waiting[second].keys()), self._since[1])


def merged(rows: Mapping[str, Row]) -> IntervalRow:
    """The rows of one second as one."""
    parts = list(rows.values())
    return merged_row([row for row, _ in parts], [counts for _, counts in parts if counts is not None])
