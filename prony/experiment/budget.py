"""The time that blocks may take: is there room for another one? No clock is read here.

Must not know what is measured, nor why another block is wanted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from prony.evidence.trial import TrialRecord


@dataclass(slots=True)
class Budget:
    """`whole_s` in all; `block(now)` is told when a block begins, the next one being its end."""

    whole_s: float
    spent_s: float = 0.0
    """In earlier runs of the experiment."""
    longest_s: float = 0.0
    """Of the blocks that ended."""
    _first: float | None = field(default=None)
    _begun: float | None = field(default=None)

    @classmethod
    def of(cls, whole_s: float, earlier: Iterable[TrialRecord]) -> Budget:
        """With what the trials of earlier runs took."""
        blocks: dict[int, float] = {}
        for one in earlier:
            took_s = max(0.0, (one.ended_at - one.started_at).total_seconds())
            blocks[one.block] = blocks.get(one.block, 0.0) + took_s
        return cls(whole_s, sum(blocks.values()), max(blocks.values(), default=0.0))

    def block(self, now_s: float) -> None:
        """A block begins now, by any clock that does not go back."""
        if self._first is None:
            self._first = now_s
        self._ended(now_s)
        self._begun = now_s

    def has_room(self, now_s: float) -> bool:
        """Whether a block that begins now ends in time, if it takes no longer than the longest so far; the
        first one always has.
        """
        self._ended(now_s)
        if not self.longest_s:
            return True
        used_s = self.spent_s + (0.0 if self._first is None else now_s - self._first)
        return used_s + self.longest_s <= self.whole_s

    def _ended(self, now_s: float) -> None:
        if self._begun is not None:
            self.longest_s = max(self.longest_s, now_s - self._begun)
            self._begun = None
