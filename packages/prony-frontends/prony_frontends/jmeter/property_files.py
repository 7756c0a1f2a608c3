"""Reads properties files by the grammar of java.util.Properties."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from prony.errors import UsageError

BLANKS = " \t\f"
ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(u)|(.)|$)", re.DOTALL)
KEY = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")


def read(path: Path) -> dict[str, str]:
    """Its properties; a later one of a name wins. Raises UsageError."""
    try:
        text = path.read_bytes().decode("iso-8859-1")
    except OSError as fault:
        raise UsageError(f"the properties {path} cannot be read: {fault.strerror or fault}") from fault
    properties: dict[str, str] = {}
    for number, line in _lines(text):
        key = KEY.match(line)
        assert key is not None
        separator = SEPARATOR.match(line, key.end())
        assert separator is not None
        name, value = key[0], line[separator.end() :]
        if any(match[2] for part in (name, value) for match in ESCAPE.finditer(part)):
            raise UsageError(f"{path}:{number}: invalid escape in '{line}'; expected \\u and four digits")
        properties[_plain(name)] = _plain(value)
    return properties


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Logical lines with the number of the first; a backslash at the end joins the next."""
    joined, begin, goes_on = "", 0, False
    for number, raw in enumerate(re.split("\r\n|\r|\n", text), 1):
        line = raw.lstrip(BLANKS)
        if not joined and (not line or (line[0] in "#!" and not goes_on)):
            goes_on = False
            continue
        begin = begin if joined else number
        backslashes = len(line) - len(line.rstrip("\\"))
        goes_on = backslashes % 2 == 1
        joined += line[:-1] if goes_on else line
        if not goes_on:
            yield begin, joined
            joined = ""
    if joined:
        yield begin, joined


def _plain(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else ESCAPED.get(match[3] or "", match[3] or "")

    return ESCAPE.sub(character, text)
