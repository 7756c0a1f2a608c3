"""Parses a JSR223 or BeanShell script of simple statements: named values, assignments of variables or
properties, pauses and logging. Any other statement makes the script unsupported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prony_frontends.jmeter.expression_values import Unsupported
from prony_frontends.jmeter.jmx import JmxNode

LANGUAGES = frozenset({"", "groovy", "java", "bsh", "beanshell"})
LEXEME = re.compile(
    r"""(?P<text>\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<end>;)|(?P<line>\r?\n)|(?P<any>.)""",
    re.VERBOSE | re.DOTALL,
)
GOES_ON = re.compile(r"(?:(?<!\+)\+|(?<!-)-|[*/%=,.?:&|<>]|\b(?:def|new|as|return|else))\s*$")
BEGINS_INSIDE = re.compile(r"\s*(?:else\b|[+*%.?:=<>]|/(?![/*])|&&|\|\||-[^-])")
IMPORT = re.compile(r"\s*(?:import|package)\s")
READS = frozenset({"get", "getVariables", "toString", "getResponseCode", "getResponseDataAsString", "getTime",
                   "getSampleLabel", "getThreadNum", "getResponseMessage", "isSuccessful", "getLatency",
                   "getResponseHeaders", "getRequestHeaders", "getSamplerData", "getUrlAsString",
                   "currentTimeMillis", "size", "length", "trace", "debug", "info", "warn", "error", "print",
                   "println", "valueOf", "getThreadName", "getName", "trim", "getURL"})  # fmt: skip
"""Calls allowed in logging."""
LOGS = re.compile(
    r"(?:(?:log|OUT|System\s*\.\s*(?:out|err))\s*\.\s*(?:trace|debug|info|warn|error|print|println)|print(?:ln)?)"
    r"\s*[(\"']"
)
TYPE = r"(?:final\s+)?(?:def|var|[A-Za-z_][\w.]*(?:\s*<[^<>]*>)?(?:\s*\[\s*\])?)"
LOCAL = re.compile(rf"(?:{TYPE}\s+)?([A-Za-z_]\w*)\s*(\+|-)?=(?!=)\s*(.+)", re.DOTALL)
COUNTED = re.compile(r"([A-Za-z_]\w*)\s*(\+\+|--)|(\+\+|--)\s*([A-Za-z_]\w*)")
PUT = re.compile(r"vars\s*\.\s*put\s*(\(.*\))", re.DOTALL)
NAME = re.compile(r"\(\s*(?:\"([^\"$\\]+)\"|'([^'\\]+)')\s*,(.+)\)", re.DOTALL)
PROPERTY = re.compile(r"props\s*\.\s*(?:put|setProperty)\s*(\(.*\))", re.DOTALL)
SLEEP = re.compile(r"(?:(?:Thread|TimeUnit\s*\.\s*MILLISECONDS)\s*\.\s*)?sleep\s*\((.+)\)", re.DOTALL)
IF = re.compile(r"if\s*\(")
ELSE = re.compile(r"else\b\s*")
BEFORE_ELSE = re.compile(r"([^;{}]*;)\s*(else\b.*)", re.DOTALL)
TEXTS = re.compile(LEXEME.pattern.split("\n")[0], re.VERBOSE | re.DOTALL)
CLASSES = {
    **dict.fromkeys(("JsonSlurper", "JsonSlurperClassic"), "groovy.json"),
    **dict.fromkeys(("RandomUtils", "RandomStringUtils"), "org.apache.commons.lang3"),
    **dict.fromkeys(("LocalDate", "LocalDateTime", "ZonedDateTime", "Instant"), "java.time"),
    "DateTimeFormatter": "java.time.format", "SimpleDateFormat": "java.text",
    "SecureRandom": "java.security", "ThreadLocalRandom": "java.util.concurrent",
    "FileServer": "org.apache.jmeter.services", "JsonPath": "com.jayway.jsonpath",
}  # fmt: skip
"""Classes that a script has to import, or to name with their package."""
KEYWORDS = frozenset(
    {"if", "else", "for", "while", "try", "return", "switch", "throw", "new", "vars", "props"}
)


@dataclass(frozen=True, slots=True)
class Named:
    """A named value of the script."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Assignment:
    """An assignment of a variable."""

    variable: str
    value: str


@dataclass(frozen=True, slots=True)
class Property:
    """An assignment of a property."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause in ms."""

    value: str


@dataclass(frozen=True, slots=True)
class Either:
    """Statements on a condition, and those without it."""

    condition: str
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()

    @property
    def value(self) -> str:
        """The source that names are read in."""
        return " ".join((self.condition, *(one.value for one in (*self.then, *self.otherwise))))


Statement = Named | Assignment | Property | Pause | Either


def language(node: JmxNode) -> str:
    """The script's language, lower case."""
    if node.tag.startswith("BeanShell"):
        return "beanshell"
    return node.value("scriptLanguage").strip().lower() or "groovy"


def of(script: str) -> list[Statement]:
    """The script's statements, in order, without logging. Raises NotPlain."""
    statements: list[Statement] = []
    for text in _statements(script):
        if IMPORT.match(text) or re.fullmatch(r"return(?:\s+(?:null|true|\"\"))?", text):
            continue
        if LOGS.match(text):
            _check_reads(text)
            continue
        one = _either(text) if IF.match(text) else _statement(text)
        if isinstance(one, Either) and not one.then and not one.otherwise:
            _check_reads(one.condition)  # it only logs
            continue
        statements.append(one)
    return statements


