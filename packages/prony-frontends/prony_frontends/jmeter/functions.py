"""JMeter's `${variable}` and `${__function(…)}` into constants and the engine's placeholders."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from urllib.parse import quote_plus, unquote_plus

from prony.errors import UsageError
from prony.plan.blocks import Pace
from prony.plan.workload import Feeder
from prony_frontends.base import Refused
from prony_frontends.jmeter.jmx import JmxNode

LONGEST_S = 7 * 24 * 3600.0
"""Of a group that only Ctrl-C ends, and of a schedule."""
TAKEN = frozenset({"sequence", "uuid", "random", "time", "user", "iteration", "next"})
"""Names that no value of the engine's may have."""
WHOLE = re.compile(r"[+-]?\d+")


@dataclass(frozen=True, slots=True)
class TextPart:
    """A text, or one of the engine's placeholders (without its brackets)."""

    text: str
    dynamic: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """What a value of the plan became."""

    parts: tuple[TextPart, ...] = ()

    @classmethod
    def of(cls, text: str) -> Text:
        """A constant."""
        return cls((TextPart(text),) if text else ())

    @classmethod
    def placeholder(cls, name: str) -> Text:
        """What the engine knows by this name."""
        return cls((TextPart(name, True),))

    @property
    def constant(self) -> str | None:
        """The text, when it is the same for every request."""
        return None if any(part.dynamic for part in self.parts) else "".join(part.text for part in self.parts)

    @property
    def joined(self) -> Text:
        """The same, constants that stand side by side as one."""
        found: list[TextPart] = []
        for part in self.parts:
            if found and not part.dynamic and not found[-1].dynamic:
                found[-1] = TextPart(found[-1].text + part.text)
            else:
                found.append(part)
        return Text(tuple(found))

    @property
    def engine(self) -> str:
        """In the engine's words."""
        return "".join(
            "${" + part.text + "}" if part.dynamic else part.text.replace("${", "$${") for part in self.parts
        )

    def encoded(self, encoding: str = "UTF-8", decode_first: bool = False) -> Text:
        """As Java's URLEncoder writes it; `decode_first` for what is encoded already, or perhaps is."""

        def one(part: TextPart) -> TextPart:
            if part.dynamic:
                return TextPart(f"{part.text} | form", True)
            text = unquote_plus(part.text, encoding) if decode_first else part.text
            return TextPart(
                quote_plus(text, safe="*", encoding=encoding, errors="replace").replace("~", "%7E")
            )

        return Text(tuple(map(one, self.parts)))

    def __add__(self, other: Text) -> Text:
        return Text(self.parts + other.parts)

    def join(self, texts: Iterable[Text]) -> Text:
        """These with this one between them."""
        found = Text()
        for number, text in enumerate(texts):
            found = found + self + text if number else text
        return found


