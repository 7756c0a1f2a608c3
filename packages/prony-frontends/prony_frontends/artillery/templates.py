"""Translates Artillery's `{{ … }}` into the plan model's `${…}`."""

from __future__ import annotations

import json
import math
import random
import re
import string
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from prony.errors import UsageError
from prony_frontends.artillery.js_numbers import number_text
from prony_frontends.artillery.script import Date, ScriptNode
from prony_frontends.base import Note

Escape = Literal["plain", "url", "json"]
TOKEN = re.compile(r"\{\{\{?\s*(.*?)\s*\}\}\}?", re.DOTALL)
CALL = re.compile(r"(\$[A-Za-z0-9_]+)\s*\(([^)]*)\)")
NAME = re.compile(r"[\w$][\w$.\[\]'\"-]*")
ASKED = re.compile(r"[\s\w$.\[\]'\"-]*")
"""Artillery's syntax of a variable; written as `undefined` without a value."""
CALLED = re.compile(r"\{\{\s*(\$[A-Za-z0-9_]+)\s*\(\s*[A-Za-z0-9_,\s]*\s*\)\s*\}\}")
"""Artillery's syntax of a function call."""
LETTERS = string.ascii_letters + string.digits
FUNCTIONS = frozenset({"$randomNumber", "$randomString"})
MOST_DRAWN = 2**53 - 1
"""Largest exact integer in JavaScript."""
USER_UUID = "user_uuid"
"""A scenario's variable for $uuid, drawn once per user."""
RESERVED = frozenset({"sequence", "uuid", "random", "delay_ms", "time", "user", "iteration", USER_UUID})


@dataclass(frozen=True, slots=True)
class FeederColumn:
    """A column of a CSV file, or a value of a loop's turn."""

    placeholder: str
    numeric: bool
    """All values are numbers: alone in JSON the value is written as a number."""
    kept: bool = False
    """The value is kept as JSON."""
    odd: bool = False
    """Some values make a header or URL that Node refuses."""


class Rows(list[Any]):
    """All rows of a file: a list that is not drawn from."""


DATE = ("an unquoted date outside of json", "quote it")
"""Refused: JavaScript writes it in another form, by the place."""


class Undefined:
    """Stands for a missing value, which Artillery leaves out or writes as `undefined`."""

    def __str__(self) -> str:
        return "undefined"


UNDEFINED = Undefined()


@dataclass(slots=True)
class UsedFeatures:
    """Features that a scenario's texts use."""

    uuids: int = 0
    said: list[Note] = field(default_factory=list)
    """A note for each text that is probably not meant as written."""


@dataclass(frozen=True, slots=True)
class NameScope:
    """Values of names at a place in a scenario."""

    constants: Mapping[str, Any]
    """Variables, the environment, the loop's count and element."""
    fed: Mapping[str, FeederColumn] = field(default_factory=dict)
    captured: Mapping[str, str] = field(default_factory=dict)
    """Name in the script -> name in the plan."""
    kept: frozenset[str] = frozenset()
    """Names in the script of captures kept as JSON."""
    uses: UsedFeatures = field(default_factory=UsedFeatures)
    later: frozenset[str] = frozenset()
    """Names captured anywhere in the scenario."""

    def bound(self, **constants: Any) -> NameScope:
        """The scope with further constants (names as keywords, `$` written `_S_`)."""
        named = {name.replace("_S_", "$"): value for name, value in constants.items()}
        return replace(self, constants={**self.constants, **named})


def capture_name(name: str) -> str:
    """A valid name of a capture in the plan model."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"c_{plain}" if plain in RESERVED or not re.match(r"[A-Za-z_]", plain) else plain


def rendered(node: ScriptNode, scope: NameScope, escape: Escape = "plain") -> str:
    """The text with the plan model's placeholders; literal parts are escaped. Raises Refused."""
    if isinstance(node.value, Date):
        raise node.refused(*DATE)
    return text_of(str_of(node.value), node, scope, escape)


def text_of(text: str, node: ScriptNode, scope: NameScope, escape: Escape = "plain") -> str:
    """Like `rendered`, for part of the node's text."""
    written = ""
    for part in parts(text, node, scope):
        if isinstance(part, LiteralPart):
            if isinstance(part.value, Date):
                raise node.refused(*DATE)
            written += _written(part.text, escape)
        elif written.endswith("$"):  # the plan model reads $${ as a literal ${
            raise node.refused("a $ right before {{", "put the $ into the variable, or a character between")
        else:
            written += part.placeholder(escape)
    return written


def constant(node: ScriptNode, scope: NameScope) -> Any:
    """The value, if known before the run. Raises Refused otherwise."""
    if not isinstance(node.value, str) or "{{" not in node.value:
        return node.value
    text_parts = list(parts(node.value, node, scope))
    for part in text_parts:
        if isinstance(part, LiteralPart) and part.why:
            raise UsageError(f"{node.place}: {part.why}")
    if len(text_parts) == 1 and isinstance(text_parts[0], LiteralPart):
        return text_parts[0].value
    if all(isinstance(part, LiteralPart) for part in text_parts):
        return "".join(part.text for part in text_parts if isinstance(part, LiteralPart))
    raise node.refused(
        "a value drawn during the run", "write the value, or a variable of config.variables", "varies"
    )


