"""Flow Control Actions that go on elsewhere: they empty a value of the user, and what would come next is
walked only while that is filled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prony.plan.blocks import Loop
from prony.plan.step import Block, Entry
from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.guards import Guard, filled

ROUND, LOOP = "round_goes_on", "loop_goes_on"
"""What the names of such values begin with."""
STILL = "yes"
"""What such a value holds until then."""


@dataclass(slots=True)
class Way:
    """A loop while it is read, the thread's own the outermost: the values by which it is left, if something
    leaves it.
    """

    round: str | None = None
    """Emptied: the next round begins."""
    whole: str | None = None
    """Emptied: no round begins any more."""

    def leave_round(self, values: KnownValues) -> Entry:
        """What goes on with the next round."""
        self.round = self.round or _value(ROUND, values)
        return Block(set={self.round: ""})

    def leave(self, values: KnownValues) -> Entry:
        """What goes on behind the loop; behind the thread's own there is nothing."""
        self.whole = self.whole or _value(LOOP, values)
        return Block(set={self.whole: ""})

    @property
    def is_left(self) -> bool:
        """Whether something in it goes on elsewhere."""
        return self.round is not None or self.whole is not None

    def looped(self, loop: Loop, steps: Sequence[Entry]) -> list[Entry]:
        """The loop around these steps."""
        inside = tuple(self.iteration(steps))
        if self.whole is None:
            return [Block(loop=loop, steps=inside)]
        ends = Guard(filled(self.whole)).loop(loop)
        return [Block(set={self.whole: STILL}), Block(loop=ends, steps=inside)]

    def iteration(self, steps: Sequence[Entry]) -> list[Entry]:
        """One round of it."""
        inside = list(steps)
        for name in (self.round, self.whole):
            if name is not None:
                inside = [Guard(filled(name)).entry(entry) for entry in inside]
        return inside if self.round is None else [Block(set={self.round: STILL}), *inside]


def leaves(entry: Block) -> bool:
    """Whether it goes on elsewhere."""
    return any(name.startswith((ROUND, LOOP)) and not text for name, text in (entry.set or {}).items())


def _value(kind: str, values: KnownValues) -> str:
    name = values.unique(kind)
    values.initial[name] = STILL
    values.used.add(name)
    return name
