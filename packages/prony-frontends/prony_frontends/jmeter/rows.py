"""Translates CSV data sets into feeders, with a row per iteration."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from prony.plan.step import Block, Entry
from prony.plan.workload import Feeder
from prony_frontends.jmeter.data_files import located
from prony_frontends.jmeter.functions import KnownValues, Text
from prony_frontends.jmeter.jmx import JmxNode

NAME = re.compile(r"[^\s|}.]+")
ALL_THREADS, EACH_GROUP, EACH_THREAD = "shareMode.all", "shareMode.group", "shareMode.thread"
SHARE_MODES = {"All threads": ALL_THREADS, "Current thread group": EACH_GROUP, "Current thread": EACH_THREAD}
"""Values in plans of JMeter 2."""
EOF = "<EOF>"
"""JMeter's value at the end of a file."""
MOST_WRITTEN = 8 << 20
"""Limit in bytes for a file whose rows are written into a plan."""


def data_set(node: JmxNode, values: KnownValues) -> None:
    """A CSV data set, a row per iteration; declares its variables. Raises Refused and UsageError."""
    for variable, text in _placed(node, values, on_use=False).items():
        if variable in values.values:
            raise node.refused(
                f"a variable of an extractor or counter, {variable}", "use another name", "conflict"
            )
        values.variables[variable] = text


def in_controller(node: JmxNode, values: KnownValues) -> list[Entry]:
    """A data set in a controller: entries at the start of each of its iterations, which take the next row."""
    if node.flag("stopThread") and not node.flag("recycle", True):
        raise node.refused(
            "in a controller it stops the thread at the end of its file",
            "move it into the thread group, or let it recycle",
        )
    if share_mode(node) == EACH_THREAD and values.users != 1:
        raise node.refused(
            "separate rows per thread, in a controller", "move it into the thread group", "shared"
        )
    placed = _placed(node, values, on_use=True)
    if not placed:  # no named variables
        return []
    feeder = next(iter(placed.values())).parts[0].text.partition(".")[0]
    sets = {values.changing(variable, node): text.engine for variable, text in placed.items()}
    return [Block(set={values.unique("drawn"): f"${{next {feeder}}}", **sets})]


def column(feeder: Feeder, name: str) -> Iterable[str]:
    """The values of a column; a text that fits nowhere where there are too many to look at."""
    if feeder.file is None:
        lines, titles = list(feeder.rows), feeder.columns
    elif Path(feeder.file).stat().st_size > MOST_WRITTEN:
        return ("\0",)
    else:
        text = Path(feeder.file).read_text(encoding="utf-8-sig", errors="replace")
        lines, titles = titled(feeder, text.splitlines(keepends=True))
    place = titles.index(name)
    return (line[place] for line in lines if place < len(line))


def titled(feeder: Feeder, lines: Iterable[str]) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """The rows in these lines of the feeder's file, and the column names."""
    rows = [tuple(row) for row in _csv(lines, feeder.delimiter, feeder.quotes)]
    if feeder.columns:
        return rows, feeder.columns
    return rows[1:], tuple(title.strip() for title in rows[0])


def _csv(lines: Iterable[str], delimiter: str, quotes: bool, strict: bool = False) -> Iterator[list[str]]:
    return csv.reader(
        lines, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE, strict=strict
    )


def share_mode(node: JmxNode) -> str:
    """`shareMode.all`, `.group`, `.thread`, also as old plans say it, or a sharing group's name."""
    mode = node.value("shareMode", ALL_THREADS).strip() or ALL_THREADS
    return SHARE_MODES.get(mode, mode)


def _placed(node: JmxNode, values: KnownValues, on_use: bool) -> dict[str, Text]:
    """Creates its feeder, or finds another group's; values of the current row by variable."""
    file = located(values.constant(node.value("filename"), node).strip(), values)
    recycle, stop = node.flag("recycle", True), node.flag("stopThread")
    mode = share_mode(node)
    table = _table(node, values, file)
    node.finish()
    if stop and table.blank is not None:
        recycle, table = False, _until_blank(table, file, node, values, recycle)
    if node.attributes.get("rows") == "shuffled":
        table = _shuffled(table, file, node, values)
    says = f"{on_use} {recycle} {stop} {table}"
    name = _shared(node, values, file, mode, says)
    if name is None:
        name = f"rows{len(values.feeders) + 1}"
        values.opened[f"{file.absolute()} {mode}"] = f"{name} {says}"
        values.feeders[name] = _feeder(file, table, mode, recycle, stop, on_use)
    values.rows_here.add(name)
    return {
        variable: Text.placeholder(f"{name}.{column}")
        for variable, column in zip(table.variables, table.columns, strict=False)
        if variable
    }


