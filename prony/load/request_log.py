"""Reads the engine's request log (docs/engine.md) row by row."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prony.errors import EnvironmentFault


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """A finished request. None: not applicable."""

    start_unix_ms: int
    start_ns: int
    """Actual send, from the start of the run."""
    latency_ns: int
    """From the intended send to the end."""
    service_ns: int
    """From the actual send to the end."""
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
    """Branch of a parallel block, from 0."""


COLUMNS = tuple(LoggedRequest.__slots__)


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
    at = dict(zip(COLUMNS, line, strict=True))

    def optional(name: str) -> int | None:
        return int(at[name]) if at[name] else None

    return LoggedRequest(
        start_unix_ms=int(at["start_unix_ms"]),
        start_ns=int(at["start_ns"]),
        latency_ns=int(at["latency_ns"]),
        service_ns=int(at["service_ns"]),
        connect_ns=optional("connect_ns"),
        tls_ns=optional("tls_ns"),
        first_byte_ns=optional("first_byte_ns"),
        scenario=at["scenario"],
        step=at["step"],
        step_index=int(at["step_index"]),
        method=at["method"],
        path=at["path"],
        user=int(at["user"]),
        thread=int(at["thread"]),
        status=optional("status"),
        error=at["error"] or None,
        bytes_out=int(at["bytes_out"]),
        bytes_in=int(at["bytes_in"]),
        body_bytes=int(at["body_bytes"]),
        users=int(at["users"]),
        branch=optional("branch"),
    )