@dataclass(slots=True)
class KnownValues:
    """Variables and properties as far as they are known at this place of the plan."""

    properties: dict[str, str]
    asked: set[str] = field(default_factory=set)
    """Properties that something has read."""
    users: int | None = None
    variables: dict[str, Text] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    """Variables that change during the run -> their names in the engine."""
    initial: dict[str, str] = field(default_factory=dict)
    """Those names -> what they stand for when a user starts."""
    several: dict[str, str] = field(default_factory=dict)
    """Variables of which an extractor takes every match -> their names in the engine."""
    listed: set[str] = field(default_factory=set)
    """Variables of whose matches a controller takes one after the other."""
    grouped: set[tuple[str, int]] = field(default_factory=set)
    """`${name_g1}` that something refers to: of which variable and which group."""
    counters: int = 0
    used: set[str] = field(default_factory=set)
    """Names in the engine that something refers to."""
    draws: random.Random = field(default_factory=random.Random)
    folder: Path = Path()
    """Where the plan lies."""
    csv_dir: Path | None = None
    """Where data files are looked for that are not where the plan says."""
    end_s: float | None = None
    """Of groups that have no end of their own."""
    above: Sequence[JmxNode] = ()
    """Elements of the plan outside of its groups."""
    undefined: dict[str, JmxNode] = field(default_factory=dict)
    """Variables that have no value where they stand -> the first place; sent as they are written."""
    feeders: dict[str, Feeder] = field(default_factory=dict)
    opened: dict[str, str] = field(default_factory=dict)
    """File or alias of __CSVRead, or file and sharing of a data set -> the feeder of its rows."""
    rows_here: set[str] = field(default_factory=set)
    """Feeders of data sets that the group draws from which is read."""
    group: str | None = None
    """The name of the thread group, once it is known."""
    lasts_s: float | None = None
    """How long that group goes on, where the clock ends it."""
    schedule: Pace | None = None
    """What a precise throughput timer of that group lets through, once it is drawn."""
    sampler: str | None = None
    """The name of the sampler that is read."""
    stores: list[tuple[str, str]] | None = None
    """What its functions store, in order: variable and text of the engine; None outside of a sampler."""
    faults: dict[int, str] = field(default_factory=dict)
    """The number of a sampler that fails and sends nothing -> why, in JMeter's words."""
    held_within: set[int] = field(default_factory=set)
    """Numbers of samplers whose assertions look at sub-samples too."""
    unsent: UsageError | None = None
    """The same of the first of them, for a plan that sends nothing at all."""
    referred: set[str] = field(default_factory=set)
    """Variables that something has read while they did not change."""

    def aside(self) -> KnownValues:
        """The same for a look at a text that leaves no trace here; it has seen nothing undefined yet."""
        copies = {one.name: copy(getattr(self, one.name)) for one in fields(self)}
        return replace(self, **copies | {"undefined": {}})

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

    def changing(self, variable: str, where: JmxNode) -> str:
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

    def text(self, raw: str, where: JmxNode, once: bool = False) -> Text:
        """`raw` with its variables and functions; `once`: functions are evaluated now, as JMeter does before
        the start (test plan variables).
        """
        return _Reader(raw, where, self, once).text().joined

    def constant(self, raw: str, where: JmxNode) -> str:
        """The same, for what must be known before the start. Raises Refused otherwise."""
        found = self.text(raw, where)
        constant = found.constant
        if constant is None:
            raise where.refused(
                f"'{raw}' is another value for every request",
                "write a constant, a variable of the plan or ${__P(name)}",
            )
        return constant

    def label(self, node: JmxNode) -> str:
        """The element's name, as it is written where it changes during the run."""
        held, self.stores = self.stores, None  # a name stores nothing
        try:
            found = self.text(node.label, node).constant
        except Refused:
            found = None
        finally:
            self.stores = held
        if found is None:
            self.note(f"{node.element}: its name changes during the run, and stands as it is written")
        return node.label if found is None else found

    def whole(self, raw: str, where: JmxNode, name: str, default: int | None = None) -> int:
        """A whole number."""
        text = self.constant(raw, where).strip()
        if not text and default is not None:
            return default
        if not WHOLE.fullmatch(text) or len(text) > 15:
            raise where.wrong(f"{name} to be a whole number, found '{text}'")
        return int(text)

    def number(self, raw: str, where: JmxNode, name: str, default: float | None = None) -> float:
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
    where: JmxNode
    values: KnownValues
    once: bool
    at: int = 0

    def text(self) -> Text:
        return self._until("")

    def _until(self, ends: str) -> Text:
        parts: list[TextPart] = []
        plain = ""
        raw = self.raw
        depth = 0  # of brackets within an argument
        while self.at < len(raw) and not (raw[self.at] in ends and not (raw[self.at] == ")" and depth > 0)):
            if raw.startswith("${", self.at) and "}" in raw[self.at :]:
                self.at += 2
                found = self._reference()
                if plain:
                    parts.append(TextPart(plain))
                    plain = ""
                parts.extend(found.parts)
            elif raw[self.at] == "\\" and raw[self.at + 1 : self.at + 2] in ("$", ",", "\\") and "${" in raw:
                plain += raw[self.at + 1]
                self.at += 2
            else:
                depth += {"(": 1, ")": -1}.get(raw[self.at], 0)
                plain += raw[self.at]
                self.at += 1
        return Text((*parts, *([TextPart(plain)] if plain else [])))

    def _reference(self) -> Text:
        match = re.compile(r"\s*(__\w+)\s*").match(self.raw, self.at)
        end = self.raw.index("}", self.at)
        called = match is not None and self.raw[match.end() : match.end() + 1] in ("(", "}")
        if match is None or not called or self.raw[self.at : end] in self.values.variables:
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
            if name not in self.values.values:
                self.values.referred.add(name)
            self.values.used.update(part.text for part in known.parts if part.dynamic)
            return known
        self.values.referred.add(name)
        self.values.undefined.setdefault(name, self.where)
        return Text.of("${" + name + "}")

    def _call(self, name: str, arguments: list[Text]) -> Text:
        found = CALLS.get(name)
        call = Call(name, arguments, self.where, self.values, self.once)
        if found is None:
            raise call.refused("this function is not known to Prony", f"use one of {', '.join(CALLS)}")
        return found(call)


