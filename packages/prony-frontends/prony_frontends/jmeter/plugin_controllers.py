"""Controllers of jmeter-plugins: bzm - Weighted Switch Controller, bzm - Parallel Controller."""

from __future__ import annotations

import math
from collections.abc import Sequence

from prony.plan.blocks import MOST_AT_ONCE, Condition, Parallel
from prony.plan.step import Block, Entry
from prony_frontends.jmeter import plain_scripts
from prony_frontends.jmeter.extractors import EXTRACTORS
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.scope import COUNTING, TreeScope
from prony_frontends.jmeter.tree import NOT_REQUESTS, Controller, LoopContext, TreeWalk, entries_of, together

MOST_VISITS = 1000
"""Limit on the sum of weights, reduced: visits until their order repeats."""


def order(weights: Sequence[int]) -> list[int]:
    """The branches of visits until their order repeats: each time the one whose share is furthest behind, the
    first of several; where all have theirs, the one with the largest weight.
    """
    total = sum(weights)
    counts = [0] * len(weights)
    visits: list[int] = []
    for visit in range(total // math.gcd(*weights)):
        behind = [weight / total - (count / visit if visit else 0.0)
                  for weight, count in zip(weights, counts, strict=True)]  # fmt: skip
        if max(behind) <= 0:
            behind = [weight / total for weight in weights]
        chosen = behind.index(max(behind))
        counts[chosen] += 1
        visits.append(chosen)
    return visits


def _weighted(node: JmxNode, scope: TreeScope, walk: TreeWalk, _loop: LoopContext) -> list[Entry]:
    values = walk.values
    rows = [[values.constant(cell.text, node) for cell in row.children] for row in node.members("Weights")]
    rows = [row for row in rows if row[2:3] != ["false"]]
    beside, children = _children(node)
    labels = [values.constant(child.label, child) for child in children]
    if [row[0] for row in rows] != labels:
        raise node.refused("weights of other names than its children's", "open and save the plan in JMeter")
    weights = [values.whole(row[1] if len(row) > 1 else "", node, f"the weight of {row[0]}") for row in rows]
    if not weights or min(weights) < 0 or sum(weights) == 0:
        raise node.wrong("weights of at least 0, with one above 0")
    branches = [together(entries_of([*beside, child], scope, walk, LoopContext()) or [_nothing(child)])
                for child in children]  # fmt: skip
    if node.flag("IsRandomChoice"):
        chosen = [(branch, weight) for branch, weight in zip(branches, weights, strict=True) if weight]
        return [Block(choice="random", weights=tuple(float(weight) for _, weight in chosen),
                      steps=tuple(branch for branch, _ in chosen))]  # fmt: skip
    visits = sum(weights) // math.gcd(*weights)
    if visits > MOST_VISITS:
        raise node.refused(f"weights whose order repeats after {visits} visits", "use percentages")
    places = order(weights)
    name = values.unique("visit")
    values.initial[name] = ""
    values.used.add(name)
    counter = f"${{sequence name={name} start=0 end={visits - 1} per=user}}"
    entries: list[Entry] = [Block(set={name: counter})]
    for branch, steps in enumerate(branches):
        numbers = "|".join(str(visit) for visit, chosen in enumerate(places) if chosen == branch)
        if numbers:
            held = Condition(left=f"${{{name}}}", op="matches", right=f"^(?:{numbers})$")
            entries.append(Block(condition=held, steps=(steps,)))
    return entries


def _parallel(node: JmxNode, scope: TreeScope, walk: TreeWalk, _loop: LoopContext) -> list[Entry]:
    values = walk.values
    if node.flag("PARENT_SAMPLE"):
        raise node.refused("a parent sample of what runs in parallel", "untick 'Generate parent sample'")
    beside, children = _children(node)
    most = len(children)
    if node.flag("LIMIT_MAX_THREAD_NUMBER"):
        most = values.whole(node.value("MAX_THREAD_NUMBER"), node, "MAX_THREAD_NUMBER", 6)
    node.ignore("MAX_THREAD_NUMBER")
    setting = next(
        (below for below in node.everything() if below.tag in EXTRACTORS | plain_scripts.KINDS), None
    )
    if setting is not None:
        raise setting.refused("a variable that is set in parallel", "move it out of the Parallel Controller")
    branches = [together(entries) for child in children
                if (entries := entries_of([*beside, child], scope, walk, LoopContext()))]  # fmt: skip
    if len(branches) < 2:
        return branches
    values.note("thread_names", "its rows have the thread's own name, without a number", node)
    return [Block(parallel=Parallel(at_once=min(max(most, 1), MOST_AT_ONCE)), steps=tuple(branches))]


def _children(node: JmxNode) -> tuple[list[JmxNode], list[JmxNode]]:
    """Elements next to its branches, and the branches."""
    beside = [below for below in node.below if below.tag in NOT_REQUESTS]
    if any(below.enabled and below.tag in COUNTING for below in beside):
        raise node.refused("a counter among its branches", "move the counter next to the controller")
    return beside, [below for below in node.below if below.enabled and below.tag not in NOT_REQUESTS]


def _nothing(child: JmxNode) -> Entry:
    raise child.refused("a branch that sends nothing", "remove it", "no_request")


PLUGIN_CONTROLLERS: dict[str, Controller] = {
    "com.blazemeter.jmeter.control.WeightedSwitchController": _weighted,
    "com.blazemeter.jmeter.controller.ParallelSampler": _parallel,
}
