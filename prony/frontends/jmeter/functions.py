"""JMeter's `${variable}` and `${__function(…)}` into constants and the engine's placeholders.

Must not know elements beyond the place that a message names.
"""

from __future__ import annotations

import random
import re
import string
import time
import uuid
from dataclasses import dataclass, field
from urllib.parse import quote_plus, unquote_plus

from prony.frontends.base import Refused
from prony.frontends.jmeter.jmx import Node

LETTERS_AND_DIGITS = frozenset(string.ascii_letters + string.digits)
TAKEN = frozenset({"sequence", "uuid", "random", "time", "user", "iteration"})
"""Names that no value of the engine's may have."""
LONGEST_DRAWN = 64
"""Characters of a random string that are drawn one by one."""
WHOLE = re.compile(r"[+-]?\d+")


@dataclass(frozen=True, slots=True)
class Part:
    """A text, or one of the engine's placeholders (without its brackets)."""

    text: str
    dynamic: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """What a value of the plan became."""

    parts: tuple[Part, ...] = ()

    @classmethod
    def of(cls, text: str) -> Text:
        """A constant."""
        return cls((Part(text),) if text else ())

    @classmethod
    def placeholder(cls, name: str) -> Text:
        """What the engine knows by this name."""
        return cls((Part(name, True),))

    @property
    def constant(self) -> str | None:
        """The text, when it is the same for every request."""
        return None if any(part.dynamic for part in self.parts) else "".join(part.text for part in self.parts)

    @property
    def engine(self) -> str:
        """In the engine's words."""
        return "".join(
            "${" + part.text + "}" if part.dynamic else part.text.replace("${", "$${") for part in self.parts
        )

    def encoded(self, decode_first: bool = False) -> Text:
        """As Java's URLEncoder writes it; `decode_first` for what is encoded already, or perhaps is."""

        def one(part: Part) -> Part:
            if part.dynamic:
                return Part(f"{part.text} | form", True)
            text = unquote_plus(part.text) if decode_first else part.text
            return Part(quote_plus(text, safe="*").replace("~", "%7E"))

        return Text(tuple(map(one, self.parts)))

    def __add__(self, other: Text) -> Text:
        return Text(self.parts + other.parts)


