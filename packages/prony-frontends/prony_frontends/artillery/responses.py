"""Translates capture, match and the plugin expect."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from prony.plan.response import Capture, Expectation
from prony_frontends import markup
from prony_frontends.artillery import header_patterns, jmespath, json_patterns
from prony_frontends.artillery.jmespath import JsonChecks
from prony_frontends.artillery.json_values import ALONE
from prony_frontends.artillery.paths import place, pointer, several
from prony_frontends.artillery.script import ScriptNode
from prony_frontends.artillery.templates import (
    NameScope,
    capture_name,
    constant,
    is_drawn,
    json_text,
    json_value,
    rendered,
    str_of,
)
from prony_frontends.base import Note
from prony_frontends.patterns import Untranslatable, pattern

RIGHT = tuple(range(200, 300))
"""Statuses accepted by default."""
NOT_FOLLOWED = (*RIGHT, *range(300, 309))
"""Statuses accepted with followRedirect: false."""
CAPTURE_KEYS = frozenset({
    "json", "regexp", "header", "as", "strict", "group", "flags", "multiple", "value", "selector", "attr",
    "index",
})  # fmt: skip
ONLY_CAPTURES = "capture with json, regexp, header or selector"
NO_XPATH = "capture with json, regexp, header or selector (Artillery needs another package for xpath)"
EXPECTATIONS = frozenset({
    "statusCode", "notStatusCode", "contentType", "hasHeader", "headerEquals", "hasProperty",
    "notHasProperty", "matchesRegexp", "equals", "jmespath", "jpath", "cdnHit",
})  # fmt: skip
OF_JSON = frozenset({"hasProperty", "notHasProperty", "jmespath", "jpath"})
"""Checks that only a list or object with JSON's content type can pass."""
ANSWERED = tuple(range(200, 600))
"""Possible statuses."""


@dataclass(frozen=True, slots=True)
class ReadFromResponse:
    """Values that a request reads from its response."""

    captures: dict[str, Capture]
    """Captures by name in the plan."""
    names: dict[str, str]
    """Name in the script -> name in the plan."""
    matches: bool
    """Whether a missing value fails the user."""
    json_values: dict[str, Any]
    json_filled: dict[str, str]
    """JSON pointer -> value of a match known only during the run, as JSON."""
    ignored: tuple[Note, ...] = ()
    """A note for each key without effect."""

    @property
    def body(self) -> bool:
        """Whether the body is read."""
        matched = self.json_values or self.json_filled
        return bool(matched) or any(capture.header is None for capture in self.captures.values())


@dataclass(frozen=True, slots=True)
class Expected:
    """Checks of the plugin expect for a request."""

    checks: tuple[tuple[str, tuple[int, ...] | None], ...]
    """Artillery's names of the checks in order, each with its accepted statuses."""
    statuses: tuple[int, ...] | None
    """Statuses accepted by all checks."""
    headers: dict[str, str]
    head_matches: tuple[str, ...] = ()
    head_not_matches: tuple[str, ...] = ()
    json_exists: tuple[str, ...] = ()
    json_absent: tuple[str, ...] = ()
    regexes: tuple[str, ...] = ()
    json_filled: Mapping[str, str] = field(default_factory=dict)
    """JSON pointer -> required value, as JSON with placeholders."""
    json_matches: Mapping[str, str] = field(default_factory=dict)
    """JSON pointer -> regex that must match the value."""
    ignored: tuple[Note, ...] = ()
    """Checks that the plugin ignores."""

    @property
    def body(self) -> bool:
        """Whether the body is read."""
        json_asked = self.json_exists or self.json_absent or self.json_filled or self.json_matches
        return bool(json_asked or self.regexes)


NOTHING = Expected((), None, {})
STATUS_200 = Expected((("statusCode", (200,)),), (200,), {})
"""For requests without an expectation, with expectDefault200."""


def looked(params: ScriptNode, scope: NameScope, strict: bool) -> ReadFromResponse:
    """`capture` and `match`; `strict`: captures must match unless they say otherwise. Raises Refused."""
    captures: dict[str, Capture] = {}
    names: dict[str, str] = {}
    json_values: dict[str, Any] = {}
    json_filled: dict[str, str] = {}
    matches = False
    ignored: list[Note] = []
    for spec in (*_listed(params.get("capture")), *_listed(params.get("match"))):
        if spec.get("xpath") is not None:
            raise spec.children["xpath"].refused("capture 'xpath'", NO_XPATH)
        ignored += spec.unread("the key of a capture", CAPTURE_KEYS)
        if spec.get("value") is not None:
            path = spec.get("json")
            if path is None:
                raise spec.refused("match", "match a json path, or use plugins.expect (status, header)")
            where, value = pointer(path), spec.children["value"]
            own = spec.children.get("strict")
            if own is not None and own.value is False:  # a miss does not matter
                continue
            matches = True
            if is_drawn(value, scope):
                json_filled[where] = json_text(value, scope)
            else:
                json_values[where] = constant(value, scope)
            continue
        name = spec.get("as")
        if name is None:
            raise spec.wrong("a name in 'as', or a 'value' to match")
        ours = capture_name(name.text("a name"))
        capture = _capture(spec, strict)
        if capture.default is not None and (spec.get("json") or spec.get("selector")) is not None:
            ignored.append(
                spec.note("no_match", f"without a match {name.value} is empty; Artillery writes undefined")
            )
        if spec.get("selector") is not None and capture.regex is not None and capture.template is not None:
            ignored.append(
                spec.note("tags_in_source", f"{spec.children['selector'].shown} is matched undecoded")
            )
        if name.value in scope.kept:
            default = None if capture.default is None else json.dumps(capture.default)
            capture = capture.model_copy(update={"as_json": True, "default": default})
        captures[ours], names[name.value] = capture, ours
    if not matches:  # in Artillery a failed match prevents captures, an expectation does not
        captures = {ours: capture.model_copy(update={"always": True}) for ours, capture in captures.items()}
    return ReadFromResponse(captures, names, matches, json_values, json_filled, tuple(ignored))


