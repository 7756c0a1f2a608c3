"""Parses a plain expression of a plan, and evaluates it as far as its values are known before the run."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence

from prony_frontends.jmeter import dates, draws, texts
from prony_frontends.jmeter.expression_values import (
    METHODS,
    Bytes,
    Changing,
    Drawn,
    Json,
    Moment,
    Named,
    Unsupported,
    Value,
    as_number,
    ordered,
    product,
    same,
    truth,
    whole_number,
)
from prony_frontends.jmeter.functions import Call, Text, TextPart
from prony_frontends.jmeter.setup_properties import of_property

TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d+)?)[LlfFdD]?\b|(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    |(?P<mark>\0\d+\0)|(?P<name>[A-Za-z_]\w*)|(?P<sign>===|!==|==|!=|<=|>=|&&|\|\||[-+*/%<>!?:()\[\],.]))""",
    re.VERBOSE,
)
MARK = re.compile("\0(\\d+)\0")
NUMBERS = frozenset({"int", "long", "Integer", "Long"})
PACKAGES = frozenset({"java", "org", "com", "util", "format", "concurrent", "lang", "lang3", "time", "text",
                      "apache", "commons", "Packages", "groovy", "json", "jayway", "jsonpath", "jmeter",
                      "services"})  # fmt: skip
"""Parts of qualified class names."""
ALPHABETS = {
    "randomNumeric": "0123456789",
    "randomAlphabetic": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    "randomAlphanumeric": "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
}
DEEPEST = 40
GETTERS = {"time": "getTime", "bytes": "getBytes", "fileServer": "getFileServer", "baseDir": "getBaseDir"}
"""Properties of Groovy -> methods."""


def text_of(value: Value, call: Call) -> Text:
    """The value as a text. Raises NotPlain for other values."""
    match value:
        case None:
            return Text()
        case bool():
            return Text.of(str(value).lower())
        case int() | str():
            return Text.of(str(value))
        case Text():
            return value
        case Changing(part=part, plus=plus):
            return Text((part if not plus else TextPart(f"{part.text} | plus {plus}", True),))
        case Drawn(real=False):
            return draws.between(call, value.low, value.high)
        case Moment(pattern=pattern) if pattern:
            return dates.written(call, pattern)
        case Named():
            raise Unsupported(value.name)
    raise Unsupported("")


