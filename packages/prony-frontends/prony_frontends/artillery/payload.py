"""config.payload into feeders."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from prony.plan.workload import Feeder
from prony_frontends.artillery.script import ScriptNode
from prony_frontends.artillery.templates import FeederColumn, NameScope, Rows, constant

KEYS = frozenset({
    "path", "fields", "order", "skipHeader", "skipEmptyLines", "delimiter", "cast", "name", "loadAll",
    "options",
})  # fmt: skip
NUMBER = re.compile(r"-?(?:0|[1-9]\d*|(?=\.\d))(?:\.\d*)?(?:[eE][+-]?\d+)?", re.ASCII)
"""A number in JavaScript's syntax."""


@dataclass(frozen=True, slots=True)
class Payload:
    """Feeders, and their columns by name in the script."""

    feeders: dict[str, Feeder]
    columns: dict[str, FeederColumn]
    notes: tuple[str, ...] = ()
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
    notes: list[str] = []
    whole: dict[str, Rows] = {}
    for index, entry in enumerate((node,) if single else node.elements()):
        notes += entry.unread("the key of a payload", KEYS)
        loads_all = entry.get("loadAll") is not None and entry.children["loadAll"].value is True
        if (loads_all and entry.get("name") is None) or (entry.get("fields") is None and not loads_all):
            lacks = "loadAll without a name" if loads_all else "a payload without fields"
            notes.append(f"{entry.place}: {lacks} has no effect and is left out")
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
        raise node.children["order"].refused("loadAll with an order", "use only one")
    head, rows = _read(file, node, _delimiter(node))
    skip = node.get("skipHeader")
    every = rows if skip is not None and skip.value is True else [head, *rows]
    cast = node.get("cast")
    casts = cast is None or cast.value is not False
    values = [[_cast(text) if casts else text for text in row] for row in every]
    fields = node.get("fields")
    if fields is None or not fields.elements():
        return Rows(values)
    names = [str(name.value) for name in fields.elements()]
    return Rows(dict(zip(names, row, strict=False)) for row in values)


def _cast(text: str) -> str | int | float:
    if not _is_number(text):
        return text
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


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
    header = node.get("skipHeader")
    head, rows = _read(file, node, mark)
    columns: tuple[str, ...] = ()
    if header is None or header.value is not True:  # its first line is data
        columns = tuple(f"column{place + 1}" for place in range(len(head)))
        rows, head = [head, *rows], list(columns)
    if len(head) < len(names):
        raise fields.wrong(f"at most {len(head)} fields, as many as {file.name} has columns")
    cast = node.get("cast")
    feeder_columns = {}
    for column, (label, title) in enumerate(zip(names, head, strict=False)):
        values = [row[column] for row in rows if len(row) > column]
        numeric = (cast is None or cast.value is not False) and bool(values) and all(map(_is_number, values))
        feeder_columns[label] = FeederColumn(f"{name}.{title}", numeric)
    order_of: Literal["sequence", "random"] = "sequence" if kind == "sequence" else "random"
    at_end: Literal["recycle"] | None = "recycle" if kind == "sequence" else None
    if mark.isascii():
        source: dict[str, object] = {"file": str(file.absolute()), "columns": columns, "delimiter": mark}
    else:  # not a file for a plan
        texts = tuple(tuple((*row, *[""] * len(head))[: len(head)]) for row in rows)
        source = {"rows": texts, "columns": tuple(head)}
    return Feeder.model_validate({"order": order_of, "at_end": at_end, **source}), feeder_columns


def _read(file: Path, node: ScriptNode, delimiter: str) -> tuple[list[str], list[list[str]]]:
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            rows = [row for row in csv.reader(stream, delimiter=delimiter) if row]
    except (OSError, ValueError, csv.Error) as fault:  # ValueError: not UTF-8, or an invalid file name
        reason = fault.strerror if isinstance(fault, OSError) else str(fault)
        raise node.wrong(f"a CSV file that can be read; {file}: {reason}") from fault
    if not rows:
        raise node.wrong(f"at least one row in {file}")
    return rows[0], rows[1:]


def _is_number(text: str) -> bool:
    return NUMBER.fullmatch(text) is not None and math.isfinite(float(text))
