"""Translates JMeter's `${variable}` and `${__function(…)}` to constants and the engine's placeholders."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from urllib.parse import quote_plus, unquote_plus

from prony.errors import UsageError
from prony.plan.blocks import Condition, Pace
from prony.plan.step import Block, Entry
from prony.plan.workload import Feeder
from prony_frontends.base import Note, Reason, Refused
from prony_frontends.jmeter.jmx import JmxNode

LONGEST_S = 7 * 24 * 3600.0
"""Duration in s of a group ended by Ctrl-C only, and of a schedule."""
RESERVED = frozenset({"sequence", "uuid", "random", "time", "user", "iteration", "next"})
"""Names reserved by the engine."""
WHOLE = re.compile(r"[+-]?\d+")


@dataclass(frozen=True, slots=True)
class TextPart:
    """A text, or a placeholder of the engine (without its brackets)."""

    text: str
    dynamic: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """A translated value of the plan."""

    parts: tuple[TextPart, ...] = ()

    @classmethod
    def of(cls, text: str) -> Text:
        """A constant."""
        return cls((TextPart(text),) if text else ())

    @classmethod
    def placeholder(cls, name: str) -> Text:
        """A placeholder with this name."""
        return cls((TextPart(name, True),))

    @property
    def constant(self) -> str | None:
        """The text, if it is constant."""
        return None if any(part.dynamic for part in self.parts) else "".join(part.text for part in self.parts)

    def around(self, place: int) -> tuple[str, str]:
        """The text before and after the part at this place."""
        before, after = self.parts[:place], self.parts[place + 1 :]
        return "".join(part.text for part in before), "".join(part.text for part in after)

    @property
    def joined(self) -> Text:
        """The text with adjacent constants merged."""
        merged: list[TextPart] = []
        for part in self.parts:
            if merged and not part.dynamic and not merged[-1].dynamic:
                merged[-1] = TextPart(merged[-1].text + part.text)
            else:
                merged.append(part)
        return Text(tuple(merged))

    @property
    def engine(self) -> str:
        """The text in the engine's syntax."""
        return "".join(
            "${" + part.text + "}" if part.dynamic else part.text.replace("${", "$${") for part in self.parts
        )

    def encoded(self, encoding: str = "UTF-8", decode_first: bool = False) -> Text:
        """Encoded as by Java's URLEncoder; `decode_first` for text that is, or may be, encoded."""

        def encoded_part(part: TextPart) -> TextPart:
            if part.dynamic:
                return TextPart(f"{part.text} | form", True)
            text = unquote_plus(part.text, encoding) if decode_first else part.text
            return TextPart(
                quote_plus(text, safe="*", encoding=encoding, errors="replace").replace("~", "%7E")
            )

        return Text(tuple(map(encoded_part, self.parts)))

    def __add__(self, other: Text) -> Text:
        return Text(self.parts + other.parts)

    def join(self, texts: Iterable[Text]) -> Text:
        """The texts joined with this one as a separator."""
        joined = Text()
        for number, text in enumerate(texts):
            joined = joined + self + text if number else text
        return joined