@dataclass(slots=True)
class Values:
    """Variables and properties as far as they are known at this place of the plan."""

    properties: dict[str, str]
    users: int | None = None
    variables: dict[str, Text] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    """Variables that change during the run -> their names in the engine."""
    initial: dict[str, str] = field(default_factory=dict)
    """Those names -> what they stand for when a user starts."""
    several: dict[str, str] = field(default_factory=dict)
    """Variables of which an extractor takes every match -> their names in the engine."""
    counters: int = 0
    used: set[str] = field(default_factory=set)
    """Names in the engine that something refers to."""
    draws: random.Random = field(default_factory=random.Random)

    def unique(self, kind: str) -> str:
        """A name for a counter of the engine."""
        self.counters += 1
        return f"{kind}{self.counters}"

    def one_of_several(self, variable: str) -> Text | None:
        """`${name_2}` or `${name_matchNr}` of an extractor that takes every match."""
        base, _, which = variable.rpartition("_")
        if base not in self.several or not re.fullmatch(r"[1-9]\d{0,4}|matchNr", which):
            return None
        name = f"{self.several[base]}_{which}"
        self.initial[name] = Text.of("${" + variable + "}").engine
        self.variables[variable] = Text.placeholder(name)
        return self.variables[variable]

    def note(self, sentence: str) -> None:
        """Say it once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def changing(self, variable: str, where: Node) -> str:
        """A variable that the run gives values to; its name in the engine. Until then it stands for its value
        in the plan, or, as in JMeter, for the characters that refer to it. Raises UsageError.
        """
        if variable not in self.values:
            name = re.sub(r"[^\w-]", "_", variable, flags=re.ASCII)
            if not variable or not re.match("[A-Za-z_]", name):
                raise where.wrong(f"the name of a variable, found '{variable}'")
            while name in TAKEN or name in self.values.values():
                name += "_"
            known = self.variables.get(variable)
            self.values[variable] = name
            self.initial[name] = Text.of("${" + variable + "}").engine if known is None else known.engine
            self.variables[variable] = Text.placeholder(name)
        return self.values[variable]

    def text(self, raw: str, where: Node, once: bool = False) -> Text:
        """`raw` with its variables and functions; `once`: functions are evaluated now, as JMeter does
        before the start (test plan variables).
        """
        return _Reader(raw, where, self, once).text()

    def constant(self, raw: str, where: Node) -> str:
        """The same, for what must be known before the start. Raises Refused otherwise."""
        found = self.text(raw, where)
        constant = found.constant
        if constant is None:
            raise where.refused(
                f"'{raw}' is another value for every request",
                "write a constant, a variable of the plan or ${__P(name)}",
            )
        return constant

    def whole(self, raw: str, where: Node, name: str, default: int | None = None) -> int:
        """A whole number."""
        text = self.constant(raw, where).strip()
        if not text and default is not None:
            return default
        if not WHOLE.fullmatch(text) or len(text) > 15:
            raise where.wrong(f"{name} to be a whole number, found '{text}'")
        return int(text)

    def number(self, raw: str, where: Node, name: str, default: float | None = None) -> float:
        """A number."""
        text = self.constant(raw, where).strip()
        if not text and default is not None:
            return default
        try:
            found = float(text)
        except ValueError:
            found = float("nan")
        if not abs(found) < 1e15:
            raise where.wrong(f"{name} to be a number, found '{text}'")
        return found


@dataclass(slots=True)
class _Reader:
    raw: str
    where: Node
    values: Values
    once: bool
    at: int = 0

    def text(self) -> Text:
        return self._until("")

    def _until(self, ends: str) -> Text:
        parts: list[Part] = []
        plain = ""
        raw = self.raw
        while self.at < len(raw) and not (ends and raw[self.at] in ends):
            if raw.startswith("${", self.at) and "}" in raw[self.at :]:
                self.at += 2
                found = self._reference()
                if plain:
                    parts.append(Part(plain))
                    plain = ""
                parts.extend(found.parts)
            elif raw[self.at] == "\\" and raw[self.at + 1 : self.at + 2] in ("$", ",", "\\") and "${" in raw:
                plain += raw[self.at + 1]
                self.at += 2
            elif ends and raw[self.at] == "(":
                plain += "("
                self.at += 1
                inner = self._until(")")
                parts += [*([Part(plain)] if plain else []), *inner.parts]
                plain = ""
            else:
                plain += raw[self.at]
                self.at += 1
        return Text((*parts, *([Part(plain)] if plain else [])))

    def _reference(self) -> Text:
        match = re.compile(r"\s*(__\w+)\s*").match(self.raw, self.at)
        end = self.raw.index("}", self.at)
        if match is None or self.raw[self.at : end] in self.values.variables:
            name = self.raw[self.at : end]
            self.at = end + 1
            return self._variable(name)
        self.at = match.end()
        arguments: list[Text] = []
        if self.raw[self.at : self.at + 1] == "(":
            arguments = self._arguments()
        if self.raw[self.at : self.at + 1] != "}":
            raise self._wrong(f"'}}' after {match.group(1)}(…)")
        self.at += 1
        return self._call(match.group(1), arguments)

    def _arguments(self) -> list[Text]:
        found: list[Text] = []
        while True:
            self.at += 1
            found.append(self._until(",)"))
            if self.at >= len(self.raw):
                raise self._wrong("')' at the end of a function's arguments")
            if self.raw[self.at] == ")":
                self.at += 1
                return [] if len(found) == 1 and not found[0].parts else found

    def _wrong(self, expected: str) -> Exception:
        return self.where.wrong(f"{expected}, found '{self.raw}'")

    def _variable(self, name: str) -> Text:
        known = self.values.variables.get(name) or self.values.one_of_several(name)
        if known is not None:
            self.values.used.update(part.text for part in known.parts if part.dynamic)
            return known
        raise self.where.refused(
            f"the variable ${{{name}}} has no value here (JMeter would send these characters)",
            "define it in the test plan, in a CSV data set or by an extractor of an earlier sampler",
        )

    def _call(self, name: str, arguments: list[Text]) -> Text:
        match name:
            case "__P" | "__property":
                return self._property(name, arguments)
            case "__V":
                parts = self._constants(name, arguments, 1, 2)
                if parts[0] not in self.values.variables and len(parts) == 2:
                    return Text.of(parts[1])
                return self._variable(parts[0])
            case "__Random":
                return self._random(arguments)
            case "__RandomString":
                return self._random_string(arguments)
            case "__UUID":
                return (
                    Text.of(str(uuid.UUID(int=self.values.draws.getrandbits(128), version=4)))
                    if self.once
                    else _drawn("uuid")
                )
            case "__counter":
                return self._counter(arguments)
            case "__threadNum":
                return Text.of("1") if self.values.users == 1 else _drawn("user")
            case "__time":
                return self._time(arguments)
        raise self._refused(
            name, "this function is not known to Prony",
            "use __P, __property, __V, __Random, __RandomString, __UUID, __counter or a CSV data set",
        )  # fmt: skip

    def _refused(self, name: str, found: str, instead: str) -> Refused:
        return Refused(
            f"the function {name} in {self.where.element}", self.where.file, self.where.line, found, instead
        )

    def _constants(self, name: str, arguments: list[Text], least: int, most: int) -> list[str]:
        if not least <= len(arguments) <= most:
            raise self.where.wrong(f"{least} to {most} arguments of {name}, found {len(arguments)}")
        found: list[str] = []
        for argument in arguments:
            constant = argument.constant
            if constant is None:
                raise self._refused(name, "an argument differs from request to request", "write a constant")
            found.append(constant)
        return found

    def _property(self, name: str, arguments: list[Text]) -> Text:
        given = self._constants(name, arguments, 1, 3)
        if name == "__property" and len(given) > 1 and given[1]:
            raise self._refused(
                name, f"it stores the value in '{given[1]}'", "define that variable in the test plan"
            )
        default = given[2] if name == "__property" and len(given) == 3 else ""
        if name == "__P":
            default = given[1] if len(given) > 1 else "1"
        elif len(given) < 3:
            default = given[0]
        return Text.of(self.values.properties.get(given[0], default))

    def _random(self, arguments: list[Text]) -> Text:
        given = self._constants("__Random", arguments, 2, 3)
        self._not_stored("__Random", given[2:])
        low, high = (self.values.whole(text, self.where, "an end of __Random") for text in given[:2])
        if low > high:
            raise self.where.wrong(f"__Random(low,high), found {low},{high}")
        return (
            Text.of(str(self.values.draws.randint(low, high)))
            if self.once
            else _drawn(f"random int {low} {high}")
        )

    def _not_stored(self, name: str, rest: list[str]) -> None:
        if rest and rest[0].strip():
            raise self._refused(
                name,
                f"it stores the value in '{rest[0]}'",
                "define that variable in the test plan, or use a CSV data set",
            )

    def _random_string(self, arguments: list[Text]) -> Text:
        given = self._constants("__RandomString", arguments, 1, 3)
        self._not_stored("__RandomString", given[2:])
        length = self.values.whole(given[0], self.where, "the length of __RandomString")
        letters = given[1] if len(given) > 1 else ""
        if not letters or length < 1:
            raise self._refused(
                "__RandomString",
                "any character of Unicode may come",
                "name the letters: __RandomString(8,abcdef)",
            )
        if self.once:
            return Text.of("".join(self.values.draws.choice(letters) for _ in range(length)))
        if set(letters) == LETTERS_AND_DIGITS:
            return _drawn(f"random string {length}")
        if length > LONGEST_DRAWN or re.search(r"[\s|}]", letters):
            raise self._refused(
                "__RandomString", f"{length} characters out of '{letters}'",
                f"use at most {LONGEST_DRAWN}, without blanks, | and }}, or all letters and digits",
            )  # fmt: skip
        return Text((Part("random choice " + " ".join(letters), True),) * length)

    def _counter(self, arguments: list[Text]) -> Text:
        given = self._constants("__counter", arguments, 0, 2)
        self._not_stored("__counter", given[1:])
        if self.once:
            return Text.of("1")
        each = bool(given) and given[0].strip().lower() == "true"
        if each and self.values.users == 1:
            each = False
        name = self.values.unique("count")
        return _drawn(f"sequence name={name}" + (" per=user" if each else ""))

    def _time(self, arguments: list[Text]) -> Text:
        given = self._constants("__time", arguments, 0, 2)
        self._not_stored("__time", given[1:])
        pattern = given[0] if given else ""
        divided = re.fullmatch(r"/(\d+)", pattern)
        if not self.once and pattern in ("", "/1000"):
            return _drawn("time s" if pattern else "time")
        if not self.once:
            raise self._refused("__time", f"the format '{pattern}'", "use ${__time()} or ${__time(/1000)}")
        now_ms = time.time_ns() // 1_000_000
        if not pattern:
            return Text.of(str(now_ms))
        if divided and int(divided.group(1)):
            return Text.of(str(now_ms // int(divided.group(1))))
        raise self._refused("__time", f"the format '{pattern}'", "use ${__time()} or ${__time(/1000)}")


def _drawn(placeholder: str) -> Text:
    return Text((Part(placeholder, True),))
