"""What a thread does after a sampler's error: go on, begin its next loop, stop, or stop the whole test.

A user notes whether its last request went well, by capturing the status, which is taken only from a response
that is as expected; whatever comes next is walked only if it did. Must not know how requests are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from prony.frontends.jmeter.functions import KnownValues
from prony.frontends.jmeter.jmx import JmxNode
from prony.plan.blocks import Condition, Loop
from prony.plan.response import Capture
from prony.plan.step import Block, Entry, Step


class OnError(StrEnum):
    """ThreadGroup.on_sample_error."""

    GO_ON = "continue"
    NEXT_LOOP = "startnextloop"
    STOP_THREAD = "stopthread"
    STOP_TEST = "stoptest"
    STOP_NOW = "stoptestnow"


STOPS_ALL = (OnError.STOP_TEST, OnError.STOP_NOW)


def of_group(node: JmxNode, values: KnownValues) -> OnError:
    """What this thread group asks for."""
    text = values.constant(node.value("ThreadGroup.on_sample_error"), node).strip() or "continue"
    try:
        return OnError(text)
    except ValueError as fault:
        words = ", ".join(OnError)
        raise node.wrong(f"ThreadGroup.on_sample_error to be one of {words}, found '{text}'") from fault


def guarded(entries: Sequence[Entry], action: OnError, node: JmxNode, values: KnownValues) -> list[Entry]:
    """The steps of an iteration with this action after an error."""
    if action is OnError.GO_ON:
        return list(entries)
    name = values.unique("went_well")
    values.initial[name] = "yes"
    values.used.add(name)
    walk = _Walk(name, Condition(left=f"${{{name}}}", op="!=", right=""))
    found = [walk.entry(entry) for entry in entries]
    if action is OnError.NEXT_LOOP:
        return [Block(set={name: "yes"}), *found]
    if action is OnError.STOP_THREAD:
        values.note(
            f"{node.element}: a thread that a failed request stops sends nothing more; it counts as a user "
            "until the group ends"
        )
    else:
        values.note(f"{node.element}: a failed request stops its thread, and within about a second the run")
    return found


class _Walk:
    """One group's steps with the guard before each."""

    def __init__(self, name: str, well: Condition) -> None:
        self._name = name
        self._well = well

    def entry(self, entry: Entry) -> Entry:
        if isinstance(entry, Step):
            return self._step(entry)
        if not entry.steps:
            return Block(condition=self._well, steps=(entry,))
        update = {
            "steps": tuple(map(self.entry, entry.steps)),
            "otherwise": tuple(map(self.entry, entry.otherwise)),
        }
        return entry.model_copy(update={**update, "loop": self._loop(entry.loop)})

    def _step(self, step: Step) -> Entry:
        noted = {**step.capture, self._name: Capture(status=True, optional=True)}
        once = step.model_copy(update={"repeat": 1, "capture": noted})
        made = Block(condition=self._well, steps=(Block(set={self._name: ""}), once))
        return made if step.repeat == 1 else Block(loop=Loop(count=step.repeat), steps=(made,))

    def _loop(self, loop: Loop | None) -> Loop | None:
        """One that has no number of its own ends with the error."""
        if loop is None or loop.count is not None or loop.over is not None or loop.each is not None:
            return loop
        own = loop.condition
        asks = self._well if own is None else Condition(all=(own, self._well))
        return loop.model_copy(update={"condition": asks})