@dataclass(frozen=True, slots=True)
class Call:
    """A function as it stands in the plan."""

    name: str
    arguments: list[Text]
    where: JmxNode
    values: KnownValues
    once: bool
    """It is evaluated now, before the start."""

    def refused(self, found: str, instead: str) -> Refused:
        """What this function asks for and Prony does not do."""
        return Refused(
            f"the function {self.name} in {self.where.element}",
            self.where.file,
            self.where.line,
            found,
            instead,
        )

    def texts(self, least: int, most: int) -> list[Text]:
        """Its arguments. Raises UsageError for another number of them."""
        if not least <= len(self.arguments) <= most:
            raise self.where.wrong(f"{least} to {most} arguments of {self.name}, found {len(self.arguments)}")
        return [argument.joined for argument in self.arguments]

    def constants(self, least: int, most: int) -> list[str]:
        """The same, all of them constants. Raises Refused for those that change."""
        return [self.constant(argument) for argument in self.texts(least, most)]

    def constant(self, argument: Text) -> str:
        """One of them. Raises Refused where it changes."""
        found = argument.constant
        if found is None:
            raise self.refused("an argument differs from request to request", "write a constant")
        return found

    def each(self, text: Text, plain: Callable[[str], str], filtered: str) -> Text:
        """What `plain` makes of the constant parts, and the engine's filter of this name of the others."""
        return Text(
            tuple(
                TextPart(f"{part.text} | {filtered}", True) if part.dynamic else TextPart(plain(part.text))
                for part in text.parts
            )
        )

    def as_one(self, text: Text) -> Text:
        """A text that changes as one placeholder. Raises Refused where nothing can hold it."""
        if len(text.parts) == 1:
            return text
        if self.once or self.values.stores is None:
            raise self.refused("a text of several parts, outside of a sampler", "define it as a variable")
        place = self.values.changing(self.values.unique("text"), self.where)
        self.values.stores.append((place, text.engine))
        self.values.used.add(place)
        return Text.placeholder(place)

    def stored(self, found: Text, names: Sequence[str]) -> Text:
        """The value, which also becomes that of the variable named, if one is."""
        name = names[0].strip() if names else ""
        if not name:
            return found
        if self.once or self.values.stores is None:
            raise self.refused(
                f"it stores the value in '{name}' outside of a sampler",
                "call it in the path, a parameter or the body of a sampler, or define the variable",
            )
        known = self.values.variables.get(name)
        if name not in self.values.values:
            if name in self.values.referred:
                raise self.refused(
                    f"it stores the value in '{name}', which is used before", "give it a name of its own"
                )
            if known is not None and known.constant is None:
                raise self.refused(
                    f"it stores the value in '{name}', which a data set fills", "give it a name of its own"
                )
        place = self.values.changing(name, self.where)
        self.values.stores.append((place, found.engine))
        self.values.used.add(place)
        return Text.placeholder(place)


Function = Callable[[Call], Text]
CALLS: dict[str, Function] = {}
"""Filled by `prony_frontends.jmeter.calls`."""
