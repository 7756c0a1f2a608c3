"""User Parameters: values that a thread's variables are given, one column for each thread in turn, before
each sampler of their scope or once in each iteration.
"""

from __future__ import annotations

from collections.abc import Sequence

from prony.plan.blocks import Condition
from prony.plan.step import Block, Entry
from prony.plan.workload import Feeder
from prony_frontends.jmeter.functions import KnownValues, Text
from prony_frontends.jmeter.jmx import JmxNode

TAG = "UserParameters"
NUMBER = "number"
"""The column of a thread's place among the columns of values."""


def names(node: JmxNode, values: KnownValues) -> list[str]:
    """The variables."""
    return [values.constant(name.text, node) for name in node.members("UserParameters.names")]


def declare(node: JmxNode, values: KnownValues) -> None:
    """The variables are known from the start: where every thread has the same value, without functions, they
    are that value, unless something else changes them.
    """
    users = node.members("UserParameters.thread_values")
    texts = [[cell.text for cell in user.children] for user in users]
    same = bool(texts) and all(user == texts[0] for user in texts) and "${" not in "".join(texts[0])
    for place, name in enumerate(names(node, values)):
        if same and name not in values.values and place < len(texts[0]):
            values.variables[name] = Text.of(texts[0][place])
        else:
            values.changing(name, node)


def each_iteration(node: JmxNode) -> bool:
    """Whether values are given once in each iteration of the controller around it."""
    return node.flag("UserParameters.per_iteration")


def given(nodes: Sequence[JmxNode], values: KnownValues, known: dict[int, tuple[Entry, ...]]) -> list[Entry]:
    """What gives the thread its values, of each of these elements. `known`: those of the group that stand
    somewhere else already, where the same functions go on. Raises Refused and UsageError.
    """
    found: list[Entry] = []
    for node in nodes:
        if id(node) not in known:
            known[id(node)] = tuple(_given(node, values))
        found += known[id(node)]
    return found


def _given(node: JmxNode, values: KnownValues) -> list[Entry]:
    places = [values.values.get(name) for name in names(node, values)]
    each_iteration(node)
    sets: list[dict[str, str]] = []
    texts: list[Text] = []
    for user in node.members("UserParameters.thread_values"):
        pairs = [(place, cell) for place, cell in zip(places, user.children, strict=False) if place]
        found = {place: values.text(cell.text, cell) for place, cell in pairs}
        sets.append({place: text.engine for place, text in found.items()})
        texts += found.values()
    node.finish()
    if values.users == 1:
        sets = sets[:1]
    if not any(sets):
        return []
    if all(one == sets[0] for one in sets):
        return [Block(set=sets[0])]
    feeder = f"rows{len(values.feeders) + 1}"
    whole = all(one.keys() == sets[0].keys() for one in sets)
    made: list[Entry]
    if whole and all(text.constant is not None for text in texts):
        columns = tuple(sets[0])
        rows = tuple(tuple(text.replace("$${", "${") for text in one.values()) for one in sets)
        made = [Block(set={place: f"${{{feeder}.{place}}}" for place in columns})]
    else:
        columns = (NUMBER,)
        rows = tuple((str(place),) for place in range(1, len(sets) + 1))
        made = [
            Block(
                condition=Condition(left=f"${{{feeder}.{NUMBER}}}", op="==", right=str(place)),
                steps=(Block(set=one),),
            )
            for place, one in enumerate(sets, 1)
            if one
        ]
    values.feeders[feeder] = Feeder(order="unique_per_user", at_end="recycle", columns=columns, rows=rows)
    return made
