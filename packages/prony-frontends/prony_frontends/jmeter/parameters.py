"""User Parameters: columns of values, for threads round-robin, per sampler or per iteration."""

from __future__ import annotations

from collections.abc import Sequence

from prony.plan.blocks import Condition
from prony.plan.step import Block, Entry
from prony.plan.workload import Feeder
from prony_frontends.jmeter import calls
from prony_frontends.jmeter.functions import KnownValues, Text
from prony_frontends.jmeter.jmx import JmxNode

TAG = "UserParameters"
NUMBER = "number"
"""Column with the position of a thread's values."""


def names(node: JmxNode, values: KnownValues) -> list[str]:
    """The variables."""
    return [values.constant(name.text, node) for name in node.members("UserParameters.names")]


def declare(node: JmxNode, values: KnownValues) -> None:
    """Declares variables; one value for all threads, without functions, is constant unless changed."""
    users = node.members("UserParameters.thread_values")
    texts = [[cell.text for cell in user.children] for user in users]
    same = bool(texts) and all(user == texts[0] for user in texts) and "${" not in "".join(texts[0])
    for place, name in enumerate(names(node, values)):
        if same and name not in values.values and place < len(texts[0]):
            values.variables[name] = Text.of(texts[0][place])
        else:
            values.clean.discard(values.changing(name, node))


def each_iteration(node: JmxNode) -> bool:
    """Whether values are set once per iteration of the parent controller."""
    return node.flag("UserParameters.per_iteration")


def given(nodes: Sequence[JmxNode], values: KnownValues, known: dict[int, tuple[Entry, ...]]) -> list[Entry]:
    """Assigns a thread's values, for each of these elements. `known`: elements used elsewhere in the group,
    whose functions are shared. Raises Refused and UsageError.
    """
    entries: list[Entry] = []
    for node in nodes:
        if id(node) not in known:
            with calls.within(None, values) as stores:
                sets = _given(node, values)
            known[id(node)] = (*stores, *sets)
        entries += known[id(node)]
    return entries


def _given(node: JmxNode, values: KnownValues) -> list[Entry]:
    places = [values.values.get(name) for name in names(node, values)]
    each_iteration(node)
    sets: list[dict[str, str]] = []
    texts: list[Text] = []
    for user in node.members("UserParameters.thread_values"):
        pairs = [(place, cell) for place, cell in zip(places, user.children, strict=False) if place]
        texts_by_name = {place: values.text(cell.text, cell) for place, cell in pairs}
        sets.append({place: text.engine for place, text in texts_by_name.items()})
        texts += texts_by_name.values()
    node.finish()
    if values.users == 1:
        sets = sets[:1]
    if not any(sets):
        return []
    if all(user_values == sets[0] for user_values in sets):
        return [Block(set=sets[0])]
    feeder = f"rows{len(values.feeders) + 1}"
    whole = all(user_values.keys() == sets[0].keys() for user_values in sets)
    entries: list[Entry]
    if whole and all(text.constant is not None for text in texts):
        columns = tuple(sets[0])
        rows = tuple(
            tuple(text.replace("$${", "${") for text in user_values.values()) for user_values in sets
        )
        entries = [Block(set={place: f"${{{feeder}.{place}}}" for place in columns})]
    else:
        columns = (NUMBER,)
        rows = tuple((str(place),) for place in range(1, len(sets) + 1))
        entries = [
            Block(
                condition=Condition(left=f"${{{feeder}.{NUMBER}}}", op="==", right=str(place)),
                steps=(Block(set=user_values),),
            )
            for place, user_values in enumerate(sets, 1)
            if user_values
        ]
    values.feeders[feeder] = Feeder(order="unique_per_user", at_end="recycle", columns=columns, rows=rows)
    return entries
