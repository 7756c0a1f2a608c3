"""Artillery's expressions (`ifTrue`, conditions of ensure): numbers, names, comparisons, arithmetic."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from prony.plan.blocks import Condition, Op
from prony_frontends.artillery.script import ScriptNode
from prony_frontends.artillery.templates import NameScope

BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}  # fmt: skip
COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip
DOTTED = re.compile(r"[A-Za-z_][\w$-]*\.[\w$./{}-]+")
"""An unknown metric: dots and dashes are part of its name."""
LONGEST = 2_000
"""Maximum length of an expression, in characters."""


class NotAnExpression(ValueError):
    """The expression is not supported; `str()` is the reason."""


class Unknown(ValueError):
    """A name without a value."""


def evaluate(expression: str, names: Mapping[str, Any]) -> bool:
    """Its value; the longest of the dotted names matches. Raises NotAnExpression; Unknown without a value."""
    return bool(_value(_tree(expression, names), names))


def _tree(expression: str, names: Mapping[str, Any]) -> ast.expr:
    if len(expression) > LONGEST:
        raise NotAnExpression(f"it has more than {LONGEST} characters")
    text = re.sub(r"(?<![<>=!])=(?!=)", "==", expression.replace("&&", " and ").replace("||", " or "))
    longest_first = sorted(names, key=len, reverse=True)
    values: dict[str, Any] = {}
    for index, name in enumerate(longest_first):
        if name in text and not re.fullmatch(r"[A-Za-z_]\w*", name):
            text = text.replace(name, f" v_{index}_ ")
            values[f"v_{index}_"] = names[name]
    text = DOTTED.sub(lambda match: f" unknown_{len(match[0])}_ ", text)
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as fault:
        raise NotAnExpression(f"not a comparison: '{expression}'") from fault
    return _Bound(values).visit(tree)  # type: ignore[no-any-return]


class _Bound(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._values:
            return ast.copy_location(ast.Constant(self._values[node.id]), node)
        return node


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    try:
        return _of(node, names)
    except (ZeroDivisionError, TypeError, OverflowError):
        return False


def _of(node: ast.expr, names: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, int | float | str)):
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise Unknown(node.id)
        return names[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        return BINARY[type(node.op)](_of(node.left, names), _of(node.right, names))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _of(node.operand, names)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_of(node.operand, names)
    if isinstance(node, ast.BoolOp):
        values = [_of(value, names) for value in node.values]
        return all(values) if isinstance(node.op, ast.And) else any(values)
    if isinstance(node, ast.Compare) and all(type(op) in COMPARE for op in node.ops):
        left = _of(node.left, names)
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = _of(right_node, names)
            if not COMPARE[type(op)](left, right):
                return False
            left = right
        return True
    raise NotAnExpression("only names, numbers, comparisons, and, or, not and arithmetic are supported")


OPS: Mapping[type[ast.cmpop], Op] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
FALSE_TEXTS = ("", "0", "false")
"""Texts that count as false."""


def decided(node: ScriptNode, scope: NameScope) -> bool | Condition:
    """A constant, or a `Condition` for the engine. Raises Refused for an unknown name."""
    text = node.text("an expression").strip()
    bare = re.sub(r"\{\{\s*(.*?)\s*\}\}", r"\1", text)
    drawn = {name: _RenderedPart(_text(fed.placeholder, fed.kept)) for name, fed in scope.fed.items()}
    drawn |= {name: _RenderedPart(_text(ours, name in scope.kept)) for name, ours in scope.captured.items()}
    names = {**drawn, **scope.constants, **{name: drawn[name] for name in scope.captured}}
    try:
        tree = _tree(bare, names)
        missing = dict.fromkeys(_missing(tree, names) - scope.later, False)
        for name in sorted(missing):
            scope.uses.said.append(
                node.note("undefined", f"'{name}' is unknown here and counts as false, as in Artillery")
            )
        names |= missing
        if not any(isinstance(_known(part, names), _RenderedPart) for part in ast.walk(tree)):
            return evaluate(bare, {**scope.constants, **missing})
        return _condition(tree, names)
    except Unknown as unknown:
        raise node.refused(
            f"ifTrue on '{unknown}', which is never captured",
            "compare captured values, columns, variables or $loopCount",
            "undefined",
        ) from unknown
    except NotAnExpression as fault:
        raise node.refused(f"this condition ({fault})", "compare a value with a value") from fault


def _missing(tree: ast.expr, names: Mapping[str, Any]) -> set[str]:
    """Unknown names that are used by themselves, not compared."""
    compared = [inner for part in ast.walk(tree) if isinstance(part, ast.Compare | ast.BinOp)
                for inner in ast.walk(part)]  # fmt: skip
    return {
        part.id
        for part in ast.walk(tree)
        if isinstance(part, ast.Name) and part.id not in names and part not in compared
    }


def _text(inside: str, kept: bool) -> str:
    return f"{inside} | text" if kept else inside


@dataclass(frozen=True, slots=True)
class _RenderedPart:
    """A value known only during the run: the content of a placeholder."""

    inside: str


def _known(node: ast.AST, names: Mapping[str, Any]) -> Any:
    """The value of a name or a constant; None for other nodes."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    return node.value if isinstance(node, ast.Constant) else None


def _condition(node: ast.expr, names: Mapping[str, Any]) -> Condition:
    if isinstance(node, ast.BoolOp):
        parts = tuple(_condition(value, names) for value in node.values)
        return Condition(all=parts) if isinstance(node.op, ast.And) else Condition(any=parts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return Condition(negated=_condition(node.operand, names))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPS:
        left, right = _side(node.left, names), _side(node.comparators[0], names)
        return Condition(left=left, op=OPS[type(node.ops[0])], right=right)
    value = _side(node, names)
    return Condition(all=tuple(Condition(left=value, op="!=", right=word) for word in FALSE_TEXTS))


def _side(node: ast.expr, names: Mapping[str, Any]) -> str:
    """One side of a comparison as a text of the plan model."""
    part = _known(node, names)
    if isinstance(part, _RenderedPart):
        return f"${{{part.inside}}}"
    if any(isinstance(_known(inner, names), _RenderedPart) for inner in ast.walk(node)):
        raise NotAnExpression("it calculates with a value of the run")
    value = _of(node, names)
    return (str(value).lower() if isinstance(value, bool) else str(value)).replace("${", "$${")
