"""JMeter's functions that read rows and lines of files when one is wanted.

Must not know data sets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from prony.frontends.jmeter.functions import Call, Function, Text, TextPart
from prony.frontends.jmeter.rows import located
from prony.plan.workload import Feeder

NO_SUCH = "\x1f"
"""No delimiter of any file: what has it for one is read line by line."""


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


FUNCTIONS: dict[str, Function] = {"__CSVRead": _csv_read, "__StringFromFile": _string_from_file}
