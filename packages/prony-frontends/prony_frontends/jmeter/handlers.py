"""Result Status Action Handlers that hold for some requests: what a thread does when one of these has failed.
One that holds for a whole group is what the group's own action is (`prony_frontends.jmeter.on_error`).
"""

from __future__ import annotations

from collections.abc import Sequence

from prony.plan.blocks import Condition
from prony.plan.step import Block, Entry, Step
from prony_frontends.jmeter import last_sample
from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.leaving import Way
from prony_frontends.jmeter.on_error import OF_A_GROUP, OnError, action_of

NEXT_OF_LOOP, BREAK = "5", "6"
"""Further values of OnError.action, beside those that a thread group has too."""


def is_of_group(handler: JmxNode, values: KnownValues) -> bool:
    """Whether the thread group does what it asks for."""
    above = any(handler is one for one in values.above)
    return above and handler.value("OnError.action", "0").strip() in OF_A_GROUP


def handled(
    entries: Sequence[Entry], handler: JmxNode, sampler: JmxNode, ways: Sequence[Way], values: KnownValues
) -> list[Entry]:
    """A sampler's entries with what comes after its error. `ways`: the loops that it stands in."""
    asked = handler.value("OnError.action", "0").strip()
    handler.finish()
    action = action_of(handler)
    found = list(entries)
    if action in (OnError.STOP_TEST, OnError.STOP_NOW):
        if sampler.number in values.faults:
            raise handler.refused(
                f"the end of the run after '{sampler.label}', which fails without a request",
                "correct that sampler, or let the thread go on",
            )
        values.note(
            f"{handler.element}: a failed request ends the run at once; JMeter waits for the samples under "
            "way"
        )
        found = [_ending_run(entry) for entry in entries]
        leaves = ways[0].leave  # until the run has ended
    elif action is OnError.STOP_THREAD:
        values.note(
            f"{handler.element}: a thread that it stops sends nothing more; it counts as a user until the "
            "group ends"
        )
        leaves = ways[0].leave
    elif action is OnError.NEXT_LOOP:
        leaves = ways[0].leave_round
    elif asked == NEXT_OF_LOOP:
        leaves = ways[-1].leave_round
    elif asked == BREAK:
        leaves = ways[-1].leave
    else:
        raise handler.wrong(f"OnError.action from 0 to 6, found '{asked}'")
    failed = Condition(left=f"${{{last_sample.used(values)}}}", op="==", right="false")
    return [*found, Block(condition=failed, steps=(leaves(values),))]


def _ending_run(entry: Entry) -> Entry:
    if isinstance(entry, Step):
        return entry.model_copy(update={"ends_run_on_error": True})
    update = {
        "steps": tuple(map(_ending_run, entry.steps)),
        "otherwise": tuple(map(_ending_run, entry.otherwise)),
    }
    return entry.model_copy(update=update)
