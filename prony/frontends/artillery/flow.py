"""A scenario's flow into scenarios of the plan model: loops are written out where their turns differ.
Must not know phases.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from prony.frontends.artillery.answers import Expected
from prony.frontends.artillery.conditions import decided
from prony.frontends.artillery.phases import span_s
from prony.frontends.artillery.requests import INSTEAD, JAVASCRIPT, METHODS, Settings, request
from prony.frontends.artillery.script import Node
from prony.frontends.artillery.templates import USER_UUID, Scope, Uses, constant
from prony.plan.blocks import Condition
from prony.plan.think import Think
from prony.plan.workload import Block, Entry, Scenario, Step

MOST_STEPS = 5_000
"""Of a scenario with its loops written out."""
MOST_VARIANTS = 256
"""Of a scenario whose variables are drawn from lists: one scenario for each combination."""
KEYS = frozenset({"name", "weight", "flow", "engine"})
LOOP_KEYS = frozenset({"loop", "count", "over", "loopValue", "loopElement"})
STEP_INSTEAD = {
    **INSTEAD,
    "parallel": "write the requests one after the other; a user of Prony has one connection",
    "function": JAVASCRIPT,
}


@dataclass(frozen=True, slots=True)
class Walked:
    """A scenario, and what its report needs to know."""

    name: str
    """As it is printed."""
    scenarios: tuple[Scenario, ...]
    steps: tuple[Step, ...]
    """Of the last of them."""
    first: tuple[str, int]
    """The name of the first step, and how often a session sends steps of that name."""
    wanted: Mapping[str, Expected]
    """Step name -> what the expect plugin checks."""
    matches: frozenset[str]
    """Names of steps with a match."""
    notes: tuple[str, ...]
    own_cookies: bool
    """The script sets cookies itself."""


@dataclass(slots=True)
class _Walk:
    settings: Settings
    defaults: Think | None
    jitter: str | None
    cookies: dict[str, str] = field(default_factory=dict)
    captured: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    wanted: dict[str, Expected] = field(default_factory=dict)
    matches: set[str] = field(default_factory=set)
    conditions: dict[int, Condition] = field(default_factory=dict)
    """Index of a step -> on what it is sent."""
    notes: list[str] = field(default_factory=list)

    def flow(self, nodes: Iterable[Node], scope: Scope) -> None:
        for node in flattened(nodes):
            self.one(node, replace(scope, captured=self.captured))
            if len(self.steps) > MOST_STEPS:
                raise node.refused(
                    f"a flow of more than {MOST_STEPS} requests with its loops written out",
                    "make the loop's turns alike (no $loopCount), or the whole flow one loop",
                )

    def one(self, node: Node, scope: Scope) -> None:
        keys = [key for key, _ in node.items()]
        if "loop" in keys:
            self.loop(node, scope)
        elif "think" in keys:
            self.think(node, scope)
        elif "log" in keys:
            self.note(f"{node.place}: log lines are not printed")
        elif len(keys) == 1 and keys[0].lower() in METHODS:
            self.request(keys[0].lower(), node.children[keys[0]], scope)
        else:
            unknown = keys[0] if keys else "{}"
            instead = STEP_INSTEAD.get(unknown, f"use {', '.join(sorted(METHODS))}, think or loop")
            raise node.refused(f"the step '{unknown}'", instead)

    def request(self, method: str, params: Node, scope: Scope) -> None:
        condition = params.get("ifTrue") if isinstance(params.value, dict) else None
        asked = True if condition is None else decided(condition, scope)
        if asked is False:
            return
        if asked is not True:
            self.conditions[len(self.steps)] = asked
        sent = request(method, params, scope, self.settings, self.cookies)
        self.steps.append(sent.step)
        self.captured.update(sent.found.names)
        if sent.wanted.types:
            self.wanted[sent.step.name] = sent.wanted
        if sent.found.matches:
            self.matches.add(sent.step.name)
        if sent.found.from_json:
            self.note(
                "a value captured from JSON and put into JSON is sent as a text, also when it was a number"
            )

    def think(self, node: Node, scope: Scope) -> None:
        node.only("think", frozenset({"think", "jitter"}), "use think and jitter")
        pause = think_of(node, scope, self.jitter)
        if not self.steps:
            raise node.refused(
                "a think before the first request", "put it after a request, or into a phase's pause"
            )
        last = self.steps[-1]
        if last.repeat != 1 and last.think is None:
            raise node.refused("a think after a loop of one request", "put the think into the loop")
        self.steps[-1] = last.model_copy(update={"think": _after(last.think, pause, node)})

    def loop(self, node: Node, scope: Scope) -> None:
        for key, child in node.items():
            if key not in LOOP_KEYS:
                raise child.refused(f"loop '{key}'", "loop with count or over a list; JavaScript is not run")
        body = node.children["loop"]
        inner = list(flattened(body.elements()))
        turns = list(_turns(node, scope))
        if len(turns) > 1 and self.alike(node, inner, scope, len(turns)):
            return
        for turn in turns:
            self.flow(inner, replace(scope, constants={**scope.constants, **turn}))

    def alike(self, node: Node, inner: list[Node], scope: Scope, turns: int) -> bool:
        """A loop around one request whose turns are all the same: that step, repeated."""
        if _uses_turn(node):
            return False
        before = len(self.steps)
        thinks = [part for part in inner if "think" in part.value]
        if len(inner) - len(thinks) != 1 or "think" in inner[0].value or "loop" in inner[0].value:
            return False
        self.flow(inner, scope)
        if len(self.steps) != before + 1:
            return len(self.steps) == before  # its condition is never true
        self.steps[-1] = self.steps[-1].model_copy(update={"repeat": turns})
        return True

    def entries(self) -> tuple[Entry, ...]:
        """The steps, those with a condition in a block of its own; the pause after them is always taken."""
        found: list[Entry] = []
        for index, step in enumerate(self.steps):
            if index not in self.conditions:
                found.append(step)
                continue
            bare = step.model_copy(update={"think": None})
            found.append(Block(condition=self.conditions[index], steps=(bare,)))
            if step.think is not None:
                found.append(Block(pause=step.think))
        return tuple(found)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def flattened(nodes: Iterable[Node]) -> Iterator[Node]:
    """Steps, also those of lists within the list (as YAML aliases make them)."""
    for node in nodes:
        if isinstance(node.value, list):
            yield from flattened(node.elements())
        else:
            yield node


def walked(node: Node, index: int, scope: Scope, settings: Settings, defaults: Node | None) -> Walked:
    """A scenario, once for each combination of the lists its variables are drawn from. Raises Refused."""
    for key, child in node.items():
        if key not in KEYS:
            script = key.startswith(("before", "after", "on"))
            raise child.refused(
                f"scenario '{key}'", JAVASCRIPT if script else f"use {', '.join(sorted(KEYS))}"
            )
    engine = node.get("engine")
    if engine is not None and engine.value != "http":
        raise engine.refused(
            f"the engine '{engine.value}'", "only HTTP scenarios run on Prony; leave this one out"
        )
    name = node.get("name")
    called = str(index) if name is None else str(name.value)
    flow = node.get("flow")
    if flow is None or not isinstance(flow.value, list) or not flow.value:
        raise node.wrong("a flow of at least one request")
    lists = _drawn(node, scope)
    if math.prod(len(values) for values in lists.values()) > MOST_VARIANTS:
        raise node.refused(
            f"more than {MOST_VARIANTS} combinations of variables drawn from lists",
            "put the values into a CSV file (config.payload)",
        )
    weight_node = node.get("weight")
    weight = 1.0 if weight_node is None else _weight(weight_node, scope)
    found: list[Scenario] = []
    walk = _Walk(settings, None, None)
    for chosen in product(*lists.values()):
        walk = _Walk(settings, None, _jitter(defaults))
        bound = {**scope.constants, **dict(zip(lists, chosen, strict=True))}
        here = replace(scope, constants=bound, uses=Uses())
        loops = _walk_whole(walk, flow, here)
        if not walk.steps:
            raise flow.wrong("at least one request whose condition can be true")
        suffix = f" ({len(found) + 1})" if found else ""
        share = weight / math.prod(len(values) for values in lists.values())
        found.append(
            Scenario(
                name=called + suffix,
                weight=share,
                loops=loops,
                variables={USER_UUID: "${uuid}"} if here.uses.uuids else {},
                steps=walk.entries(),
            )
        )
    first = walk.steps[0].name
    sends = sum(step.repeat for step in walk.steps if step.name == first) * found[0].loops
    return Walked(
        called, tuple(found), tuple(walk.steps), (first, sends), walk.wanted, frozenset(walk.matches),
        tuple(walk.notes),
        bool(walk.cookies or settings.cookies),
    )  # fmt: skip


def _walk_whole(walk: _Walk, flow: Node, scope: Scope) -> int:
    """Walk the flow; a flow that is one loop of equal turns is walked once. How often it then is to be."""
    nodes = list(flattened(flow.elements()))
    if len(nodes) == 1 and isinstance(nodes[0].value, dict) and "loop" in nodes[0].value:
        only = nodes[0]
        body = list(flattened(only.children["loop"].elements()))
        turns = list(_turns(only, scope))
        if len(turns) > 1 and not _uses_turn(only) and only.children["loop"].value != []:
            extra = [key for key, _ in only.items() if key not in LOOP_KEYS]
            if not extra and "think" not in (body[0].value if isinstance(body[0].value, dict) else ()):
                walk.flow(body, scope)
                return len(turns)
    walk.flow(nodes, scope)
    return 1


def _uses_turn(node: Node) -> bool:
    """Whether anything within a loop says which turn it is."""
    named = [str(node.value[key]) for key in ("loopValue", "loopElement") if key in node.value]
    text = repr(node.value["loop"])
    return any(name in text for name in ("$loopCount", "$loopElement", *named))


def _turns(node: Node, scope: Scope) -> Iterator[dict[str, Any]]:
    """The constants of each turn of a loop."""
    value, element = node.get("loopValue"), node.get("loopElement")
    count_name = "$loopCount" if value is None else value.text()
    element_name = "$loopElement" if element is None else element.text()
    over = node.get("over")
    if over is not None:
        items = over.value
        if isinstance(items, str):
            items = scope.constants.get(items)
        if not isinstance(items, list):
            raise over.refused("a loop over a value of the run", "write the list itself: over: [a, b]")
        for index, item in enumerate(items):
            yield {count_name: index, element_name: item}
        return
    given = node.get("count")
    if given is None:
        raise node.refused("a loop without count or over", "give a count")
    begin, end = _range(given, scope)
    for index in range(begin, end):
        yield {count_name: index, element_name: index}


def _range(node: Node, scope: Scope) -> tuple[int, int]:
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
        raise node.wrong("how often (1 or more), or a range such as 1-10")
    return value


def think_of(node: Node, scope: Scope, jitter: str | None) -> Think:
    """A pause. Raises UsageError."""
    given = node.children["think"]
    seconds = span_s(constant(given, scope))
    if seconds is None or not 0 <= seconds < 86_400:
        raise given.wrong("seconds, or a text such as 500ms")
    own = node.get("jitter")
    spread = str(own.value) if own is not None else jitter
    ms = seconds * 1000
    if not spread:
        return Think(kind="constant", ms=ms)
    share = spread.strip().removesuffix("%")
    try:
        width_ms = ms * float(share) / 100 if share != spread.strip() else _width_ms(spread)
    except ValueError:
        raise (own or node).wrong("a jitter such as 20% or 500ms") from None
    return Think(kind="uniform", min_ms=max(0.0, ms - width_ms), max_ms=ms + width_ms)


def _width_ms(text: str) -> float:
    seconds = span_s(text)
    if seconds is None or seconds < 0:
        raise ValueError(text)
    return float(text) if text.strip().replace(".", "", 1).isdigit() else seconds * 1000


def _after(before: Think | None, pause: Think, node: Node) -> Think:
    """Two pauses one after the other."""
    if before is None:
        return pause
    if before.kind == pause.kind == "constant":
        return Think(kind="constant", ms=(before.ms or 0.0) + (pause.ms or 0.0))
    raise node.refused("two thinks with jitter one after the other", "write one")


def _drawn(node: Node, scope: Scope) -> dict[str, list[Any]]:
    """The variables with lists that the scenario uses: each user has one of their values."""
    text = repr(node.value)
    return {
        name: value
        for name, value in scope.constants.items()
        if isinstance(value, list) and value and not name.startswith("$") and name in text
        and not _is_looped(node, name)
    }  # fmt: skip


def _is_looped(node: Node, name: str) -> bool:
    return f"'over': '{name}'" in repr(node.value)


def _weight(node: Node, scope: Scope) -> float:
    value = Node(constant(node, scope), node.file, node.line, {}).number("a weight above 0")
    if value <= 0:
        raise node.refused("the weight 0", "leave the scenario out")
    return value


def _jitter(defaults: Node | None) -> str | None:
    think = None if defaults is None else defaults.get("think")
    jitter = None if think is None or not isinstance(think.value, dict) else think.get("jitter")
    return None if jitter is None else str(jitter.value)
