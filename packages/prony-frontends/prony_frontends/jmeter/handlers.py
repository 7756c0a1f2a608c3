"""Result Status Action Handlers of some requests: the thread's action after a failure. A handler of a whole
group acts as the group's own setting (`prony_frontends.jmeter.on_error`).
"""

from __future__ import annotations

from collections.abc import Sequence

from prony.plan.blocks import Condition
from prony.plan.step import Block, Entry, Step
from prony_frontends.jmeter import last_sample
from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.leaving import LoopExit
from prony_frontends.jmeter.on_error import OF_A_GROUP, OnError, action_of

NEXT_OF_LOOP, BREAK = "5", "6"
"""Values of OnError.action that thread groups lack."""


def is_of_group(handler: JmxNode, values: KnownValues) -> bool:
    """Whether the handler applies to the whole thread group."""
    above = any(handler is above_node for above_node in values.above)
    return above and handler.value("OnError.action", "0").strip() in OF_A_GROUP


def handled(
    entries: Sequence[Entry],
    handler: JmxNode,
    sampler: JmxNode,
    loop_exits: Sequence[LoopExit],
    values: KnownValues,
) -> list[Entry]:
    """A sampler's entries with the action after its error. `loop_exits`: the enclosing loops."""
    action_text = handler.value("OnError.action", "0").strip()
    handler.finish()
    action = action_of(handler)
    guarded_entries = list(entries)
    if action in (OnError.STOP_TEST, OnError.STOP_NOW):
        if sampler.number in values.faults:
            raise handler.refused(
                f"the end of the run after '{sampler.label}', which fails without sending",
                "correct that sampler, or let the thread go on",
                "no_request",
            )
        values.note("run_ends", "a failed request ends the run at once; JMeter waits for samples", handler)
        guarded_entries = [_ending_run(entry) for entry in entries]
        leaves = loop_exits[0].leave  # until the run has ended
    elif action is OnError.STOP_THREAD:
        values.note("stopped_thread", "a stopped thread is idle, and counted, until the group ends", handler)
        leaves = loop_exits[0].leave
    elif action is OnError.NEXT_LOOP:
        leaves = loop_exits[0].leave_round
    elif action_text == NEXT_OF_LOOP:
        leaves = loop_exits[-1].leave_round
    elif action_text == BREAK:
        leaves = loop_exits[-1].leave
    else:
        raise handler.wrong(f"OnError.action from 0 to 6, found '{action_text}'")
    failed = Condition(left=f"${{{last_sample.used(values)}}}", op="==", right="false")
    return [*guarded_entries, Block(condition=failed, steps=(leaves(values),))]


def _ending_run(entry: Entry) -> Entry:
    if isinstance(entry, Step):
        return entry.model_copy(update={"ends_run_on_error": True})
    update = {
        "steps": tuple(map(_ending_run, entry.steps)),
        "otherwise": tuple(map(_ending_run, entry.otherwise)),
    }
    return entry.model_copy(update=update)
