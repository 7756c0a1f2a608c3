"""Flow Control Actions that jump: they empty a value of the user, and the skipped steps are guarded by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prony.plan.blocks import Loop
from prony.plan.step import Block, Entry
from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.guards import Guard, filled

ROUND, LOOP = "round_goes_on", "loop_goes_on"
"""Prefix of these values."""
STILL = "yes"
"""Initial value."""


@dataclass(slots=True)
class LoopExit:
    """A loop being translated, the thread's own outermost, with the values that leave it, if used."""

    round: str | None = None
    """Emptied to start the next round."""
    whole: str | None = None
    """Emptied to end the loop."""

    def leave_round(self, values: KnownValues) -> Entry:
        """A jump to the next round."""
        self.round = self.round or values.own_value(ROUND, STILL)
        return Block(set={self.round: ""})

    def leave(self, values: KnownValues) -> Entry:
        """A jump behind the loop; for the thread's own loop, to its end."""
        self.whole = self.whole or values.own_value(LOOP, STILL)
        return Block(set={self.whole: ""})

    @property
    def is_left(self) -> bool:
        """Whether a step jumps out of it."""
        return self.round is not None or self.whole is not None

    def looped(self, loop: Loop, steps: Sequence[Entry]) -> list[Entry]:
        """The loop around these steps."""
        inside = tuple(self.iteration(steps))
        if self.whole is None:
            return [Block(loop=loop, steps=inside)]
        ends = Guard(filled(self.whole)).loop(loop)
        return [Block(set={self.whole: STILL}), Block(loop=ends, steps=inside)]

    def iteration(self, steps: Sequence[Entry]) -> list[Entry]:
        """A round of the loop."""
        inside = list(steps)
        for name in (self.round, self.whole):
            if name is not None:
                inside = [Guard(filled(name)).entry(entry) for entry in inside]
        return inside if self.round is None else [Block(set={self.round: STILL}), *inside]


def leaves(entry: Block) -> bool:
    """Whether the block is a jump."""
    return any(name.startswith((ROUND, LOOP)) and not text for name, text in (entry.set or {}).items())
