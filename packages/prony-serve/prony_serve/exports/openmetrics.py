"""Trials and rows as OpenMetrics for `promtool tsdb create-blocks-from openmetrics`. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from prony.evidence.engine import IntervalRow
from prony.judge.figures import FIGURE
from prony.report import tidy
from prony.report.exports import Exported, Format
from prony.report.result import ResultView
from prony.report.tidy import at
from prony_serve.metrics.exposition import Family, Sample, openmetrics
from prony_serve.metrics.figures import in_base_units

NS_PER_S = 1e9
SECONDS: tuple[tuple[str, str, Callable[[IntervalRow], float | None]], ...] = (
    ("completed_per_second", "Requests completed per second", lambda row: row.completed_per_s),
    ("failed_per_second", "Requests failed per second", lambda row: row.failed * 1000 / row.duration_ms),
    ("in_flight", "Requests in flight at the end of the row", lambda row: row.in_flight),
    ("users", "Users at the end of the row", lambda row: row.users),
    ("mean_seconds", "Mean service time", lambda row: _s(row.mean_ns)),
    ("p50_seconds", "p50 of service times", lambda row: _s(row.p50_ns)),
    ("p90_seconds", "p90 of service times", lambda row: _s(row.p90_ns)),
    ("p99_seconds", "p99 of service times", lambda row: _s(row.p99_ns)),
    ("max_seconds", "Longest service time", lambda row: _s(row.max_ns)),
    ("latency_p50_seconds", "p50 from the intended send (open load)", lambda row: _s(row.latency_p50_ns)),
    ("latency_p99_seconds", "p99 from the intended send (open load)", lambda row: _s(row.latency_p99_ns)),
    ("send_lag_p99_seconds", "p99 of the send lag (open load)", lambda row: _s(row.send_lag_p99_ns)),
    ("client_cpu_ratio", "CPU time of the measuring threads ÷ wall time", lambda row: row.client_cpu),
)
"""(metric, help, value of a row). A row covers a second or a minute."""


def write(view: ResultView) -> Exported:
    """`prony_trial_…`: a figure at the end of its trial. `prony_row_…`: a value of one row."""
    return Exported(openmetrics(_families(view)))


def _families(view: ResultView) -> Iterator[Family]:
    rows = [row for row in tidy.rows(view) if row.value is not None and row.value.value is not None]
    trials = (trial.record for part in view.parts for _, trial in tidy.every(part))
    ended = {record.id: record.ended_at.timestamp() for record in trials}
    for figure in dict.fromkeys(row.figure for row in rows):
        name, factor = in_base_units(re.sub(r"\W", "_", figure))
        known = FIGURE.get(figure)
        samples = tuple(
            Sample(row.value.value * factor, _labels(row), at_s=ended[row.trial])
            for row in rows
            if row.figure == figure and row.value is not None and row.value.value is not None
        )
        text = known.label if known is not None else figure
        yield Family(f"prony_trial_{name}", "gauge", f"{text}, of one trial", samples)
    for name, text, of in SECONDS:
        yield Family(f"prony_row_{name}", "gauge", text, tuple(_seconds(view, of)))


def _seconds(view: ResultView, of: Callable[[IntervalRow], float | None]) -> Iterator[Sample]:
    for part in view.parts:
        for cell, trial in tidy.every(part):
            engine = trial.record.evidence.engine
            if engine is None:
                continue
            labels = {
                "experiment": view.id,
                "trial": trial.record.id,
                "server": cell.cell.server,
                "workload": trial.record.workload,
                "load": trial.record.load_name,
                "conforms": str(trial.conforms).lower(),
            }
            for row in engine.rows:
                value = of(row)
                if value is not None and row.duration_ms > 0:
                    measured = {"measured": str(row.in_window).lower()}
                    yield Sample(value, labels | measured, at_s=at(trial, row.t_ms).timestamp())


def _labels(row: tidy.Row) -> dict[str, str]:
    names = ("experiment", "part", "server", "workload", "load", "trial", "kind")
    return {name: str(getattr(row, name)) for name in names} | {"conforms": str(row.conforms).lower()}


def _s(ns: float | None) -> float | None:
    return None if ns is None else ns / NS_PER_S


FORMAT = Format("OpenMetrics with timestamps, for Prometheus", write, ".om")