def settled(node: ScriptNode, scope: NameScope) -> Any:
    """A variable's value, with draws made once per run; UNDEFINED without a value. Raises Refused."""
    if not isinstance(node.value, str) or "{{" not in node.value:
        return node.value
    text_parts = list(parts(node.value, node, scope))
    if len(text_parts) == 1 and isinstance(text_parts[0], LiteralPart):
        return text_parts[0].value
    if any(isinstance(part, RenderedPart) for part in text_parts):
        scope.uses.said.append(
            node.note("drawn_once", f"{node.shown} is drawn once per run, as in Artillery")
        )
    return "".join(part.text if isinstance(part, LiteralPart) else _drawn(part, node) for part in text_parts)


def _drawn(part: RenderedPart, node: ScriptNode) -> str:
    match part.inside.split():
        case ["random", "int", low, high]:
            return str(random.randint(int(low), int(high)))
        case ["random", "string", length]:
            return "".join(random.choices(LETTERS, k=int(length)))
    raise node.refused("a variable of a variable", "write the value", "nested")


def is_drawn(node: ScriptNode, scope: NameScope) -> bool:
    """Whether the value is known only during the run."""
    if not isinstance(node.value, str) or "{{" not in node.value:
        return False
    return any(isinstance(part, RenderedPart) for part in parts(node.value, node, scope))


def is_undefined(node: ScriptNode, scope: NameScope, nothing: Any = UNDEFINED) -> bool:
    """Whether it has no value and is left out; `nothing`: or None for null."""
    if node.value is nothing:
        return True
    if not isinstance(node.value, str) or "{{" not in node.value:
        return False
    only, *more = parts(node.value, node, scope)
    return not more and isinstance(only, LiteralPart) and only.value is nothing


def json_text(node: ScriptNode, scope: NameScope) -> str:
    """The value as JSON, formatted as by JSON.stringify."""
    if isinstance(node.value, dict):
        pairs = (
            f"{_key(key, child, scope)}:{json_text(child, scope)}"
            for key, child in sorted(node.items(), key=lambda pair: "{{" in pair[0])  # filled keys come last
            if not is_undefined(child, scope)
        )
        return "{" + ",".join(pairs) + "}"
    if isinstance(node.value, list):
        return "[" + ",".join(json_text(child, scope) for child in node.elements()) + "]"
    if not isinstance(node.value, str):
        return json_value(node.value)
    text_parts = list(parts(node.value, node, scope))
    if len(text_parts) == 1 and "{{" in node.value:
        only = text_parts[0]
        if isinstance(only, LiteralPart):
            if only.value is UNDEFINED:  # in a list
                return "null"
            return json_value(only.value).replace("${", "$${")
        if only.numeric or only.kept:
            return f"${{{only.inside}}}"
    return f'"{text_of(node.value, node, scope, "json")}"'


def json_value(value: Any) -> str:
    """A plain value as by JSON.stringify."""
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        return "null"
    if isinstance(value, float) or (isinstance(value, int) and abs(value) > MOST_DRAWN):
        return number_text(float(value)) if abs(value) < math.inf else "null"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(str(k))}:{json_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_value, value)) + "]"
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError:
        return json.dumps(str(value), ensure_ascii=False)


