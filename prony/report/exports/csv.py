"""The tidy table for data frames and spreadsheets, as CSV. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from prony.report import tidy
from prony.report.exports import Exported, Format
from prony.report.result import ResultView

COLUMNS = (
    "experiment", "part", "cell", "server", "workload", "load", "trial", "block", "kind", "conforms",
    "figure", "value", "unit", *tidy.ESTIMATED[1:],
)  # fmt: skip


def write(view: ResultView) -> Exported:
    lines = [line(COLUMNS)]
    for row in tidy.rows(view):
        known = {"conforms": str(row.conforms).lower()}
        known |= dict.fromkeys(tidy.ESTIMATED, "") if row.value is None else _texts(row.value)
        lines.append(line(known[n] if n in known else _no_formula(getattr(row, n)) for n in COLUMNS))
    return Exported("".join(lines))


def line(fields: Iterable[object]) -> str:
    """A line of CSV. With the line end "\\n", Python would leave a lone carriage return unquoted."""
    text = io.StringIO()
    csv.writer(text).writerow(fields)
    return text.getvalue().removesuffix("\r\n") + "\n"


def _no_formula(value: object) -> object:
    """A name that a spreadsheet would calculate, with an apostrophe before it."""
    return (
        f"'{value}"
        if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
        else value
    )


def _texts(value: tidy.Value) -> dict[str, str]:
    """Empty: not bounded, or not known. `> t`: among failed requests."""
    texts = {name: "" if (n := getattr(value, name)) is None else repr(n) for name in tidy.ESTIMATED}
    if value.above is not None:
        beyond = ("value", "low") if value.open else ("value", "low", "high")
        texts |= {name: f"> {value.above!r}" for name in beyond if not texts[name]}
    return texts


FORMAT = Format("CSV, a row per trial and figure", write, ".csv")
