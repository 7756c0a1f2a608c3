"""What formats for other programs hold: a row per trial and figure. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from prony.report.cell_view import CellView, TrialView
from prony.report.labels import stored_unit
from prony.report.out import filled
from prony.report.result import PartView, ResultView


@dataclass(frozen=True, slots=True)
class Value:
    """As `Estimate`. A percentile among failed requests exceeds `above`, as do its ends unless `open`."""

    value: float | None
    low: float | None = None
    high: float | None = None
    bias_low: float | None = None
    bias_high: float | None = None
    plateau_low: float | None = None
    plateau_high: float | None = None
    above: float | None = None
    open: bool = False


ESTIMATED = ("value", "low", "high", "bias_low", "bias_high", "plateau_low", "plateau_high")
"""What is known of a figure: its columns."""


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of a trial, or a trial without any (`figure` is then empty and `value` None)."""

    experiment: str
    part: str
    cell: str
    server: str
    workload: str
    load: str
    trial: str
    block: int
    kind: str
    """trial, control, or repeated: replaced by a later attempt."""
    started: datetime
    conforms: bool
    figure: str = ""
    value: Value | None = None
    unit: str = ""


def rows(view: ResultView) -> Iterator[Row]:
    """Part by part in the order in which the trials ran."""
    for part in view.parts:
        for cell, trial in every(part):
            named = _named(view, part, cell, trial)
            figures = values(trial)
            if not figures:
                yield named
            for figure, value in figures.items():
                yield replace(named, figure=figure, value=value, unit=stored_unit(figure))


def every(part: PartView) -> list[tuple[CellView, TrialView]]:
    """With its cell, in the order in which they ran, also those that were run again."""
    trials = [(cell, trial) for cell in part.cells for trial in (*cell.every, *cell.superseded)]
    return sorted(trials, key=lambda pair: (pair[1].record.started_at, pair[1].record.id))


def values(trial: TrialView) -> dict[str, Value]:
    """Its figures by name; none of a trial that does not conform."""
    by_name = {
        name: Value(**{field: getattr(estimate, field) for field in ESTIMATED})
        for name, estimate in trial.estimates.items()
    }
    for name, p in trial.percentiles.items() if trial.conforms else ():
        if name in by_name or math.isinf(p.value_ms):
            low = p.low_ms if math.isfinite(p.low_ms) else None
            high = p.high_ms if math.isfinite(p.high_ms) and not p.open else None
            value = trial.figures.get(name, math.inf)
            above = p.above_ms if math.inf in (value, p.low_ms, p.high_ms) else None
            known = value if math.isfinite(value) else None
            made = by_name.get(name, Value(known))
            by_name[name] = replace(made, value=known, low=low, high=high, above=above, open=p.open)
    return by_name


def is_repeated(cell: CellView, trial: TrialView) -> bool:
    return any(trial is superseded for superseded in cell.superseded)


def kind(cell: CellView, trial: TrialView) -> str:
    return "repeated" if is_repeated(cell, trial) else trial.record.kind


def _named(view: ResultView, part: PartView, cell: CellView, trial: TrialView) -> Row:
    record = trial.record
    return filled(
        Row,
        record,
        experiment=view.id,
        part=part.part.name,
        load=record.load_name,
        trial=record.id,
        block=record.block + 1,
        kind=kind(cell, trial),
        started=record.started_at,
        conforms=trial.conforms,
    )


def at(trial: TrialView, engine_ms: float) -> datetime:
    """A moment of the engine's time by the wall clock. Only for a trial that had an engine."""
    engine = trial.record.evidence.engine
    assert engine is not None
    return datetime.fromtimestamp(engine.ready.started_unix_ns / 1e9 + engine_ms / 1000, UTC)
