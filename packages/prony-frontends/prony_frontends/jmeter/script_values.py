"""Values of scripts beyond `__groovy`: names, lists, shifted dates, parts of a UUID, JSON of the response."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from prony_frontends.base import Reason, Refused
from prony_frontends.jmeter import dates, draws, last_sample
from prony_frontends.jmeter.expression_parser import Parser, text_of
from prony_frontends.jmeter.expression_values import Changing, Drawn, Json, Moment, Named, Unsupported, Value
from prony_frontends.jmeter.functions import Call, Text, TextPart
from prony_frontends.jmeter.responses import pointer_of

HEX = "0123456789abcdef"
UUID_VALUE, RESPONSE, SLURPER = "a UUID", "the response", "a JSON parser"
UNITS = {"Days": 86400, "Hours": 3600, "Minutes": 60, "Seconds": 1, "Weeks": 7 * 86400}
UNKNOWN = Named("")
"""None of these."""
CLASSES = frozenset({"LocalDate", "LocalDateTime", "ZonedDateTime", "OffsetDateTime", "Instant"})
INTERPOLATED = re.compile(r"\x01([^\x01]*)\x01|\$([A-Za-z_]\w*)")
HIDDEN = re.compile(r"\$\{(?!\s*__)([^{}]*)\}")


class ScriptCall(Call):
    """An element's script in place of a function call."""

    def refused(self, found: str, instead: str, code: Reason = "unsupported") -> Refused:
        return self.where.refused(f"in its script: {found}", instead, code)


@dataclass(frozen=True, slots=True)
class Source:
    """A script's text for evaluating expressions."""

    call: Call
    groovy: bool
    marks: tuple[TextPart, ...]
    cached: bool
    """Whether JMeter compiles the script once, which freezes `${…}`."""
    captured: Callable[[str], Text] | None
    """Captures a place of the response; None without a response."""

    def value(self, text: str, names: Mapping[str, Value]) -> Value:
        """Value of an expression. Raises NotPlain and Refused."""
        return _Parser(text.strip(), self, names).whole()

    def text(self, value: Value) -> Text:
        """The value as a text; missing values become null."""
        if isinstance(value, Json) and self.captured is not None:
            return self.captured(value.pointer)
        if value == Named(UUID_VALUE):
            return draws.a_uuid(self.call)
        return Text.of("null") if value is None else text_of(value, self.call)


