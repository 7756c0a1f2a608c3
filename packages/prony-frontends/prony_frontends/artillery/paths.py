"""Artillery's JSONPaths as the plan model has them.

Artillery asks the library jsonpath-plus, whose filters are JavaScript; what is written differently there and
in RFC 9535 is translated, and what would find something else is refused.
"""

from __future__ import annotations

import json
import re

from prony_frontends.artillery.script import ScriptNode

NAME = r"""\.?([\w-]+)|\[(\d+)\]|\[(?:'([^']+)'|"([^"]+)")\]"""
ONE = re.compile(NAME)
"""A step that leads to one value at most."""
COMPARED = r"""@\.([A-Za-z_]\w*)\s*([!=]==?|[<>]=?)\s*('[^'\\]*'|"[^"\\]*"|-?\d+(?:\.\d+)?|true|false)"""
"""Of a filter: a key against a literal. Truth by itself, null and deeper paths mean something else in
JavaScript.
"""
COMPARISON = re.compile(COMPARED)
UNNAMED = COMPARED.replace("([", "(?:[").replace("('", "(?:'")
MANY = re.compile(
    rf"(?:\.\.(?P<deep>[\w-]+|\*))|(?P<all>\.?\*|\[\*\])|(?P<places>\[(?:\d+(?:,\d+)+|-?\d*:-?\d*(?::[1-9]\d*)?)\])"
    rf"|\[\?\(\s*(?P<filter>{UNNAMED}(?:\s*(?:&&|\|\|)\s*{UNNAMED})*)\s*\)\]"
)
"""A step that may lead to several."""


def pointer(path: ScriptNode) -> str:
    """A JSON pointer for a JSONPath that names one place: $.a.b[0]['c']. Raises Refused."""
    found = place(path)
    if found is None:
        raise path.refused(
            f"the JSONPath {_text(path)}", "name one place, such as $.list[0].name (no *, .. or filter)"
        )
    return found


def place(path: ScriptNode) -> str | None:
    """The same; None when it does not name one place."""
    rest = _text(path).removeprefix("$")
    found, at = "", 0
    while at < len(rest):
        match = ONE.match(rest, at)
        if match is None:
            return None
        token = next(group for group in match.groups() if group is not None)
        found += "/" + token.replace("~", "~0").replace("/", "~1")
        at = match.end()
    return found


def several(path: ScriptNode) -> str:
    """RFC 9535 for a JSONPath that may name several places: $.list[*].id. Raises Refused."""
    rest = _text(path).removeprefix("$")
    found, at = "$", 0
    while at < len(rest):
        one, many = ONE.match(rest, at), MANY.match(rest, at)
        if many is not None:
            found += _many(many)
            at = many.end()
        elif one is not None:
            name, index, *quoted = one.groups()
            found += f"[{index}]" if index is not None else f"[{_quoted(name or quoted[0] or quoted[1])}]"
            at = one.end()
        else:
            raise path.refused(
                f"the JSONPath {_text(path)}",
                "name places by keys, numbers, *, .., slices and filters such as [?(@.kind == 'a')]",
            )
    return found


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