def _capture(spec: ScriptNode, strict: bool) -> Capture:
    own = spec.children.get("strict")
    # Artillery then clears the variable.
    default = None if (strict if own is None else own.value is not False) else ""
    path, regexp, header = spec.get("json"), spec.get("regexp"), spec.get("header")
    if path is not None and str(path.value).endswith(".length"):
        raise path.refused("a list's length in a capture", "capture the list, or a count of the response")
    if header is not None and header.value == "set-cookie":
        raise header.refused("capture of all lines of set-cookie", "capture one with a regexp")
    if path is not None:
        multiple = spec.children.get("multiple")
        every = multiple is not None and multiple.value is False
        where = place(path)
        if where is None and every:
            return Capture(jsonpath=several(path), match=-1, default=default, as_json=True)
        if where is None:
            return Capture(jsonpath=several(path), match=0, default=default)
        return Capture(json=where, default=default)  # type: ignore[call-arg]
    if header is not None:
        return Capture(header=header.text("a header's name"), default=default)
    if regexp is None and spec.get("selector") is not None:
        return _selected(spec, default)
    if regexp is None:
        raise spec.refused("this capture", ONLY_CAPTURES)
    flags = spec.get("flags")
    letters = "" if flags is None else flags.text("a text of flags")
    if flags is not None and set(letters) - set("ims"):
        raise flags.refused(f"the flags '{letters}' of a regexp", "use i, m and s")
    group = spec.get("group")
    number = 0 if group is None else _group(group, regexp)
    text = _regex(regexp, regexp.text("a regular expression"), "write it with a group around what is wanted")
    regex = f"(?{letters}){text}" if letters else text
    return Capture(regex=regex, group=number, default=default)


