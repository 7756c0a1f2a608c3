"""Samplers that send nothing: Flow Control Action, Debug Sampler, the plug-in's Dummy Sampler."""

from __future__ import annotations

from prony.plan.step import Block, Entry
from prony.plan.think import Think
from prony_frontends.jmeter import parameters, plain_scripts, timers
from prony_frontends.jmeter.extractors import EXTRACTORS
from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.outline import SAMPLE, note
from prony_frontends.jmeter.responses import ASSERTIONS
from prony_frontends.jmeter.scope import TreeScope, inner
from prony_frontends.jmeter.tree import NOT_REQUESTS, Controller, LoopContext, TreeWalk

STOP, PAUSE, STOP_NOW, NEXT_OF_THREAD, NEXT_OF_LOOP, BREAK = range(6)
DUMMY = "kg.apc.jmeter.samplers.DummySampler"
"""Of jmeter-plugins."""
OF_THREAD = "0"
"""Target that stops only this thread."""


def _waits(node: JmxNode, scope: TreeScope, walk: TreeWalk) -> list[Entry]:
    """Timers, User Parameters and scripts before a sampler, which apply here, too."""
    own = [below for below in node.below if below.enabled]
    for below in own:
        if below.refusal is not None:
            raise below.refused(*below.refusal)
        if below.tag not in NOT_REQUESTS:
            raise node.refused(
                f"{below.element} below a sampler that sends nothing", "move it to a request", "no_request"
            )
    here = inner(scope, own, walk.values, walk.shared, rows_at=False)
    entries = parameters.given(here.parameters, walk.values, walk.shared.given)
    entries += plain_scripts.done(here.scripts, walk.values)
    if here.paced is not None:
        entries.append(Block(pace=timers.pace(here.paced, walk.users, walk.values, walk.shared.paces)))
    return [*entries, *(Block(pause=think) for think in timers.waits(here.timers, walk.values))]


def _flow_action(node: JmxNode, scope: TreeScope, walk: TreeWalk, _loop: LoopContext) -> list[Entry]:
    values = walk.values
    action = values.whole(node.value("ActionProcessor.action"), node, "ActionProcessor.action", PAUSE)
    target = node.value("ActionProcessor.target", OF_THREAD).strip() or OF_THREAD
    waits = _waits(node, scope, walk)
    if action != PAUSE:
        node.ignore("ActionProcessor.duration")
        return [*waits, _goes_elsewhere(action, target, node, walk)]
    return [*waits, *_pause(node.value("ActionProcessor.duration"), node, values, "ActionProcessor.duration")]


def _pause(raw: str, node: JmxNode, values: KnownValues, name: str) -> list[Entry]:
    """A constant or random pause in ms."""
    between = timers.between(raw, node, values)
    if between is not None:
        return [Block(pause=between)]
    pause_ms = values.whole(raw, node, name, 0)
    return [Block(pause=Think(kind="constant", ms=float(pause_ms)))] if pause_ms > 0 else []


def _goes_elsewhere(action: int, target: str, node: JmxNode, walk: TreeWalk) -> Entry:
    thread, loop, values = walk.loop_exits[0], walk.loop_exits[-1], walk.values
    if action in (STOP, STOP_NOW):
        if target != OF_THREAD:
            raise node.refused("that all threads stop", "stop this thread, or give the group a duration")
        values.note("stopped_thread", "a stopped thread is idle, and counted, until the group ends", node)
        return thread.leave(values)
    going_on = {NEXT_OF_THREAD: thread.leave_round, NEXT_OF_LOOP: loop.leave_round, BREAK: loop.leave}
    if action not in going_on:
        raise node.wrong(f"ActionProcessor.action from 0 to 5, found {action}")
    return going_on[action](values)


def _debug(node: JmxNode, scope: TreeScope, walk: TreeWalk, _loop: LoopContext) -> list[Entry]:
    node.ignore("displayJMeterProperties", "displayJMeterVariables", "displaySystemProperties")
    sample = note(SAMPLE, walk.values.label_text(node).engine, node)
    return [*_waits(node, scope, walk), sample, *_afterwards(node, scope, walk)]


def _script(node: JmxNode, scope: TreeScope, walk: TreeWalk, _loop: LoopContext) -> list[Entry]:
    """A sampler with a translatable script: its assignments, and its row."""
    if node.refusal is not None:
        raise node.refused(*node.refusal)
    waits = _waits(node, scope, walk)
    values = walk.values
    values.note("script_translated", "script translated; its row in the log has no length and no time", node)
    sample = note(SAMPLE, values.label_text(node).engine, node)
    return [*waits, *plain_scripts.done([node], values), sample, *_afterwards(node, scope, walk)]


def _afterwards(node: JmxNode, scope: TreeScope, walk: TreeWalk) -> list[Entry]:
    """Scripts after the sampler; there is no response."""
    own = [below for below in node.below if below.enabled]
    here = [*scope.processors, *own]
    return plain_scripts.done(
        [processor for processor in here if processor.tag in plain_scripts.AFTER], walk.values
    )


def _dummy(node: JmxNode, scope: TreeScope, walk: TreeWalk, _loop: LoopContext) -> list[Entry]:
    """A response made up by the plan, after a given time."""
    values = walk.values
    taken = scope.extractors or any(below.enabled and below.tag in EXTRACTORS for below in node.below)
    held = scope.assertions or any(below.enabled and below.tag in ASSERTIONS for below in node.below)
    code = node.value("RESPONSE_CODE").strip() or "200"
    if taken or held or code != "200" or not node.flag("SUCCESFULL", True):
        raise node.refused("a response that is read, or an error", "define its values in the test plan")
    node.ignore(
        "RESPONSE_MESSAGE", "REQUEST_DATA", "RESPONSE_DATA", "LATENCY", "CONNECT", "URL", "RESULT_CLASS"
    )
    waits, raw = _waits(node, scope, walk), node.value("RESPONSE_TIME")
    if node.flag("WAITING", True):
        waits += _pause(raw, node, values, "RESPONSE_TIME")
    values.note("no_request", "sends nothing; its row in the log has no length, its time is a pause", node)
    sample = note(SAMPLE, values.label_text(node).engine, node)
    return [*waits, sample, *_afterwards(node, scope, walk)]


ACTIONS: dict[str, Controller] = {
    "TestAction": _flow_action,
    "DebugSampler": _debug,
    DUMMY: _dummy,
    **dict.fromkeys(plain_scripts.SAMPLERS, _script),
}
