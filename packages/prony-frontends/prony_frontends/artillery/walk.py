"""Translates the steps of a flow, in order, into entries of the plan model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from prony.plan.blocks import MOST_AT_ONCE, Condition, Loop, Parallel
from prony.plan.step import Block, Entry, Step, pauses, requests
from prony.plan.think import Think
from prony.plan.workload import MOST_STEPS
from prony_frontends.artillery.conditions import decided
from prony_frontends.artillery.hooks import Hooks, failing, functions_of, is_yes, reads_response
from prony_frontends.artillery.loops import (
    captured_list,
    names_of,
    numeric,
    refuse_shared_turn,
    repeated,
    turns_of,
    uses_turn,
)
from prony_frontends.artillery.processor import NONE
from prony_frontends.artillery.requests import METHODS, ScriptSettings, request
from prony_frontends.artillery.responses import Expected
from prony_frontends.artillery.script import ScriptNode, UserFails, with_children
from prony_frontends.artillery.templates import FeederColumn, NameScope, str_of
from prony_frontends.artillery.thinks import is_constant, think_of
from prony_frontends.base import Note

MOST_TOGETHER = 100
"""Concurrent steps of parallel without a limit."""
MOST_WRITTEN = 20
"""Loops with at most this many different turns are unrolled; others become loops of the engine."""
NOT_READ = re.compile(r"[$'&|{]|(?<![<>=!])=(?!=)")
"""Syntax that ifTrue of Artillery 2.0.21 (filtrex 0.5) lacks."""
STEPS = f"{', '.join(sorted(METHODS))}, think, loop, function or parallel"
NO_URL = "an URL must be specified"
"""Artillery's error for a request without a url."""
READ_PLAIN = Note("read_plain", "responses that are read are requested uncompressed")
LOOP_KEYS = frozenset({"loop", "count", "over", "whileTrue", "loopValue", "loopElement"})