GROUPS = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\((?!\?)|\(\?<(?![=!])(\w+)>", re.DOTALL)
"""What an expression consists of, as far as groups are counted: a group begins with ( or (?<name>."""


def _group(group: ScriptNode, regexp: ScriptNode) -> int:
    """The number of a group, which may have a name."""
    groups = [match[1] for match in GROUPS.finditer(str(regexp.value)) if match[0].startswith("(")]
    if group.value in groups:
        return groups.index(group.value) + 1
    return int(group.number("the number or the name of a group"))


def _selected(spec: ScriptNode, default: str | None) -> Capture:
    """An attribute of a tag matched by a CSS selector."""
    selector, attribute = spec.children["selector"], spec.get("attr")
    of = None if attribute is None else markup.css(selector.text("a selector"), attribute.text("a name"))
    if of is None:
        raise selector.refused(
            f"the selector {selector.shown} without an attribute of one tag",
            "name it with attr, of a tag, tag[name=x], tag[name^=x], .x or #x, or use a regexp",
        )
    index = spec.get("index")
    random = index is not None and index.value == "random"
    place = 0 if index is None or random else index.number("0 and more, or random")
    if place < 0 or not float(place).is_integer():
        raise (index or spec).wrong("0 and more, or random")
    match = 0 if random else int(place) + 1
    return Capture(regex=of.regex, template=of.template, match=match, default=default)


def _regex(node: ScriptNode, text: str, instead: str) -> str:
    """A JavaScript regex in the engine's syntax. Raises Refused."""
    try:
        return pattern(text, javascript=True).text
    except Untranslatable as why:
        raise node.refused(f"{why} in a regexp", instead) from why


def expected(params: ScriptNode, scope: NameScope, otherwise: Expected) -> Expected:
    """Translates `expect`, with the plugin on; `otherwise`: for requests without one. Raises Refused."""
    node = params.get("expect")
    if node is None or node.value in ([], {}):
        return otherwise
    checks: list[tuple[str, tuple[int, ...] | None]] = []
    statuses: tuple[int, ...] | None = None
    headers: dict[str, str] = {}
    in_head: list[str] = []
    not_in_head: list[str] = []
    regexes: list[str] = []
    of_json = False
    json_checks = JsonChecks()
    ignored: list[Note] = []
    for part in _listed(node):
        # The plugin reads the first key of a list element.
        for key, child in list(part.items())[: 1 if isinstance(node.value, list) else None]:
            if key not in EXPECTATIONS:
                ignored.append(child.note("unknown_key", f"the plugin expect has no '{key}'"))
                continue
            if key in ("statusCode", "notStatusCode"):
                named = tuple(int(_number(status, scope)) for status in _listed(child))
                allowed = (
                    named if key == "statusCode" else tuple(code for code in ANSWERED if code not in named)
                )
                statuses = allowed if statuses is None else tuple(s for s in statuses if s in allowed)
                checks.append((key, allowed))
                continue
            label = key
            of_json = of_json or key in OF_JSON
            if key == "contentType":
                kind = str_of(constant(child, scope))
                if kind == "json":
                    of_json = True
                else:
                    in_head.append(header_patterns.content_type(kind))
            elif key == "hasHeader":
                headers.setdefault(str(constant(child, scope)).lower(), "")
            elif key == "headerEquals":
                pair = child.elements()
                if len(pair) != 2:
                    raise child.wrong("a list of a header's name and its value")
                title, value = str_of(constant(pair[0], scope)), constant(pair[1], scope)
                required, other = header_patterns.equal(title, str_of(value) if value else "")
                in_head.append(required)
                not_in_head += [] if other is None else [other]
                label = f"header {title} values equals"
            elif key == "cdnHit":
                in_head.append(header_patterns.of_cdn(bool(child.value)))
            elif key == "matchesRegexp":
                wanted = str(constant(child, scope))
                regexes.append(_regex(child, wanted, "write it without"))
            elif key == "equals":
                json_checks.add(JsonChecks(filled=_equal(child, params, scope)), child)
            elif key in ("jmespath", "jpath"):
                json_checks.add(jmespath.checks(child), child)
            else:
                (json_checks.exists if key == "hasProperty" else json_checks.absent).append(pointer(child))
            checks.append((label, None))
    if statuses == ():
        raise node.wrong("a status that passes all of its checks")
    if of_json:
        in_head.append(header_patterns.JSON_TYPE)
        if "" not in {**json_checks.matches, **json_checks.filled}:
            json_checks.matches[""] = json_patterns.STRUCTURE
    return Expected(
        tuple(checks),
        statuses,
        headers,
        tuple(in_head),
        tuple(not_in_head),
        tuple(json_checks.exists),
        tuple(json_checks.absent),
        tuple(regexes),
        json_checks.filled,
        json_checks.matches,
        tuple(ignored),
    )


def _equal(node: ScriptNode, params: ScriptNode, scope: NameScope) -> dict[str, str]:
    """The check that texts, captured from this response's JSON or expected, are equal."""
    instead = "compare a value that this request captures with a json path of one place with texts"
    here = {
        str(spec.children["as"].value): spec.children["json"]
        for spec in _listed(params.get("capture"))
        if spec.get("as") is not None and spec.get("json") is not None
    }
    captured: list[str] = []
    others: dict[str, ScriptNode] = {}
    for element in node.elements():
        alone = ALONE.fullmatch(element.value) if isinstance(element.value, str) else None
        if alone is not None and alone[1] in here:
            captured.append(pointer(here[alone[1]]))
        else:
            others[rendered(element, scope)] = element
    if not captured:
        if len(others) != 1 or any(is_drawn(element, scope) for element in others.values()):
            raise node.refused("expect equals without a value of this response", instead)
        return {}
    if len(others) != 1:
        raise node.refused("expect equals with other than two values", instead)
    (wanted,) = others.values()
    return dict.fromkeys(captured, _as_json(wanted, scope))


def _as_json(node: ScriptNode, scope: NameScope) -> str:
    """A text as JSON: a number if it looks like a number."""
    if is_drawn(node, scope):
        return json_text(node, scope)
    value = constant(node, scope)
    if isinstance(value, str) and re.fullmatch(r"-?(?:0|[1-9]\d*)(?:\.\d+)?|true|false|null", value):
        return value
    return json_value(value).replace("${", "$${")


def expectation(wanted: Expected, found: ReadFromResponse, follows: bool) -> Expectation:
    """The expected response for the engine and the judgement."""
    statuses = wanted.statuses or (RIGHT if follows else NOT_FOLLOWED)
    return Expectation(
        status=statuses,
        headers=wanted.headers,
        head_matches=wanted.head_matches,
        head_not_matches=wanted.head_not_matches,
        json=found.json_values,  # type: ignore[call-arg]
        json_filled={**found.json_filled, **wanted.json_filled},
        json_exists=wanted.json_exists,
        json_absent=wanted.json_absent,
        json_matches=dict(wanted.json_matches),
        body_matches=wanted.regexes,
    )


def _number(node: ScriptNode, scope: NameScope) -> float:
    value = constant(node, scope)
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise node.wrong("a status such as 200") from None
    if not 100 <= number <= 999:
        raise node.wrong("a status such as 200")
    return number


def _listed(node: ScriptNode | None) -> Iterable[ScriptNode]:
    if node is None:
        return ()
    return node.elements() if isinstance(node.value, list) else (node,)