@dataclass(slots=True)
class KnownValues:
    """Variables and properties known at this place in the plan."""

    properties: dict[str, str]
    read_properties: set[str] = field(default_factory=set)
    """Properties read so far."""
    users: int | None = None
    variables: dict[str, Text] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    """Variables that change during the run -> names in the engine."""
    initial: dict[str, str] = field(default_factory=dict)
    """These names -> initial values of a user."""
    several: dict[str, str] = field(default_factory=dict)
    """Variables with all matches of an extractor -> names in the engine."""
    listed: set[str] = field(default_factory=set)
    """Variables over whose matches a controller loops."""
    grouped: set[tuple[str, int]] = field(default_factory=set)
    """References `${name_g1}`: variable and group."""
    counters: int = 0
    used: set[str] = field(default_factory=set)
    """Names in the engine that are referred to."""
    draws: random.Random = field(default_factory=random.Random)
    folder: Path = Path()
    """The plan's folder."""
    csv_dir: Path | None = None
    """Fallback folder of data files."""
    end_s: float | None = None
    """Duration of groups without an end."""
    above: Sequence[JmxNode] = ()
    """Elements outside of thread groups."""
    undefined: dict[str, JmxNode] = field(default_factory=dict)
    """Undefined variables -> first occurrence; sent as written."""
    feeders: dict[str, Feeder] = field(default_factory=dict)
    opened: dict[str, str] = field(default_factory=dict)
    """File or alias of __CSVRead, or file and sharing of a data set -> feeder of its rows."""
    rows_here: set[str] = field(default_factory=set)
    """Feeders of data sets of the current group."""
    group: str | None = None
    """Name of the current thread group."""
    lasts_s: float | None = None
    """Duration of that group in s, if limited by time."""
    schedule: Pace | None = None
    """Schedule of a precise throughput timer of that group, once drawn."""
    sampler: str | None = None
    """Name of the current sampler."""
    stores: list[Entry] | None = None
    """Assignments by its functions, in order; None outside of a sampler."""
    faults: dict[int, str] = field(default_factory=dict)
    """Number of a sampler that always fails without sending -> reason, in JMeter's words."""
    asserted_within: set[int] = field(default_factory=set)
    """Numbers of samplers whose assertions include sub-samples."""
    unsent: UsageError | None = None
    """The first of these failures, for a plan that sends nothing at all."""
    referred: set[str] = field(default_factory=set)
    """Variables read while constant."""
    sets_up: bool = False
    """Whether the current group is a setUp group."""
    given: dict[str, str] = field(default_factory=dict)
    """Properties that setUp groups set to values of the run -> names in the engine."""
    otherwise: dict[tuple[str, str], str] = field(default_factory=dict)
    """Name of such a property and the default where it is read -> name in the engine."""
    clean: set[str] = field(default_factory=set)
    """Names in the engine whose values are numbers only."""

    def scratch_copy(self) -> KnownValues:
        """A copy for reading a text without side effects, with no undefined variables yet."""
        values = {attribute.name: getattr(self, attribute.name) for attribute in fields(self)}
        copies = {name: copy(value) for name, value in values.items() if not isinstance(value, Exception)}
        return replace(self, **copies | {"undefined": {}})

    def unique(self, kind: str) -> str:
        """A unique name for a counter of the engine."""
        self.counters += 1
        return f"{kind}{self.counters}"

    def own_value(self, kind: str, initial: str = "") -> str:
        """Declares a value of the user that the translation needs; returns its name in the engine."""
        name = self.unique(kind)
        self.initial[name] = initial
        self.used.add(name)
        return name

    def match_of(self, variable: str) -> Text | None:
        """`${name_2}` or `${name_matchNr}` of an extractor with all matches."""
        base, _, which = variable.rpartition("_")
        if base not in self.several or not re.fullmatch(r"[1-9]\d{0,4}|matchNr", which):
            return None
        name = f"{self.several[base]}_{which}"
        self.initial[name] = Text.of("${" + variable + "}").engine
        self.variables[variable] = Text.placeholder(name)
        return self.variables[variable]

    def keep_reference(self, variable: str) -> None:
        """Without such a match, `${name_2}` is sent as it is written."""
        base, _, which = variable.rpartition("_")
        if self.stores is None or not which.isdigit():
            return
        count = f"{self.several[base]}_matchNr"
        self.used.add(count)
        literal = Block(set={f"{self.several[base]}_{which}": Text.of("${" + variable + "}").engine})
        fewer = Condition(left=f"${{{count}}}", op="<", right=which)
        self.stores.append(Block(condition=fewer, steps=(literal,)))

    def note(self, code: str, text: str, node: JmxNode | None = None) -> None:
        """Adds a note, once."""
        note = Note(code, text, "" if node is None else node.element)
        if note not in self.notes:
            self.notes.append(note)

    def changing(self, variable: str, where: JmxNode) -> str:
        """Declares a variable that changes during the run; returns its name in the engine. Until set it has
        its value in the plan or, as in JMeter, its reference as text. Raises UsageError.
        """
        if variable not in self.values:
            name = re.sub(r"[^\w-]", "_", variable, flags=re.ASCII)
            if not variable or not re.match("[A-Za-z_]", name):
                raise where.wrong(f"the name of a variable, found '{variable}'")
            while name in RESERVED or name in self.values.values():
                name += "_"
            current = self.variables.get(variable)
            self.values[variable] = name
            self.initial[name] = Text.of("${" + variable + "}").engine if current is None else current.engine
            self.variables[variable] = Text.placeholder(name)
        return self.values[variable]

    def text(self, raw: str, where: JmxNode, once: bool = False) -> Text:
        """`raw` translated; `once`: evaluate functions now, as for test plan variables."""
        return _Reader(raw, where, self, once).text().joined

    def constant(self, raw: str, where: JmxNode) -> str:
        """The same for a value that must be constant. Raises Refused otherwise."""
        text = self.text(raw, where)
        constant = text.constant
        if constant is None:
            raise where.refused(
                f"'{raw}' varies from request to request", "write a constant or ${__P(name)}", "varies"
            )
        return constant

    def label(self, node: JmxNode) -> str:
        """The element's name, unresolved where it changes during the run."""
        constant = self.label_text(node).constant
        return node.label if constant is None else constant

    def label_text(self, node: JmxNode) -> Text:
        """The element's name, for its rows in a log."""
        held, self.stores = self.stores, None  # a name stores nothing
        try:
            text = self.text(node.label, node)
        except Refused:
            self.note("changing_name", "its name changes during the run and is shown unresolved", node)
            return Text.of(node.label)
        finally:
            self.stores = held
        if text.constant is None:
            self.note("changing_names", "only -l shows names with changing values resolved")
        return text

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
            value = float(text)
        except ValueError:
            value = float("nan")
        if not abs(value) < 1e15:
            raise where.wrong(f"{name} to be a number, found '{text}'")
        return value


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
                reference = self._reference()
                if plain:
                    parts.append(TextPart(plain))
                    plain = ""
                parts.extend(reference.parts)
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
        arguments: list[Text] = []
        while True:
            self.at += 1
            arguments.append(self._until(",)"))
            if self.at >= len(self.raw):
                raise self._wrong("')' at the end of a function's arguments")
            if self.raw[self.at] == ")":
                self.at += 1
                return [] if len(arguments) == 1 and not arguments[0].parts else arguments

    def _wrong(self, expected: str) -> Exception:
        return self.where.wrong(f"{expected}, found '{self.raw}'")

    def _variable(self, name: str) -> Text:
        text = self.values.variables.get(name) or self.values.match_of(name)
        base, _, which = name.rpartition("_")
        if text is None and base in self.values.values and re.fullmatch(r"\d+|matchNr|g", which):
            raise self.where.refused(f"${{{name}}} of a single match", "extract all matches (-1)", "part")
        if text is not None and base in self.values.several and self.values.stores is not None:
            self.values.keep_reference(name)
        if text is not None:
            if name not in self.values.values:
                self.values.referred.add(name)
            self.values.used.update(part.text for part in text.parts if part.dynamic)
            return text
        self.values.referred.add(name)
        self.values.undefined.setdefault(name, self.where)
        return Text.of("${" + name + "}")

    def _call(self, name: str, arguments: list[Text]) -> Text:
        function = CALLS.get(name)
        call = Call(name, arguments, self.where, self.values, self.once)
        if function is None:
            raise call.refused("Prony does not have this function", f"use one of {', '.join(CALLS)}")
        return function(call)


