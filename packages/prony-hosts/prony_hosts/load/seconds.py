"""Merges rows of several engines second by second, once every engine has sent its row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import NamedTuple

from prony.evidence.engine import IntervalRow
from prony_hosts.load.adding import merged_row
from prony_hosts.load.host_engine import Row


class Missing(NamedTuple):
    """A second for which some hosts have sent their row and others have not."""

    second: int
    hosts: frozenset[str]
    since_s: float


class Seconds:
    """Waiting rows by second and host."""

    def __init__(self) -> None:
        self._waiting: dict[int, dict[str, Row]] = {}
        self._since: tuple[int, float] | None = None
        """The earliest incomplete second, and since when it is waited for."""

    def add(self, host: str, row: Row) -> None:
        """Adds a row to the second in which it ended."""
        second = -round(-row[0].t_ms // 1000)
        self._waiting.setdefault(second, {})[host] = row

    def complete(self, going: Set[str]) -> Iterator[IntervalRow]:
        """Merged rows of the seconds for which all hosts in `going` have sent theirs."""
        for second in sorted(self._waiting):
            there = self._waiting[second]
            if going - there.keys():
                return
            del self._waiting[second]
            yield merged(there)

    def missing(self, going: Set[str], now_s: float) -> Missing | None:
        """The hosts whose row the earliest waiting second lacks; None when nothing waits."""
        if not self._waiting:
            self._since = None
            return None
        second = min(self._waiting)
        if self._since is None or self._since[0] != second:
            self._since = (second, now_s)
        return Missing(second, frozenset(going - self._waiting[second].keys()), self._since[1])


def merged(rows: Mapping[str, Row]) -> IntervalRow:
    """Merges the rows of one second."""
    parts = list(rows.values())
    return merged_row([row for row, _ in parts], [counts for _, counts in parts if counts is not None])
