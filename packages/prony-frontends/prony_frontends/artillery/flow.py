"""Translates a scenario's flow into scenarios of the plan model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from prony.errors import UsageError
from prony.plan.blocks import Loop
from prony.plan.step import Block, Entry, Step, calls
from prony.plan.workload import Feeder, Scenario
from prony_frontends.artillery.drawn_lists import DrawnList, drawn_lists, lists_in
from prony_frontends.artillery.hooks import Hooks, at_start, captured, of_scenario
from prony_frontends.artillery.loops import captured_list, sends_of, turns_of, uses_turn
from prony_frontends.artillery.requests import ScriptSettings
from prony_frontends.artillery.responses import Expected
from prony_frontends.artillery.script import ScriptNode
from prony_frontends.artillery.templates import USER_UUID, NameScope, UsedFeatures
from prony_frontends.artillery.thinks import jitter_of
from prony_frontends.artillery.walk import LOOP_KEYS, Walk, flattened
from prony_frontends.base import Note

CHECKED = "values_checked"
"""A variable, with which the engine checks the values of a scenario's first request too."""
MOST_VARIANTS = 256
"""Limit on combinations of drawn values that must be known before the run: one scenario each."""
KEYS = frozenset({
    "name", "weight", "flow", "engine", "beforeRequest", "afterResponse", "beforeScenario", "afterScenario",
    "onError",
})  # fmt: skip
NEVER = Block(condition=False, steps=(Step(name="never", path="/"),))
"""Request for a scenario that only calls functions: a plan's scenario needs one."""


@dataclass(frozen=True, slots=True)
class TranslatedScenario:
    """A scenario with the data for its report."""

    name: str
    """Printed name."""
    scenarios: tuple[Scenario, ...]
    steps: tuple[Step, ...]
    """Of the last variant."""
    first: tuple[str, int]
    """Name of the first step, and the number of steps of that name per session; 0 when it varies."""
    wanted: Mapping[str, Expected]
    """Step name -> checks of the plugin expect."""
    matches: frozenset[str]
    """Names of steps with a match."""
    follows: frozenset[str]
    """Names of steps that follow redirects."""
    notes: tuple[Note, ...]
    captured: Mapping[str, str]
    """Name in the script -> name in the plan."""
    unnamed: frozenset[str]
    """Names of steps without a name in the script."""
    kept: frozenset[str]
    """Names in the script of captures kept as JSON."""
    feeders: Mapping[str, Feeder]
    """Lists of which each user draws a value."""

    @property
    def alone(self) -> tuple[Entry, ...]:
        """All of it as the steps of one user; empty without any."""
        ways = [_way(scenario) for scenario in self.scenarios]
        if len(ways) == 1:
            return ways[0]
        return (Block(choice="random", steps=tuple(Block(group=True, steps=way) for way in ways)),)


def _way(scenario: Scenario) -> tuple[Entry, ...]:
    first = (Block(set=dict(scenario.variables)),) if scenario.variables else ()
    if scenario.loops == 1:
        return (*first, *scenario.steps)
    return (*first, Block(loop=Loop(count=scenario.loops), steps=scenario.steps))


def walked(
    node: ScriptNode,
    index: int,
    scope: NameScope,
    settings: ScriptSettings,
    defaults: ScriptNode | None,
    *,
    weight: float = 1.0,
    prefix: str = "hook",
) -> TranslatedScenario:
    """Translates a scenario. Each user draws a value of a list variable at its start; where a request must
    know it before the run, each combination becomes a scenario. `prefix`: of generated names. Raises Refused.
    """
    lists = drawn_lists(node, scope)
    if lists:
        try:
            return _walked(node, index, scope, settings, defaults, weight, prefix, lists)
        except UsageError:  # part of it cannot be drawn
            pass
    return _walked(node, index, scope, settings, defaults, weight, prefix, {})


