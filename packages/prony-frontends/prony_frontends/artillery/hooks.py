"""Calls of a processor's functions as blocks of the plan model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prony.plan.blocks import Call, Condition
from prony.plan.response import Capture
from prony.plan.script import Script
from prony.plan.step import Block, Step
from prony_frontends.artillery.config import CONTENTS, calls
from prony_frontends.artillery.processor import Processor
from prony_frontends.artillery.script import ScriptNode
from prony_frontends.artillery.templates import (
    TOKEN,
    USER_UUID,
    FeederColumn,
    NameScope,
    Rows,
    capture_name,
    json_value,
    words_of,
)
from prony_frontends.base import Note

RESPONSE = r"(?s)\A.*"
"""Matches a whole head or body."""
NOT_SENT = frozenset(
    {"capture", "match", "expect", "ifTrue", "probability", "beforeRequest", "afterResponse"}
)
"""Keys of a request that functions do not need."""


@dataclass(slots=True)
class Hooks:
    """Arguments for the functions of one scenario."""

    processor: Processor
    shared: Mapping[str, str]
    """Variables that functions may read or set, kept as JSON: name in the script -> name in the plan."""
    scenario: str | None = None
    """Its name."""
    before: tuple[str, ...] = ()
    """Of every request."""
    after: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    """Functions before and after the flow."""
    last: tuple[str, ...] = ()
    uuid: bool = False
    """Whether a function or a request uses $uuid."""
    prefix: str = "hook"
    """Prefix of names that do not occur in the script."""
    hook_count: int = 0
    """Number of requests and questions so far, for unique names."""
    notes: list[Note] = field(default_factory=list)

    @property
    def reads_turn(self) -> bool:
        """Whether functions read the turn of a loop."""
        return "$loop" in self.processor.source

    def named(self, what: str) -> str:
        """A unique name for the plan."""
        self.hook_count += 1
        return f"{self.prefix}_{self.hook_count}_{what}"

    def call(
        self,
        kind: str,
        functions: Sequence[str],
        scope: NameScope,
        task: Mapping[str, Any] | None = None,
        give: Mapping[str, str] | None = None,
        take: Mapping[str, str] | None = None,
    ) -> Block:
        """A call of these functions in order."""
        given = {name: f"${{{ours}}}" for name, ours in self.shared.items()} | dict(self._of_loop(scope))
        if self.uuid:
            given["$uuid"] = f'"${{{USER_UUID}}}"'
        taken = dict(take or {})
        return Block(
            call=Call(
                task={
                    "kind": kind, "functions": list(functions), **(task or {}),
                    "scenario": {} if self.scenario is None else {"name": self.scenario},
                    "give": [*given, *(give or {})], "take": [*self.shared, *taken],
                },
                give=given | dict(give or {}),
                take=dict(self.shared) | taken,
            )
        )  # fmt: skip

    def _of_loop(self, scope: NameScope) -> Iterator[tuple[str, str]]:
        """The enclosing loop's turn as JSON."""
        for name in ("$loopCount", "$loopElement"):
            if name in scope.constants:
                yield name, json_value(scope.constants[name]).replace("${", "$${")
            elif name in scope.fed:
                yield name, column_json(scope.fed[name])

    def builds(self, params: ScriptNode, scope: NameScope) -> bool:
        """Whether JavaScript builds this request."""
        return bool(self.before or functions_of(params.get("beforeRequest"))) or is_drawn_url(params, scope)

    def question(self, kind: str, function: str, scope: NameScope) -> tuple[Block, str]:
        """A question to a function, and the name of its answer."""
        name = self.named("answer")
        return self.call(kind, (function,), scope, take={"result": name}), name

    def before_request(
        self, step: Step, params: ScriptNode, scope: NameScope, plain: bool
    ) -> tuple[Block | None, Step]:
        """The call before a request (None: constant) and the new request. `plain`: response uncompressed."""
        if not self.builds(params, scope):
            return None, step
        functions = (*self.before, *functions_of(params.get("beforeRequest")))
        if step.server is not None:
            raise params.refused("beforeRequest of a request to another server", "send it to config.target")
        self.hook_count += 1
        path, lines, cookies, body = (
            f"{self.prefix}_{self.hook_count}_{what}" for what in ("path", "headers", "cookies", "body")
        )
        call = self.call(
            "before",
            functions,
            scope,
            task={**_request(step, params), "compressed": not plain},
            take={
                "request.path": path, "request.headers": lines, "request.cookies": cookies,
                "request.body": body,
            },
        )  # fmt: skip
        own = {"connection", "host"} | ({"content-type"} if step.body_parts else set())
        kept = {name: text for name, text in step.headers.items() if name.lower() in own}
        changed = step.model_copy(
            update={
                "path": f"/${{{path}}}",
                "path_as": "url",
                "headers": kept,
                "node_headers": True,
                "added_headers_at": 0,
                "header_lines": f"${{{lines}}}",
                "header_lines_at": 0,
                "set_cookies": f"${{{cookies}}}",
                "body": None if step.body is None else f"${{{body}}}",
            }
        )
        return call, changed

    def after_response(
        self, step: Step, params: ScriptNode, scope: NameScope, alone: bool
    ) -> tuple[Step, Block | None]:
        """The request with its response kept, and the call that reads it. `alone`: no function before it."""
        functions = (*self.after, *functions_of(params.get("afterResponse")))
        if not functions:
            return step, None
        head, body = self.named("head"), self.named("response")
        captures = {
            head: Capture(regex=RESPONSE, part="head", default="", always=True),
            body: Capture(regex=RESPONSE, default="", always=True),
        }
        call = self.call(
            "after",
            functions,
            scope,
            task={**_request(step, params), "compressed": False, "alone": alone},
            give={"response.head": f"${{{head}}}", "response.body": f"${{{body}}}"},
        )
        return step.model_copy(update={"capture": {**step.capture, **captures}}), call


