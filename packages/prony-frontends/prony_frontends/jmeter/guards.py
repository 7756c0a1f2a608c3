"""Conditions around steps: after an error, after a Flow Control Action, in a Runtime Controller."""

from __future__ import annotations

from dataclasses import dataclass

from prony.plan.blocks import Condition, Loop
from prony.plan.step import Block, Entry, Step


def filled(name: str) -> Condition:
    """Condition that a user's value is not empty."""
    return Condition(left=f"${{{name}}}", op="!=", right="")


@dataclass(frozen=True, slots=True)
class Guard:
    """Checks a condition before each request and each wait."""

    held: Condition

    def entry(self, entry: Entry) -> Entry:
        """The entry with the check."""
        if isinstance(entry, Step):
            return self.step(entry)
        if not entry.steps:
            return Block(condition=self.held, steps=(entry,))
        update = {
            "steps": tuple(map(self.entry, entry.steps)),
            "otherwise": tuple(map(self.entry, entry.otherwise)),
            "loop": None if entry.loop is None else self.loop(entry.loop),
        }
        return entry.model_copy(update=update)

    def step(self, step: Step) -> Entry:
        """A request."""
        return Block(condition=self.held, steps=(step,))

    def loop(self, loop: Loop) -> Loop:
        """The loop with the check; a loop without a count ends when the condition fails."""
        if loop.count is not None or loop.over is not None or loop.each is not None:
            return loop
        asks = self.held if loop.condition is None else Condition(all=(loop.condition, self.held))
        return loop.model_copy(update={"condition": asks})
