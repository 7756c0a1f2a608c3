"""Figures per step of a scenario, as cells and as lines of text. Must not know how they are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from prony.evidence.engine import StepFigures
from prony.judge.histogram import HistogramError, decode, needed_samples
from prony.report.model import TrialView
from prony.report.wording import ABSENT, number, significant

HEADINGS = ("step", "requests/s", "failed", "mean, ms", "p50, ms", "p99, ms")


@dataclass(frozen=True, slots=True)
class StepLine:
    """One step over one window; times that the samples do not support are None."""

    scenario: str
    name: str
    completed: int
    per_s: float
    failed: int
    mean_ms: float | None
    p50_ms: float | None
    p99_ms: float | None


def step_cells(trials: Sequence[TrialView]) -> list[tuple[str, ...]]:
    """A row per step under HEADINGS: of one trial its figures, of several the median over trials (of `failed`
    the sum). Empty when the workload has a single step or no trial may be printed.
    """
    found: dict[str, list[StepLine]] = {}
    for trial in (trial for trial in trials if trial.counts):
        steps = steps_of(trial)
        scenarios = {step.scenario for step in steps}
        for step in steps:
            name = f"{step.scenario}: {step.name}" if len(scenarios) > 1 else step.name
            found.setdefault(name, []).append(step)
    return [_row(name, steps) for name, steps in found.items()]


def step_lines(trials: Sequence[TrialView]) -> list[str]:
    """The same as lines of text of equal columns, the headings first; empty when there are no steps."""
    cells = step_cells(trials)
    if not cells:
        return []
    rows = [HEADINGS, *cells]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]


def steps_of(trial: TrialView) -> list[StepLine]:
    """The steps of one trial; none when the workload has a single one or its figures may not be printed."""
    engine = trial.record.evidence.engine
    window = engine.window if engine is not None else None
    if window is None or trial.rejected_because is not None:
        return []
    return [_step(step, window.duration_s) for step in (*window.steps, *window.transactions)]


def _row(name: str, steps: Sequence[StepLine]) -> tuple[str, ...]:
    def middle(values: Sequence[float | None]) -> str:
        known = [value for value in values if value is not None]
        return significant(median(known), 3) if len(known) == len(values) else ABSENT

    return (
        name,
        number(median(step.per_s for step in steps)),
        number(sum(step.failed for step in steps)),
        middle([step.mean_ms for step in steps]),
        middle([step.p50_ms for step in steps]),
        middle([step.p99_ms for step in steps]),
    )


def _step(step: StepFigures, duration_s: float) -> StepLine:
    per_s = step.completed / duration_s if duration_s > 0 else 0.0
    known = (step.scenario, step.name, step.completed, per_s, step.failed)
    histogram = step.service_time
    if histogram is None:
        return StepLine(*known, None, None, None)
    mean_ms = None if histogram.mean_ns is None else histogram.mean_ns / 1e6

    def percentile_ms(percentile: float) -> float | None:
        if histogram.count < needed_samples(percentile):
            return None
        try:
            ns = decode(histogram).percentile_ns(percentile)
        except HistogramError:
            return None
        return None if ns is None else ns / 1e6

    return StepLine(*known, mean_ms, percentile_ms(50.0), percentile_ms(99.0))
