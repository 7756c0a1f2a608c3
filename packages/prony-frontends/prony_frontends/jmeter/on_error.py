"""A thread's action after a sampler error: continue, start the next loop, stop, or stop the test.

Each request captures its status, which succeeds only for an expected response; the following steps are
guarded by that capture.
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
from prony_frontends.jmeter.outline import BETWEEN, noted


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
"""OnError.action of the handler -> the thread group's value."""
OF_A_GROUP = frozenset(_HANDLED)


def of_group(node: JmxNode, values: KnownValues) -> OnError:
    """The action of a thread group."""
    text = values.constant(node.value("ThreadGroup.on_sample_error"), node).strip() or "continue"
    try:
        own_action = OnError(text)
    except ValueError as fault:
        words = ", ".join(OnError)
        raise node.wrong(f"ThreadGroup.on_sample_error to be one of {words}, found '{text}'") from fault
    handlers = [
        handler for handler in (*values.above, *node.below) if handler.tag == HANDLER and handler.enabled
    ]
    if not handlers:
        return own_action
    if own_action is not OnError.GO_ON or len(handlers) > 1:
        raise handlers[-1].refused(
            "a second action after an error", "keep one, here or in the thread group", "conflict"
        )
    action = action_of(handlers[0])
    if action is None:  # relates to a request's loop
        return own_action
    node.below = [child for child in node.below if child is not handlers[0]]
    handlers[0].finish()
    return action


def action_of(handler: JmxNode) -> OnError | None:
    """The action of a handler; None for actions that thread groups lack."""
    return _HANDLED.get(handler.value("OnError.action", "0").strip())


def guarded(entries: Sequence[Entry], action: OnError, node: JmxNode, values: KnownValues) -> list[Entry]:
    """The steps of an iteration with this action after errors."""
    if action is OnError.GO_ON:
        return list(entries)
    name = values.unique("went_well")
    values.initial[name] = "yes"
    values.used.add(name)
    walk = _Noting(filled(name), name, node, frozenset(values.faults), ends_run=action in STOPS_ALL)
    guarded_entries = [walk.entry(entry) for entry in entries]
    if action is OnError.NEXT_LOOP:
        return [Block(set={name: "yes"}), *guarded_entries]
    if action is OnError.STOP_THREAD:
        values.note(
            "stopped_thread",
            "a thread stopped by a failed request sends nothing more; it counts as a user "
            "until the group ends",
            node,
        )
    elif action in STOPS_ALL:
        values.note("run_ends", "a failed request ends the run at once; JMeter waits for samples", node)
    return guarded_entries


@dataclass(frozen=True, slots=True)
class _Noting(Guard):
    """Guards each step of a group; each request sets the guard."""

    name: str
    node: JmxNode
    faults: frozenset[int]
    """Samplers that fail without a request, by number."""
    ends_run: bool
    """Whether a failed request ends the run for all groups."""

    def entry(self, entry: Entry) -> Entry:
        sample = noted(entry)
        if sample is None or parted(sample)[1] not in self.faults:
            return Guard.entry(self, entry)
        if self.ends_run:
            raise self.node.refused(
                f"the end of the run after '{sample[1:].partition(BETWEEN)[0]}', which fails without sending",
                "correct that sampler, or let the thread go on",
                "no_request",
            )
        return Block(condition=self.held, steps=(entry, Block(set={self.name: ""})))

    def step(self, step: Step) -> Entry:
        noted = {**step.capture, self.name: Capture(status=True, optional=True)}
        once = step.model_copy(update={"repeat": 1, "capture": noted, "ends_run_on_error": self.ends_run})
        guarded_step = Block(condition=self.held, steps=(Block(set={self.name: ""}), once))
        return (
            guarded_step if step.repeat == 1 else Block(loop=Loop(count=step.repeat), steps=(guarded_step,))
        )
