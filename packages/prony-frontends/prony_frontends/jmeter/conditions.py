"""Conditions of If and While Controllers that are comparisons."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from prony.plan.blocks import Condition, Op
from prony_frontends import patterns
from prony_frontends.base import Refused
from prony_frontends.jmeter import last_sample
from prony_frontends.jmeter.expression_values import Unsupported
from prony_frontends.jmeter.expressions import THREAD_OF_CONTEXT, by_thread, is_thread
from prony_frontends.jmeter.functions import Call, KnownValues, Text
from prony_frontends.jmeter.jmx import JmxNode

ConditionOrConstant = Condition | bool
"""False and true are constant."""
SCRIPTED = re.compile(r"\$\{\s*__(?:jexl2|jexl3|groovy|javaScript)\s*\((.*)\)\s*\}", re.DOTALL)
"""A function whose argument may be a comparison."""
REFERENCE = r"\$\{(?:[^{}]|\$\{[^{}]*\})*\}"
TOKEN = re.compile(
    rf"""\s*(?:(?P<text>"(?:{REFERENCE}|[^"\\])*"|'(?:{REFERENCE}|[^'\\])*')
    |vars\.get\(\s*(?P<variable>"[^"\\]*"|'[^'\\]*')\s*\)
    |(?P<reference>{REFERENCE})|(?P<number>-?\d+(?:\.\d+)?)
    |(?P<number_of>(?:(?:Integer|Long)\.(?:parse(?:Int|Long)|valueOf)|parseInt|Number)(?=\s*\())
    |(?P<sign>===|!==|==|!=|<=|>=|<|>|&&|\|\||!|\(|\)|\.(?:equals(?:IgnoreCase)?|contains|startsWith|endsWith
        |matches|isEmpty|toInteger|toLong|toString)\b)
    |(?P<word>[A-Za-z]+))""",
    re.VERBOSE,
)
COMPARES: dict[str, Op] = {
    "==": "==", "===": "==", "eq": "==", "!=": "!=", "!==": "!=", "ne": "!=", "<": "<", "lt": "<", "<=": "<=",
    "le": "<=", ">": ">", "gt": ">", ">=": ">=", "ge": ">=", ".equals": "==", ".contains": "contains",
}  # fmt: skip
PATTERNS: dict[str, tuple[str, bool]] = {
    ".equalsIgnoreCase": ("(?i)^{}$", True), ".startsWith": ("^{}", True), ".endsWith": ("{}$", True),
    ".matches": ("^(?:{})$", False), ".isEmpty": ("^$", True),
}  # fmt: skip
"""Methods of texts -> regex, and whether the argument is a plain text."""
SAME = (".toInteger", ".toLong", ".toString")
"""Methods whose result compares like the text."""
INSTEAD = (
    "use true, false or comparisons of variables, texts and numbers joined by && and ||, "
    'such as "${env}" == "test"'
)


@dataclass(frozen=True, slots=True)
class _Side:
    text: Text
    quoted: bool
    variable: str | None = None
    """`vars.get`, which is null without a value."""
    null: bool = False


def script(raw: str, node: JmxNode, values: KnownValues) -> ConditionOrConstant:
    """A comparison in JavaScript, JEXL or Groovy. Raises Refused for other texts."""
    scripted = SCRIPTED.fullmatch(raw.strip())
    if scripted is None:
        remainder = _of_thread(raw, node, values)
        return _Parser(raw, node, values).condition() if remainder is None else remainder
    inside = re.sub(r"(?<!\\),\s*$", "", scripted.group(1)).strip()  # as the Function Helper writes it
    if re.search(r"(?<!\\),", re.sub(REFERENCE, "", inside)):
        raise node.refused(f"the condition '{raw}' with a second argument", "leave the argument out")
    remainder = _of_thread(inside, node, values)
    if remainder is not None:
        return remainder
    if "__groovy" in raw[: scripted.start(1)]:
        inside = last_sample.read(inside, of_processor=False)
    return _Parser(inside, node, values).condition()


def _of_thread(inside: str, node: JmxNode, values: KnownValues) -> ConditionOrConstant | None:
    """A comparison with the remainder of the thread's number; None for others."""
    parts = values.scratch_copy().text(inside, node).parts
    changing = [part.text for part in parts if part.dynamic]
    of_thread = THREAD_OF_CONTEXT.search(inside) is not None or "user" in changing
    if "%" not in inside or set(changing) - {"user"} or not (of_thread or "__threadNum" in inside):
        return None
    raw = "".join("\0" + "0\0" if part.dynamic else part.text for part in parts)
    try:
        found = by_thread(raw, Call("__groovy", [], node, values, once=False))
    except Unsupported as why:
        raise node.refused(f"the condition '{inside}': {why}", INSTEAD) from why
    if not found.keys() <= {"true", "false"}:
        raise node.refused(f"the condition '{inside}', which is not true or false", INSTEAD)
    return next(iter(found)) == "true" if len(found) == 1 else is_thread(found["true"])


def expression(raw: str, node: JmxNode, values: KnownValues) -> ConditionOrConstant | None:
    """A text that evaluates to true or false: a constant, a comparing function. None: a variable."""
    if SCRIPTED.fullmatch(raw.strip()):
        return script(raw, node, values)
    constant = values.text(raw, node).constant
    if constant is not None and constant.strip().lower() in ("true", "false"):
        return constant.strip().lower() == "true"
    if constant is None and re.fullmatch(REFERENCE, raw.strip()) and "__" not in raw:
        return None
    raise node.refused(
        f"the condition '{raw}', which is not true, false or a comparison",
        "write ${__jexl3(…)} around the comparison, or true or false",
    )


def is_text(raw: str, word: str, node: JmxNode, values: KnownValues) -> Condition:
    """Whether a variable equals this word, case-insensitively."""
    return Condition(left=values.text(raw.strip(), node).engine, op="matches", right=f"(?i)^{word}$")


def both(first: ConditionOrConstant, second: ConditionOrConstant, every: bool) -> ConditionOrConstant:
    """Combines with and (`every`) or or."""
    for held, other in ((first, second), (second, first)):
        if isinstance(held, bool):
            return other if held == every else not every
    return Condition(all=(first, second)) if every else Condition(any=(first, second))


def negated(held: ConditionOrConstant) -> ConditionOrConstant:
    """The opposite."""
    return not held if isinstance(held, bool) else Condition(negated=held)


class _Parser:
    """Precedence from low to high: `or`, `and`, `not` and brackets."""

    def __init__(self, raw: str, node: JmxNode, values: KnownValues) -> None:
        self.raw, self.node, self.values = raw, node, values
        self.tokens: list[tuple[str, str]] = []
        self.at = 0
        place = 0
        while raw[place:].strip():
            match = TOKEN.match(raw, place)
            if match is None:
                raise self._refused()
            kind = match.lastgroup or ""
            self.tokens.append((kind, match.group(kind)))
            place = match.end()

    def condition(self) -> ConditionOrConstant:
        if len(self.tokens) > 200:
            raise self._refused()
        held = self._any()
        if self.at != len(self.tokens):
            raise self._refused()
        return held

    def _refused(self) -> Refused:
        return self.node.refused(f"the condition '{self.raw}'", INSTEAD)

    def _next(self, *words: str) -> str | None:
        if self.at < len(self.tokens) and self.tokens[self.at][1] in words:
            self.at += 1
            return self.tokens[self.at - 1][1]
        return None

    def _joined(
        self, part: Callable[[], ConditionOrConstant], every: bool, *words: str
    ) -> ConditionOrConstant:
        held = part()
        while self._next(*words):
            held = both(held, part(), every)
        return held

    def _any(self) -> ConditionOrConstant:
        return self._joined(self._all, False, "||", "or")

    def _all(self) -> ConditionOrConstant:
        return self._joined(self._one, True, "&&", "and")

    def _one(self) -> ConditionOrConstant:
        if self._next("!", "not"):
            return negated(self._one())
        if self._next("("):
            held = self._any()
            if not self._next(")"):
                raise self._refused()
            return held
        left = self._side()
        method = self._next(*PATTERNS)
        if method is not None:
            return self._matched(left, method)
        sign = self._next(*COMPARES)
        if sign is None:
            return self._alone(left)
        bracket = sign.startswith(".")
        if bracket and not self._next("("):
            raise self._refused()
        right = self._side()
        if bracket and not self._next(")"):
            raise self._refused()
        return self._compared(left, COMPARES[sign], right)

    def _side(self) -> _Side:
        if self.at >= len(self.tokens):
            raise self._refused()
        kind, word = self.tokens[self.at]
        self.at += 1
        if kind == "number_of":
            if not self._next("("):
                raise self._refused()
            inside = self._side()
            if not self._next(")"):
                raise self._refused()
            return _Side(inside.text, False)
        return self._converted(self._first(kind, word))

    def _first(self, kind: str, word: str) -> _Side:
        match kind:
            case "text":
                return _Side(self.values.text(word[1:-1], self.node), True)
            case "variable":
                name = word[1:-1]
                exists = name in self.values.variables or self.values.match_of(name) is not None
                text = self.values.text("${" + name + "}", self.node) if exists else Text()
                return _Side(text, True, name)
            case "reference":
                return _Side(self.values.text(word, self.node), False)
            case "number":
                return _Side(Text.of(word), False)
            case "word" if word in ("true", "false"):
                return _Side(Text.of(word), False)
            case "word" if word in ("null", "undefined"):
                return _Side(Text(), False, null=True)
        raise self._refused()

    def _converted(self, side: _Side) -> _Side:
        """Parses a trailing `.toInteger()` or similar."""
        while method := self._next(*SAME):
            if not (self._next("(") and self._next(")")):
                raise self._refused()
            side = _Side(side.text, method == ".toString")
        return side

    def _matched(self, left: _Side, method: str) -> ConditionOrConstant:
        form, plain = PATTERNS[method]
        pattern = engines = form
        if not self._next("("):
            raise self._refused()
        if method != ".isEmpty":
            given = self._side().text.constant
            if given is None:
                raise self._refused()
            pattern = form.format(re.escape(given) if plain else given)
            engines = pattern if plain else form.format(self._taken(given))
        if not self._next(")"):
            raise self._refused()
        constant = left.text.constant
        if constant is None:
            return Condition(left=left.text.engine, op="matches", right=engines)
        try:
            return re.search(pattern, constant) is not None
        except re.error as fault:
            raise self._refused() from fault

    def _taken(self, given: str) -> str:
        try:
            return patterns.pattern(given).text
        except patterns.Untranslatable as fault:
            raise self._refused() from fault

    def _alone(self, side: _Side) -> ConditionOrConstant:
        """`${name}` or true."""
        constant = side.text.constant
        if constant in ("true", "false") and not side.quoted:
            return constant == "true"
        if constant is not None or side.quoted:
            raise self._refused()
        return Condition(left=side.text.engine, op="==", right="true")

    def _nothing(self, side: _Side) -> ConditionOrConstant:
        """Whether a variable has no value; without one, its reference stands for itself."""
        if side.variable is None:
            return side.null
        if side.text.constant is not None:
            return side.variable not in self.values.variables
        literal = Text.of("${" + side.variable + "}").engine
        return Condition(left=side.text.engine, op="==", right=literal)

    def _compared(self, left: _Side, op: Op, right: _Side) -> ConditionOrConstant:
        if left.null or right.null:
            if op not in ("==", "!="):
                raise self._refused()
            nothing = self._nothing(left if right.null else right)
            return nothing if op == "==" else negated(nothing)
        if True in (self._nothing(left), self._nothing(right)):
            return op == "!="
        if op not in ("==", "!=", "contains") and left.quoted and right.quoted:
            raise self.node.refused(
                f"the condition '{self.raw}', which orders texts",
                "compare texts with == or !=, and numbers without quotes",
            )
        first, second = left.text.constant, right.text.constant
        if first is None or second is None:
            return Condition(left=left.text.engine, op=op, right=right.text.engine)
        if op == "contains":
            return second in first
        if left.quoted and right.quoted:
            return (first == second) == (op == "==")
        return _ordered(first, op, second)


def _ordered(first: str, op: Op, second: str) -> bool:
    """Compares two constants, as numbers if both are numbers."""
    try:
        one, other = float(first), float(second)
    except ValueError:
        return (first == second) == (op == "==") if op in ("==", "!=") else False
    return {
        "==": one == other, "!=": one != other, "<": one < other, "<=": one <= other, ">": one > other,
        ">=": one >= other,
    }[op]  # fmt: skip
