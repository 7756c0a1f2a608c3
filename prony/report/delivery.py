"""Brings what was measured to its readers: a page to its file, a table or JSON to standard output."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prony import redaction
from prony.report.wording import printable

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

FILE_WIDTH = 120


def deliver(
    *,
    as_json: bool,
    as_object: Callable[[], BaseModel],
    table: Callable[[Console], None],
    page: Callable[[], str] | None = None,
    report: Path | None = None,
) -> None:
    """Write the page, then print. A reader who leaves early (`prony … | head`) changes no exit code."""
    if report is not None and page is not None:
        from prony.report.html import write_text

        write_text(page(), report)
        print(f"report: {report}", file=sys.stderr)
    from prony.report.console import Console

    try:
        if as_json:
            print_model(as_object())
        else:
            table(Console(width=_width()))
        sys.stdout.flush()
    except BrokenPipeError:
        silence()
    except SystemExit as end:  # what rich makes of a broken pipe
        if end.code != 1:
            raise
        silence()


def _width() -> int | None:
    """A file has no edge: what goes there is as wide as the tables are at their best, unless COLUMNS says."""
    return None if sys.stdout.isatty() or "COLUMNS" in os.environ else FILE_WIDTH


def print_model(model: BaseModel) -> None:
    json.dump(as_plain(model), sys.stdout, indent=2, allow_nan=False)
    print()


def as_plain(model: BaseModel) -> dict[str, Any]:
    """A model as plain values; what JSON has not (NaN, infinity) is null."""
    plain: dict[str, Any] = json.loads(model.model_dump_json(by_alias=True), parse_constant=lambda _: None)
    return plain


def silence() -> None:
    """Nothing more can be written to standard output, not even at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def defect_file(fault: Exception) -> str:
    """Writes the traceback to a file and returns where it is; without room, on standard error."""
    details = redaction.text("".join(traceback.format_exception(fault)))
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="prony-defect-", suffix=".log", delete=False, encoding="utf-8", errors="replace"
        ) as log:
            log.write(details)
    except OSError:
        print(printable(details), file=sys.stderr)
        return "above"
    return f"in {log.name}"
