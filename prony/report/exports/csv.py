"""One row per trial and figure, for data frames and spreadsheets. Pure; must not know where the text goes.

A rejected trial has one row, without a figure: it is on record, and no number of it may be used.
"""

from __future__ import annotations

import csv
import io
import math

from prony.report.exports import Exported, Format
from prony.report.labels import stored_unit
from prony.report.result import PartView, ResultView, TrialView

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
    for part in view.parts:
        for trial in _trials(part):
            figures = _figures(trial)
            if trial.rejected_because is not None or not figures:
                writer.writerow((*_named(view, part, trial), *[""] * 5))
                continue
            for figure, (value, low, high) in figures.items():
                writer.writerow((*_named(view, part, trial), figure, value, stored_unit(figure), low, high))
    return Exported(text.getvalue())


def _figures(trial: TrialView) -> dict[str, tuple[str, str, str]]:
    """Value and, of a percentile, the ends of its interval; among failed requests `> t`, an open upper end
    empty.
    """
    found = {name: (repr(v), "", "") for name in trial.figures if (v := trial.figure(name)) is not None}
    for name, one in trial.percentiles.items():
        value, low, high = (
            repr(end) if math.isfinite(end) else f"> {one.above_ms!r}"
            for end in (trial.figures.get(name, math.inf), one.low_ms, one.high_ms)
        )
        if name in found or math.isinf(one.value_ms):
            found[name] = (value, low, "" if one.open else high)
    return found


def _trials(part: PartView) -> list[TrialView]:
    """Also those that were run again."""
    every = [trial for cell in part.cells for trial in (*cell.every, *cell.superseded)]
    return sorted(every, key=lambda trial: (trial.record.started_at, trial.record.id))


def _named(view: ResultView, part: PartView, trial: TrialView) -> tuple[object, ...]:
    record = trial.record
    cell = next(c for c in part.cells if trial in (*c.every, *c.superseded))
    repeated = trial in cell.superseded
    return (
        view.id,
        part.part.name,
        cell.cell.id,
        cell.cell.server,
        record.workload,
        record.load_name,
        record.id,
        record.block + 1,
        "repeated" if repeated else record.kind,
        trial.status.value,
    )


FORMAT = Format("a row per trial and figure", write)
