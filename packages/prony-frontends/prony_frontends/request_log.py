"""Reads the engine's request log (docs/engine.md) row by row."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prony.errors import EnvironmentFault


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """A finished request, or a note. None: not applicable."""

    start_unix_ms: int
    start_ns: int
    """Actual send, from the start of the run."""
    latency_ns: int
    """From the intended send to the end."""
    service_ns: int
    connect_ns: int | None
    """Connect time, in the row of a connection's first request; precedes `start_ns`, like `tls_ns`."""
    tls_ns: int | None
    first_byte_ns: int | None
    """From the actual send."""
    scenario: str
    step: str
    step_index: int
    method: str
    path: str
    user: int
    thread: int
    status: int | None
    error: str | None
    """Kind of error (docs/engine.md), such as `expect_body`; None: as expected."""
    bytes_out: int
    bytes_in: int
    body_bytes: int
    users: int
    """Users alive in this thread at the end of the request."""
    branch: int | None
    note: str | None
    """Text of a note; `step_index` is then its number among those of its scenario."""


COLUMNS = tuple(LoggedRequest.__slots__)
OPTIONAL = frozenset({"connect_ns", "tls_ns", "first_byte_ns", "status", "error", "branch", "note"})
TEXTS = frozenset({"scenario", "step", "method", "path", "error", "note"})


def read_log(file: Path) -> Iterator[LoggedRequest]:
    """The rows in file order (by end within a thread). Raises EnvironmentFault for another file."""
    with file.open(newline="", encoding="utf-8") as text:
        lines = csv.reader(text)
        header = next(lines, [])
        if tuple(header) != COLUMNS:
            raise EnvironmentFault(
                f"{file} starts with '{','.join(header)[:80]}', expected the header of a request log of this "
                "version: start_unix_ms,start_ns,…"
            )
        for line in lines:
            try:
                yield _row(line)
            except (ValueError, TypeError) as fault:
                raise EnvironmentFault(
                    f"{file}, line {lines.line_num}: not a row of a request log: '{','.join(line)[:120]}'; "
                    "was the run killed?"
                ) from fault


def _row(line: list[str]) -> LoggedRequest:
    row: dict[str, Any] = {}
    for name, text in zip(COLUMNS, line, strict=True):
        value = None if name in OPTIONAL and not text else text
        row[name] = value if value is None or name in TEXTS else int(value)
    return LoggedRequest(**row)
