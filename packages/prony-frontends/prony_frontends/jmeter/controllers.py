"""JMeter's logic controllers as blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations

from prony.plan.blocks import Condition, Loop, Share
from prony.plan.step import Block, Entry, Step
from prony_frontends.jmeter import conditions
from prony_frontends.jmeter.actions import ACTIONS
from prony_frontends.jmeter.branches import BRANCHES
from prony_frontends.jmeter.conditions import ConditionOrConstant
from prony_frontends.jmeter.functions import KnownValues, Text
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.marks import marked
from prony_frontends.jmeter.outline import BEGIN, END, Style, note, noted, sample_is_certain
from prony_frontends.jmeter.plugin_controllers import PLUGIN_CONTROLLERS
from prony_frontends.jmeter.requests import SAMPLERS
from prony_frontends.jmeter.scope import TreeScope
from prony_frontends.jmeter.tree import (
    CONTROLLERS,
    NOT_REQUESTS,
    LoopContext,
    TreeWalk,
    entries_of,
    round_index,
    together,
)
from prony_frontends.jmeter.whiles import WHILES

BY_NUMBER, BY_PERCENT = 0, 1
MOST_ORDERED = 5
"""Limit on elements in random order: all n! orders are written out."""
CERTAIN = ("GenericController", "RecordingController", "TransactionController", "LoopController")
"""Controllers that always run their children."""
MOST_REPEATS = 1_000_000_000


def loops(node: JmxNode, values: KnownValues) -> int:
    """Loops of a controller; -1: for ever."""
    return values.whole(node.value("LoopController.loops"), node, "LoopController.loops", 1)


def _simple(node: JmxNode, scope: TreeScope, walk: TreeWalk, loop: LoopContext) -> list[Entry]:
    return walk.below(node, scope, loop)


def _transaction(node: JmxNode, scope: TreeScope, walk: TreeWalk, loop: LoopContext) -> list[Entry]:
    style = Style(node.flag("TransactionController.parent"), node.flag("TransactionController.includeTimers"))
    if style.timers:
        walk.values.note(
            "transaction_time",
            "in Prony's figures its time is the sum of its requests, without the pauses "
            "between them; its rows in the log include them",
            node,
        )
    label = walk.values.label_text(node)
    steps = walk.below(node, scope, loop)
    if not steps:
        return []
    if label.constant is None or not sample_is_certain(steps):
        steps = [note(BEGIN, label.engine, node), *steps]
    if not sample_is_certain(steps, last=True):
        steps = [*steps, note(END, "", node)]
    name = marked(node.label if label.constant is None else label.constant, node)
    walk.shared.transactions[name] = style
    return [Block(transaction=name, steps=tuple(steps))]


def _loop(node: JmxNode, scope: TreeScope, walk: TreeWalk, _loop: LoopContext) -> list[Entry]:
    counted = walk.values.text(node.value("LoopController.loops"), node)
    if counted.constant is None:
        return _counted_loop(node, scope, walk, counted)
    number = loops(node, walk.values)
    again = node.flag("LoopController.continue_forever", True)
    if number == 0:
        return []
    if number < 0 and not walk.endless:
        raise node.refused("an endless loop in a run without an end", "set a count, or a duration", "endless")
    name = round_index(node, walk)
    with walk.looping() as loop_exit:
        body = entries_of(node.below, scope, walk, LoopContext(round=name))
    if not body:
        return []
    index = name if name in walk.values.used else None
    plain = index is None and not loop_exit.is_left
    if number == 1 and plain:
        entries: list[Entry] = body
    elif number > 0 and plain and len(body) == 1 and isinstance(body[0], Step):
        repeat = body[0].repeat * number
        if repeat > MOST_REPEATS:
            raise node.refused(f"{repeat} requests in sequence", "give the group a duration", "limit")
        entries = [body[0].model_copy(update={"repeat": repeat})]
    else:
        entries = loop_exit.looped(Loop(count=number if number > 0 else None, index=index), body)
    # JMeter then considers the controller done after its first loops.
    return entries if again else [Block(once=True, steps=tuple(entries))]


def _counted_loop(node: JmxNode, scope: TreeScope, walk: TreeWalk, counted: Text) -> list[Entry]:
    """A count of the run, read when the loop begins: below 0 it is endless, other texts are 0."""
    values = walk.values
    if not node.flag("LoopController.continue_forever", True):
        raise node.refused("a changing count of loops for the first visit only", "write a constant", "varies")
    name = round_index(node, walk)
    with walk.looping() as loop_exit:
        body = entries_of(node.below, scope, walk, LoopContext(round=name))
    if not body:
        return []
    most, begun = (values.own_value(kind, "0") for kind in ("rounds", "begun"))
    limit = f"${{{most}}}"
    goes_on = Condition(any=(
        Condition(left=f"${{{begun}}}", op="<", right=limit), Condition(left=limit, op="<", right="0"),
    ))  # fmt: skip
    held = Condition(all=(Condition(left=limit, op="matches", right=r"^[+-]?\d{1,10}$"), goes_on))
    loop = Loop(condition=held, index=name if name in values.used else None)
    counts = Block(set={begun: f"${{{begun} | plus 1}}"})
    return [Block(set={most: counted.engine, begun: "0"}), *loop_exit.looped(loop, [counts, *body])]


def _once(node: JmxNode, scope: TreeScope, walk: TreeWalk, loop: LoopContext) -> list[Entry]:
    """Runs in the first round of the enclosing loop, or else once per user."""
    steps = walk.below(node, scope, loop)
    if not steps:
        return []
    if loop.round is None:
        return [Block(once=True, steps=tuple(steps))]
    walk.values.used.add(loop.round)
    first = Condition(left=f"${{{loop.round}}}", op="==", right="0")
    return [Block(condition=first, steps=tuple(steps))]


def _if(node: JmxNode, scope: TreeScope, walk: TreeWalk, loop: LoopContext) -> list[Entry]:
    raw = node.value("IfController.condition").strip()
    held: ConditionOrConstant | None
    if node.flag("IfController.useExpression"):
        held = conditions.expression(raw, node, walk.values)
        if held is None:
            held = conditions.is_text(raw, "true", node, walk.values)
    else:
        held = conditions.script(raw, node, walk.values)
    every = node.flag("IfController.evaluateAll")
    if held is False:
        return []
    steps = walk.below(node, scope, loop)
    if not steps or held is True:
        return steps
    active = [below for below in node.below if below.enabled and below.tag not in NOT_REQUESTS]
    if not every or (len(active) == 1 and active[0].tag in SAMPLERS):
        return [Block(condition=held, steps=tuple(steps))]
    if any(below.tag not in SAMPLERS for below in active) or len(active) > 20:
        raise node.refused("'Evaluate for all children' of controllers, or of over 20 requests", "untick it")
    return _checked_each_time(held, steps)


def _checked_each_time(held: ConditionOrConstant, found: Sequence[Entry]) -> list[Entry]:
    """Leaves out the remaining children once the condition fails."""
    entries: list[Entry] = []
    piece: list[Entry] = []
    for entry in reversed(found):
        if isinstance(entry, Step) and piece:
            entries = [Block(condition=held, steps=(*piece, *entries))]
            piece = []
        piece.insert(0, entry)
    return [Block(condition=held, steps=(*piece, *entries))]


def _critical_section(node: JmxNode, scope: TreeScope, walk: TreeWalk, loop: LoopContext) -> list[Entry]:
    """A Critical Section Controller, supported for a single thread, which never waits."""
    if walk.users != 1:
        raise node.refused("threads that wait for each other", "leave it out, or use one thread")
    node.ignore("CriticalSectionController.lockName")
    return walk.below(node, scope, loop)


def _children(
    node: JmxNode, scope: TreeScope, walk: TreeWalk, loop: LoopContext, one_each: bool
) -> list[Entry]:
    """Each child as one entry; `one_each`: a visit sends one request of a nested controller."""
    beside = [below for below in node.below if below.tag in NOT_REQUESTS]
    here = replace(loop, round=None)
    if any(below.enabled and below.tag in ("CounterConfig", "RandomVariableConfig") for below in beside):
        raise node.refused("a counter among its branches", "move the counter next to the controller")
    branches: list[Entry] = []
    for child in node.below:
        if not child.enabled or child.tag in NOT_REQUESTS:
            continue
        entries = entries_of([*beside, child], scope, walk, here)
        if child.tag in SAMPLERS:
            branches.append(together(entries))
            continue
        if child.tag not in CERTAIN or not entries:
            raise child.refused(
                "a controller that may send nothing, as one of the branches",
                "put it into a Simple Controller with a request, or choose among requests",
                "no_request",
            )
        if one_each:
            raise child.refused(
                "a controller among the branches, with one request at a time",
                "untick 'Ignore sub-controller blocks', or choose among requests",
                "nested",
            )
        if not _certain(entries):
            raise child.refused(
                "a branch that may send nothing (JMeter skips it)", "add a request to it", "no_request"
            )
        branches.append(together(entries))
    return branches


def _certain(entries: Sequence[Entry]) -> bool:
    """Whether something is always sent."""
    return any(
        isinstance(entry, Step)
        or noted(entry) is not None
        or bool(entry.choice)
        or ((entry.transaction or entry.group or (entry.loop and entry.loop.count)) and _certain(entry.steps))
        for entry in entries
    )


def _choice(node: JmxNode, scope: TreeScope, walk: TreeWalk, loop: LoopContext, kind: str) -> list[Entry]:
    style = walk.values.whole(node.value("InterleaveControl.style"), node, "InterleaveControl.style", 0)
    if node.flag("InterleaveControl.accrossThreads") and kind == "interleave" and walk.users != 1:
        raise node.refused("turns shared by all threads", "untick 'Interleave across threads'", "shared")
    branches = _children(node, scope, walk, loop, one_each=style == 0)
    if len(branches) < 2:
        return branches
    return [Block.model_validate({"choice": kind, "steps": tuple(branches)})]


def _shuffled(node: JmxNode, scope: TreeScope, walk: TreeWalk, loop: LoopContext) -> list[Entry]:
    branches = _children(node, scope, walk, loop, one_each=False)
    if len(branches) < 2:
        return branches
    if len(branches) > MOST_ORDERED:
        raise node.refused(
            f"{len(branches)} elements in random order", f"use at most {MOST_ORDERED}", "limit"
        )
    orders = tuple(Block(group=True, steps=order) for order in permutations(branches))
    return [Block(choice="random", steps=orders)]


def _share(node: JmxNode, scope: TreeScope, walk: TreeWalk, loop: LoopContext) -> list[Entry]:
    values = walk.values
    style = values.whole(node.value("ThroughputController.style"), node, "ThroughputController.style", 0)
    each = node.flag("ThroughputController.perThread") or walk.users == 1
    number, percent = (
        values.number(node.value(f"ThroughputController.{name}"), node, f"ThroughputController.{name}", usual)
        for name, usual in (("maxThroughput", 1.0), ("percentThroughput", 100.0))
    )
    if style not in (BY_NUMBER, BY_PERCENT):
        raise node.wrong(f"ThroughputController.style to be 0 or 1, found {style}")
    steps = walk.below(node, scope, loop)
    if not steps or (percent <= 0 if style == BY_PERCENT else number < 1):
        return []
    if style == BY_PERCENT and percent >= 100:
        return steps
    if style == BY_PERCENT:
        share = Share(percent=percent, per="user" if each else "run", rounding="nearest")
        return [Block(share=share, steps=tuple(steps))]
    if each and number == 1:
        return [Block(once=True, steps=tuple(steps))]
    name = values.unique("visit")
    counter = f"${{sequence name={name}{' per=user' if each else ''}}}"
    few = Condition(left=f"${{{name}}}", op="<=", right=str(int(number)))
    return [Block(set={name: counter}), Block(condition=few, steps=tuple(steps))]


CONTROLLERS.update(
    {
        "GenericController": _simple,
        "RecordingController": _simple,
        "TransactionController": _transaction,
        "LoopController": _loop,
        "OnceOnlyController": _once,
        "IfController": _if,
        "CriticalSectionController": _critical_section,
        "InterleaveControl": partial(_choice, kind="interleave"),
        "RandomController": partial(_choice, kind="random"),
        "RandomOrderController": _shuffled,
        "ThroughputController": _share,
        **BRANCHES,
        **PLUGIN_CONTROLLERS,
        **WHILES,
        **ACTIONS,
    }
)