class Parser:
    """Precedence from low to high: `?:`, or, and, comparisons, sums, products, signs, methods."""

    def __init__(self, raw: str, marks: Sequence[TextPart], call: Call) -> None:
        self.marks, self.call = marks, call
        self.script = call.name in ("__javaScript",)
        self.tokens: list[tuple[str, str]] = []
        self.at, self.depth = 0, 0
        place = 0
        while raw[place:].strip():
            match = TOKEN.match(raw, place)
            if match is None:
                raise Unsupported(raw[place:].strip()[:20])
            kind = match.lastgroup or ""
            self.tokens.append((kind, match.group(kind)))
            place = match.end()

    def whole(self) -> Value:
        value = self._choice()
        if self.at != len(self.tokens):
            raise Unsupported(self.tokens[self.at][1])
        return value

    def _peek(self, *words: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at][1] in words

    def _next(self, *words: str) -> str | None:
        if self._peek(*words) and self.tokens[self.at][0] in ("sign", "name"):
            self.at += 1
            return self.tokens[self.at - 1][1]
        return None

    def _expect(self, word: str) -> None:
        if not self._next(word):
            raise Unsupported(f"'{word}' is missing")

    def _choice(self) -> Value:
        self.depth += 1
        if self.depth > DEEPEST:
            raise Unsupported("too many brackets")
        held = self._joined(0)
        if self._next("?"):
            first = self._choice()
            self._expect(":")
            second = self._choice()
            held = first if truth(held) else second
        self.depth -= 1
        return held

    def _joined(self, level: int) -> Value:
        """Operators of this level and above."""
        levels: tuple[tuple[tuple[str, ...], Callable[[str, Value, Value], Value]], ...] = (
            (("||", "or"), lambda _, one, other: truth(one) | truth(other)),
            (("&&", "and"), lambda _, one, other: truth(one) & truth(other)),
            (("==", "===", "!=", "!==", "eq", "ne"), same),
            (("<", ">", "<=", ">=", "lt", "gt", "le", "ge"), ordered),
            (("+", "-"), self._sum),
            (("*", "/", "%"), product),
        )
        if level == len(levels):
            return self._signed()
        words, joined = levels[level]
        value = self._joined(level + 1)
        while sign := self._next(*words):
            value = joined(sign, value, self._joined(level + 1))
        return value

    def _sum(self, sign: str, one: Value, other: Value) -> Value:
        if sign == "+" and any(isinstance(side, str | Text | Moment) for side in (one, other)):
            if self.call.name.startswith("__jexl") and any(isinstance(side, int) for side in (one, other)):
                raise Unsupported("a text and a number as a sum")
            parts = [self._concatenated(side) for side in (one, other)]
            if all(part.constant is not None for part in parts):
                return "".join(part.constant or "" for part in parts)
            return (parts[0] + parts[1]).joined
        for first, second in ((one, other), (other, one)):
            if isinstance(first, Drawn) and isinstance(second, int) and (sign == "+" or first is one):
                by = second if sign == "+" else -second
                return Drawn(first.low + by, first.high + by, first.real)
            if isinstance(first, Changing) and isinstance(second, int) and (sign == "+" or first is one):
                return Changing(first.part, first.plus + (second if sign == "+" else -second))
        left, right = whole_number(one), whole_number(other)
        return left + right if sign == "+" else left - right

    def _concatenated(self, side: Value) -> Text:
        return Text.of("null") if side is None else text_of(side, self.call)

    def _signed(self) -> Value:
        if self._next("-"):
            return -whole_number(self._signed())
        if self._next("!", "not"):
            return not truth(self._signed())
        words = [word for _, word in self.tokens[self.at : self.at + 3]]
        if len(words) == 3 and words[0] == "(" and words[1] in NUMBERS and words[2] == ")":  # a cast
            self.at += 3
            return as_number(self._signed())
        return self._methods(self._first())

    def _first(self) -> Value:
        if self.at >= len(self.tokens):
            raise Unsupported("it ends unexpectedly")
        kind, word = self.tokens[self.at]
        self.at += 1
        match kind:
            case "number":
                if "." in word:
                    raise Unsupported(f"the fraction {word}")
                return int(word)
            case "text":
                return self._quoted(word[1:-1], word[0])
            case "mark":
                raise Unsupported("a changing value outside quotes")
            case "name" if word in ("true", "false"):
                return word == "true"
            case "name" if word in ("null", "undefined"):
                return None
            case "name" if word == "new":
                return self._made()
            case "name":
                return Named(word)
        if word == "(":
            value = self._choice()
            self._expect(")")
            return value
        raise Unsupported(word)

    def _quoted(self, inside: str, _quote: str) -> Value:
        text = texts.unescaped(inside)
        pieces = MARK.split(text)
        if len(pieces) == 1:
            return text
        return Text(
            tuple(
                self.marks[int(piece)] if place % 2 else TextPart(piece)
                for place, piece in enumerate(pieces)
                if piece
            )
        )

    def _made(self) -> Value:
        """`new Date()`, `new Random()`, `new SimpleDateFormat("…")`."""
        name = self._first()
        while isinstance(name, Named) and name.name in PACKAGES and self._next("."):
            name = self._first()
        given = self._arguments() if self._peek("(") else []
        match name, given:
            case Named(name="Date"), []:
                return Moment()
            case Named(name="Random" | "SecureRandom"), []:
                return Named("random")
            case Named(name="SimpleDateFormat"), [str() as pattern]:
                return Moment(pattern)
        raise Unsupported(f"new {name.name if isinstance(name, Named) else ''}(…)")

    def _arguments(self) -> list[Value]:
        self._expect("(")
        arguments: list[Value] = []
        while not self._next(")"):
            arguments.append(self._choice())
            if not self._peek(")"):
                self._expect(",")
        return arguments

    def _methods(self, value: Value) -> Value:
        while True:
            if self._next("."):
                kind, name = self.tokens[self.at] if self.at < len(self.tokens) else ("", "")
                if kind != "name":
                    raise Unsupported(name or "it ends unexpectedly")
                self.at += 1
                if isinstance(value, Named) and value.name in PACKAGES:
                    value = Named(name)
                elif self._peek("("):
                    value = self._called(value, name, self._arguments())
                else:
                    value = self._held(value, name)
            elif isinstance(value, Named | tuple | Json) and self._peek("["):
                self.at += 1
                value = self._called(value, "get", [self._choice()])
                self._expect("]")
            elif isinstance(value, Named) and self._peek("("):
                value = self._called(Named(""), value.name, self._arguments())
            elif self._next("as"):
                kind_name = self._first()
                if not isinstance(kind_name, Named) or kind_name.name not in {"String", *NUMBERS}:
                    raise Unsupported("as")
                if kind_name.name != "String":
                    value = as_number(value)
                elif value is not None:
                    value = self._concatenated(value)
            else:
                return value

    def _held(self, value: Value, name: str) -> Value:
        """`vars.name`, `new Date().time`, `"x".bytes`, `"x".length`."""
        if isinstance(value, Named) and value.name in ("vars", "props"):
            return self._called(value, "get", [name])
        if name in GETTERS:
            return self._called(value, GETTERS[name], [])
        if name == "length" and isinstance(value, str):
            return len(value)
        raise Unsupported(f".{name}")

    def _called(self, value: Value, name: str, given: list[Value]) -> Value:
        values = self.call.values
        match value, name, given:
            case Named(name="vars"), "get", [str() as variable]:
                variable_text = values.variables.get(variable)
                text = None if variable_text is None else values.text("${" + variable + "}", self.call.where)
                return text if text is None or text.constant is None else text.constant
            case Named(name="props"), "get" | "getProperty", [str() as key] if (
                key in values.given and not values.sets_up
            ):
                return of_property(key, "", values, self.call.where)
            case Named(name="props" | "System"), "get" | "getProperty", [str() as key]:
                values.read_properties.add(key)
                return values.properties.get(key)
            case Named(name="FileServer"), "getFileServer", []:
                return Named("the file server")
            case Named(name="the file server"), "getBaseDir", []:
                return str(values.folder.absolute())
            case Named(name="Math"), "random", []:
                return Drawn(0, 1, real=True)
            case Named(name="Math"), "floor", [Drawn(real=True) as drawn]:
                return as_number(drawn) if self.script else drawn  # otherwise it remains a fraction
            case Named(name="Math"), "abs", [one]:
                return abs(whole_number(one))
            case Named(name="Math"), "max" | "min", [one, other]:
                return {"max": max, "min": min}[name](whole_number(one), whole_number(other))
            case Named(name="Integer" | "Long"), "parseInt" | "parseLong" | "valueOf", [one]:
                return as_number(one)
            case Named(name=""), "parseInt", [one]:
                return as_number(one)
            case Named(name="String"), "valueOf", [one]:
                return self._concatenated(one)
            case Named(name="random" | "RandomUtils"), "nextInt", [int() as most] if most > 0:
                return Drawn(0, most - 1)
            case Named(name="RandomUtils"), "nextInt" | "nextLong", [int() as low, int() as most] if (
                most > low
            ):
                return Drawn(low, most - 1)
            case Named(name="RandomStringUtils"), kind, [int() as count] if kind in ALPHABETS and count > 0:
                return draws.of_letters(self.call, count, ALPHABETS[kind])
            case Named(name="UUID"), "randomUUID", []:
                return draws.a_uuid(self.call)
            case Named(name="System"), "getenv", [str() as name_of]:
                return os.environ.get(name_of)
            case Named(name="System"), "currentTimeMillis", []:
                return dates.milliseconds(self.call)
            case Named(name="Date"), "now", []:
                return dates.milliseconds(self.call)
            case Moment(pattern=""), "getTime", []:
                return dates.milliseconds(self.call)
            case Moment(pattern=""), "format", [str() as pattern]:
                return dates.written(self.call, pattern)
            case Moment(pattern=pattern), "format", [Moment(pattern="")] if pattern:
                return dates.written(self.call, pattern)
            case Named(name="Base64"), "getEncoder", []:
                return Named("encoder")
            case Named(name="encoder"), "encodeToString", [Bytes(text=text)]:
                return texts.base64_of(self.call, text)
            case Bytes(text=text), "encodeBase64", []:
                return texts.base64_of(self.call, text)
            case Drawn(), "intValue" | "longValue" | "toInteger", []:
                return as_number(value)
            case ((Drawn() | Changing() | int() | Text() | Moment()), "toString", []):
                return text_of(value, self.call)
            case int(), "intValue" | "longValue" | "abs", []:
                return abs(whole_number(value)) if name == "abs" else value
            case ((str() | Text()), _, _):
                return self._of_text(value, name, given)
        shown = value.name + "." if isinstance(value, Named) and value.name else ""
        raise Unsupported(f"{shown}{name}(…)")

    def _of_text(self, value: str | Text, name: str, given: list[Value]) -> Value:
        text = value if isinstance(value, Text) else Text.of(value)
        match name, given:
            case "toUpperCase" | "toLowerCase", []:
                plain, filtered = (str.upper, "upper") if name == "toUpperCase" else (str.lower, "lower")
                changed = self.call.each(text, plain, filtered)
                return changed if changed.constant is None else changed.constant
            case "getBytes", [] | [_]:
                return Bytes(text)
            case "encodeBase64", []:
                return texts.base64_of(self.call, text)
            case "toString", []:
                return value
            case "toInteger" | "toLong", [] if text.constant is None:
                return as_number(text)
            case "concat", [other]:
                return self._sum("+", value, other)
        constant = text.constant
        if constant is None:
            raise Unsupported(f"{name}(…) of a changing value")
        plain_method = METHODS.get((name, len(given)))
        if plain_method is None or not all(isinstance(argument, str | int) for argument in given):
            raise Unsupported(f"{name}(…)")
        if self.script and name in ("replace", "replaceAll") and constant.count(str(given[0])) > 1:
            raise Unsupported("replace(…) of the first match only, as in JavaScript")
        try:
            return plain_method(constant, *given)
        except (ValueError, IndexError, TypeError) as fault:
            raise Unsupported(f"{name}(…): {fault}") from fault
