"""Translates JMESPath checks into the plan model: a JSON place compared with a literal."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from prony_frontends.artillery import json_patterns
from prony_frontends.artillery.paths import place
from prony_frontends.artillery.script import ScriptNode, with_value
from prony_frontends.artillery.templates import json_value

_PLACE = r"""((?:"[^"]*"|[\w.\[\]@])+)"""
_LITERAL = r"('[^']*'|`[^`]*`)"
_OP = r"(==|!=|>=|<=|>|<)"
_LENGTH = re.compile(rf"length\(\s*{_PLACE}\s*\)\s*{_OP}\s*`\s*(\d{{1,9}})\s*`")
_CALL = re.compile(rf"(contains|starts_with|ends_with)\(\s*{_PLACE}\s*,\s*{_LITERAL}\s*\)(?:\s*==\s*`true`)?")
_COMPARISON = re.compile(rf"{_PLACE}\s*{_OP}\s*(?:{_LITERAL}|null)")
_ALONE = re.compile(_PLACE)
_WORD = re.compile(r"""'[^']*'|`[^`]*`|"[^"]*"|&&|.""", re.DOTALL)
_NUMBER = re.compile(
    rf"-?\d{{1,{json_patterns.MOST_DIGITS}}}(?:\.\d{{1,{json_patterns.MOST_PLACES}}})?", re.ASCII
)
INSTEAD = (
    "compare one place with a literal (a.b[0] == 'text', n >= `5`, x != null), ask for length(list) > `0`, "
    "contains(x, 'text'), starts_with, ends_with or a place alone, and join such checks by &&"
)


@dataclass(slots=True)
class JsonChecks:
    """Conditions on a response's JSON, by JSON pointer."""

    exists: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    filled: dict[str, str] = field(default_factory=dict)
    """The required value, as JSON with placeholders."""
    matches: dict[str, str] = field(default_factory=dict)
    """A regex that must match the value."""

    def add(self, other: JsonChecks, node: ScriptNode) -> None:
        """Adds checks. Raises Refused for two comparisons of one path, which plans do not support."""
        for mine, more in ((self.filled, other.filled), (self.matches, other.matches)):
            twice = [where for where, what in more.items() if mine.get(where, what) != what]
            if twice:
                raise node.refused(
                    f"another check of {twice[0] or 'the whole body'}", "check each path once", "conflict"
                )
            mine |= more
        self.exists += other.exists
        self.absent += other.absent


def checks(node: ScriptNode) -> JsonChecks:
    """Checks for a JMESPath that must be true. Raises Refused for unsupported ones."""
    clauses = [""]
    for word in _WORD.findall(node.text("a JMESPath")):
        if word == "&&":
            clauses.append("")
        else:
            clauses[-1] += word
    json_checks = JsonChecks()
    for clause in clauses:
        json_checks.add(_clause(clause.strip(), node), node)
    return json_checks


def _clause(text: str, node: ScriptNode) -> JsonChecks:
    if (length := _LENGTH.fullmatch(text)) is not None:
        return _length(_pointer(length[1], node), length[2], int(length[3]), node)
    if (call := _CALL.fullmatch(text)) is not None:
        return JsonChecks(matches={_pointer(call[2], node): _called(call[1], _value(call[3], node), node)})
    if (compared := _COMPARISON.fullmatch(text)) is not None:
        where, op, literal = compared.groups()
        value = None if literal is None else _value(literal, node)
        return _compared(_pointer(where, node), op, value, node)
    if _ALONE.fullmatch(text) is not None:
        return JsonChecks(matches={_pointer(text, node): json_patterns.TRUE})
    raise _refused(node)


def _compared(where: str, op: str, value: Any, node: ScriptNode) -> JsonChecks:
    if op == "==" and value is not None:  # a missing value is null
        return JsonChecks(filled={where: json_value(value).replace("${", "$${")})
    if op == "!=" and value is None:
        return JsonChecks(matches={where: json_patterns.NOT_NULL})
    number = not isinstance(value, bool) and isinstance(value, int | float)
    if op in ("==", "!=") or not number or _NUMBER.fullmatch(json_value(value)) is None:
        raise _refused(node)
    return JsonChecks(matches={where: json_patterns.number(op, json_value(value))})


def _called(function: str, value: Any, node: ScriptNode) -> str:
    if isinstance(value, str):
        patterns = {
            "contains": json_patterns.holds,
            "starts_with": json_patterns.begins,
            "ends_with": json_patterns.ends,
        }
        return patterns[function](value)
    if function == "contains" and not isinstance(value, dict | list):
        return json_patterns.holds_value(json_value(value))
    raise _refused(node)


def _length(where: str, op: str, number: int, node: ScriptNode) -> JsonChecks:
    """Checks the length: of any list, object or text against 0, otherwise of a list."""
    if (op, number) in ((">", 0), ("!=", 0), (">=", 1)):
        return JsonChecks(matches={where: json_patterns.NOT_EMPTY})
    if (op, number) in (("==", 0), ("<=", 0), ("<", 1)):
        return JsonChecks(matches={where: json_patterns.EMPTY})
    fewest = {">": number + 1, ">=": number, "==": number}.get(op)
    most = {"<": number - 1, "<=": number, "==": number}.get(op)
    if op == "!=" or (most or 0) < 0:
        raise _refused(node)
    return JsonChecks(
        exists=[] if not fewest else [f"{where}/{fewest - 1}"],
        absent=[] if most is None else [f"{where}/{most}"],
        matches={where: json_patterns.LIST},
    )


def _pointer(text: str, node: ScriptNode) -> str:
    """JSON pointer of a path. Raises Refused."""
    if text == "@":
        return ""
    path = re.sub(r'\.?"([^"]*)"', r'["\1"]', text.removeprefix("@"))
    json_pointer = place(with_value(node, f"${path}" if path[:1] in ("[", ".") else f"$.{path}"))
    if json_pointer is None:
        raise _refused(node)
    return json_pointer


def _value(literal: str, node: ScriptNode) -> Any:
    text = literal[1:-1]
    if literal[0] == "'":
        return text
    try:
        return json.loads(text)
    except ValueError:
        if text.lstrip()[:1] in ("", "[", "{", '"'):
            raise node.wrong("JSON between `` in a JMESPath") from None
        return text  # Artillery's library takes a bare word as a text


def _refused(node: ScriptNode) -> Exception:
    return node.refused("this JMESPath", INSTEAD)
