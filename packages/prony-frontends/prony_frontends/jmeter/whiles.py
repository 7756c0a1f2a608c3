"""Loops that end by themselves: While Controllers (condition, failure), Runtime Controllers (time)."""

from __future__ import annotations

from prony.plan.blocks import Condition, Loop
from prony.plan.step import Block, Entry
from prony_frontends.jmeter import conditions, last_sample
from prony_frontends.jmeter.guards import Guard
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.scope import TreeScope
from prony_frontends.jmeter.tree import Controller, LoopContext, TreeWalk, entries_of, round_index

LAST = "LAST"
"""The last request succeeded. A While Controller without a condition checks it after a round."""
NOW = "${time}"
"""In ms since 1970."""


def goes_on(node: JmxNode) -> bool:
    """Whether only failed requests end this While Controller."""
    return node.value("WhileController.condition").strip().upper() in ("", LAST, "TRUE")


def _while(node: JmxNode, scope: TreeScope, walk: TreeWalk, _loop: LoopContext) -> list[Entry]:
    raw = node.value("WhileController.condition").strip()
    if raw.upper() in ("", LAST):
        return _while_right(node, scope, walk, asks_first=bool(raw))
    if f"__jm__{node.label}__idx" in raw:
        raise node.refused("the condition with its own index", "count the rounds with a Counter")
    held = conditions.expression(raw, node, walk.values)
    if held is False:
        return []
    if held is None:
        held = conditions.negated(conditions.is_text(raw, "false", node, walk.values))
    if held is True and not walk.endless:
        raise node.refused("a condition that always holds", "use a Loop Controller", "endless")
    return _rounds(node, scope, walk, Loop(condition=held))


def _while_right(node: JmxNode, scope: TreeScope, walk: TreeWalk, asks_first: bool) -> list[Entry]:
    right = f"${{{last_sample.used(walk.values)}}}"
    if asks_first:
        return _rounds(node, scope, walk, Loop(condition=Condition(left=right, op="!=", right="false")))
    again = walk.values.unique("again")
    walk.values.initial[again] = "true"
    walk.values.used.add(again)
    loop = Loop(condition=Condition(left=f"${{{again}}}", op="!=", right="false"))
    rounds = _rounds(node, scope, walk, loop, Block(set={again: right}))
    return [Block(set={again: "true"}), *rounds] if rounds else []


def _rounds(node: JmxNode, scope: TreeScope, walk: TreeWalk, loop: Loop, *after: Entry) -> list[Entry]:
    """`after`: entries at the end of each round."""
    name = round_index(node, walk)
    with walk.looping() as loop_exit:
        body = entries_of(node.below, scope, walk, LoopContext())
    if not body:
        return []
    index = name if name in walk.values.used else None
    return loop_exit.looped(loop.model_copy(update={"index": index}), [*body, *after])


def _runtime(node: JmxNode, scope: TreeScope, walk: TreeWalk, _loop: LoopContext) -> list[Entry]:
    """Repeats until its time is over; then sends nothing more."""
    values = walk.values
    seconds = values.whole(node.value("RunTime.seconds"), node, "RunTime.seconds", 0)
    if seconds <= 0:
        values.note("no_rounds", "its time is 0; as in JMeter nothing in it runs", node)
        return []
    body = walk.below(node, scope, LoopContext())
    if not body:
        return []
    end = values.unique("until_ms")
    values.initial[end] = "0"
    values.used.add(end)
    held = Condition(left=NOW, op="<", right=f"${{{end}}}")
    guard = Guard(held)
    until = f"${{date shift_s={seconds} [unix_timestamp precision:millisecond]}}"
    steps = tuple(guard.entry(entry) for entry in body)
    return [Block(set={end: until}), Block(loop=Loop(condition=held), steps=steps)]


WHILES: dict[str, Controller] = {"WhileController": _while, "RunTime": _runtime}
