"""YAML files as models, with errors that name file, line and the nearest valid key."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, Tag, ValidationError

from prony.errors import UsageError

M = TypeVar("M", bound=BaseModel)


def nearest(word: str, known: Sequence[str]) -> str:
    """`, did you mean 'x'?` with the most similar known word, or empty."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f", did you mean '{close[0]}'?" if close else ""


MOST_BYTES = 4 * 2**20
"""Of a file: longer files take minutes to parse."""
MOST_NODES = 100_000
"""Values with aliases expanded, which is how models read them."""
MOST_DEPTH = 50
LARGEST_WHOLE = 2**64
LONGEST_NUMBER = 400


class _Loader(yaml.SafeLoader):
    """Raises MarkedYAMLError for whatever it cannot read, within bounds of depth and of values."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._above: list[int] = []
        """Number of values before each open one."""
        self._values = 0
        self._held: dict[int, int] = {}
        """Node -> values in it."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        if len(self._above) > MOST_DEPTH:
            raise _fault(f"values are nested more than {MOST_DEPTH} deep", mark)
        alias = self.check_event(yaml.AliasEvent)
        self._above.append(self._values)
        node = super().compose_node(parent, index)
        before = self._above.pop()
        if alias and id(node) not in self._held:
            raise _fault("a value refers to itself (an alias within its own anchor)", mark)
        self._values += self._held[id(node)] if alias else 1
        if self._values > MOST_NODES:
            raise _fault(f"more than {MOST_NODES:,} values, aliases expanded", mark)
        if not alias:
            self._held[id(node)] = self._values - before
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        kind = node.tag.rpartition(":")[2]
        try:
            if kind in ("int", "float", "timestamp") and len(node.value) > LONGEST_NUMBER:
                raise ValueError  # before a quadratic sum of sixtieths
            value = super().construct_object(node, deep)
            if isinstance(value, str):
                value.encode()
        except (ArithmeticError, AttributeError, LookupError, ValueError) as fault:
            kind = {"str": "text", "timestamp": "date"}.get(kind, kind)
            raise _fault(f"{_short(repr(node.value))} is no {kind}", node.start_mark) from fault
        if isinstance(value, int) and abs(value) > LARGEST_WHOLE:
            raise _fault("a number has more than 20 digits", node.start_mark)
        return value


def _fault(problem: str, mark: yaml.Mark | None) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def read_mapping(path: Path) -> tuple[dict[str, object], dict[tuple[object, ...], int]]:
    """(top-level mapping, key path -> 1-based line). Raises UsageError for anything but a YAML mapping."""
    text = _text(path)
    lines: dict[tuple[object, ...], int] = {}
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        _collect_lines(loader, node, (), lines)
        data = None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as fault:
        line = fault.problem_mark.line + 1 if fault.problem_mark else 1
        raise UsageError(f"{path}:{line}: this is not valid YAML: {fault.problem}") from fault
    except (OverflowError, ValueError) as fault:
        raise UsageError(f"{path}:{loader.line + 1}: this is not valid YAML: {fault}") from fault
    except yaml.reader.ReaderError as fault:
        line = text.count("\n", 0, fault.position) + 1
        raise UsageError(
            f"{path}:{line}: this is not valid YAML: it has the character U+{fault.character:04X}"
        ) from fault
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise UsageError(f"{path}: expected keys with values (a YAML mapping), found {_kind(data)}")
    return data, lines


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            read = file.read(MOST_BYTES + 1)
    except OSError as fault:
        raise UsageError(f"{path}: cannot be read: {fault.strerror}") from fault
    if len(read) > MOST_BYTES:
        raise UsageError(f"{path}: cannot be read: it has more than {MOST_BYTES:,} bytes")
    try:
        return read.decode()
    except UnicodeDecodeError as fault:
        line = read.count(b"\n", 0, fault.start) + 1
        raise UsageError(f"{path}:{line}: cannot be read: it is not UTF-8 text") from fault


def _kind(data: object) -> str:
    if isinstance(data, dict):
        return "keys that are not words"
    return {type(None): "nothing", list: "a list", str: "a text"}.get(type(data), "a single value")


