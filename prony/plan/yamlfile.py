"""YAML files as models, with errors that name file, line and the nearest valid key."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, Tag, ValidationError

from prony.errors import UsageError

M = TypeVar("M", bound=BaseModel)


def nearest(word: str, known: Sequence[str]) -> str:
    """`, did you mean 'x'?` with the most similar known word, or empty."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f", did you mean '{close[0]}'?" if close else ""


def read_mapping(path: Path) -> tuple[dict[str, object], dict[tuple[object, ...], int]]:
    """(top-level mapping, key path -> 1-based line). Raises UsageError for anything but a YAML mapping."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "it is not UTF-8 text"
        raise UsageError(f"{path}: cannot be read: {reason}") from fault
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as fault:
        line = fault.problem_mark.line + 1 if fault.problem_mark else 1
        raise UsageError(f"{path}:{line}: this is not valid YAML: {fault.problem}") from fault
    except yaml.YAMLError as fault:
        raise UsageError(f"{path}: this is not valid YAML: {fault}") from fault
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise UsageError(f"{path}: expected keys with values (a YAML mapping), found {_kind(data)}")
    lines: dict[tuple[object, ...], int] = {}
    try:
        _collect_lines(node, (), lines, path)
    except RecursionError as fault:
        raise UsageError(f"{path}: a value refers to itself (an alias within its own anchor)") from fault
    return data, lines


def _kind(data: object) -> str:
    if isinstance(data, dict):
        return "keys that are not words"
    return {type(None): "nothing", list: "a list", str: "a text"}.get(type(data), "a single value")


def _collect_lines(
    node: yaml.Node | None, at: tuple[object, ...], lines: dict[tuple[object, ...], int], path: Path
) -> None:
    """YAML silently keeps the last of two equal keys; here they raise UsageError."""
    if isinstance(node, yaml.MappingNode):
        keys: set[object] = set()
        for key, value in node.value:
            if key.value in keys and isinstance(key.value, str):
                line = key.start_mark.line + 1
                raise UsageError(f"{path}:{line}: the key '{key.value}' is given twice; keep one")
            keys.add(key.value if isinstance(key.value, str) else id(key))
            here = (*at, key.value)
            lines[here] = key.start_mark.line + 1
            _collect_lines(value, here, lines, path)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            here = (*at, index)
            lines[here] = value.start_mark.line + 1
            _collect_lines(value, here, lines, path)


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
    given = repr(error.get("input"))
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{path}:{line}: '{where}' is {given if len(given) < 60 else given[:57] + '…'}: {message}"


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
