"""The tidy table for data frames and spreadsheets, as CSV. Pure; must not know where the text goes."""

from __future__ import annotations

import csv
import io

from prony.report import tidy
from prony.report.exports import Exported, Format
from prony.report.result import ResultView

COLUMNS = (
    "experiment",
    "part",
    "cell",
    "server",
    "workload",
    "load",
    "trial",
    "block",
    "kind",
    "verdict",
    "figure",
    "value",
    "unit",
    "low",
    "high",
)


def write(view: ResultView) -> Exported:
    """The heading and the rows, part by part in the order in which the trials ran."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in tidy.rows(view):
        value, low, high = ("", "", "") if row.value is None else _texts(row.value)
        texts = {"value": value, "low": low, "high": high}
        writer.writerow(texts[name] if name in texts else getattr(row, name) for name in COLUMNS)
    return Exported(text.getvalue())


def _texts(found: tidy.Value) -> tuple[str, str, str]:
    """Value and, of a percentile, the ends of its interval; among failed requests `> t`, an open upper end
    empty.
    """
    beyond = "" if found.above is None else f"> {found.above!r}"

    def text(end: float | None) -> str:
        return beyond if end is None else repr(end)

    return text(found.value), text(found.low), "" if found.open else text(found.high)


FORMAT = Format("CSV, a row per trial and figure", write, ".csv")
