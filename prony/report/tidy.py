"""What formats for other programs hold: a row per trial and figure, or the histogram of each trial. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from prony.errors import UsageError
from prony.evidence.engine import Histogram, Window
from prony.judge.times import headline, without_response
from prony.judge.window import measured
from prony.report.cell_view import CellView, TrialView
from prony.report.labels import stored_unit
from prony.report.out import filled
from prony.report.result import PartView, ResultView
from prony.report.wording import counted


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
    """One figure of one trial, or a trial without any (`figure` is then empty and `value` None)."""

    experiment: str
    part: str
    cell: str
    server: str
    workload: str
    load: str
    trial: str
    block: int
    kind: str
    """trial, control, or repeated: one that was run again."""
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
    found = [(cell, trial) for cell in part.cells for trial in (*cell.every, *cell.superseded)]
    return sorted(found, key=lambda one: (one[1].record.started_at, one[1].record.id))


def values(trial: TrialView) -> dict[str, Value]:
    """Its figures by name; none of a trial that does not conform."""
    found = {
        name: Value(**{field: getattr(one, field) for field in ESTIMATED})
        for name, one in trial.estimates.items()
    }
    for name, one in trial.percentiles.items() if trial.conforms else ():
        if name in found or math.isinf(one.value_ms):
            low = one.low_ms if math.isfinite(one.low_ms) else None
            high = one.high_ms if math.isfinite(one.high_ms) and not one.open else None
            value = trial.figures.get(name, math.inf)
            above = one.above_ms if math.inf in (value, one.low_ms, one.high_ms) else None
            known = value if math.isfinite(value) else None
            made = found.get(name, Value(known))
            found[name] = replace(made, value=known, low=low, high=high, above=above, open=one.open)
    return found


def is_repeated(cell: CellView, trial: TrialView) -> bool:
    return any(trial is one for one in cell.superseded)


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


@dataclass(frozen=True, slots=True)
class Recorded:
    """The headline times of one trial's window: latencies of an open load, else response or service times."""

    trial: TrialView
    window: Window
    times: Histogram
    began: datetime
    """When the window opened, by the wall clock of the load generator."""

    @property
    def ended(self) -> datetime:
        return self.began + timedelta(seconds=self.window.duration_s)


def recorded(view: ResultView) -> list[Recorded]:
    """Of every trial that counts, in the order in which they ran. Raises UsageError when there is none."""
    found = [one for trial in view.trials if trial.counts and (one := _recorded(trial)) is not None]
    if not found:
        raise UsageError(
            f"{view.id} has no trial whose times may be printed: none conforms, or none has a window; "
            f"prony results show {view.id} says why"
        )
    return found


def _recorded(trial: TrialView) -> Recorded | None:
    evidence = trial.record.evidence
    window = measured(evidence)
    if window is None or evidence.engine is None:
        return None
    times = headline(window, evidence.load.model)
    if times is None or not times.count:
        return None
    return Recorded(trial, window, times, at(trial, window.opened_ms))


def at(trial: TrialView, engine_ms: float) -> datetime:
    """A moment of the engine's time by the wall clock. Only for a trial that had an engine."""
    engine = trial.record.evidence.engine
    assert engine is not None
    return datetime.fromtimestamp(engine.ready.started_unix_ns / 1e9 + engine_ms / 1000, UTC)


def note(view: ResultView, found: Sequence[Recorded]) -> str:
    """What the distributions do not hold: trials that do not count, and requests without a response."""
    said = []
    out = len(view.trials) - len(found)
    if out:
        said.append(f"left out: {counted(out, 'trial')}, without a figure, a control or without times")
    failed = sum(without_response(one.trial.record.evidence) for one in found)
    if failed:
        said.append(
            f"{counted(failed, 'request')} without a response took longer than any that is in here; "
            "a timeout is in here with the time it had"
        )
    return "; ".join(said)