def _shuffled(table: _Table, file: Path, node: JmxNode, values: KnownValues) -> _Table:
    """Its rows in random order, written into the plan."""
    if file.stat().st_size > MOST_WRITTEN:
        raise node.refused(
            f"{file.name} is too long to be written into the plan, as random order requires",
            f"use a file of less than {MOST_WRITTEN >> 20} MiB, or a CSV data set",
            "limit",
        )
    written = table.rows
    if written is None:
        encoding = values.constant(node.value("fileEncoding"), node).strip() or "UTF-8"
        lines = [tuple(line) for line in _lines(file, node, table.delimiter, table.quotes, encoding) if line]
        written = lines if table.named else lines[1:]
    rows = list(written)
    values.draws.shuffle(rows)
    if node.flag("recycle"):
        values.note("one_order", "its rows repeat one random order; the plug-in draws a new order", node)
    return replace(table, rows=rows, named=table.columns)


def _feeder(file: Path, table: _Table, mode: str, recycle: bool, stop: bool, on_use: bool) -> Feeder:
    return Feeder(
        file=str(file.absolute()) if table.rows is None else None,
        rows=() if table.rows is None else tuple(table.rows),
        order="sequence",
        at_end="recycle" if recycle else "stop" if stop else "eof",
        columns=table.named,
        delimiter=table.delimiter if table.rows is None else ",",
        quotes=table.quotes if table.rows is None else True,
        per="user" if mode == EACH_THREAD and not on_use else "run",
        on_use=on_use,
    )


def _shared(node: JmxNode, values: KnownValues, file: Path, mode: str, says: str) -> str | None:
    """JMeter distributes a file's rows over all data sets that share it, so those of several groups have a
    common feeder. Raises Refused where a thread uses two of them, or their settings differ.
    """
    opened = values.opened.get(f"{file.absolute()} {mode}")
    if opened is None:
        return None
    name, _, others = opened.partition(" ")
    if name in values.rows_here or others != says:
        raise node.refused(
            f"a second data set of {file.name} with the same sharing, which would split its rows",
            "name all variables in one data set, or copy the file",
            "shared",
        )
    return name


@dataclass(frozen=True, slots=True)
class _Table:
    """The file of a data set."""

    variables: list[str]
    columns: tuple[str, ...]
    """The columns' names in the engine, in order."""
    named: tuple[str, ...]
    """The columns' names, where the file does not contain them."""
    rows: list[tuple[str, ...]] | None
    """Rows written out, where the engine cannot read them as JMeter does."""
    delimiter: str
    quotes: bool
    blank: int | None = None
    """Place of the first empty line among the rows, which is an end of file for JMeter."""


