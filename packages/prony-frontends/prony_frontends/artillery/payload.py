"""config.payload into feeders."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from prony.plan.workload import Feeder
from prony_frontends.artillery import csv_rows
from prony_frontends.artillery.js_numbers import cast, number_text
from prony_frontends.artillery.script import ScriptNode
from prony_frontends.artillery.templates import FeederColumn, NameScope, Rows, constant, json_value
from prony_frontends.base import Note

KEYS = frozenset({
    "path", "fields", "order", "skipHeader", "skipEmptyLines", "delimiter", "cast", "name", "loadAll",
    "options",
})  # fmt: skip
NAME = re.compile(r"[^\s|}\ufeff]+")
"""A column of a file that the engine reads itself."""
ODD = re.compile(r"[^\x00-\xff]|%(?![0-9A-Fa-f]{2})")
MOST_VALUES = 1_000_000
"""Limit on values that become part of the plan, because they are sent otherwise than the file has them."""


@dataclass(frozen=True, slots=True)
class Payload:
    """Feeders, and their columns by name in the script."""

    feeders: dict[str, Feeder]
    columns: dict[str, FeederColumn]
    notes: tuple[Note, ...] = ()
    rows: dict[str, Rows] = field(default_factory=dict)
    """Whole files, by name in the script."""


NO_PAYLOAD = Payload({}, {})


def payload(node: ScriptNode | None, given: str | None, folder: Path, scope: NameScope) -> Payload:
    """Feeders for the CSV files; `given` is --payload. Raises Refused and UsageError."""
    if node is None:
        return NO_PAYLOAD
    single = isinstance(node.value, dict)
    feeders: dict[str, Feeder] = {}
    columns: dict[str, FeederColumn] = {}
    notes: list[Note] = []
    whole: dict[str, Rows] = {}
    for index, entry in enumerate((node,) if single else node.elements()):
        notes += entry.unread("the key of a payload", KEYS)
        loads_all = entry.get("loadAll") is not None and entry.children["loadAll"].value is True
        if (loads_all and entry.get("name") is None) or (entry.get("fields") is None and not loads_all):
            lacks = "loadAll without a name" if loads_all else "a payload without fields"
            notes.append(entry.note("no_effect", f"{lacks} has no effect and is left out"))
            continue
        name = f"payload{index + 1}"
        path = entry.get("path")
        where = given if given is not None and single else None
        if where is None:
            if path is None:
                raise entry.wrong("a path (or --payload FILE)")
            where = str(folder / str(constant(path, scope)))
        if loads_all:
            whole[entry.children["name"].text("a name")] = _whole(entry, Path(where))
            continue
        feeders[name], own_columns = _one(entry, name, Path(where))
        columns.update(own_columns)
    return Payload(feeders, columns, tuple(notes), whole)


def _whole(node: ScriptNode, file: Path) -> Rows:
    """All rows for every user, as mappings of the fields, else as lists."""
    _settings(node)
    if node.get("order") is not None:
        raise node.children["order"].refused("loadAll with an order", "use only one", "conflict")
    values = [[_value(text, node) for text in row] for row in _read(file, node)]
    fields = node.get("fields")
    if fields is None or not fields.elements():
        return Rows(values)
    names = [str(name.value) for name in fields.elements()]
    return Rows(dict(zip(names, row, strict=False)) for row in values)


def _settings(node: ScriptNode) -> None:
    child = node.get("options")
    if child is not None and child.value is not False:
        raise child.refused("payload 'options'", "name the columns in fields; each user has one row")


def _delimiter(node: ScriptNode) -> str:
    delimiter = node.get("delimiter")
    mark = "," if delimiter is None else str(delimiter.value)
    if delimiter is not None and (len(mark) != 1 or mark in '"\r\n'):
        raise delimiter.refused(f"the delimiter '{mark}'", "separate columns by one character")
    return mark


def _one(node: ScriptNode, name: str, file: Path) -> tuple[Feeder, dict[str, FeederColumn]]:
    _settings(node)
    mark = _delimiter(node)
    fields = node.get("fields")
    if fields is None:
        raise node.wrong("fields, the names of the columns")
    names = [str(field.value) for field in fields.elements()]
    order = node.get("order")
    kind = "random" if order is None else order.value
    if kind not in ("random", "sequence"):
        raise (order or node).wrong("the order random or sequence")
    rows = _read(file, node)
    if len(rows[0]) < len(names):
        raise fields.wrong(f"at most {len(rows[0])} fields, as many as {file.name} has columns")
    order_of: Literal["sequence", "random"] = "sequence" if kind == "sequence" else "random"
    at_end: Literal["recycle"] | None = "recycle" if kind == "sequence" else None
    written = [_written([row[place] for row in rows], node) for place in range(len(names))]
    titles = [f"column{place + 1}" for place in range(len(rows[0]))]
    source: dict[str, object]
    if mark.isascii() and not any(column.changed for column in written) and _is_plain(file, node):
        source = {"file": str(file.absolute()), "columns": tuple(titles), "delimiter": mark}
        if (head := _head(node, file, mark)) is not None:
            titles, source["columns"] = head, ()
    else:
        if len(rows) * len(names) > MOST_VALUES:
            raise node.refused(
                f"{file.name} with {len(rows) * len(names):,} values, of which Artillery sends some otherwise"
                " than the file has them (007 as 7)",
                f"write numbers plainly, add 'cast: false', or use at most {MOST_VALUES:,} values",
            )
        titles = titles[: len(names)]
        source = {"rows": tuple(zip(*(column.texts for column in written), strict=True)), "columns": titles}
    feeder_columns = {
        label: FeederColumn(
            f"{name}.{title}", column.numeric, column.as_json, any(map(ODD.search, column.texts))
        )
        for label, title, column in zip(names, titles, written, strict=False)
    }
    return Feeder.model_validate({"order": order_of, "at_end": at_end, **source}), feeder_columns


@dataclass(frozen=True, slots=True)
class _Column:
    """The values of a column as they are sent."""

    texts: Sequence[str]
    """JSON where numbers and texts are mixed."""
    numeric: bool = False
    as_json: bool = False
    changed: bool = False
    """Whether they differ from the file's."""