class _Parser(Parser):
    def __init__(self, raw: str, source: Source, names: Mapping[str, Value]) -> None:
        self.source, self.names = source, names
        super().__init__(raw, source.marks, source.call)
        following = [*self.tokens[1:], ("", "")]
        self.tokens = [
            token
            for token, after in zip(self.tokens, following, strict=True)
            if (token, after) != (("sign", "?"), ("sign", "."))
        ]  # `a?.b` is treated as `a.b`

    def _first(self) -> Value:
        if self._peek("["):
            self.at += 1
            words: list[str] = []
            while not self._next("]"):
                words.append(_word(self._choice()))
                if not self._peek("]"):
                    self._expect(",")
            return tuple(words)
        found_here = super()._first()
        if isinstance(found_here, Named) and found_here.name in self.names:
            return self.names[found_here.name]
        return found_here

    def _quoted(self, inside: str, quote: str) -> Value:
        if inside[:2] == quote * 2 and inside[-2:] == quote * 2 and len(inside) >= 4:
            inside = inside[2:-2]  # triple quotes
        if self.source.cached and "\0" in inside:
            raise Unsupported("${…} of a changing value, which a compiled script freezes; use vars.get(…)")
        if not self.source.groovy:
            return super()._quoted(_literal(inside), quote)
        if quote == "'" or not INTERPOLATED.search(inside):
            return super()._quoted(_literal(inside), quote)
        text = Text()
        at = 0
        for match in INTERPOLATED.finditer(inside):
            text += self.source.text(super()._quoted(inside[at : match.start()], quote))
            text += self.source.text(self.source.value(match.group(1) or match.group(2), self.names))
            at = match.end()
        text += self.source.text(super()._quoted(inside[at:], quote))
        return text.joined if text.constant is None else text.constant

    def _concatenated(self, side: Value) -> Text:
        return self.source.text(side)

    def _held(self, value: Value, name: str) -> Value:
        match value, name:
            case Json(pointer=pointer), _:
                return Json(f"{pointer}/{name}")
            case Named(name="ctx"), "threadNum":
                return self._called(value, "getThreadNum", [])
            case Named(name="prev"), "responseDataAsString" | "responseCode":
                return self._called(value, f"get{name[0].upper()}{name[1:]}", [])
            case tuple(), "length":
                return len(value)
        return super()._held(value, name)

    def _made(self) -> Value:
        at = self.at
        words = [word for _, word in self.tokens[at : at + 6]]
        for name in ("JsonSlurper", "JsonSlurperClassic"):
            if name in words:
                self.at = at + words.index(name) + 1
                if self._arguments():
                    raise Unsupported(f"new {name}(…)")
                return Named(SLURPER)
        return super()._made()

    def _called(self, value: Value, name: str, given: list[Value]) -> Value:
        result = self._of_script(value, name, given)
        return super()._called(value, name, given) if result == UNKNOWN else result

    def _of_script(self, value: Value, name: str, given: list[Value]) -> Value:
        call = self.call
        match value, name, given:
            case Named(name="UUID"), "randomUUID", []:
                return Named(UUID_VALUE)
            case Named(name="a UUID"), "toString", []:
                return draws.a_uuid(call)
            case Text(parts=(TextPart(text="uuid", dynamic=True),)), _, _:
                return _of_uuid(call, name, given)
            case Named(name="ThreadLocalRandom"), "current", []:
                return Named("random")
            case Named(name="random"), "nextInt" | "nextLong", [int() as low, int() as high] if high > low:
                return Drawn(low, high - 1)
            case Named(name="System"), "currentTimeMillis", []:
                return Changing(TextPart("time", True))
            case Changing(part=TextPart(text="time"), plus=0), "intdiv", [1000]:
                return Changing(TextPart("time s", True))
            case Named(name="ctx"), "getThreadNum", []:
                return 0 if call.values.users == 1 else Changing(TextPart("user", True), -1)
            case Named(name="vars"), "getIteration", []:
                return Changing(TextPart("iteration", True))
            case Named(name="prev"), "getResponseCode", []:
                return Text.placeholder(last_sample.used(call.values, last_sample.CODE))
            case Named(name="prev"), "getResponseDataAsString", [] if self.source.captured is not None:
                return Named(RESPONSE)
            case Named(name="a JSON parser"), "parseText", [Named(name="the response")]:
                return Json("")
            case Named(name="JsonPath"), "read", [Named(name="the response"), str() as path]:
                pointer = pointer_of(path)
                if pointer is None:
                    raise Unsupported(path)
                return Json(pointer)
            case Json(pointer=pointer), "get" | "getAt", [str() | int() as key]:
                return Json(f"{pointer}/{key}")
            case Json(), "toString", []:
                return self.source.text(value)
            case Named(name="Arrays" | "List"), "asList" | "of", words:
                return tuple(_word(word) for word in words)
            case tuple(), "size", []:
                return len(value)
            case tuple(), "get" | "getAt", [int() as place] if 0 <= place < len(value):
                return value[place]
            case tuple(), "get" | "getAt", [Drawn(low=0, high=last, real=False)] if last == len(value) - 1:
                return draws.one_of(call, list(value))
            case Named(name="String"), "format", [str() as form, argument]:
                return _formatted(self.source, form, argument)
            case Named(name="Integer" | "Long"), "toString", [argument]:
                return self.source.text(argument)
            case Changing(), "intValue" | "longValue", []:
                return value
        return self._of_moment(value, name, given)

    def _of_moment(self, value: Value, name: str, given: list[Value]) -> Value:
        match value, name, given:
            case Named(name=kind), "now", [] if kind in CLASSES:
                return Moment(day=kind == "LocalDate")
            case Named(name="DateTimeFormatter"), "ofPattern", [str() as pattern]:
                return Moment(pattern)
            case Moment(pattern=""), _, [int() as count] if (
                moved := re.fullmatch(r"(plus|minus)(\w+)", name)
            ) and moved.group(2) in UNITS:
                seconds = count * UNITS[moved.group(2)] * (1 if moved.group(1) == "plus" else -1)
                return replace(value, shift_s=value.shift_s + seconds)
            case (Moment(pattern=""), "format", [Moment(pattern=pattern)]) if pattern:
                return dates.written(self.call, pattern, value.shift_s)
            case Moment(pattern=""), "format", [str() as pattern]:
                return dates.written(self.call, pattern, value.shift_s)
            case Moment(pattern=pattern), "format", [Moment(pattern="") as when] if pattern:
                return dates.written(self.call, pattern, when.shift_s)
            case Moment(pattern="", day=True), "toString", []:
                return dates.written(self.call, "yyyy-MM-dd", value.shift_s)
            case Moment(pattern="", shift_s=0, day=False), "getTime" | "toEpochMilli", []:
                return Changing(TextPart("time", True))
            case Moment(), _, _:
                raise Unsupported(f"{name}(…) of a time")
        return UNKNOWN


def _literal(inside: str) -> str:
    """The text without interpolation."""
    return INTERPOLATED.sub(lambda match: match[0] if match[2] else "${" + match[1] + "}", inside)


def _word(value: Value) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise Unsupported("a list with elements other than texts and numbers")
    return str(value)


def _of_uuid(call: Call, name: str, given: list[Value]) -> Value:
    """Part of a random UUID: all digits are random, except for the 13th (4) and the 17th (8 to b)."""
    match name, given:
        case "substring", [0, int() as end] if 0 < end <= 8:
            return draws.of_letters(call, end, HEX)
        case "take", [int() as end] if 0 < end <= 8:
            return draws.of_letters(call, end, HEX)
        case "replace" | "replaceAll", ["-", ""]:
            drawn = [draws.of_letters(call, count, HEX) for count in (12, 3, 15)]
            return drawn[0] + Text.of("4") + drawn[1] + draws.one_of(call, list("89ab")) + drawn[2]
    return UNKNOWN


def _formatted(source: Source, form: str, value: Value) -> Value:
    """`String.format("%05d", n)`."""
    digits = re.fullmatch(r"([^%]*)%(?:0(\d))?d([^%]*)", form)
    if digits is None or not isinstance(value, int | Drawn | Changing):
        raise Unsupported(f"format('{form}', …)")
    before, least, after = digits.groups()
    number = source.text(value)
    if number.constant is not None:
        return f"{before}{int(number.constant):0{least or 1}d}{after}"
    (part,) = number.parts
    filtered = TextPart(f"{part.text} | digits {least}", True) if least else part
    return (Text.of(before) + Text((filtered,)) + Text.of(after)).joined
