"""A series of seconds, thinned to minutes after half an hour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

FINE_ROWS = 1800
MERGED_ROWS = 60
"""After that, this many become one."""


Row = TypeVar("Row")


class Thinned(Generic[Row]):
    """`merge` makes one row of several; `together`: whether two neighbours may be merged."""

    def __init__(
        self, merge: Callable[[Sequence[Row]], Row], together: Callable[[Row, Row], bool] | None = None
    ) -> None:
        self._merge = merge
        self._together = together
        self._merged: list[Row] = []
        self._newest: list[Row] = []
        self._coarse = False

    def add(self, row: Row) -> None:
        if self._coarse:
            self._take(row)
            return
        self._newest.append(row)
        if len(self._newest) > FINE_ROWS:
            self._coarse = True
            fine, self._newest = self._newest, []
            for old in fine:
                self._take(old)

    def _take(self, row: Row) -> None:
        if self._newest and self._together is not None and not self._together(self._newest[-1], row):
            self._fold()
        self._newest.append(row)
        if len(self._newest) == MERGED_ROWS:
            self._fold()

    def _fold(self) -> None:
        self._merged.append(self._merge(self._newest))
        self._newest = []

    @property
    def last(self) -> Row:
        """The newest row, or the minute that it ended. Raises IndexError before the first."""
        return self._newest[-1] if self._newest else self._merged[-1]

    @property
    def rows(self) -> tuple[Row, ...]:
        """Oldest first; the minute under way is one row."""
        if not self._coarse:
            return tuple(self._newest)
        tail = (self._merge(self._newest),) if self._newest else ()
        return (*self._merged, *tail)
