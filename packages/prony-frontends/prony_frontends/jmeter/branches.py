"""Switch and ForEach Controllers as blocks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from prony.plan.blocks import Condition, Loop
from prony.plan.step import Block, Entry
from prony_frontends.jmeter import calls
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.scope import COUNTING, TreeScope
from prony_frontends.jmeter.tree import (
    NOT_REQUESTS,
    Controller,
    LoopContext,
    TreeWalk,
    entries_of,
    round_index,
)

MOST_BRANCHES = 20
NUMBER = r"^[+-]?\d{1,10}$"
KEPT = re.compile(r"rows\d+\.\S+|(?!(?:uuid|time|user|iteration|sequence)$)[\w-]+")
"""A placeholder with a stable value: a column of the current row, or a variable."""


def _switch(node: JmxNode, scope: TreeScope, walk: TreeWalk, _loop: LoopContext) -> list[Entry]:
    """Selects a child by number from 0 or by name. The first child is the default for the empty text and
    unknown numbers, and a child named default, if any, for unknown names.
    """
    with calls.within(walk.values.label(node), walk.values) as stores:
        wanted = walk.values.text(node.value("SwitchController.value").strip(), node)
    beside = [below for below in node.below if below.tag in NOT_REQUESTS]
    children = [below for below in node.below if below.enabled and below.tag not in NOT_REQUESTS]
    if any(below.enabled and below.tag in COUNTING for below in beside):
        raise node.refused("a counter among its branches", "move the counter next to the controller")
    labels = [walk.values.constant(child.label, child) for child in children]
    constant = wanted.constant
    if constant is not None:
        chosen = _chosen(constant, labels)
        return [] if chosen is None else entries_of([*beside, children[chosen]], scope, walk, LoopContext())
    if len(children) > MOST_BRANCHES:
        raise node.refused(f"more than {MOST_BRANCHES} branches", "use If Controllers", "limit")
    branch_entries = [entries_of([*beside, child], scope, walk, LoopContext()) for child in children]
    if len(wanted.parts) == 1 and KEPT.fullmatch(wanted.parts[0].text):
        chain = _chain(wanted.engine, labels, branch_entries)
        return [*stores, *chain] if chain else []
    place = walk.values.changing(walk.values.unique("switch"), node)  # evaluated several times, drawn once
    walk.values.used.add(place)
    chain = _chain(f"${{{place}}}", labels, branch_entries)
    return [*stores, Block(set={place: wanted.engine}), *chain] if chain else []


def _chosen(value: str, labels: Sequence[str]) -> int | None:
    if re.match(NUMBER, value) or not value:
        number = int(value or "0")
        return number if 0 <= number < len(labels) else 0 if labels else None
    if value in labels:
        return labels.index(value)
    return next(
        (place for place, label in reversed([*enumerate(labels)]) if label.lower() == "default"), None
    )


def _chain(value: str, labels: Sequence[str], made: Sequence[list[Entry]]) -> list[Entry]:
    """A chain of if / else if, built from last to first."""
    if not any(made):
        return []
    last = _chosen("\0", labels)
    rest: list[Entry] = [] if last is None else list(made[last])
    first = [_is(value, NUMBER), _is(value, "^$")]
    for place in [0, *range(len(labels) - 1, 0, -1)]:
        held = [*(first if place == 0 else []), _is(value, rf"^\+?0*{place}$")]
        if labels.index(labels[place]) == place and not re.match(NUMBER, labels[place]):
            held.append(_is(value, f"^{re.escape(labels[place])}$"))
        rest = _either(Condition(any=tuple(held)), made[place], rest)
    return rest


def _is(value: str, pattern: str) -> Condition:
    return Condition(left=value, op="matches", right=pattern.replace("${", "$${"))


def _either(held: Condition, then: Sequence[Entry], otherwise: Sequence[Entry]) -> list[Entry]:
    if then:
        return [Block.model_validate({"if": held, "steps": tuple(then), "else": tuple(otherwise)})]
    return [Block(condition=Condition(negated=held), steps=tuple(otherwise))] if otherwise else []


def _for_each(node: JmxNode, scope: TreeScope, walk: TreeWalk, _loop: LoopContext) -> list[Entry]:
    """A round per variable NAME_1, NAME_2 …: constants of the plan, or all matches of an extractor."""
    values = walk.values
    base = values.constant(node.value("ForeachController.inputVal"), node)
    joint = "_" if node.flag("ForeachController.useSeparator", True) else ""
    start = values.whole(node.value("ForeachController.startIndex"), node, "ForeachController.startIndex", 0)
    end = values.whole(node.value("ForeachController.endIndex", "-1"), node, "ForeachController.endIndex", 0)
    if end == 0:
        values.note("no_rounds", "with an end of 0 or none JMeter 5.6.3 makes no rounds", node)
        return []
    element = values.changing(values.constant(node.value("ForeachController.returnVal"), node), node)
    values.used.add(element)
    index = round_index(node, walk)
    with walk.looping() as loop_exit:
        body = entries_of(node.below, scope, walk, LoopContext())
    if base in values.several and joint:
        if start > 0 or end >= 0:
            raise node.refused("a part of an extractor's matches", "leave start and end empty", "part")
        loop = Loop(each=f"{values.several[base]}_list", element=element)
    else:
        texts: list[str] = []
        number = max(start, 0) + 1
        while (end < 0 or number <= end) and (variable := values.variables.get(f"{base}{joint}{number}")):
            values.referred.add(f"{base}{joint}{number}")
            if variable.constant is None:
                raise node.refused(
                    f"the variable {base}{joint}{number} changes during the run",
                    "let an extractor take all matches (-1), or define constants in the test plan",
                    "varies",
                )
            texts.append(variable.constant)
            number += 1
        loop = Loop(over=tuple(texts), element=element)
        if not texts:
            return []
    if not body:
        return []
    used = index if index in values.used else None
    return loop_exit.looped(loop.model_copy(update={"index": used}), body)


def _inserted(node: JmxNode, scope: TreeScope, walk: TreeWalk, loop: LoopContext) -> list[Entry]:
    """The elements that `modules.expand` has inserted."""
    node.ignore("ModuleController.node_path", "IncludeController.includepath")
    return walk.below(node, scope, loop)


BRANCHES: dict[str, Controller] = {
    "SwitchController": _switch, "ForeachController": _for_each, "ModuleController": _inserted,
    "IncludeController": _inserted, "TestFragmentController": _inserted,
}  # fmt: skip