def _collect_lines(
    loader: _Loader, node: yaml.Node | None, at: tuple[object, ...], lines: dict[tuple[object, ...], int]
) -> None:
    """YAML silently keeps the last of two equal keys; here they raise MarkedYAMLError."""
    if isinstance(node, yaml.MappingNode):
        keys: set[object] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _fault("a key is a list or a mapping", key.start_mark)
            name = key.value if key.tag.endswith(":merge") else loader.construct_object(key)
            if name in keys:
                raise _fault(f"the key '{key.value}' is given twice; keep one", key.start_mark)
            keys.add(name)
            here = (*at, name)
            lines[here] = key.start_mark.line + 1
            _collect_lines(loader, value, here, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            here = (*at, index)
            lines[here] = value.start_mark.line + 1
            _collect_lines(loader, value, here, lines)


def validate(
    model: type[M], data: dict[str, object], path: Path, lines: dict[tuple[object, ...], int] | None = None
) -> M:
    """The model of `data`. Raises UsageError with file, line, key and expectation."""
    try:
        return model.model_validate(data)
    except ValidationError as fault:
        raise UsageError(
            "\n".join(_explain(error, model, path, lines or {}) for error in _first(fault))
        ) from fault


def _first(fault: ValidationError) -> list[dict[str, object]]:
    """At most five errors, without lists that are too short only because of wrong elements."""
    errors = [dict(error) for error in fault.errors(include_url=False)]
    inner = [error["loc"] for error in errors if error["type"] != "too_short"]
    return [
        error
        for error in errors
        if error["type"] != "too_short" or not any(_below(loc, error["loc"]) for loc in inner)
    ][:5]


def _below(loc: object, above: object) -> bool:
    return isinstance(loc, tuple) and isinstance(above, tuple) and loc[: len(above)] == above != loc


def _explain(
    error: dict[str, object], model: type[BaseModel], path: Path, lines: dict[tuple[object, ...], int]
) -> str:
    loc = error["loc"]
    at = loc if isinstance(loc, tuple) else ()
    place = _in_file(at, lines)
    line = lines.get(place, 1)
    named = (*place, at[-1]) if error["type"] == "missing" else place or at
    where = ".".join(str(part) for part in named) or "the file"
    kind = error["type"]
    if kind == "extra_forbidden":
        valid = _keys_at(model, at[:-1])
        hint = nearest(str(at[-1]), valid) or f"; known here: {', '.join(valid)}"
        return f"{path}:{line}: unknown key '{where}'{hint}"
    if kind == "missing":
        return f"{path}:{line}: the key '{where}' is missing"
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{path}:{line}: '{where}' is {_short(repr(error.get('input')))}: {message}"


def _short(text: str) -> str:
    return text if len(text) < 60 else text[:57] + "…"


def _in_file(at: tuple[object, ...], lines: dict[tuple[object, ...], int]) -> tuple[object, ...]:
    """An error's location as in the file, without list indices of single values and tags of unions."""
    here: tuple[object, ...] = ()
    for part in at:
        if (*here, part) in lines:
            here = (*here, part)
    return here


def _keys_at(model: type[BaseModel], at: tuple[object, ...]) -> list[str]:
    here: list[_Branch] = [(model, None)]
    for part in at:
        tagged = [branch for branch in here if branch[1] == part]
        inside = [
            branch
            for candidate, _ in here
            for name, field in candidate.model_fields.items()
            if part in (name, field.alias)
            for branch in _branches(field.annotation)
        ]
        here = tagged or inside or here
    return sorted(
        {field.alias or name for candidate, _ in here for name, field in candidate.model_fields.items()}
    )


_Branch = tuple[type[BaseModel], str | None]


def _branches(annotation: object, tag: str | None = None) -> Iterator[_Branch]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, tag
        return
    for note in getattr(annotation, "__metadata__", ()):
        tag = note.tag if isinstance(note, Tag) else tag
    for inner in getattr(annotation, "__args__", ()):
        yield from _branches(inner, tag)
