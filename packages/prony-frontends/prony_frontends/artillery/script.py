"""An Artillery script as plain values with file and line."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from prony.errors import UsageError
from prony_frontends.artillery.js_numbers import number_text
from prony_frontends.base import Note, Reason, Refused

Key = str | int
MOST_NODES = 200_000
"""Limit on values, aliases expanded."""


class _TooLarge(Exception):
    """The script has too many values."""


class _Loader(yaml.SafeLoader):
    """YAML as Artillery's parser reads it: `yes` and `on` stay texts, 1e3 is a number, tabs separate,
    duplicate keys are errors.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._left = MOST_NODES

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Raises _TooLarge early, before minutes of parsing."""
        self._left -= 1
        if self._left < 0:
            raise _TooLarge
        return super().compose_node(parent, index)

    def scan_to_next_token(self) -> None:
        """Skips spaces, comments and tabs; a tab that indents a block line stays an error."""
        super().scan_to_next_token()
        while self.peek() == "\t":
            line = self.buffer[self.buffer.rfind("\n", 0, self.pointer) + 1 : self.pointer]
            length = 1
            while self.peek(length) in (" ", "\t"):
                length += 1
            if not (self.flow_level or line.strip() or self.peek(length) in "\0\r\n#"):
                return
            self.forward(length)
            super().scan_to_next_token()

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Raises ComposerError for a duplicate key."""
        node = super().compose_mapping_node(anchor)
        seen = set[str]()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    problem = f"the key '{key.value}' is a duplicate, which Artillery does not accept"
                    raise yaml.composer.ComposerError(None, None, problem, key.start_mark)
                seen.add(key.value)
        return node


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile("^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


class Date(str):
    """An unquoted date, as JSON.stringify writes it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ScriptNode:
    """A value of the script with its position."""

    value: Any
    file: str
    line: int | None
    children: Mapping[Key, ScriptNode]
    """By key for a mapping, by index for a list; empty for a plain value."""

    def get(self, key: Key) -> ScriptNode | None:
        """The value of a key; None when missing or null."""
        child = self.children.get(key)
        return None if child is None or child.value is None else child

    def items(self) -> Iterator[tuple[str, ScriptNode]]:
        """Keys and values of a mapping, in order. Raises UsageError for other values."""
        if not isinstance(self.value, dict):
            raise self.wrong("keys with values")
        for key, child in self.children.items():
            yield str(key), child

    def elements(self) -> list[ScriptNode]:
        """Elements of a list. Raises UsageError for other values."""
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        return list(self.children.values())

    def only(self, what: str, known: Mapping[str, str] | frozenset[str], instead: str) -> None:
        """Raises Refused for the first unknown key (`instead` may be by key)."""
        for key, child in self.items():
            if key not in known:
                raise child.refused(f"{what} '{key}'", instead)

    def unread(self, what: str, known: Mapping[str, Any] | frozenset[str]) -> Iterator[Note]:
        """A note for each unknown key, which Artillery ignores."""
        for key, child in self.items():
            if key not in known:
                yield child.note("unknown_key", f"{what} '{key}' is left out, as in Artillery")

    def note(self, code: str, text: str) -> Note:
        """A note about this value."""
        return Note(code, text, self.place)

    def refused(self, element: str, instead: str, code: Reason = "unsupported") -> Refused:
        """The error for an unsupported value."""
        return Refused(element, self.file, self.line, self.shown, instead, code)

    def wrong(self, expected: str) -> UsageError:
        """The error for an invalid value."""
        return UsageError(f"{self.place}: found {self.shown}; expected {expected}")

    @property
    def place(self) -> str:
        """FILE:LINE."""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    @property
    def shown(self) -> str:
        """The value, abbreviated."""
        text = "nothing" if self.value is None else repr(self.value).replace("\n", " ")
        return text if len(text) <= 60 else text[:59] + "…"

    def text(self, expected: str = "a text") -> str:
        """The value as a text. Raises UsageError for other values."""
        if not isinstance(self.value, str):
            raise self.wrong(expected)
        return self.value

    def number(self, expected: str, *, least: float = 0.0) -> float:
        """The value as a number, also from a text. Raises UsageError for other values."""
        value = self.value
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                raise self.wrong(expected) from None
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < 1e12:
            raise self.wrong(expected)
        return float(value)


class UserFails(UsageError):
    """Artillery accepts this script, and every user fails here."""

    def __init__(self, node: ScriptNode, why: str, error: str) -> None:
        """`why`: a clause; `error`: the name under which it is counted."""
        super().__init__(f"{node.place}: {why}: found {node.shown}")
        self.node, self.why, self.error = node, why, error

    @property
    def note(self) -> Note:
        """A note about the failure."""
        text = f"{self.why}: Artillery's users fail here, and so do these (errors.{self.error})"
        return self.node.note("user_fails", text)


def of(value: Any, file: str, line: int | None) -> ScriptNode:
    """A node of plain values with one common position."""
    children: dict[Key, ScriptNode] = {}
    if isinstance(value, dict):
        children = {str(key): of(inner, file, line) for key, inner in value.items()}
    elif isinstance(value, list):
        children = {index: of(inner, file, line) for index, inner in enumerate(value)}
    return ScriptNode(value, file, line, children)


def read(path: Path) -> ScriptNode:
    """Reads a YAML or JSON script. Raises UsageError with file and line."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "it is not UTF-8 text"
        raise UsageError(f"{path}: cannot be read: {reason}; name an Artillery script") from fault
    return parse(text, str(path))


def parse(text: str, file: str) -> ScriptNode:
    """Like `read`, from a text."""
    loader = None
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        root_node = None if root is None else _build(loader, root, file, _Budget())
    except yaml.MarkedYAMLError as fault:
        line = fault.problem_mark.line + 1 if fault.problem_mark else 1
        what = "" if isinstance(fault, yaml.constructor.ConstructorError) else "this is not valid YAML: "
        raise UsageError(f"{file}:{line}: {what}{fault.problem}") from fault
    except yaml.reader.ReaderError as fault:
        line = text.count("\n", 0, fault.position) + 1
        raise UsageError(
            f"{file}:{line}: the character U+{fault.character:04X} is invalid in YAML; name an "
            "Artillery script"
        ) from fault
    except _TooLarge:
        raise UsageError(
            f"{file}: more than {MOST_NODES:,} values after alias expansion; put data "
            "into a CSV file (config.payload), and repeated requests into a loop"
        ) from None
    except (yaml.YAMLError, ValueError) as fault:
        raise UsageError(f"{file}: this is not valid YAML: {' '.join(str(fault).split())}") from fault
    except RecursionError as fault:
        raise UsageError(f"{file}: this is nested too deeply to be a script") from fault
    finally:
        if loader is not None:
            loader.dispose()
    if root_node is None or not isinstance(root_node.value, dict):
        raise UsageError(f"{file}: expected keys with values (config, scenarios)")
    return root_node


@dataclass(slots=True)
class _Budget:
    left: int = MOST_NODES


def _build(loader: _Loader, node: yaml.Node, file: str, budget: _Budget) -> ScriptNode:
    budget.left -= 1
    if budget.left < 0:
        raise _TooLarge
    line = node.start_mark.line + 1
    children: dict[Key, ScriptNode] = {}
    if isinstance(node, yaml.MappingNode):
        loader.flatten_mapping(node)
        for key, value in node.value:
            built = _build(loader, value, file, budget)
            name = _key(loader, key)
            children[name] = ScriptNode(built.value, file, key.start_mark.line + 1, built.children)
        return ScriptNode({name: child.value for name, child in children.items()}, file, line, children)
    if isinstance(node, yaml.SequenceNode):
        children = {index: _build(loader, value, file, budget) for index, value in enumerate(node.value)}
        return ScriptNode([child.value for child in children.values()], file, line, children)
    value = loader.construct_object(node)
    if isinstance(value, float) and not math.isfinite(value):
        raise yaml.constructor.ConstructorError(
            None, None, f"{node.value} is no finite number", node.start_mark
        )
    if isinstance(value, datetime.date):
        moment = value if isinstance(value, datetime.datetime) else datetime.datetime(*value.timetuple()[:3])
        utc = moment if moment.tzinfo is None else moment.astimezone(datetime.UTC).replace(tzinfo=None)
        value = Date(f"{utc.isoformat(timespec='milliseconds')}Z")
    return ScriptNode(_whole_characters(value), file, line, {})


def _key(loader: _Loader, node: yaml.Node) -> str:
    """As JavaScript writes a value as a key: an unquoted {{ name }} is a mapping."""
    if isinstance(node, yaml.MappingNode):
        return "[object Object]"
    if isinstance(node, yaml.SequenceNode):
        return ",".join(_key(loader, element) for element in node.value)
    value = loader.construct_object(node)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_text(value)
    return str(_whole_characters(node.value))


def _whole_characters(value: Any) -> Any:
    """Joins JSON's surrogate escapes into one character; a lone one becomes U+FFFD, as in JavaScript."""
    if not isinstance(value, str) or value.isascii():
        return value
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def merged(
    under: ScriptNode, over: ScriptNode, *, lists: Literal["replace", "by_index"] = "replace"
) -> ScriptNode:
    """Merges two values; `over` wins. Mappings merge by key; lists are replaced, or merged by element."""
    both_lists = isinstance(under.value, list) and isinstance(over.value, list) and lists == "by_index"
    if not both_lists and not (isinstance(under.value, dict) and isinstance(over.value, dict)):
        return over
    children = dict(under.children)
    for key, child in over.children.items():
        children[key] = merged(children[key], child, lists=lists) if key in children else child
    if both_lists:
        return ScriptNode([child.value for child in children.values()], over.file, over.line, children)
    return with_children(under, children)


def with_value(node: ScriptNode, value: str) -> ScriptNode:
    """The node with another text."""
    return ScriptNode(value, node.file, node.line, {})


def with_children(node: ScriptNode, children: Mapping[Key, ScriptNode]) -> ScriptNode:
    """The mapping with other values."""
    return ScriptNode({key: child.value for key, child in children.items()}, node.file, node.line, children)
