"""CSV files into feeders: those of data sets, with a row for every iteration, and those of `__CSVRead` and
`__StringFromFile`, with a row when one is wanted. Must not know requests.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath

from prony.errors import UsageError
from prony.frontends.jmeter.functions import CALLS, Call, KnownValues, Text, TextPart
from prony.frontends.jmeter.jmx import JmxNode
from prony.plan.step import Block, Entry
from prony.plan.workload import Feeder

NAME = re.compile(r"[^\s|}.]+")
EACH_THREAD = "shareMode.thread"
MOST_WRITTEN = 8 << 20
"""Bytes of a file whose rows are written into a plan."""
NO_SUCH = "\x1f"
"""No delimiter of any file: what has it for one is read line by line."""


def located(name: str, values: KnownValues) -> Path:
    """The file of this name: where the plan says, or else in the folder of `--csv-dir`."""
    file = values.folder / name
    if values.csv_dir is None or file.is_file():
        return file
    beside = values.csv_dir / name
    return beside if beside.is_file() else values.csv_dir / PureWindowsPath(name).name  # knows / and \\


def check_files(top: JmxNode, values: KnownValues) -> None:
    """Raises UsageError where data sets name files that are not there, for all of them at once."""
    missing: dict[str, JmxNode] = {}
    for node in top.everything():
        name = node.value("filename") if node.tag == "CSVDataSet" else ""
        if "${" not in name and name and not located(name, values).is_file():
            missing.setdefault(name, node)
    if missing:
        first = next(iter(missing.values()))
        files = ", ".join(f"{name} (line {node.line})" for name, node in missing.items())
        raise UsageError(
            f"{first.file}: {len(missing)} data file{'s are' if len(missing) > 1 else ' is'} not there: "
            f"{files}; put them beside the plan, or name their folder with --csv-dir"
        )


def data_set(node: JmxNode, values: KnownValues) -> None:
    """A CSV data set with a row for each iteration of a user; its variables are known from here on. Raises
    Refused and UsageError.
    """
    for variable, text in _placed(node, values, on_use=False).items():
        if variable in values.values:
            raise node.refused(
                f"the variable {variable} has values of an extractor or a counter too", "give it another name"
            )
        values.variables[variable] = text


def in_controller(node: JmxNode, values: KnownValues) -> list[Entry]:
    """One that stands in a controller: what each of its iterations begins with, which takes the next row."""
    if node.flag("stopThread") and not node.flag("recycle", True):
        raise node.refused(
            "in a controller it stops the thread at the end of its file",
            "move it into the thread group, or let it recycle",
        )
    if node.value("shareMode") == EACH_THREAD and values.users != 1:
        raise node.refused(
            "in a controller it has rows for each thread", "share them, or move it into the thread group"
        )
    placed = _placed(node, values, on_use=True)
    feeder = f"rows{len(values.feeders)}"
    sets = {values.changing(variable, node): text.engine for variable, text in placed.items()}
    return [Block(set={values.unique("drawn"): f"${{next {feeder}}}", **sets})]


def _placed(node: JmxNode, values: KnownValues, on_use: bool) -> dict[str, Text]:
    """Makes its feeder; by variable, the value of the present row."""
    file = located(values.constant(node.value("filename"), node).strip(), values)
    recycle, stop = node.flag("recycle", True), node.flag("stopThread")
    mode = node.value("shareMode", "shareMode.all")
    table = _table(node, values, file)
    node.finish()
    _alone(node, values, file, mode)
    name = f"rows{len(values.feeders) + 1}"
    values.feeders[name] = Feeder(
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
    return {
        variable: Text.placeholder(f"{name}.{column}")
        for variable, column in zip(table.variables, table.columns, strict=False)
        if variable
    }


def _alone(node: JmxNode, values: KnownValues, file: Path, mode: str) -> None:
    """JMeter hands the rows of one file out in turn to all data sets that share it."""
    key = f"{file.absolute()} {mode}"
    if key in values.opened:
        raise node.refused(
            f"a second data set of {file.name} with the same sharing, which takes every other row",
            "name all variables in one data set, or copy the file",
        )
    values.opened[key] = ""


@dataclass(frozen=True, slots=True)
class _Table:
    """The file of a data set."""

    variables: list[str]
    columns: tuple[str, ...]
    """The names that the engine knows them by, in their order."""
    named: tuple[str, ...]
    """The same where the engine does not find them in the file."""
    rows: list[tuple[str, ...]] | None
    """Written out: the engine cannot read them as JMeter does."""
    delimiter: str
    quotes: bool


def _table(node: JmxNode, values: KnownValues, file: Path) -> _Table:
    listed = values.constant(node.value("variableNames"), node).split(",")
    names = [name.strip() for name in listed if name]  # an empty one takes no column
    delimiter = values.constant(node.value("delimiter", ","), node) or ","
    delimiter = "\t" if delimiter == "\\t" else delimiter
    if len(delimiter) != 1 or delimiter in '"\r\n\0':
        raise node.refused(f"the delimiter '{delimiter}'", "separate the columns by one character")
    encoding = values.constant(node.value("fileEncoding", "UTF-8"), node).strip() or "UTF-8"
    try:
        "".encode(encoding)  # of texts: Python knows others by name
        plain = codecs.lookup(encoding).name in ("utf-8", "ascii")
    except LookupError as fault:
        raise node.refused(f"the encoding {encoding}", "save the file as UTF-8") from fault
    skips, quotes = node.flag("ignoreFirstLine"), node.flag("quotedData")
    lines = _lines(file, node, delimiter, quotes, encoding)
    first, own = next(lines), not names
    head = _head(file, node, delimiter, encoding) if own else names
    widths = set() if own or skips else {len(first)}
    widths |= {len(row) for row in lines}
    if not widths:
        raise node.wrong(f"at least one row in {file}")
    if min(widths) < len(head) and len(widths) > 1:
        raise node.refused(
            f"rows of {file.name} have {min(widths)} to {max(widths)} values for {len(head)} variables "
            "(JMeter leaves the others as they were)",
            "give all rows as many values",
        )
    variables = head[: min(widths)]  # the others have no value, as in JMeter
    good = [NAME.fullmatch(name) is not None and head.count(name) == 1 for name in variables]
    columns = tuple(
        name if fine else f"column{place}"
        for place, (name, fine) in enumerate(zip(variables, good, strict=True), 1)
    )
    columns += tuple(f"column{place}" for place in range(len(columns) + 1, max(widths) + 1))
    # The engine takes a byte order mark for none of the text, as nobody else does.
    if plain and delimiter.isascii() and widths == {len(first)} and not first[0].startswith("\ufeff"):
        if not own and not skips:
            return _Table(variables, columns, columns, None, delimiter, quotes)
        titles = tuple(title.strip() for title in first)
        named = len(set(titles)) == len(titles) and all(map(NAME.fullmatch, titles))
        if named and (list(titles) == head if own else skips):
            return _Table(variables, titles, (), None, delimiter, quotes)
    if file.stat().st_size > MOST_WRITTEN:
        raise node.refused(
            f"{file.name} is long and has to be written into the plan: it is not in UTF-8, or has a line or "
            "values that are left out",
            f"save it as UTF-8, with a line of names or only rows, as many values in each, or as fewer than "
            f"{MOST_WRITTEN >> 20} MiB",
        )
    data = _lines(file, node, delimiter, quotes, encoding)
    written = [tuple(row[: len(variables)]) for row in data]
    written = written[1:] if own or skips else written
    columns = columns[: len(variables)]
    return _Table(variables, columns, columns, written, delimiter, quotes)


def _head(file: Path, node: JmxNode, delimiter: str, encoding: str) -> list[str]:
    """The names in the first line, which JMeter reads with quotes in any case."""
    with file.open(newline="", encoding=encoding) as stream:
        try:
            found = next(csv.reader(stream, delimiter=delimiter, strict=True), [])
        except csv.Error as fault:
            raise node.wrong(f"names of columns in the first line of {file}; {fault}") from fault
    return [name.strip() for name in found]


def _lines(file: Path, node: JmxNode, delimiter: str, quotes: bool, encoding: str) -> Iterator[list[str]]:
    """All of its rows, of which there is at least one."""
    number = 0
    try:
        with file.open(newline="", encoding=encoding) as stream:
            if quotes:
                lines = csv.reader(stream, delimiter=delimiter, strict=True)
            else:
                lines = csv.reader(stream, delimiter=delimiter, quoting=csv.QUOTE_NONE)
            for row in lines:
                number += 1
                if not row:
                    raise node.refused(f"line {lines.line_num} of {file.name} is empty", "remove that line")
                yield row
    except (OSError, UnicodeDecodeError, csv.Error) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else str(fault)
        raise node.wrong(f"a CSV file that can be read; {file}: {reason}") from fault
    if not number:
        raise node.wrong(f"at least one row in {file}, and in its first line")


def _csv_read(call: Call) -> Text:
    """`__CSVRead(file,0)`, `(file,next)` and `(file,*alias)`: a thread keeps its row until it asks for the
    next; all threads take theirs from one order, which begins again at its end.
    """
    name, what = (text.strip() for text in call.constants(2, 2))
    if call.once:
        raise call.refused("a row that is read before the start", "call it in a sampler")
    if not name:
        raise call.refused("it names no file", "name the file")
    if what.startswith("*"):
        _opened(call, name, what)
        return Text()
    if name.startswith("*") and name not in call.values.opened:
        raise call.refused(
            f"the alias {name} has not been opened above", f"write ${{__CSVRead(FILE,{name})}} above"
        )
    if what in ("next", "next()"):
        # As in JMeter it does nothing before a column has been read.
        return Text.placeholder(f"next {_opened(call, name, name)}")
    if not re.fullmatch(r"\d{1,6}", what):
        raise call.where.wrong(f"a column's number from 0, next or *alias in {call.name}, found '{what}'")
    feeder = _opened(call, name, name)
    if int(what) >= len(call.values.feeders[feeder].columns):
        return Text()  # JMeter finds nothing there
    return Text.placeholder(f"{feeder}.column{int(what) + 1}")


def _string_from_file(call: Call) -> Text:
    """`__StringFromFile(file,variable)`: the next line with each call, for all threads together, and after
    the last the first again. Each place in the plan reads the file for itself.
    """
    given = [*call.constants(1, 4), "", ""]
    name = given[0].strip()
    if any(text.strip() for text in given[2:4]):
        raise call.refused("several files, one after the other", "join them into one")
    file = located(name, call.values)
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else str(fault)
        raise call.where.wrong(f"a file that can be read in {call.name}; {file}: {reason}") from fault
    if not all(lines) or not lines:
        raise call.refused(f"the file {file.name} with an empty line, or none", "remove empty lines")
    if any(NO_SUCH in line for line in lines):
        raise call.refused(f"a control character (1F) in {file.name}", "remove it")
    if call.once:
        return call.stored(Text.of(lines[0]), given[1:2])
    feeder = f"rows{len(call.values.feeders) + 1}"
    call.values.feeders[feeder] = Feeder(
        file=str(file.absolute()), order="sequence", at_end="recycle", columns=("line",), delimiter=NO_SUCH,
        quotes=False, on_use=True,
    )  # fmt: skip
    next_line = Text((TextPart(f"{feeder}.line", True), TextPart(f"next {feeder}", True)))
    return call.stored(next_line, given[1:2])


def _opened(call: Call, name: str, key: str) -> str:
    """The feeder of this file, or of this alias of it."""
    values = call.values
    if key not in values.opened:
        file = located(name, values)
        rows = list(_until_empty(file, call))
        columns = {len(row) for row in rows}
        if len(columns) != 1:
            raise call.refused(
                f"the file {file.name} without rows, or with rows of other lengths",
                "give all rows as many columns",
            )
        feeder = f"rows{len(values.feeders) + 1}"
        values.feeders[feeder] = Feeder(
            file=str(file.absolute()),
            order="sequence",
            at_end="recycle",
            columns=tuple(f"column{number + 1}" for number in range(columns.pop())),
            quotes=False,
            on_use=True,
        )
        values.opened[key] = feeder
    return values.opened[key]


def _until_empty(file: Path, call: Call) -> Iterator[list[str]]:
    try:
        with file.open(encoding="utf-8") as stream:
            empty = 0
            for number, line in enumerate(stream, 1):
                text = line.rstrip("\n")
                if text and empty:
                    raise call.refused(
                        f"line {empty} of {file.name} is empty, where JMeter stops reading",
                        "remove what comes after it",
                    )
                empty = empty or (0 if text else number)
                if text:
                    yield text.split(",")
    except (OSError, UnicodeDecodeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else str(fault)
        raise call.where.wrong(f"a CSV file that can be read in {call.name}; {file}: {reason}") from fault


CALLS["__CSVRead"] = _csv_read
CALLS["__StringFromFile"] = _string_from_file
