"""CSV files as csv-parse 4 reads them, Artillery's reader."""

from __future__ import annotations

import re
from collections.abc import Iterator

FIRST_END = re.compile(r'(?:[^"\r\n]|"[^"]*")*(\r\n|\r|\n)')
"""The first end of a line outside quotation marks decides for the whole file."""


class BadCsv(ValueError):
    """csv-parse does not accept the file."""


def rows(text: str, delimiter: str, *, skip_header: bool, skip_empty: bool) -> list[list[str]]:
    """The rows after the header. Raises BadCsv."""
    found = list(_rows(text, delimiter, skip_header=skip_header, skip_empty=skip_empty))
    for number, row in enumerate(found, 1):
        if len(row) != len(found[0]):
            raise BadCsv(f"row {number} has {len(row)} values, the first {len(found[0])}")
    return found


def _rows(text: str, delimiter: str, *, skip_header: bool, skip_empty: bool) -> Iterator[list[str]]:
    first = FIRST_END.match(text)
    end = "\n" if first is None else first[1]
    mark, last = re.escape(delimiter), re.escape(end)
    value = re.compile(rf'(?:"((?:[^"]|"")*)"|((?:(?!{mark}|{last}|").)*))({mark}|{last}|\Z)', re.DOTALL)
    row: list[str] = []
    at, skips = 0, skip_header
    while at < len(text):
        match = value.match(text, at)
        if match is None:
            line = text.count("\n", 0, at) + 1
            raise BadCsv(f"line {line} has a quotation mark inside a value, or one that does not end")
        at = match.end()
        quoted, plain, stop = match.groups()
        row.append(plain if quoted is None else quoted.replace('""', '"'))
        if stop == delimiter and at < len(text):
            continue
        if stop == delimiter:  # the file ends behind it
            row.append("")
        if skips:
            skips = False
        elif not (skip_empty and row == [""] and quoted is None):
            yield row
        row = []