def _walked(
    node: ScriptNode,
    index: int,
    scope: NameScope,
    settings: ScriptSettings,
    defaults: ScriptNode | None,
    weight: float,
    prefix: str,
    lists: Mapping[str, DrawnList],
) -> TranslatedScenario:
    """The same with `lists`: variables drawn at a user's start."""
    outer = replace(
        scope,
        constants={name: value for name, value in scope.constants.items() if name not in lists},
        fed={**scope.fed, **{name: one.column for name, one in lists.items()}},
    )
    hooks, scope = of_scenario(node, settings.processor, outer, prefix, settings.elsewhere)
    ignored = list(node.unread("the key of a scenario", KEYS))
    engine = node.get("engine")
    if engine is not None and engine.value != "http":
        raise engine.refused(
            f"the engine '{engine.value}'",
            "only HTTP scenarios run on Prony; leave this one out, or choose another (--scenario-name)",
        )
    name = node.get("name")
    called = str(index) if name is None else str(name.value)
    flow = node.get("flow")
    if flow is None or not isinstance(flow.value, list):
        raise node.wrong("a flow, a list of requests")
    before = _drawn(node, outer, hooks)
    if math.prod(len(values) for values in before.values()) > MOST_VARIANTS:
        raise node.refused(
            f"more than {MOST_VARIANTS} combinations of list variables, part of which must "
            f"be known before the run ({', '.join(before)})",
            "put the values into a CSV file (config.payload), or use them in paths, bodies and headers only",
            "limit",
        )
    own = {} if hooks is None else hooks.shared
    used = {name: drawn for name, drawn in lists.items() if name in own or name in repr(node.value)}
    held = {name: drawn for name, drawn in used.items() if name not in own}
    scope = replace(scope, fed={**scope.fed, **{name: drawn.variable for name, drawn in held.items()}})
    at_first = {drawn.variable.placeholder: f"${{{drawn.column.placeholder}}}" for drawn in held.values()}
    variants: list[Scenario] = []
    walk = Walk(settings, None)
    for chosen in product(*before.values()):
        walk = Walk(settings, jitter_of(defaults), hooks, captured=dict(scope.captured))
        drawn = dict(zip(before, chosen, strict=True))
        bound = {name: value for name, value in drawn.items() if name not in own}
        here = replace(
            scope,
            constants={**scope.constants, **bound},
            uses=UsedFeatures(),
            later=frozenset(captured(node.value)),
        )
        walk.entries.extend(_known_before(node, outer))
        loops = _walk_whole(walk, flow, here, node)
        walk.notes += here.uses.said
        if not walk.steps:
            if not settings.hook and not any(True for _ in calls(tuple(walk.entries))):
                walk.notes.append(flow.note("no_requests", "users of this scenario send no requests"))
            walk.entries.append(NEVER)
        suffix = f" ({len(variants) + 1})" if variants else ""
        variants.append(
            Scenario(
                name=called + suffix,
                weight=weight / math.prod(len(values) for values in before.values()),
                loops=loops,
                variables=({USER_UUID: "${uuid}"} if here.uses.uuids or (hooks and hooks.uuid) else {})
                | ({CHECKED: "1"} if any(column.odd for column in here.fed.values()) else {})
                | at_first
                | ({} if hooks is None else at_start(hooks, outer, drawn)),
                steps=tuple(walk.entries),
            )
        )
    first = walk.steps[0].name if walk.steps else ""
    sends = sends_of(walk.entries, first) * variants[0].loops
    return TranslatedScenario(
        called, tuple(variants), tuple(walk.steps), (first, sends), walk.wanted, frozenset(walk.matches),
        frozenset(walk.follows), (*ignored, *walk.notes),
        dict(walk.captured),
        frozenset(walk.unnamed), scope.kept, {drawn.feeder: drawn.rows for drawn in used.values()},
    )  # fmt: skip


def _known_before(node: ScriptNode, outer: NameScope) -> Iterator[Entry]:
    """Sets values captured in before under names that this scenario captures again."""
    again = {name: outer.captured[name] for name in captured(node.value) if name in outer.captured}
    if again:
        yield Block(set={ours: f"${{{before_name(ours)}}}" for ours in again.values()})


def before_name(name: str) -> str:
    """The plan's name for a value from before that scenarios capture again."""
    return f"before_{name}"


def _walk_whole(walk: Walk, flow: ScriptNode, scope: NameScope, scenario: ScriptNode) -> int:
    """Walks the flow, a flow of one loop with equal turns only once. Returns the number of turns."""
    nodes = list(flattened(flow.elements()))
    hooks = walk.hooks
    if hooks is not None:
        walk.named((*hooks.first, *hooks.before, *hooks.after, *hooks.last), scenario)
        walk.entries.extend(hooks.call("function", (name,), scope) for name in hooks.first)
        walk.flow(nodes, scope)
        walk.entries.extend(hooks.call("function", (name,), scope) for name in hooks.last)
        walk.notes.extend(hooks.notes)
        return 1
    alone = len(nodes) == 1 and isinstance(nodes[0].value, dict) and "loop" in nodes[0].value
    if alone and not walk.entries and captured_list(nodes[0], scope) is None:
        only = nodes[0]
        body = list(flattened(only.children["loop"].elements()))
        turns = list(turns_of(only, scope))
        if len(turns) > 1 and not uses_turn(only) and only.children["loop"].value != []:
            extra = [key for key, _ in only.items() if key not in LOOP_KEYS]
            if not extra:
                walk.flow(body, scope)
                return len(turns)
    walk.flow(nodes, scope)
    return 1


def _drawn(node: ScriptNode, scope: NameScope, hooks: Hooks | None) -> dict[str, list[Any]]:
    """List variables that the scenario uses: each user has one of the values."""
    text = repr(node.value)
    called = frozenset() if hooks is None else frozenset(hooks.shared)
    return {name: values for name, values in lists_in(node, scope).items() if name in text or name in called}