@dataclass(frozen=True, slots=True)
class Call:
    """A function call in the plan."""

    name: str
    arguments: list[Text]
    where: JmxNode
    values: KnownValues
    once: bool
    """Evaluate now, before the run."""

    def refused(self, found: str, instead: str, code: Reason = "unsupported") -> Refused:
        """The error for an unsupported use of this function."""
        element = f"the function {self.name} in {self.where.element}"
        return Refused(element, self.where.file, self.where.line, found, instead, code)

    def texts(self, least: int, most: int) -> list[Text]:
        """Its arguments. Raises UsageError for a wrong number."""
        if not least <= len(self.arguments) <= most:
            raise self.where.wrong(f"{least} to {most} arguments of {self.name}, found {len(self.arguments)}")
        return [argument.joined for argument in self.arguments]

    def constants(self, least: int, most: int) -> list[str]:
        """The same as constants. Raises Refused for changing arguments."""
        return [self.constant(argument) for argument in self.texts(least, most)]

    def constant(self, argument: Text) -> str:
        """A constant argument. Raises Refused for a changing one."""
        constant = argument.constant
        if constant is None:
            raise self.refused("an argument differs from request to request", "write a constant", "varies")
        return constant

    def each(self, text: Text, plain: Callable[[str], str], filtered: str) -> Text:
        """`plain` applied to constant parts, and the engine's filter `filtered` to the others."""
        return Text(
            tuple(
                TextPart(f"{part.text} | {filtered}", True) if part.dynamic else TextPart(plain(part.text))
                for part in text.parts
            )
        )

    def single_placeholder(self, text: Text) -> Text:
        """A changing text as a single placeholder. Raises Refused where impossible."""
        if len(text.parts) == 1:
            return text
        if self.once or self.values.stores is None:
            raise self.refused(
                "a text of several parts, outside of a sampler", "define it as a variable", "outside"
            )
        place = self.values.changing(self.values.unique("text"), self.where)
        self.values.stores.append(Block(set={place: text.engine}))
        self.values.used.add(place)
        return Text.placeholder(place)

    def stored(self, found: Text, names: Sequence[str]) -> Text:
        """The value, also stored in the named variable, if any."""
        name = names[0].strip() if names else ""
        if not name:
            return found
        if self.once or self.values.stores is None:
            raise self.refused(
                f"it stores the value in '{name}' outside of a sampler",
                "call it in the path, a parameter or the body of a sampler, or define the variable",
                "outside",
            )
        current = self.values.variables.get(name)
        if name not in self.values.values:
            if name in self.values.referred:
                raise self.refused(
                    f"it stores into '{name}', which is used before", "use another name", "used_before"
                )
            if current is not None and current.constant is None:
                raise self.refused(
                    f"it stores into '{name}', a data set's column", "use another name", "conflict"
                )
        place = self.values.changing(name, self.where)
        self.values.clean.discard(place)
        self.values.stores.append(Block(set={place: found.engine}))
        self.values.used.add(place)
        return Text.placeholder(place)


Function = Callable[[Call], Text]
CALLS: dict[str, Function] = {}
"""Filled by `prony_frontends.jmeter.calls`."""
