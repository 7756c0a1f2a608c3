"""JMeter's functions that read rows and lines of files on demand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from prony.plan.workload import Feeder
from prony_frontends.jmeter.data_files import located
from prony_frontends.jmeter.functions import Call, Function, Text, TextPart
from prony_frontends.jmeter.rows import titled

COLUMN = re.compile(r"(rows\d+)\.(\S+)")
"""A value of the current row."""
NO_SUCH = "\x1f"
"""Not a delimiter in any file: with it, files are read line by line."""

MOST_FILE_BYTES = 1 << 20
"""Limit for a file that becomes a text of the plan,"""
MOST_BYTES = 8 << 20
"""and for all files named in a data set's rows."""


def _csv_read(call: Call) -> Text:
    """`__CSVRead(file,0)`, `(file,next)` and `(file,*alias)`: a thread keeps its row until `next`; all
    threads share one sequence of rows, which restarts at its end.
    """
    name, what = (text.strip() for text in call.constants(2, 2))
    if call.once:
        raise call.refused("a row that is read before the start", "call it in a sampler", "outside")
    if not name:
        raise call.refused("it names no file", "name the file", "no_file")
    if what.startswith("*"):
        _opened(call, name, what)
        return Text()
    if name.startswith("*") and name not in call.values.opened:
        raise call.refused(
            f"the alias {name} is not open", f"write ${{__CSVRead(FILE,{name})}} above", "no_file"
        )
    if what in ("next", "next()"):
        # As in JMeter it has no effect before a column has been read.
        return Text.placeholder(f"next {_opened(call, name, name)}")
    if not re.fullmatch(r"\d{1,6}", what):
        raise call.where.wrong(f"a column's number from 0, next or *alias in {call.name}, found '{what}'")
    feeder = _opened(call, name, name)
    if int(what) >= len(call.values.feeders[feeder].columns):
        return Text()  # JMeter finds nothing there
    return Text.placeholder(f"{feeder}.column{int(what) + 1}")


def _string_from_file(call: Call) -> Text:
    """`__StringFromFile(file,variable)`: a line per call, shared by threads, restarting at the end."""
    given = [*call.constants(1, 4), "", ""]
    name = given[0].strip()
    if any(text.strip() for text in given[2:4]):
        raise call.refused("a sequence of files", "join them into one")
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


def content(call: Call, name: str, encoding: str) -> str:
    """Contents of a file. Raises Refused and UsageError."""
    path = located(name.strip(), call.values)
    try:
        if path.stat().st_size > MOST_FILE_BYTES:
            raise call.refused(
                f"{path.name} has more than {MOST_FILE_BYTES >> 20} MiB", "use a shorter file", "limit"
            )
        return path.read_text(encoding=encoding)
    except (OSError, UnicodeDecodeError, LookupError) as fault:
        raise call.where.wrong(f"a file that can be read in {call.name}; {path}: {fault}") from fault


def contents(call: Call, name: Text, encoding: str) -> Text:
    """A file named by a data set's row, as one more column. Raises Refused for other changing names."""
    marks = [COLUMN.fullmatch(part.text) for part in name.parts if part.dynamic]
    feeder = call.values.feeders.get(marks[0][1]) if len(marks) == 1 and marks[0] else None
    if marks[0] is None or feeder is None:
        raise call.refused(
            "the name of a file that differs from request to request", "write a constant", "varies"
        )
    key = f"{name.engine} {encoding}"  # shared with other uses of the same file
    if key in call.values.opened:
        return Text.placeholder(call.values.opened[key])
    rows, columns = _rows_of(feeder, call)
    place = columns.index(marks[0][2])
    before, after = name.around(next(at for at, part in enumerate(name.parts) if part.dynamic))
    texts = [content(call, f"{before}{row[place]}{after}", encoding) for row in rows]
    if sum(map(len, texts)) > MOST_BYTES:
        raise call.refused(
            f"the files of all rows have more than {MOST_BYTES >> 20} MiB", "use fewer rows", "limit"
        )
    added = f"content{len(columns) + 1}"
    call.values.feeders[marks[0][1]] = feeder.model_copy(
        update={
            "file": None, "columns": (*columns, added), "delimiter": ",", "quotes": True,
            "rows": tuple((*row, text) for row, text in zip(rows, texts, strict=True)),
        }
    )  # fmt: skip
    call.values.opened[key] = f"{marks[0][1]}.{added}"
    return Text.placeholder(call.values.opened[key])


def _rows_of(feeder: Feeder, call: Call) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """All rows, and the column names."""
    if feeder.file is None:
        return list(feeder.rows), feeder.columns
    file = Path(feeder.file)
    if file.stat().st_size > MOST_BYTES:
        raise call.refused(f"{file.name} has more than {MOST_BYTES >> 20} MiB", "use fewer rows", "limit")
    with file.open(newline="", encoding="utf-8") as stream:
        return titled(feeder, stream)


def _opened(call: Call, name: str, key: str) -> str:
    """The feeder of this file or alias."""
    values = call.values
    if key not in values.opened:
        file = located(name, values)
        rows = list(_until_empty(file, call))
        columns = {len(row) for row in rows}
        if len(columns) != 1:
            raise call.refused(
                f"the file {file.name} without rows, or with rows of different lengths",
                "use the same number of columns in all rows",
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


FUNCTIONS: dict[str, Function] = {"__CSVRead": _csv_read, "__StringFromFile": _string_from_file}
