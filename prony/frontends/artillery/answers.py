"""What a request does with its answer: capture, match and the expect plugin. Must not know how it is sent."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from prony.frontends.artillery.script import Node
from prony.frontends.artillery.templates import Scope, capture_name, constant
from prony.plan.workload import Capture, Expectation

RIGHT = tuple(range(200, 207))
"""Statuses that are right where the script does not say."""
NOT_FOLLOWED = (*RIGHT, *range(300, 309))
"""Likewise with followRedirect: false."""
JSONPATH = re.compile(r"""\$?(?:\.?([\w-]+)|\[(\d+)\]|\[(?:'([^']+)'|"([^"]+)")\])""")
CAPTURE_KEYS = frozenset({"json", "regexp", "header", "as", "strict", "group", "flags", "multiple", "value"})
ONLY_CAPTURES = "capture with json, regexp or header"
EXPECTATIONS = frozenset({
    "statusCode", "notStatusCode", "contentType", "hasHeader", "headerEquals", "hasProperty",
})  # fmt: skip
ANSWERED = tuple(range(200, 600))
"""Statuses that an answer can have."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What is read from an answer."""

    captures: dict[str, Capture]
    """By the name in the plan."""
    names: dict[str, str]
    """Name in the script -> name in the plan."""
    from_json: bool
    matches: bool
    """A value must be found, or the user fails."""
    json_values: dict[str, Any]
    json_exists: tuple[str, ...]

    @property
    def body(self) -> bool:
        """Whether the body is looked into."""
        return bool(self.json_values or self.json_exists) or any(
            capture.header is None for capture in self.captures.values()
        )


@dataclass(frozen=True, slots=True)
class Expected:
    """What the expect plugin is asked to check of a request."""

    checks: tuple[tuple[str, tuple[int, ...] | None], ...]
    """As Artillery calls them, in their order, with the statuses that a check of the status lets pass."""
    statuses: tuple[int, ...] | None
    """That all of them let pass."""
    headers: dict[str, str]
    json_exists: tuple[str, ...]


NOTHING = Expected((), None, {}, ())


def looked(params: Node, scope: Scope) -> Looked:
    """`capture` and `match` of a request. Raises Refused."""
    captures: dict[str, Capture] = {}
    names: dict[str, str] = {}
    json_values: dict[str, Any] = {}
    from_json = matches = False
    for spec in (*_listed(params.get("capture")), *_listed(params.get("match"))):
        spec.only("capture", CAPTURE_KEYS, ONLY_CAPTURES)
        if spec.get("value") is not None:
            path = spec.get("json")
            if path is None:
                raise spec.refused(
                    "match", "match a json path, or expect a status or header with plugins.expect"
                )
            json_values[pointer(path)] = constant(spec.children["value"], scope)
            matches = True
            continue
        name = spec.get("as")
        if name is None:
            raise spec.wrong("a name in 'as', or a 'value' to match")
        ours = capture_name(name.text("a name"))
        captures[ours], names[name.value] = _capture(spec), ours
        from_json |= spec.get("json") is not None
    return Looked(captures, names, from_json, matches, json_values, ())


def _capture(spec: Node) -> Capture:
    strict = spec.children.get("strict")
    default = "" if strict is not None and strict.value is False else None
    path, pattern, header = spec.get("json"), spec.get("regexp"), spec.get("header")
    if path is not None:
        multiple = spec.children.get("multiple")
        if multiple is not None and multiple.value is not True:
            raise multiple.refused("capture 'multiple: false'", "capture one element of the list: $.list[0]")
        return Capture(json=pointer(path), default=default)  # type: ignore[call-arg]
    if header is not None:
        return Capture(header=header.text("a header's name"), default=default)
    if pattern is None:
        raise spec.refused("this capture", ONLY_CAPTURES)
    flags = spec.get("flags")
    letters = "" if flags is None else flags.text("a text of flags")
    if flags is not None and set(letters) - set("ims"):
        raise flags.refused(f"the flags '{letters}' of a regexp", "use i, m and s")
    text = pattern.text("a regular expression")
    group = spec.get("group")
    number = 0 if group is None else int(group.number("the number of a group"))
    regex = f"(?{letters}){text}" if letters else text
    if re.search(r"\(\?<?[=!]|\\[1-9]", text):
        raise pattern.refused(
            "look-around or a back reference in a regexp", "write it with a group around what is wanted"
        )
    return Capture(regex=regex, group=number, default=default)


def pointer(path: Node) -> str:
    """A JSON pointer for a JSONPath that names one place: $.a.b[0]['c']. Raises Refused."""
    text = path.text("a JSONPath").strip()
    rest = text.removeprefix("$")
    found, at = "", 0
    while at < len(rest):
        match = JSONPATH.match(rest, at)
        if match is None or match[0].startswith("$"):
            raise path.refused(
                f"the JSONPath {text}", "name one place, such as $.list[0].name (no *, .. or filter)"
            )
        token = next(group for group in match.groups() if group is not None)
        found += "/" + token.replace("~", "~0").replace("/", "~1")
        at = match.end()
    return found


def expected(params: Node, scope: Scope) -> Expected:
    """`expect` of a request, with the plugin on. Raises Refused."""
    node = params.get("expect")
    if node is None:
        return NOTHING
    checks: list[tuple[str, tuple[int, ...] | None]] = []
    statuses: tuple[int, ...] | None = None
    headers: dict[str, str] = {}
    exists: list[str] = []
    for part in _listed(node):
        part.only("expect", EXPECTATIONS, f"expect {', '.join(sorted(EXPECTATIONS))}")
        for key, child in part.items():
            if key in ("statusCode", "notStatusCode"):
                named = tuple(int(_number(one, scope)) for one in _listed(child))
                allowed = (
                    named if key == "statusCode" else tuple(code for code in ANSWERED if code not in named)
                )
                statuses = allowed if statuses is None else tuple(s for s in statuses if s in allowed)
                checks.append((key, allowed))
                continue
            label = key
            if key == "contentType":
                wanted = str(constant(child, scope))
                headers["content-type"] = "application/json" if wanted == "json" else wanted
            elif key == "hasHeader":
                headers.setdefault(str(constant(child, scope)).lower(), "")
            elif key == "headerEquals":
                pair = child.elements()
                if len(pair) != 2:
                    raise child.wrong("a list of a header's name and its value")
                title = str(constant(pair[0], scope))
                headers[title.lower()] = str(constant(pair[1], scope))
                label = f"header {title} values equals"
            else:
                exists.append(pointer(child))
            checks.append((label, None))
    if statuses == ():
        raise node.wrong("a status that all of its checks let pass")
    return Expected(tuple(checks), statuses, headers, tuple(exists))


def expectation(wanted: Expected, found: Looked, follows: bool) -> Expectation:
    """What a right answer is, for the engine and the verdict."""
    statuses = wanted.statuses or (RIGHT if follows else NOT_FOLLOWED)
    return Expectation(
        status=statuses,
        headers=wanted.headers,
        json=found.json_values,  # type: ignore[call-arg]
        json_exists=wanted.json_exists,
    )


def _number(node: Node, scope: Scope) -> float:
    value = constant(node, scope)
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise node.wrong("a status such as 200") from None
    if not 100 <= number <= 999:
        raise node.wrong("a status such as 200")
    return number


def _listed(node: Node | None) -> Iterable[Node]:
    if node is None:
        return ()
    return node.elements() if isinstance(node.value, list) else (node,)