def _table(node: JmxNode, values: KnownValues, file: Path) -> _Table:
    listed = values.constant(node.value("variableNames"), node).split(",")
    names = [name.strip() for name in listed if name]  # empty names have no column
    delimiter = values.constant(node.value("delimiter", ","), node) or ","
    delimiter = "\t" if delimiter == "\\t" else delimiter
    if delimiter == '"' or any(mark in delimiter for mark in "\r\n\0"):
        raise node.refused(f"the delimiter '{delimiter}'", "separate the columns by another character")
    encoding = values.constant(node.value("fileEncoding", "UTF-8"), node).strip() or "UTF-8"
    try:
        "".encode(encoding)  # text encodings only: Python has others
        plain = codecs.lookup(encoding).name in ("utf-8", "ascii")
    except LookupError as fault:
        raise node.refused(f"the encoding {encoding}", "save the file as UTF-8") from fault
    skips, quotes = node.flag("ignoreFirstLine"), node.flag("quotedData")
    delimiter = delimiter[0] if quotes else delimiter  # as in JMeter
    lines = _lines(file, node, delimiter, quotes, encoding)
    first, own = next(lines), not names
    head = _head(file, node, delimiter[0], encoding) if own else names
    lengths = [] if own or skips else [len(first)]
    lengths += [len(row) for row in lines]
    blank = lengths.index(0) if 0 in lengths else None
    widths = set(lengths) - {0}
    if not widths:
        raise node.wrong(f"at least one row in {file}")
    carried = values.users == 1 and next(filter(None, lengths)) == max(widths)
    if min(widths) < len(head) and len(widths) > 1 and not carried:
        raise node.refused(
            f"rows of {file.name} have {min(widths)} to {max(widths)} values for {len(head)} variables "
            "(JMeter leaves the others as they were)",
            "use the same number of values in all rows",
        )
    variables = head[: max(widths)]  # the others have no value, as in JMeter
    good = [NAME.fullmatch(name) is not None and head.count(name) == 1 for name in variables]
    columns = tuple(
        name if fine else f"column{place}"
        for place, (name, fine) in enumerate(zip(variables, good, strict=True), 1)
    )
    columns += tuple(f"column{place}" for place in range(len(columns) + 1, max(widths) + 1))
    # The engine skips a byte order mark, too.
    one_byte = len(delimiter) == 1 and delimiter.isascii()
    if plain and one_byte and widths == {len(first)} and blank is None:
        if not own and not skips:
            return _Table(variables, columns, columns, None, delimiter, quotes)
        titles = tuple(title.strip() for title in first)
        named = len(set(titles)) == len(titles) and all(map(NAME.fullmatch, titles))
        if named and (list(titles) == head if own else skips):
            return _Table(variables, titles, (), None, delimiter, quotes)
    if file.stat().st_size > MOST_WRITTEN:
        raise node.refused(
            f"{file.name} is too long to be written into the plan, which it needs: it is not UTF-8 or a line "
            "or values are left out",
            f"save it as UTF-8, with or without a line of names and equal numbers of values, or as less than "
            f"{MOST_WRITTEN >> 20} MiB",
            "limit",
        )
    data = list(_lines(file, node, delimiter, quotes, encoding))
    written: list[tuple[str, ...]] = []
    before: Sequence[str] = ()
    for row in data[1:] if own or skips else data:
        if row:
            before = [*row, *before[len(row) :]]  # values that a row lacks stay as they were
            written.append(tuple(before[: len(variables)]))
        else:
            written.append((EOF,) * len(variables))
    columns = columns[: len(variables)]
    return _Table(variables, columns, columns, written, delimiter, quotes, blank)


def _until_blank(table: _Table, file: Path, node: JmxNode, values: KnownValues, recycle: bool) -> _Table:
    """The rows before an empty line, at which a thread stops: the only thread, or the last line for all."""
    assert table.rows is not None
    assert table.blank is not None
    rows, rest = table.rows[: table.blank], table.rows[table.blank :]
    if values.users != 1 and (recycle or any(row != rest[0] for row in rest)):
        raise node.refused(
            f"an empty line of {file.name}, which stops one thread while the others go on",
            "remove that line, or do not stop at the end of the file",
        )
    if not rows:
        raise node.wrong(f"a row before the first empty line in {file}")
    return replace(table, rows=rows)


def _opened(file: Path, encoding: str) -> TextIO:
    """The file without a UTF-8 byte order mark, in any declared encoding, as in JMeter."""
    stream = file.open("rb")
    start = stream.read(len(codecs.BOM_UTF8))
    if start != codecs.BOM_UTF8:
        stream.seek(0)
    if codecs.lookup(encoding).name == "utf-16" and not start.startswith(
        (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    ):
        encoding = "utf-16-be"  # as in Java
    return TextIOWrapper(stream, encoding=encoding, newline="")


def _head(file: Path, node: JmxNode, delimiter: str, encoding: str) -> list[str]:
    """Names in the first line, which JMeter always reads with quotes."""
    with _opened(file, encoding) as stream:
        try:
            names = next(csv.reader(stream, delimiter=delimiter, strict=True), [])
        except csv.Error as fault:
            raise node.wrong(f"names of columns in the first line of {file}; {fault}") from fault
    return [name.strip() for name in names]


def _lines(file: Path, node: JmxNode, delimiter: str, quotes: bool, encoding: str) -> Iterator[list[str]]:
    """All rows, at least one."""
    number = 0
    try:
        with _opened(file, encoding) as stream:
            lines: Iterable[list[str]]
            if quotes or len(delimiter) == 1:
                lines = _csv(stream, delimiter, quotes, strict=quotes)
            else:
                whole = (line.rstrip("\r\n") for line in stream)
                lines = (line.split(delimiter) if line else [] for line in whole)
            for row in lines:
                number += 1
                yield row or ([""] if quotes else row)
    except (OSError, UnicodeDecodeError, csv.Error) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else str(fault)
        raise node.wrong(f"a readable CSV file; {file}: {reason}") from fault
    if not number:
        raise node.wrong(f"at least one row in {file}, and in its first line")
