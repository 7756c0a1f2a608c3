"""Translates Artillery's JSONPaths for the plan model.

Artillery uses the library jsonpath-plus, whose filters are JavaScript. Syntax that differs from RFC 9535 is
translated; paths that would select other values are refused.
"""

from __future__ import annotations

import json
import re

from prony_frontends.artillery.script import ScriptNode

NAME = r"""\.?([\w-]+)|\[(\d+)\]|\[(?:'([^']+)'|"([^"]+)")\]"""
ONE = re.compile(NAME)
"""A step that selects at most one value."""
COMPARED = r"""@\.([A-Za-z_]\w*)\s*([!=]==?|[<>]=?)\s*('[^'\\]*'|"[^"\\]*"|-?\d+(?:\.\d+)?|true|false)"""
"""A filter that compares a key with a literal; other filters differ in JavaScript."""
COMPARISON = re.compile(COMPARED)
UNNAMED = COMPARED.replace("([", "(?:[").replace("('", "(?:'")
MANY = re.compile(
    rf"(?:\.\.(?P<deep>[\w-]+|\*))|(?P<all>\.?\*|\[\*\])|(?P<places>\[(?:\d+(?:,\d+)+|-?\d*:-?\d*(?::[1-9]\d*)?)\])"
    rf"|\[\?\(\s*(?P<filter>{UNNAMED}(?:\s*(?:&&|\|\|)\s*{UNNAMED})*)\s*\)\]"
)
"""A step that may select several values."""


def pointer(path: ScriptNode) -> str:
    """JSON pointer for a JSONPath to a single place: $.a.b[0]['c']. Raises Refused."""
    json_pointer = place(path)
    if json_pointer is None:
        raise path.refused(f"the JSONPath {_text(path)}", "use a single path, as $.list[0].name")
    return json_pointer


def place(path: ScriptNode) -> str | None:
    """The same; None for other paths."""
    rest = _text(path).removeprefix("$")
    json_pointer, at = "", 0
    while at < len(rest):
        match = ONE.match(rest, at)
        if match is None:
            return None
        token = next(group for group in match.groups() if group is not None)
        json_pointer += "/" + token.replace("~", "~0").replace("/", "~1")
        at = match.end()
    return json_pointer


def several(path: ScriptNode) -> str:
    """RFC 9535 path for a JSONPath with several results: $.list[*].id. Raises Refused."""
    rest = _text(path).removeprefix("$")
    rfc_path, at = "$", 0
    while at < len(rest):
        single, many = ONE.match(rest, at), MANY.match(rest, at)
        if many is not None:
            rfc_path += _many(many)
            at = many.end()
        elif single is not None:
            name, index, *quoted = single.groups()
            rfc_path += f"[{index}]" if index is not None else f"[{_quoted(name or quoted[0] or quoted[1])}]"
            at = single.end()
        else:
            raise path.refused(
                f"the JSONPath {_text(path)}",
                "name places by keys, numbers, *, .., slices and filters such as [?(@.kind == 'a')]",
            )
    return rfc_path


def _many(match: re.Match[str]) -> str:
    if (deep := match["deep"]) is not None:
        return "..*" if deep == "*" else f"..[{_quoted(deep)}]"
    if match["all"] is not None:
        return "[*]"
    if (places := match["places"]) is not None:
        return places
    return f"[?{COMPARISON.sub(_comparison, match['filter'])}]"


def _comparison(match: re.Match[str]) -> str:
    key, op, literal = match.groups()
    value = _quoted(literal[1:-1]) if literal[0] in "'\"" else literal
    return f"@[{_quoted(key)}] {op[:2] if op in ('===', '!==') else op} {value}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _text(path: ScriptNode) -> str:
    return path.text("a JSONPath").strip()