@dataclass(slots=True)
class Walk:
    """The translated part of a scenario."""

    settings: ScriptSettings
    jitter: str | None
    hooks: Hooks | None = None
    captured: dict[str, str] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    """Entries of the list of steps being translated."""
    steps: list[Step] = field(default_factory=list)
    """All requests, in order of translation."""
    in_branch: bool = False
    """Whether a parallel block is being translated."""
    loops: int = 0
    """Number of loops as blocks so far, for unique names."""
    wanted: dict[str, Expected] = field(default_factory=dict)
    matches: set[str] = field(default_factory=set)
    follows: set[str] = field(default_factory=set)
    unnamed: set[str] = field(default_factory=set)
    notes: list[Note] = field(default_factory=list)

    def flow(self, nodes: Iterable[ScriptNode], scope: NameScope) -> None:
        for node in flattened(nodes):
            self.one(node, replace(scope, captured=self.captured))
            if len(self.steps) > MOST_STEPS:
                raise too_many(node)

    def one(self, node: ScriptNode, scope: NameScope) -> None:
        keys = [key for key, _ in node.items()]
        if "loop" in keys:
            self.loop(node, scope)
        elif "parallel" in keys:
            self.together(node, scope)
        elif "think" in keys:
            self.think(node, scope)
        elif "log" in keys:
            self.notes.append(node.note("log", "log lines are not printed"))
        elif "function" in keys and self.hooks is not None:
            name = node.children["function"].text("the name of a function")
            self.named((name,), node)
            self.entries.append(self.hooks.call("function", (name,), scope))
        elif keys:
            self.request(keys[0].lower(), node.children[keys[0]], scope)
        else:
            raise node.refused("the step '{}'", f"use {STEPS}")

    def named(self, functions: Iterable[str], node: ScriptNode) -> None:
        """Notes functions that do not exist."""
        if self.hooks is None or self.hooks.processor is not NONE:
            return  # known only when the file runs
        for name in functions:
            self.notes.append(
                node.note(
                    "no_function", f"no config.processor: {name} is an error as a step, ignored as a hook"
                )
            )

    def request(self, method: str, params: ScriptNode, scope: NameScope) -> None:
        if not isinstance(params.value, dict) or not (params.value.get("url") or params.value.get("uri")):
            if params.value is None:
                raise params.wrong("keys of a request, such as url")
            self.fails(UserFails(params, f"'{method}' has no url", NO_URL))
            return
        if method not in METHODS:
            raise params.refused(f"the step '{method}'", f"use {STEPS}")
        if_true = params.get("ifTrue")
        held = self.condition(params, if_true, scope)
        if held is False:
            return
        if if_true is not None and NOT_READ.search(str_of(if_true.value)):
            self.notes.append(
                if_true.note(
                    "if_true", "Artillery 2.0 cannot parse this and always sends; Prony evaluates it"
                )
            )
        for key in ("beforeRequest", "afterResponse"):
            self.named(functions_of(params.get(key)), params)
        plain = reads_response(self.hooks, params)
        built = self.hooks is not None and self.hooks.builds(params, scope)
        try:
            sent = request(method, params, scope, self.settings, plain=plain, built=built)
        except UserFails as fails:
            self.notes.append(fails.note)
            fail = failing(fails.error)
            self.entries.append(fail if held is True else Block(condition=held, steps=(fail,)))
            return
        entries, step = self.hooked(sent.step, params, scope, sent.plain)
        self.steps.append(step)
        self.entries.extend(entries if held is True else (Block(condition=held, steps=entries),))
        self.captured.update(sent.found.names)
        self.notes += sent.ignored
        if sent.plain and "accept-encoding" not in sent.step.headers and params.get("gzip") is None:
            self.notes.append(READ_PLAIN)
        if sent.wanted.checks:
            self.wanted[sent.step.name] = sent.wanted
        if sent.found.matches:
            self.matches.add(sent.step.name)
        if not sent.named:
            self.unnamed.add(sent.step.name)
        if sent.step.follow_redirects:
            self.follows.add(sent.step.name)

    def condition(self, params: ScriptNode, if_true: ScriptNode | None, scope: NameScope) -> bool | Condition:
        """The condition for sending a request; a function is called before."""
        name = None if if_true is None else str_of(if_true.value)
        if self.hooks is None or name is None or not self.hooks.processor.has_function(name):
            return condition(params, scope)
        rest = {key: child for key, child in params.children.items() if key != "ifTrue"}
        drawn = condition(with_children(params, rest), scope)
        if drawn is False:
            return False
        question, answer = self.hooks.question("condition", name, scope)
        self.entries.append(question)
        return is_yes(answer) if drawn is True else Condition(all=(drawn, is_yes(answer)))

    def hooked(
        self, step: Step, params: ScriptNode, scope: NameScope, plain: bool
    ) -> tuple[tuple[Entry, ...], Step]:
        """A request with the functions before and after it."""
        if self.hooks is None:
            return (step,), step
        before, step = self.hooks.before_request(step, params, scope, plain)
        step, after = self.hooks.after_response(step, params, scope, alone=before is None)
        return tuple(entry for entry in (before, step, after) if entry is not None), step

    def think(self, node: ScriptNode, scope: NameScope) -> None:
        try:
            pause = think_of(node, scope, self.jitter)
        except UserFails as fails:
            self.fails(fails)
            return
        if isinstance(node.children["think"].value, float) and not node.children["think"].value.is_integer():
            self.notes.append(
                node.note(
                    "fraction_waits", "Artillery 2.0 takes a fraction of a second for 1 ms (500ms works)"
                )
            )
        last = self.entries[-1] if self.entries else None
        if isinstance(last, Step) and last.repeat == 1 and last.think is None:
            self.replaced(last, {"think": pause})
        elif isinstance(last, Step) and last.repeat == 1 and is_constant(last.think) and is_constant(pause):
            whole_ms = (last.think.ms or 0.0) + (pause.ms or 0.0) if last.think is not None else 0.0
            self.replaced(last, {"think": Think(kind="constant", ms=whole_ms)})
        else:
            self.entries.append(Block(pause=pause))

    def together(self, node: ScriptNode, scope: NameScope) -> None:
        """Parallel steps, one per connection of Artillery's user (config.http.pool); each is sequential."""
        inner = list(flattened(node.children["parallel"].elements()))
        limit = node.get("limit")
        most = 0 if limit is None else int(limit.number("a number of steps, 0 for 100"))
        wanted = min(self.settings.pool or 1, most or MOST_TOGETHER, len(inner))
        at_once = min(wanted, MOST_AT_ONCE)
        if at_once < wanted:
            self.notes.append(node.note("at_once", f"at most {at_once} of the {wanted} requests in parallel"))
        if at_once > 1 and not self.in_branch:
            self.in_branch = True
            branches = tuple(branch for child in inner for branch in self.branch(child, scope))
            self.in_branch = False
            if branches:
                self.entries.append(Block(parallel=Parallel(at_once=at_once), steps=branches))
            return
        where = "in a parallel step" if at_once > 1 else "as a user of Artillery has one connection"
        text = f"the requests of parallel are sequential, {where}"
        if any(
            key in ("think", "loop", "parallel", "function") for child in inner for key, _ in child.items()
        ):
            text += "; its pauses, loops and functions too, unlike in Artillery"
        self.notes.append(node.note("sequential", text))
        self.flow(inner, scope)

    def branch(self, node: ScriptNode, scope: NameScope) -> tuple[Entry, ...]:
        """A step as one entry; empty where it does nothing."""
        steps = self.apart([node], scope)
        return steps if len(steps) <= 1 else (Block(group=True, steps=steps),)

    def apart(self, inner: list[ScriptNode], scope: NameScope) -> tuple[Entry, ...]:
        """These steps as separate entries."""
        outer, self.entries = self.entries, []
        try:
            self.flow(inner, scope)
        finally:
            steps, self.entries = tuple(self.entries), outer
        return steps

    def replaced(self, step: Step, update: dict[str, Any]) -> None:
        """Replaces the last entry, which is this step."""
        changed = step.model_copy(update=update)
        self.entries[-1] = changed
        self.steps[-1] = changed

    def loop(self, node: ScriptNode, scope: NameScope) -> None:
        inner = list(flattened(node.children["loop"].elements()))
        refuse_shared_turn(node, inner)
        self.notes += node.unread("the key of a loop", LOOP_KEYS)
        asks = node.get("whileTrue")
        if asks is not None and self.hooks is not None:
            name = asks.text("the name of a function")
            if self.hooks.processor.has_function(name):
                self.asking(inner, node, scope, self.hooks, name)
                return
            if node.get("count") is None and node.get("over") is None:
                raise asks.refused(
                    f"a loop without an end (whileTrue: {name}, which config.processor does not define)",
                    "name one of its functions, or give a count, and the requests an ifTrue",
                    "endless",
                )
            self.notes.append(asks.note("no_function", f"no function {name}: the loop ends by its count"))
        source = captured_list(node, scope)
        if source is not None:
            self.each(inner, node, scope, *source)
            return
        turns = list(turns_of(node, scope))
        named = uses_turn(node) or (self.hooks is not None and self.hooks.reads_turn)
        if len(turns) > 1 and not named:
            self.block(inner, scope, lambda steps: repeated(steps, len(turns)))
        elif len(turns) > MOST_WRITTEN and (kind := numeric(turns)) is not None:
            self.drawn(inner, scope, turns, kind, node.get("over") is None)
        else:
            for turn in turns:
                self.flow(inner, replace(scope, constants={**scope.constants, **turn}))

    def asking(
        self, inner: list[ScriptNode], node: ScriptNode, scope: NameScope, hooks: Hooks, name: str
    ) -> None:
        """A loop that continues while a function, called after each turn, says so."""
        if node.get("over") is not None:
            raise node.children["over"].refused("loop with whileTrue and over", "use only one", "conflict")
        self.loops += 1
        index = f"loop_count_{self.loops}"
        around = replace(scope, fed={**scope.fed, names_of(node)[0]: FeederColumn(index, True)})
        question, answer = hooks.question("while", name, around)

        def with_question(steps: tuple[Entry, ...]) -> tuple[Entry, ...]:
            loop = Loop(condition=is_yes(answer), index=index)
            return Block(set={answer: "true"}), Block(loop=loop, steps=(*steps, question))

        self.block(inner, around, with_question)

    def block(
        self, inner: list[ScriptNode], scope: NameScope, made: Callable[[tuple[Entry, ...]], Iterable[Entry]]
    ) -> None:
        """Translates a loop's steps into entries of their own."""
        steps = self.apart(inner, scope)
        acts = any(isinstance(step, Block) and step.call is not None for step in steps)
        if acts or any(True for _ in requests(steps)) or any(True for _ in pauses(steps)):
            made_entries = tuple(made(steps))
            if len(made_entries) == 1 and isinstance(made_entries[0], Step):
                self.steps[-1] = made_entries[0]
            self.entries.extend(made_entries)

    def drawn(
        self,
        inner: list[ScriptNode],
        scope: NameScope,
        turns: list[dict[str, Any]],
        numeric_: bool,
        counted: bool,
    ) -> None:
        """A loop whose iterations differ, by a condition of the engine."""
        self.loops += 1
        count_name, element_name = turns[0]
        index, element = f"loop_count_{self.loops}", f"loop_element_{self.loops}"
        constants = {name: value for name, value in scope.constants.items() if name not in turns[0]}
        if counted:  # a range need not start at 0: its numbers are the elements of the plan's loop
            over = tuple(str(turn[count_name]) for turn in turns)
            fed = {**scope.fed, count_name: FeederColumn(element, True)}
            constants[element_name] = turns[0][element_name]
        else:
            over = tuple(str_of(turn[element_name]) for turn in turns)
            fed = {
                **scope.fed,
                element_name: FeederColumn(element, numeric_),
                count_name: FeederColumn(index, True),
            }
        around = Loop(over=over, element=element, index=index)
        self.block(
            inner,
            replace(scope, constants=constants, fed=fed),
            lambda steps: (Block(loop=around, steps=steps),),
        )

    def each(self, inner: list[ScriptNode], node: ScriptNode, scope: NameScope, name: str, part: str) -> None:
        """A loop over a captured list, or over a part of a captured value."""
        self.loops += 1
        if part:
            whole, name = name, f"loop_list_{self.loops}"
            self.entries.append(Block(set={name: f"${{{whole} | at {part}}}"}))
        index, element = f"loop_count_{self.loops}", f"loop_element_{self.loops}"
        count_name, element_name = names_of(node)
        constants = {
            key: value for key, value in scope.constants.items() if key not in (count_name, element_name)
        }
        fed = {
            **scope.fed,
            element_name: FeederColumn(element, False, kept=True),
            count_name: FeederColumn(index, True),
        }
        around = Loop(each=name, element=element, as_json=True, index=index)
        self.block(
            inner,
            replace(scope, constants=constants, fed=fed),
            lambda steps: (Block(loop=around, steps=steps),),
        )

    def fails(self, why: UserFails) -> None:
        """Fails every user here."""
        self.notes.append(why.note)
        self.entries.append(failing(why.error))