def reads_response(hooks: Hooks | None, params: ScriptNode) -> bool:
    """Whether a function reads the response of this request."""
    return hooks is not None and bool(hooks.after or functions_of(params.get("afterResponse")))


def of_scenario(
    node: ScriptNode,
    found: Processor,
    scope: NameScope,
    prefix: str = "hook",
    elsewhere: frozenset[str] = frozenset(),
) -> tuple[Hooks | None, NameScope]:
    """The functions of a scenario, and the scope for its texts; None where it calls none and all requests are
    constant except for values. `prefix`: of generated names; `elsewhere`: variables used in other sections.
    """
    builds = is_built(node.value, scope)
    if not builds and not calls(node.value):
        return None, scope
    ours, referenced = set(captured(node.value)), {*referred(node.value), *referred(found.source), *elsewhere}
    drawn = {*ours, *scope.fed, *scope.captured}
    variables = {*drawn, *(name for name in scope.constants if not name.startswith("$"))}
    # A condition gets the variables under a name of its own.
    any_of_them = found.names_any or any(map(found.has_function, _conditions(node.value)))
    names = (variables | referenced) if any_of_them else found.names & (variables | referenced)
    if builds:  # JavaScript fills in their values
        lists = {name for name, value in scope.constants.items() if isinstance(value, list)}
        names |= (drawn | {name for name in lists if not name.startswith("$")}) & referenced
    names = {name for name in names if name in drawn or re.fullmatch(r"[A-Za-z_][\w-]*", name)}
    # The rows of a file are constant and shared by all users.
    names = {name for name in names if not isinstance(scope.constants.get(name), Rows)}
    shared = {name: scope.captured.get(name, capture_name(name)) for name in sorted(names)}
    inner = NameScope(
        {name: value for name, value in scope.constants.items() if name not in shared},
        {name: column for name, column in scope.fed.items() if name not in shared},
        {**scope.captured, **shared},
        scope.kept | names | frozenset(ours),
        scope.uses,
    )
    name = node.get("name")
    hooks = Hooks(
        found,
        shared,
        None if name is None else str(name.value),
        before=functions_of(node.get("beforeRequest")),
        after=functions_of(node.get("afterResponse")),
        first=functions_of(node.get("beforeScenario")),
        last=functions_of(node.get("afterScenario")),
        prefix=prefix,
        uuid="$uuid" in repr(node.value) or "$uuid" in found.source,
    )
    if node.get("onError") is not None:
        text = "the functions of onError are not called"
        hooks.notes.append(node.children["onError"].note("on_error", text))
    return hooks, inner