def check_imports(script: str) -> None:
    """Raises NotPlain for a class that Groovy and BeanShell do not know by its name alone."""
    plain = TEXTS.sub("", script)
    for name in re.findall(rf"(?<![\w.$])(?:{'|'.join(CLASSES)})\b", plain):
        package = re.escape(CLASSES[name])
        if not re.search(rf"\bimport\s+{package}\.(?:{name}\b|\*)", plain):
            raise Unsupported(f"{name}, which it does not import (import {CLASSES[name]}.{name})")


def every(statements: Sequence[Statement]) -> Iterator[Statement]:
    """Also those on a condition."""
    for one in statements:
        yield one
        if isinstance(one, Either):
            yield from every((*one.then, *one.otherwise))


def _either(text: str) -> Either:
    """`if (…) {…} else {…}`, or with single statements."""
    begin = text.index("(")
    end = _closing(text, begin)
    then, rest = _body(text[end:])
    otherwise: tuple[Statement, ...] = ()
    if rest:
        match = ELSE.match(rest)
        if match is None:
            raise Unsupported(_shown(rest))
        after = rest[match.end() :]
        if IF.match(after):
            otherwise = (_either(after),)
        else:
            otherwise, left = _body(after)
            if left:
                raise Unsupported(_shown(left))
    return Either(text[begin + 1 : end - 1], then, otherwise)


def _body(text: str) -> tuple[tuple[Statement, ...], str]:
    """A block's statements, or a single one before `else`, and what follows."""
    text = text.strip()
    if text.startswith("{"):
        end = _closing(text, 0)
        return tuple(of(text[1 : end - 1])), text[end:].strip().removeprefix(";").strip()
    match = BEFORE_ELSE.fullmatch(text)
    return (tuple(of(text)), "") if match is None else (tuple(of(match[1])), match[2])


def _is_header(text: str) -> bool:
    """Whether it is `if (…)` alone."""
    return IF.match(text) is not None and text.endswith(")") and _closing(text, text.index("(")) == len(text)


def _closing(text: str, begin: int) -> int:
    """The place behind the bracket that closes the one there."""
    depth, at = 0, begin
    while at < len(text):
        match = LEXEME.match(text, at)
        assert match is not None
        at = match.end()
        depth += {"open": 1, "close": -1}.get(match.lastgroup or "", 0)
        if depth == 0:
            return at
    raise Unsupported("unclosed brackets")


def _statement(text: str) -> Statement:
    if put := PUT.fullmatch(text):
        return Assignment(*_pair(put.group(1), text))
    if put := PROPERTY.fullmatch(text):
        return Property(*_pair(put.group(1), text))
    if waits := SLEEP.fullmatch(text):
        return Pause(waits.group(1))
    if counted := COUNTED.fullmatch(text):
        name, sign = counted.group(1) or counted.group(4), counted.group(2) or counted.group(3)
        return Named(name, f"{name} {sign[0]} 1")
    local = LOCAL.fullmatch(text)
    if local is None or local.group(1) in KEYWORDS or text.split(maxsplit=1)[0] in KEYWORDS:
        raise Unsupported(_shown(text))
    name, sign, value = local.groups()
    return Named(name, f"{name} {sign} ({value})" if sign else value)


def _pair(arguments: str, text: str) -> tuple[str, str]:
    """A constant name, and the source of its value."""
    match = NAME.fullmatch(arguments)
    if match is None:
        raise Unsupported(_shown(text))
    return match.group(1) or match.group(2), match.group(3)


def _shown(text: str) -> str:
    first = " ".join(text.split())
    return first if len(first) <= 60 else f"{first[:57]}…"


def _check_reads(text: str) -> None:
    """Raises NotPlain for logging with side effects."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', '""', text)
    called = set(re.findall(r"\.\s*(\w+)\s*\(", bare)) | set(re.findall(r"\bnew\s+\w+", bare))
    within = set(re.findall(r"\$\{[^}]*?\.\s*(\w+)\s*\(", text))
    if not (called | within) <= READS or re.search(r"(?<![=!<>])=(?!=)|\+\+|--|\{", bare):
        raise Unsupported(_shown(text))


def _statements(script: str) -> Iterator[str]:
    """Statements without comments, ended by a semicolon or a line end outside of brackets."""
    parts: list[str] = []
    depth, rest = 0, script
    at = 0
    while at < len(script):
        match = LEXEME.match(script, at)
        assert match is not None
        at, kind = match.end(), match.lastgroup
        depth += {"open": 1, "close": -1}.get(kind or "", 0)
        if kind == "comment":
            parts.append(" ")
            continue
        rest = "".join(parts)
        over = (kind == "end" and not ELSE.match(script[at:].lstrip())) or (
            kind == "line"
            and (IMPORT.match(rest) or not (GOES_ON.search(rest) or BEGINS_INSIDE.match(script[at:])))
            and not _is_header(rest.strip())
        )
        if over and depth <= 0:
            if rest.strip():
                yield rest.strip()
            parts = []
        else:
            parts.append(match.group(0))
    if depth != 0:
        raise Unsupported("unclosed brackets")
    if last := "".join(parts).strip():
        yield last