def too_many(node: ScriptNode) -> Exception:
    """The error for too many requests."""
    return node.refused(
        f"more than {MOST_STEPS} requests in all scenarios with their loops written out",
        "loop over numbers or texts, or make the whole flow one loop",
        "limit",
    )


def condition(params: ScriptNode, scope: NameScope) -> bool | Condition:
    """The condition for sending a request: probability and ifTrue. Raises Refused and UsageError."""
    parts: list[Condition] = []
    chance = params.get("probability")
    if chance is not None:
        # Artillery draws a whole number from 0 to 100, so 100 does not mean always.
        percent = min(chance.number("a number from 0 to 100"), 100.0)
        if percent == 0:
            return False
        parts.append(Condition(left="${random int 0 100}", op="<", right=f"{percent:g}"))
    expression = params.get("ifTrue")
    held = True if expression is None else decided(expression, scope)
    if isinstance(held, bool):
        return held and (parts[0] if parts else True)
    parts.append(held)
    return parts[0] if len(parts) == 1 else Condition(all=tuple(parts))


def flattened(nodes: Iterable[ScriptNode]) -> Iterator[ScriptNode]:
    """Steps, including nested lists from YAML aliases."""
    for node in nodes:
        if isinstance(node.value, list):
            yield from flattened(node.elements())
        else:
            yield node
