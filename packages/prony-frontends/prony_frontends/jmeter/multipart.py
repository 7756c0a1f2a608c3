"""Parameters and files as a multipart body (multipart/form-data, RFC 7578), as from JMeter's client."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prony.plan.step import BodyPart
from prony_frontends.jmeter.functions import KnownValues, Text
from prony_frontends.jmeter.jmx import JmxNode

BOUNDARY_LETTERS = 35
"""JMeter draws 30 to 40 characters per request."""
MARK = "\0"
"""Stands for the boundary until it is known; it cannot occur in XML."""
MOST_BYTES = 16 << 20
"""Limit on files, which the engine reads before the load."""


@dataclass(frozen=True, slots=True)
class Multipart:
    """A multipart body."""

    parts: tuple[BodyPart, ...]
    content_type: str


def multipart(
    node: JmxNode, arguments: Sequence[JmxNode], files: Sequence[JmxNode], values: KnownValues, browser: bool
) -> Multipart:
    """Parameters first, then files; `browser`: with the short part headers of browsers. Raises UsageError."""
    pieces: list[Text | Path] = []
    for argument in arguments:
        pieces += _parameter(argument, values, browser)
    for file in files:
        pieces += _file(file, values, browser)
    seen = hashlib.sha256()
    for piece in pieces:
        seen.update(piece.read_bytes() if isinstance(piece, Path) else piece.engine.encode())
    boundary = seen.hexdigest()[:BOUNDARY_LETTERS]
    pieces.append(Text.of(f"--{MARK}--\r\n"))
    parts: list[BodyPart] = []
    for piece in pieces:
        if isinstance(piece, Path):
            parts.append(BodyPart(file=str(piece.absolute())))
        else:
            parts.append(BodyPart(text=piece.engine.replace(MARK, boundary)))
    if sum(piece.stat().st_size for piece in pieces if isinstance(piece, Path)) > MOST_BYTES:
        raise node.refused(f"files of more than {MOST_BYTES >> 20} MiB", "use smaller ones", "limit")
    return Multipart(tuple(parts), f"multipart/form-data; boundary={boundary}; charset=UTF-8")


def _head(name: str, more: str, kind: str, coding: str, browser: bool) -> Text:
    """Delimiter and head of a part; `browser` leaves lines out."""
    text = f'--{MARK}\r\nContent-Disposition: form-data; name="{name}"{more}\r\n'
    text += f"Content-Type: {kind}\r\n" if kind else ""
    text += "" if browser else f"Content-Transfer-Encoding: {coding}\r\n"
    return Text.of(text + "\r\n")


def _quoted(name: str, node: JmxNode, what: str) -> str:
    if not name.isascii() or any(char in name for char in '"\\\r\n'):
        raise node.refused(f"{what} '{name}'", "use ASCII without quotes and line breaks")
    return name


def _parameter(argument: JmxNode, values: KnownValues, browser: bool) -> list[Text | Path]:
    name = _quoted(values.constant(argument.value("Argument.name"), argument), argument, "the name")
    value = values.text(argument.value("Argument.value"), argument)
    kind = values.constant(argument.value("HTTPArgument.content_type"), argument) or "text/plain"
    argument.ignore(
        "Argument.metadata", "Argument.desc", "HTTPArgument.always_encode", "HTTPArgument.use_equals"
    )
    argument.finish()
    if not name:
        return []
    kind = "" if browser else kind + "; charset=UTF-8"
    return [_head(name, "", kind, "8bit", browser), value, Text.of("\r\n")]


def _file(file: JmxNode, values: KnownValues, browser: bool) -> list[Text | Path]:
    path = values.folder / values.constant(file.value("File.path"), file)
    name = _quoted(values.constant(file.value("File.paramname"), file), file, "the parameter name")
    kind = values.constant(file.value("File.mimetype"), file)
    file.finish()
    if not path.is_file():
        raise file.wrong(f"a readable file; {path} does not exist")
    if not kind or ";" in kind or not kind.isascii():
        raise file.wrong(f"a MIME type for {path.name}, such as application/octet-stream, found '{kind}'")
    more = f'; filename="{_quoted(path.name, file, "the file name")}"'
    return [_head(name, more, kind, "binary", browser), path, Text.of("\r\n")]
