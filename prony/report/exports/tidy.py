"""One row per trial and figure, for data frames and spreadsheets. Pure; must not know where the text goes.

A rejected trial has one row, without a figure: it is on record, and no number of it may be used.
"""

from __future__ import annotations

import csv
import io

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
)


def write(view: ResultView) -> Exported:
    """The heading and the rows, part by part in the order in which the trials ran."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for part in view.parts:
        for trial in _trials(part):
            figures = {name: v for name in trial.figures if (v := trial.figure(name)) is not None}
            if trial.rejected_because is not None or not figures:
                writer.writerow((*_named(view, part, trial), "", "", ""))
                continue
            for figure, value in figures.items():
                writer.writerow((*_named(view, part, trial), figure, repr(value), stored_unit(figure)))
    return Exported(text.getvalue())


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
