"""CSV files into feeders: those of data sets, with a row for every iteration, and those of `__CSVRead`, with
a row when one is wanted. Must not know requests.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path, PureWindowsPath

from prony.errors import UsageError
from prony.frontends.jmeter.functions import CALLS, Call, KnownValues, Text
from prony.frontends.jmeter.jmx import JmxNode
from prony.plan.workload import Feeder

NAME = re.compile(r"[^\s|}.]+")
EACH_THREAD = "shareMode.thread"


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
    """A CSV data set; its variables are known from here on. Raises Refused and UsageError."""
    file = located(values.constant(node.value("filename"), node), values)
    names = [name.strip() for name in values.constant(node.value("variableNames"), node).split(",")]
    names = names if any(names) else []
    delimiter = values.constant(node.value("delimiter", ","), node) or ","
    delimiter = "\t" if delimiter == "\\t" else delimiter
    if node.value("fileEncoding", "UTF-8").upper() not in ("", "UTF-8", "US-ASCII", "ASCII"):
        raise node.refused("an encoding other than UTF-8", "save the file as UTF-8")
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
        raise node.refused(f"the delimiter '{delimiter}'", "separate the columns by one character of ASCII")
    recycle, stop = node.flag("recycle", True), node.flag("stopThread")
    mode = node.value("shareMode", "shareMode.all")
    skips, quoted = node.flag("ignoreFirstLine"), node.flag("quotedData")
    node.finish()
    _alone(node, values, file, mode)
    found = _lines(file, node, delimiter, quoted)
    if not names and not quoted and any('"' in column for column in found):
        raise node.refused(f"quotes around names in {file.name}", "remove them, or allow quoted data")
    head = [column.strip() for column in found]
    if len(names) > len(head):
        raise node.wrong(f"at most {len(head)} variable names, as many as {file.name} has columns")
    columns: list[str] = []
    if names and not skips:
        columns = [f"column{place + 1}" for place in range(len(head))]
        for place, name in enumerate(names):
            if NAME.fullmatch(name) and names.count(name) == 1:
                columns[place] = name
        head = columns
    for column in head:
        if not NAME.fullmatch(column) or head.count(column) > 1:
            raise node.wrong(f"different column names without blanks in {file.name}, found '{column}'")
    feeder = f"rows{len(values.feeders) + 1}"
    values.feeders[feeder] = Feeder(
        file=str(file.absolute()),
        order="sequence",
        at_end="recycle" if recycle else "stop" if stop else "eof",
        columns=tuple(columns),
        delimiter=delimiter,
        quotes=quoted,
        per="user" if mode == EACH_THREAD else "run",
    )
    for variable, column in zip(names or head, head, strict=False):
        if variable in values.values:
            raise node.refused(
                f"the variable {variable} has values of an extractor or a counter too", "give it another name"
            )
        if variable:
            values.variables[variable] = Text.placeholder(f"{feeder}.{column}")


def _alone(node: JmxNode, values: KnownValues, file: Path, mode: str) -> None:
    """JMeter hands the rows of one file out in turn to all data sets that share it."""
    key = f"{file.absolute()} {mode}"
    if key in values.opened:
        raise node.refused(
            f"a second data set of {file.name} with the same sharing, which takes every other row",
            "name all variables in one data set, or copy the file",
        )
    values.opened[key] = ""


def _lines(file: Path, node: JmxNode, delimiter: str, quoted: bool) -> list[str]:
    """The first of its rows, when all of them can be read."""
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            if quoted:
                lines = csv.reader(stream, delimiter=delimiter, strict=True)
            else:
                lines = csv.reader(stream, delimiter=delimiter, quoting=csv.QUOTE_NONE)
            head = next(lines, [])
            for row in lines:
                if not row:
                    raise node.refused(f"line {lines.line_num} of {file.name} is empty", "remove that line")
    except (OSError, UnicodeDecodeError, csv.Error) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else str(fault)
        raise node.wrong(f"a CSV file that can be read; {file}: {reason}") from fault
    if not head:
        raise node.wrong(f"at least one row in {file}, and in its first line")
    return head


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
