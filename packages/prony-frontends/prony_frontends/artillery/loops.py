"""The turns of a loop, and their form in the plan model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from prony.plan.blocks import Loop
from prony.plan.step import Block, Entry, Step, requests
from prony_frontends.artillery.script import ScriptNode
from prony_frontends.artillery.templates import NameScope, constant, words_of


def uses_turn(node: ScriptNode) -> bool:
    """Whether anything in the loop uses the turn."""
    named = [str(node.value[key]) for key in ("loopValue", "loopElement") if key in node.value]
    text = repr(node.value["loop"])
    return any(name in text for name in ("$loopCount", "$loopElement", *named))


def refuse_shared_turn(node: ScriptNode, inner: list[ScriptNode]) -> None:
    """An inner loop overwrites the outer one's turn in Artillery. Raises Refused where both have one name."""
    loops = [step for step in inner if isinstance(step.value, dict) and "loop" in step.value]
    own = repr([step.value for step in inner if step not in loops])
    name = names_of(node)[0]
    if name in own and any(names_of(loop)[0] == name for loop in loops):
        raise node.refused(
            f"{name} in a loop around a loop", "give one of them a loopValue of its own", "nested"
        )


def names_of(node: ScriptNode) -> tuple[str, str]:
    """Names of the loop's count and element."""
    value, element = node.get("loopValue"), node.get("loopElement")
    count_name = "$loopCount" if value is None else value.text()
    return count_name, "$loopElement" if element is None else element.text()


def captured_list(node: ScriptNode, scope: NameScope) -> tuple[str, str] | None:
    """A captured list to loop over: its name in the plan, and the JSON pointer; None for other loops."""
    over = node.get("over")
    if over is None or not isinstance(over.value, str):
        return None
    first, *rest = words_of(over.value) or [""]
    part = "".join(f"/{word}" for word in rest)
    if first in scope.captured:
        return scope.captured[first], part
    fed = scope.fed.get(first)
    return (fed.placeholder, part) if fed is not None and fed.kept else None


def turns_of(node: ScriptNode, scope: NameScope) -> Iterator[dict[str, Any]]:
    """The constants of each turn."""
    count_name, element_name = names_of(node)
    over = node.get("over")
    if over is not None:
        items = over.value
        if isinstance(items, str):
            items = scope.constants.get(items)
        if not isinstance(items, list):
            raise over.refused("a loop over no list", "write over: [a, b], or name a captured value")
        for index, item in enumerate(items):
            yield {count_name: index, element_name: item}
        return
    given = node.get("count")
    if given is None:
        raise node.refused("a loop without count or over", "give a count")
    begin, end = _range(given, scope)
    for index in range(begin, end):
        yield {count_name: index, element_name: begin}  # as in Artillery


def _range(node: ScriptNode, scope: NameScope) -> tuple[int, int]:
    value = constant(node, scope)
    if isinstance(value, str):
        low, dash, high = value.strip().partition("-")
        if dash and low.strip().isdigit() and high.strip().isdigit():
            value = (int(low), int(high))
        elif value.strip().isdigit():
            value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        value = (0, value)
    if not isinstance(value, tuple) or value[1] < value[0] or value[1] - value[0] > 1_000_000 or value[1] < 1:
        raise node.wrong("a count of 1 or more, or a range such as 1-10")
    return value


def repeated(steps: tuple[Entry, ...], turns: int) -> Iterable[Entry]:
    """A loop with equal turns; a single unconditional request becomes a repeated step."""
    if len(steps) == 1 and isinstance(steps[0], Step) and steps[0].repeat == 1:
        return (steps[0].model_copy(update={"repeat": turns}),)
    return (Block(loop=Loop(count=turns), steps=steps),)


def numeric(turns: list[dict[str, Any]]) -> bool | None:
    """Whether the elements are numbers (True) or texts; None when the engine supports neither."""
    values = [list(turn.values())[1] for turn in turns]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return True
    return False if all(isinstance(value, str) for value in values) else None


def sends_of(entries: Iterable[Entry], name: str) -> int:
    """Steps of this name per session; 0 when conditions decide."""
    total = 0
    for entry in entries:
        if isinstance(entry, Step):
            total += entry.repeat if entry.name == name else 0
        elif any(step.name == name for step in requests(entry.steps)):
            loop = entry.loop
            rounds = 0 if loop is None else loop.count or len(loop.over or ())
            inner = rounds * sends_of(entry.steps, name)
            if inner == 0:
                return 0
            total += inner
    return total
