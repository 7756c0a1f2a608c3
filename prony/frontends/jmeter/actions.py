"""Samplers that send nothing: Flow Control Action (once Test Action) as a pause, Debug Sampler as a row of
the log. Must not know requests.
"""

from __future__ import annotations

from prony.frontends.jmeter import timers
from prony.frontends.jmeter.jmx import JmxNode
from prony.frontends.jmeter.scope import TreeScope, inner
from prony.frontends.jmeter.tree import NOT_REQUESTS, Controller, LoopContext, TreeWalk
from prony.plan.step import Block, Entry
from prony.plan.think import Think

STOP, PAUSE, STOP_NOW = 0, 1, 2
WORDS = {STOP: "stop", STOP_NOW: "stop at once", 3: "go to the next iteration",
         4: "go to the next iteration of the loop", 5: "leave the loop"}  # fmt: skip


def _waits(node: JmxNode, scope: TreeScope, walk: TreeWalk) -> list[Entry]:
    """Timers hold before any sampler, these too."""
    own = [below for below in node.below if below.enabled]
    for below in own:
        if below.tag not in NOT_REQUESTS:
            raise node.refused(f"{below.element} below a sampler that sends nothing", "move it to a request")
    here = inner(scope, own, walk.values, walk.shared, rows_at=False)
    found: list[Entry] = []
    if here.paced is not None:
        found.append(Block(pace=timers.pace(here.paced, walk.users, walk.values, walk.shared.paces)))
    return [*found, *(Block(pause=think) for think in timers.waits(here.timers, walk.values))]


def _flow_action(node: JmxNode, scope: TreeScope, walk: TreeWalk, _loop: LoopContext) -> list[Entry]:
    values = walk.values
    action = values.whole(node.value("ActionProcessor.action"), node, "ActionProcessor.action", PAUSE)
    node.ignore("ActionProcessor.target")
    waits = _waits(node, scope, walk)
    if action != PAUSE:
        node.ignore("ActionProcessor.duration")
        raise node.refused(
            f"'{WORDS.get(action, action)}' in the middle of the plan",
            "give the group loops or a duration, and use an If Controller for what depends on a condition",
        )
    raw = node.value("ActionProcessor.duration")
    between = timers.between(raw, node, values)
    if between is not None:
        return [*waits, Block(pause=between)]
    pause_ms = values.whole(raw, node, "ActionProcessor.duration", 0)
    if pause_ms <= 0:
        return waits
    return [*waits, Block(pause=Think(kind="constant", ms=float(pause_ms)))]


def _debug(node: JmxNode, scope: TreeScope, walk: TreeWalk, _loop: LoopContext) -> list[Entry]:
    node.ignore("displayJMeterProperties", "displayJMeterVariables", "displaySystemProperties")
    name = walk.values.label(node)
    return [*_waits(node, scope, walk), silent(name)]


def silent(name: str) -> Block:
    """A sample without a request: it has a row in the log (`prony.frontends.jmeter.outline`)."""
    return Block(transaction=name, steps=(Block(pause=Think(kind="constant", ms=0.0)),))


ACTIONS: dict[str, Controller] = {"TestAction": _flow_action, "DebugSampler": _debug}