def is_built(value: Any, scope: NameScope) -> bool:
    """Whether functions or a value that starts its URL build a request during the run."""
    if isinstance(value, dict):
        if value.get("beforeRequest"):
            return True
        urls = (value.get("url"), value.get("uri"))
        if any(isinstance(url, str) and first_of(url) not in ("", *scope.constants) for url in urls):
            return True
        return any(is_built(inner, scope) for key, inner in value.items() if key not in CONTENTS)
    return isinstance(value, list) and any(is_built(inner, scope) for inner in value)


def first_of(url: str) -> str:
    """The name at the start of a URL; empty where it begins with a text or a call."""
    match = TOKEN.match(url.strip())
    return "" if match is None or "(" in match[1] else next(iter(words_of(match[1])), "")


def is_drawn_url(params: ScriptNode, scope: NameScope) -> bool:
    """Whether a request's URL begins with a value of the run."""
    url = params.get("url") or params.get("uri")
    if url is None or not isinstance(url.value, str):
        return False
    first = first_of(url.value)
    return first in scope.captured or first in scope.fed or first in scope.later


def is_yes(answer: str) -> Condition:
    """The condition that a function answered yes."""
    return Condition(left=f"${{{answer}}}", op="==", right="true")


def failing(error: str) -> Block:
    """A block that fails the user and counts the error under this name, as Artillery does."""
    return Block(call=Call(task={"kind": "fail", "functions": [], "error": error, "give": [], "take": []}))


def at_start(hooks: Hooks, outer: NameScope, drawn: Mapping[str, Any]) -> dict[str, str]:
    """Initial values of the shared variables as JSON; `null` for none. `drawn`: this user's values of lists.
    Captures of `before` are set by the plan.
    """
    scope = NameScope({**outer.constants, **drawn}, outer.fed)
    return {ours: _at_start(name, scope) for name, ours in hooks.shared.items() if name not in outer.captured}


def _at_start(name: str, scope: NameScope) -> str:
    if name in scope.constants:
        return json_value(scope.constants[name]).replace("${", "$${")
    return column_json(scope.fed[name]) if name in scope.fed else "null"


def column_json(column: FeederColumn) -> str:
    """A column, or a loop's turn, as JSON."""
    plain = column.numeric or column.kept
    return f"${{{column.placeholder}}}" if plain else f'"${{{column.placeholder} | json}}"'


def functions_of(node: ScriptNode | None) -> tuple[str, ...]:
    """Names of functions in a key."""
    if node is None:
        return ()
    named = node.elements() if isinstance(node.value, list) else [node]
    return tuple(name.text("the name of a function") for name in named)


def _request(step: Step, params: ScriptNode) -> dict[str, Any]:
    """The request as functions see it."""
    given = {name: value for name, value in params.value.items() if name not in NOT_SENT}
    return {"method": step.method, "params": given, "has_body": step.body is not None}


def script_of(found: Processor, surroundings: Mapping[str, Any]) -> Script:
    """The processor as a script of the engine."""
    return Script(file=str(found.file), args=(json.dumps(surroundings, ensure_ascii=False),))


def captured(value: Any) -> Iterator[str]:
    """Names that this value captures."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "capture":
                specs = inner if isinstance(inner, list) else [inner]
                yield from (str(spec["as"]) for spec in specs if isinstance(spec, dict) and "as" in spec)
            yield from captured(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from captured(inner)


def _conditions(value: Any) -> Iterator[str]:
    """Every ifTrue."""
    if isinstance(value, dict):
        if "ifTrue" in value:
            yield str(value["ifTrue"])
        for inner in value.values():
            yield from _conditions(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _conditions(inner)


def referred(value: Any, key: str = "") -> Iterator[str]:
    """Names used by templates, conditions and loops."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from referred(str(name))
            yield from referred(inner, str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from referred(inner)
    elif isinstance(value, str):
        if key == "over":
            yield from words_of(value)[:1]
        elif key == "ifTrue":
            yield from re.findall(r"[A-Za-z_]\w*", value)
        for match in TOKEN.finditer(value):
            yield match[1]
            yield from words_of(match[1])[:1]