def str_of(value: Any) -> str:
    """A plain value as JavaScript writes it in a text."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    return str(value) if isinstance(value, Undefined) else json_value(value)


@dataclass(frozen=True, slots=True)
class LiteralPart:
    """A part known before the run."""

    value: Any
    why: str = ""
    """Why it has no value; empty when it has one."""

    @property
    def text(self) -> str:
        return str_of(self.value)


@dataclass(frozen=True, slots=True)
class RenderedPart:
    """A part rendered by the engine: the content of a placeholder."""

    inside: str
    numeric: bool = False
    kept: bool = False
    """The value is JSON: alone in JSON it is inserted unquoted."""

    @property
    def text(self) -> str:
        """The content of a placeholder for the value as a text."""
        return f"{self.inside} | text" if self.kept else self.inside

    def placeholder(self, escape: Escape) -> str:
        filters = {"plain": "", "url": " | form", "json": " | json"}
        return f"${{{self.text}{filters[escape]}}}"


def parts(text: str, node: ScriptNode, scope: NameScope) -> Iterator[LiteralPart | RenderedPart]:
    """The literal parts of a text and its `{{ … }}` parts. Raises Refused."""
    strange = [name for name in CALLED.findall(text) if name not in FUNCTIONS]
    if strange:
        why = f"there is no function {strange[0]}()"
        yield _without_value(why, "the whole text is undefined", node, scope)
        return
    at = 0
    for match in TOKEN.finditer(text):
        if match.start() > at:
            yield LiteralPart(text[at : match.start()])
        yield _token(match[1], match[0], node, scope)
        at = match.end()
    if at < len(text) or not text:
        yield LiteralPart(text[at:])


def _without_value(
    why: str, then: str, node: ScriptNode, scope: NameScope, value: Any = UNDEFINED
) -> LiteralPart:
    scope.uses.said.append(node.note("undefined", f"{why}; {then}, as in Artillery"))
    return LiteralPart(value, why)


def _token(inside: str, whole: str, node: ScriptNode, scope: NameScope) -> LiteralPart | RenderedPart:
    call = CALL.fullmatch(inside)
    if call is not None and CALLED.search(whole):
        return _called(call[1], [word.strip() for word in call[2].split(",") if word.strip()], node)
    if inside == "$uuid":
        scope.uses.uuids += 1
        return RenderedPart(USER_UUID)
    if not ASKED.fullmatch(inside):
        why = f"{{{{ {inside} }}}} is neither a variable nor a function"
        return _without_value(why, "it is sent as it is written", node, scope, whole)
    if not NAME.fullmatch(inside):
        return _unknown(inside, node, scope)
    if inside in scope.captured:
        return RenderedPart(scope.captured[inside], kept=inside in scope.kept)
    if inside in scope.constants:
        return LiteralPart(scope.constants[inside])
    if inside in scope.fed:
        fed = scope.fed[inside]
        return RenderedPart(fed.placeholder, fed.numeric, fed.kept)
    return _part(inside, scope) or _within(inside, node, scope)


def words_of(path: str) -> list[str]:
    """`list[0].name` -> list, 0, name."""
    return [word for word in re.split(r"[.\[\]'\"]+", path) if word]


def _part(inside: str, scope: NameScope) -> RenderedPart | None:
    """Part of a value kept as JSON: `user.name`, `$loopElement.id`."""
    first, *rest = words_of(inside)
    if first in scope.captured and first in scope.kept:
        whole = scope.captured[first]
    elif first in scope.fed and scope.fed[first].kept:
        whole = scope.fed[first].placeholder
    else:
        return None
    return RenderedPart(f"{whole} | at /{'/'.join(rest)}", kept=True)


def _unknown(name: str, node: ScriptNode, scope: NameScope) -> LiteralPart:
    names = ", ".join(sorted({*scope.captured, *scope.fed, *scope.constants} - {"$processEnvironment"}))
    why = f"'{name}' is unknown here, expected one of: {names}"
    return _without_value(why, "it is undefined", node, scope)


def _within(inside: str, node: ScriptNode, scope: NameScope) -> LiteralPart:
    """Part of a constant: `$loopElement.id`, `list[0]`, `$env.HOME`."""
    first, *rest = words_of(inside)
    if first in scope.captured:
        raise node.refused(f"a part of the captured value '{inside}'", "capture that part by itself", "part")
    if first in scope.later:
        raise node.refused(
            f"'{first}', which is captured later", "capture it before, or set it in variables", "used_before"
        )
    if first not in scope.constants:
        return _unknown(inside, node, scope)
    value = scope.constants[first]
    for word in rest:
        if isinstance(value, Mapping) and word in value:
            value = value[word]
        elif isinstance(value, list) and word.isdigit() and int(word) < len(value):
            value = value[int(word)]
        else:
            hint = "; set the environment variable" if first in ("$env", "$processEnvironment") else ""
            return _without_value(f"'{inside}': no '{word}' in {first}{hint}", "it is undefined", node, scope)
    return LiteralPart(value)


def _called(name: str, arguments: list[str], node: ScriptNode) -> RenderedPart:
    try:
        numbers = [int(word) for word in arguments]
    except ValueError:
        raise node.refused(f"{name}({', '.join(arguments)})", "give whole numbers") from None
    if any(abs(number) > MOST_DRAWN for number in numbers):
        raise node.refused(f"{name}({', '.join(arguments)})", f"give numbers up to {MOST_DRAWN:,}", "limit")
    if name == "$randomNumber":
        low, high = numbers[:2] if len(numbers) > 1 else (0, numbers[0] if numbers else 1)
        return RenderedPart(f"random int {min(low, high)} {max(low, high)}")
    if name == "$randomString":
        length = numbers[0] if numbers else 10
        if not 1 <= length <= 4096:
            raise node.refused(f"$randomString({length})", "ask for 1 to 4096 characters", "limit")
        return RenderedPart(f"random string {length}")
    raise AssertionError(f"{name} is one of {FUNCTIONS}")


def _key(key: str, node: ScriptNode, scope: NameScope) -> str:
    return f'"{text_of(key, node, scope, "json")}"'


def _written(text: str, escape: Escape) -> str:
    if escape == "json":
        text = json.dumps(text, ensure_ascii=False)[1:-1]
    elif escape == "url":
        text = form_quoted(text)
    return text.replace("${", "$${")


def form_quoted(text: str) -> str:
    """Form encoding as in browsers: spaces as +, everything but letters, digits and *-._ as %XX."""
    from urllib.parse import quote

    return quote(text, safe="*").replace("~", "%7E").replace("%20", "+")
