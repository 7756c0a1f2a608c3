"""config.payload into feeders. Must not know which request uses a column."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from prony.frontends.artillery.script import ScriptNode
from prony.frontends.artillery.templates import FeederColumn, NameScope, constant
from prony.plan.workload import Feeder

KEYS = frozenset({
    "path", "fields", "order", "skipHeader", "skipEmptyLines", "delimiter", "cast", "name", "loadAll",
    "options",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Payload:
    """The feeders and what their columns are called in the script."""

    feeders: dict[str, Feeder]
    columns: dict[str, FeederColumn]
    notes: tuple[str, ...] = ()


NO_PAYLOAD = Payload({}, {})


def payload(node: ScriptNode | None, given: str | None, folder: Path, scope: NameScope) -> Payload:
    """The CSV files; `given` is --payload. Raises Refused and UsageError."""
    if node is None:
        return NO_PAYLOAD
    single = isinstance(node.value, dict)
    feeders: dict[str, Feeder] = {}
    columns: dict[str, FeederColumn] = {}
    notes: list[str] = []
    for index, one in enumerate((node,) if single else node.elements()):
        notes += one.unread("the key of a payload", KEYS)
        if one.get("fields") is None and one.get("loadAll") is None:
            notes.append(f"{one.place}: a payload without fields gives users nothing, and is left out")
            continue
        name = f"payload{index + 1}"
        path = one.get("path")
        where = given if given is not None and single else None
        if where is None:
            if path is None:
                raise one.wrong("a path (or --payload FILE)")
            where = str(folder / str(constant(path, scope)))
        feeders[name], found = _one(one, name, Path(where))
        columns.update(found)
    return Payload(feeders, columns, tuple(notes))


def _one(node: ScriptNode, name: str, file: Path) -> tuple[Feeder, dict[str, FeederColumn]]:
    for key in ("loadAll", "options"):
        child = node.get(key)
        if child is not None and child.value is not False:
            raise child.refused(f"payload '{key}'", "name the columns in fields; each user has one row")
    delimiter = node.get("delimiter")
    mark = "," if delimiter is None else str(delimiter.value)
    if delimiter is not None and (len(mark) != 1 or not mark.isascii() or mark in '"\r\n'):
        raise delimiter.refused(f"the delimiter '{mark}'", "separate columns by one character of ASCII")
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
    if header is None or header.value is not True:  # its first line is a row as the others
        columns = tuple(f"column{place + 1}" for place in range(len(head)))
        rows, head = [head, *rows], list(columns)
    if len(head) < len(names):
        raise fields.wrong(f"at most {len(head)} fields, as many as {file.name} has columns")
    cast = node.get("cast")
    found = {}
    for column, (label, title) in enumerate(zip(names, head, strict=False)):
        values = [row[column] for row in rows if len(row) > column]
        numeric = (cast is None or cast.value is not False) and bool(values) and all(map(_is_number, values))
        found[label] = FeederColumn(f"{name}.{title}", numeric)
    order_of: Literal["sequence", "random"] = "sequence" if kind == "sequence" else "random"
    at_end: Literal["recycle"] | None = "recycle" if kind == "sequence" else None
    feeder = Feeder(file=str(file.absolute()), order=order_of, at_end=at_end, columns=columns, delimiter=mark)
    return feeder, found


def _read(file: Path, node: ScriptNode, delimiter: str) -> tuple[list[str], list[list[str]]]:
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            rows = [row for row in csv.reader(stream, delimiter=delimiter) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else str(fault)
        raise node.wrong(f"a CSV file that can be read; {file}: {reason}") from fault
    if not rows:
        raise node.wrong(f"at least one row in {file}")
    return rows[0], rows[1:]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return (
        text.strip() == text
        and text[:1] in "-0123456789."
        and not (len(text) > 1 and text[0] == "0" and text[1] != ".")
    )
