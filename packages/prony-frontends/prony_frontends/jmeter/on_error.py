"""What a thread does after a sampler's error: go on, begin its next loop, stop, or stop the whole test.

A user notes whether its last request went well, by capturing the status, which is taken only from a response
that is as expected; whatever comes next is walked only if it did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from prony.plan.blocks import Loop
from prony.plan.response import Capture
from prony.plan.step import Block, Entry, Step
from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.guards import Guard, filled
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.marks import parted
from prony_frontends.jmeter.outline import silent_name


class OnError(StrEnum):
    """ThreadGroup.on_sample_error."""

    GO_ON = "continue"
    NEXT_LOOP = "startnextloop"
    STOP_THREAD = "stopthread"
    STOP_TEST = "stoptest"
    STOP_NOW = "stoptestnow"


STOPS_ALL = (OnError.STOP_TEST, OnError.STOP_NOW)
HANDLER = "ResultAction"
"""A Result Status Action Handler."""
_HANDLED = {"0": OnError.GO_ON, "1": OnError.STOP_THREAD, "2": OnError.STOP_TEST, "3": OnError.STOP_NOW,
            "4": OnError.NEXT_LOOP}  # fmt: skip
"""Its OnError.action -> what a thread group calls it."""
OF_A_GROUP = frozenset(_HANDLED)


def of_group(node: JmxNode, values: KnownValues) -> OnError:
    """What this thread group asks for."""
    text = values.constant(node.value("ThreadGroup.on_sample_error"), node).strip() or "continue"
    try:
        found = OnError(text)
    except ValueError as fault:
        words = ", ".join(OnError)
        raise node.wrong(f"ThreadGroup.on_sample_error to be one of {words}, found '{text}'") from fault
    handlers = [one for one in (*values.above, *node.below) if one.tag == HANDLER and one.enabled]
    if not handlers:
        return found
    if found is not OnError.GO_ON or len(handlers) > 1:
        raise handlers[-1].refused("a second action after an error", "keep one, here or in the thread group")
    action = action_of(handlers[0])
    if action is None:  # of the loop that a request stands in
        return found
    node.below = [one for one in node.below if one is not handlers[0]]
    handlers[0].finish()
    return action


def action_of(handler: JmxNode) -> OnError | None:
    """What a handler asks for; None for what no thread group has."""
    return _HANDLED.get(handler.value("OnError.action", "0").strip())


def guarded(entries: Sequence[Entry], action: OnError, node: JmxNode, values: KnownValues) -> list[Entry]:
    """The steps of an iteration with this action after an error."""
    if action is OnError.GO_ON:
        return list(entries)
    name = values.unique("went_well")
    values.initial[name] = "yes"
    values.used.add(name)
    walk = _Noting(filled(name), name, node, frozenset(values.faults), ends_run=action in STOPS_ALL)
    found = [walk.entry(entry) for entry in entries]
    if action is OnError.NEXT_LOOP:
        return [Block(set={name: "yes"}), *found]
    if action is OnError.STOP_THREAD:
        values.note(
            f"{node.element}: a thread that a failed request stops sends nothing more; it counts as a user "
            "until the group ends"
        )
    elif action in STOPS_ALL:
        values.note(
            f"{node.element}: a failed request ends the run at once; JMeter waits for the samples under way"
        )
    return found


@dataclass(frozen=True, slots=True)
class _Noting(Guard):
    """One group's steps with the guard before each, which each request sets anew."""

    name: str
    node: JmxNode
    faults: frozenset[int]
    """Samplers that fail without a request, by their numbers."""
    ends_run: bool
    """A request that fails ends it for all groups."""

    def entry(self, entry: Entry) -> Entry:
        silent = silent_name(entry)
        if silent is None or parted(silent)[1] not in self.faults:
            return Guard.entry(self, entry)
        if self.ends_run:
            raise self.node.refused(
                f"the end of the run after '{parted(silent)[0]}', which fails without a request",
                "correct that sampler, or let the thread go on",
            )
        return Block(condition=self.held, steps=(entry, Block(set={self.name: ""})))

    def step(self, step: Step) -> Entry:
        noted = {**step.capture, self.name: Capture(status=True, optional=True)}
        once = step.model_copy(update={"repeat": 1, "capture": noted, "ends_run_on_error": self.ends_run})
        made = Block(condition=self.held, steps=(Block(set={self.name: ""}), once))
        return made if step.repeat == 1 else Block(loop=Loop(count=step.repeat), steps=(made,))
