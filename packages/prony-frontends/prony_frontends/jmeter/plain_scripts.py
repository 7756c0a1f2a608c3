"""JSR223 and BeanShell scripts that only set variables, wait and log, as blocks. Nothing is executed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from prony.plan.blocks import Condition
from prony.plan.response import Capture
from prony.plan.step import Block, Entry
from prony.plan.think import Think
from prony_frontends.jmeter import conditions, extractors, last_sample, statements
from prony_frontends.jmeter.calls import set_property
from prony_frontends.jmeter.expression_parser import MARK
from prony_frontends.jmeter.expression_values import Changing, Drawn, Json, Named, Unsupported, Value
from prony_frontends.jmeter.functions import Call, KnownValues, Text, TextPart
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.script_values import HIDDEN, ScriptCall, Source
from prony_frontends.jmeter.scripts import INSTEAD, in_a_file, text_of
from prony_frontends.jmeter.setup_properties import given_property, of_property
from prony_frontends.jmeter.statements import Assignment, Either, Pause, Property, Statement

BEFORE = frozenset({"JSR223PreProcessor", "BeanShellPreProcessor"})
AFTER = frozenset({"JSR223PostProcessor", "BeanShellPostProcessor"})
SAMPLERS = frozenset({"JSR223Sampler", "BeanShellSampler"})
KINDS = BEFORE | AFTER | SAMPLERS
IGNORED = (
    "cacheKey", "filename", "parameters", "script", "scriptLanguage", "script_language", "resetInterpreter",
    "BeanShellSampler.query", "BeanShellSampler.filename", "BeanShellSampler.parameters",
    "BeanShellSampler.resetInterpreter",
)  # fmt: skip


SETS = re.compile(r"\$\{__setProperty\(\s*([\w.-]+)\s*,\s*(?:\$\{([\w.-]+)\}|([\w./:-]+))\s*(?:,\s*)?\)\}")


NAMED = re.compile(
    r"""(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    |\bprops\s*\.\s*get(?:Property)?\s*\(\s*["'](?P<property>[^"'$\\]+)["']\s*\)
    |(?<![\w.])(?P<name>[A-Za-z_]\w*)\b(?!\s*\()(?P<compared>\s*(?:[=!<>]=|[<>.]))?""",
    re.VERBOSE,
)
"""In a condition: a text, a property, a name."""
NULL = "\0"


def _script(node: JmxNode) -> str:
    """Its text; a call of __setProperty, which JMeter replaces by nothing, as a statement."""

    def put(match: re.Match[str]) -> str:
        value = f'vars.get("{match[2]}")' if match[2] else f'"{match[3]}"'
        return f'props.put("{match[1]}", {value})'

    return SETS.sub(put, text_of(node))


def read(node: JmxNode) -> list[Statement]:
    """The script's statements. Raises NotPlain."""
    if statements.language(node) not in statements.LANGUAGES:
        raise Unsupported(f"the language {statements.language(node)}")
    return statements.of(_script(node))


def is_plain(node: JmxNode) -> bool:
    """Whether its statements can be translated."""
    if node.tag not in KINDS or in_a_file(node):
        return False
    try:
        read(node)
    except Unsupported:
        return False
    return True


def declare(top: JmxNode, values: KnownValues) -> None:
    """Declares the variables that scripts set."""
    for node in top.everything():
        if node.tag in KINDS and is_plain(node):
            for statement in statements.every(read(node)):
                if isinstance(statement, Assignment):
                    values.clean.discard(values.changing(statement.variable, node))


@dataclass(slots=True)
class ScriptResult:
    """Effects of scripts."""

    entries: list[Entry] = field(default_factory=list)
    captures: dict[str, Capture] = field(default_factory=dict)
    """Captures from the previous response."""


def done(nodes: Sequence[JmxNode], values: KnownValues) -> list[Entry]:
    """Effects of scripts without a response. Raises Refused."""
    return [entry for node in nodes for entry in _Script(node, values, None).result().entries]


def done_after(processors: Sequence[JmxNode], values: KnownValues) -> ScriptResult:
    """Effects of scripts after a response. `processors`: scripts and extractors, in order."""
    result = ScriptResult()
    for place, node in enumerate(processors):
        if node.tag in AFTER:
            _check_order(
                node,
                [processor for processor in processors[place:] if processor.tag in extractors.EXTRACTORS],
            )
            _Script(node, values, result).result()
    return result


def _check_order(node: JmxNode, later: Sequence[JmxNode]) -> None:
    """Raises Refused for a script that reads a later extractor's variable: here extractors run first."""
    text = text_of(node)
    for extractor in later:
        for name, _ in extractors.names(extractor):
            if name and re.search(rf"\b{re.escape(name)}\b", text):
                raise node.refused(
                    f"its script uses '{name}' before {extractor.element} extracts it",
                    "move the script behind that extractor",
                    "used_before",
                )


class _Script:
    """A script during translation."""

    def __init__(self, node: JmxNode, values: KnownValues, into: ScriptResult | None) -> None:
        self.node, self.values = node, values
        self.found = into or ScriptResult()
        self.names: dict[str, Value] = {}
        self.call: Call = ScriptCall("__groovy", [], node, values, once=False)
        self.groovy = statements.language(node) == "groovy"
        self.response = into is not None
        node.ignore(*IGNORED)

    def result(self) -> ScriptResult:
        """Raises Refused."""
        try:
            statements.check_imports(_script(self.node))
            source = self._source()
            todo = statements.of(source.text)
            for place, statement in enumerate(todo):
                self._do(statement, todo[place + 1 :], source.source)
        except Unsupported as why:
            reason = str(why) or "an unknown value"
            raise self.node.refused(f"Prony runs no scripts, and this one has {reason}", INSTEAD) from why
        self.node.finish()
        return self.found

    def _source(self) -> _Read:
        """The script with the plan's variables inserted, as JMeter does before running it."""
        variables = self.values.variables
        raw = _script(self.node)
        if self.groovy:  # unknown references stay for Groovy itself
            raw = HIDDEN.sub(lambda match: match[0] if match[1] in variables else f"\1{match[1]}\1", raw)
        parts = self.values.text(raw, self.node).parts
        marks = [part for part in parts if part.dynamic]
        cached = self.groovy and self.node.value("cacheKey", "true").strip().lower() not in ("", "false")
        numbers = iter(range(len(marks)))
        text = "".join(f"\0{next(numbers)}\0" if part.dynamic else part.text for part in parts)
        taken = self._taken if self.response else None
        return _Read(text, Source(self.call, self.groovy, tuple(marks), cached, taken))

    def _do(self, one: Statement, later: Sequence[Statement], source: Source) -> None:
        match one:
            case Assignment(variable=variable, value=raw):
                self._put(variable, source.value(raw, self.names), source)
            case Property(name=name, value=raw):
                value = source.value(raw, self.names)
                if not isinstance(value, str | Text):
                    raise Unsupported(f"props.put('{name}', …) of a non-text")
                text = value if isinstance(value, Text) else Text.of(value)
                if text.constant is None and self.values.sets_up:
                    self._add(Block(set={given_property(name, self.values, self.node): text.engine}))
                    return
                call = ScriptCall("__setProperty", [Text.of(name), text], self.node, self.values, once=False)
                set_property(call)
            case Pause(value=raw):
                time_ms = source.value(raw, self.names)
                if isinstance(time_ms, Drawn) and not time_ms.real and time_ms.low >= 0:
                    low, high = float(time_ms.low), float(time_ms.high)
                    self._add(Block(pause=Think(kind="uniform", min_ms=low, max_ms=high)))
                elif isinstance(time_ms, int) and not isinstance(time_ms, bool) and time_ms >= 0:
                    self._add(Block(pause=Think(kind="constant", ms=float(time_ms))))
                else:
                    raise Unsupported(f"sleep({raw.strip()})")
            case Either(condition=condition, then=then, otherwise=otherwise):
                self._either(condition, then, otherwise, source)
            case statements.Named(name=name, value=raw):
                self.names[name] = self._kept(name, source.value(raw, self.names), later)

    def _either(
        self, condition: str, then: Sequence[Statement], otherwise: Sequence[Statement], source: Source
    ) -> None:
        """Statements on a condition of variables; a name of the script keeps its value in them."""
        if MARK.search(condition):
            raise Unsupported(f"a condition other than of variables, '{condition.strip()}'; use vars.get(…)")
        read = last_sample.read(condition, self.response)
        held = conditions.script(NAMED.sub(self._of_name, read), self.node, self.values)
        if isinstance(held, bool):
            for place, one in enumerate(branch := then if held else otherwise):
                self._do(one, branch[place + 1 :], source)
            return
        entries, captured = self.found.entries, set(self.found.captures)
        branches: list[list[Entry]] = []
        for branch in (then, otherwise):
            self.found.entries = []
            for place, one in enumerate(branch):
                if isinstance(one, statements.Named):
                    raise Unsupported(f"'{one.name}' set on a condition")
                self._do(one, branch[place + 1 :], source)
            branches.append(self.found.entries)
        self.found.entries = entries
        if set(self.found.captures) != captured:
            raise Unsupported("a value of the response on a condition")
        steps, other = branches
        if steps:
            self._add(Block.model_validate({"if": held, "steps": tuple(steps), "else": tuple(other)}))
        elif other:
            self._add(Block(condition=Condition(negated=held), steps=tuple(other)))

    def _of_name(self, found: re.Match[str]) -> str:
        """Of a condition: a name of the script or a property as a constant or a variable."""
        value: Value
        if found["property"] is not None:
            text = of_property(found["property"], NULL, self.values, self.node)
            if text.constant is None:
                raise Unsupported(f"a condition on the property '{found['property']}', which setUp sets")
            value = None if text.constant == NULL else text.constant
        elif found["name"] is None or found["name"] not in self.names:
            return found[0]
        else:
            value = self.names[found["name"]]
            if found["compared"] is None:
                raise Unsupported(f"a condition on '{found['name']}' alone; compare it")
        after = found["compared"] or ""
        variables = {place: variable for variable, place in self.values.values.items()}
        match value:
            case None:
                return f"null{after}"
            case str() if "\\" not in value and '"' not in value and "$" not in value:
                return f'"{value}"{after}'
            case int() if not isinstance(value, bool):
                return f"{value}{after}"
            case Text(parts=(TextPart(text=place, dynamic=True),)) if place in variables:
                return f'vars.get("{variables[place]}"){after}'
        raise Unsupported(f"a condition on '{found['name'] or found['property']}'; use vars.get(…)")

    def _put(self, variable: str, value: Value, source: Source) -> None:
        place = self.values.changing(variable, self.node)
        if self.values.variables[variable] != Text.placeholder(place):
            raise Unsupported(f"a value for '{variable}', which a data set sets")
        self.values.used.add(place)
        if isinstance(value, Json):
            self._capture(place, value.pointer, {"optional": True})
            self.values.note(
                "json_reader",
                "it reads the response like a JSON Extractor; for a missing value the variable is unchanged",
                self.node,
            )
            return
        if not isinstance(value, str | Text):
            raise Unsupported(f"vars.put('{variable}', …) of a non-text, which fails in JMeter, too")
        self._add(Block(set={place: source.text(value).engine}))

    def _kept(self, name: str, value: Value, later: Sequence[Statement]) -> Value:
        """A value used several times is drawn once, and a value that a variable may change is stored."""
        text: Text
        match value:
            case Changing(part=part):
                text = (
                    Text((part,))
                    if not value.plus
                    else Text((TextPart(f"{part.text} | plus {value.plus}", True),))
                )
            case Drawn(real=False):
                text = Text.placeholder(f"random int {value.low} {value.high}")
            case Text() if value.constant is None:
                text = value
            case Named(name="a UUID"):
                text = Text.placeholder("uuid")
            case _:
                return value
        uses = sum(len(re.findall(rf"\b{re.escape(name)}\b", statement.value)) for statement in later)
        own = set(self.values.values.values())
        if uses <= 1 and not any(part.dynamic and part.text.split(" ")[0] in own for part in text.parts):
            return value
        place = self._place()
        self._add(Block(set={place: text.engine}))
        kept = TextPart(place, True)
        return Changing(kept) if isinstance(value, Changing | Drawn) else Text((kept,))

    def _taken(self, pointer: str) -> Text:
        """A place in the response as a part of a text."""
        place = self._place()
        self._capture(place, pointer, {"default": "null"})
        return Text.placeholder(place)

    def _capture(self, place: str, pointer: str, otherwise: dict[str, Any]) -> None:
        if any(place in names for names in self._sets()):
            raise Unsupported("a variable that is both set and extracted")
        self.found.captures[place] = Capture.model_validate({"json": pointer, "always": True, **otherwise})

    def _sets(self) -> Iterator[dict[str, str]]:
        return (entry.set for entry in self.found.entries if isinstance(entry, Block) and entry.set)

    def _place(self) -> str:
        place = self.values.changing(self.values.unique("text"), self.node)
        self.values.used.add(place)
        return place

    def _add(self, entry: Entry) -> None:
        self.found.entries.append(entry)


@dataclass(frozen=True, slots=True)
class _Read:
    text: str
    source: Source