def _written(values: Sequence[str], node: ScriptNode) -> _Column:
    """Each value is cast by itself, as by csv-parse."""
    casted = [_value(text, node) for text in values]
    numbers = sum(not isinstance(value, str) for value in casted)
    if 0 < numbers < len(values):
        return _Column([json_value(value) for value in casted], as_json=True, changed=True)
    texts = [value if isinstance(value, str) else number_text(value) for value in casted]
    return _Column(texts, numeric=numbers > 0, changed=texts != list(values))


def _value(text: str, node: ScriptNode) -> Any:
    """A number, or the text."""
    casts = node.get("cast")
    if casts is not None and casts.value is False:
        return text
    value = cast(text)
    if value is None:
        return text
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _skips(node: ScriptNode) -> bool:
    header = node.get("skipHeader")
    return header is not None and header.value is True


def _head(node: ScriptNode, file: Path, mark: str) -> list[str] | None:
    """The names of the columns where the first line has them."""
    return _text(file, node).splitlines()[0].split(mark) if _skips(node) else None


def _is_plain(file: Path, node: ScriptNode) -> bool:
    """Whether the engine reads the same rows of the file."""
    text = _text(file, node)
    if text.startswith("\ufeff") or '"' in text or "\r" in text.replace("\r\n", ""):
        return False
    if "\n\n" in text.replace("\r", "") or text.startswith(("\n", "\r")):
        return False
    if not _skips(node):
        return True
    names, rows = _head(node, file, _delimiter(node)) or [], _read(file, node)
    return len(names) == len(set(names)) == len(rows[0]) and all(map(NAME.fullmatch, names))


def _text(file: Path, node: ScriptNode) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except (OSError, ValueError) as fault:  # ValueError: not UTF-8, or an invalid file name
        reason = fault.strerror if isinstance(fault, OSError) else str(fault)
        raise node.wrong(f"a CSV file that can be read; {file}: {reason}") from fault


def _read(file: Path, node: ScriptNode) -> list[list[str]]:
    """The rows after the header, if there is one."""
    skips_empty = node.children.get("skipEmptyLines")
    try:
        rows = csv_rows.rows(
            _text(file, node),
            _delimiter(node),
            skip_header=_skips(node),
            skip_empty=skips_empty is None or skips_empty.value is not False,
        )
    except csv_rows.BadCsv as fault:
        raise node.wrong(f"a CSV file that Artillery can read; {file}: {fault}") from fault
    if not rows:
        raise node.wrong(f"at least one row in {file}")
    return rows
