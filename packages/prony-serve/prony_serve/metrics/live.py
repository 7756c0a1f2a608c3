"""Live metrics of a running measurement: a progress listener that counts, and serves scrapers."""

from __future__ import annotations

import math
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping

from prony import __version__
from prony.evidence.engine import IntervalRow
from prony.evidence.trial import TrialRecord
from prony.judge.finding import BUDGETED, Judgement
from prony_serve.metrics.exposition import Family, Sample
from prony_serve.metrics.figures import in_base_units

NS_PER_S = 1e9
COUNTED: tuple[tuple[str, str, str], ...] = (
    ("completed", "prony_requests_completed", "Whole responses"),
    ("failed", "prony_requests_failed",
        "Requests without a response, or with a response that failed an expectation"),
    ("sent", "prony_requests_sent", "Requests sent"),
    ("offered", "prony_requests_offered", "Requests that became due (open load)"),
    ("bytes_received", "prony_received_bytes", "Bytes received"),
    ("connections_opened", "prony_connections_opened", "Connections opened"),
)  # fmt: skip
"""(field of a row, counter, help)."""
GAUGES: tuple[tuple[str, str, str, float], ...] = (
    ("in_flight", "prony_requests_in_flight", "Requests in flight", 1.0),
    ("users", "prony_users", "Users, or occupied slots (open load)", 1.0),
    ("connections_open", "prony_connections_open", "Open connections", 1.0),
    ("client_cpu", "prony_client_cpu_ratio", "CPU time of the measuring threads ÷ wall time, last row", 1.0),
    ("loop_lag_p99_ns", "prony_client_loop_lag_p99_seconds", "p99 of the loop lag, last row", 1 / NS_PER_S),
    ("send_lag_p99_ns", "prony_send_lag_p99_seconds", "p99 of the send lag, last row (open load)",
        1 / NS_PER_S),
    ("max_ns", "prony_service_time_max_seconds", "Longest service time, last row", 1 / NS_PER_S),
)  # fmt: skip
"""(field of the last row, gauge, help, factor)."""
QUANTILES = (("0.5", "p50_ns"), ("0.9", "p90_ns"), ("0.99", "p99_ns"))
LATENCIES = (("0.5", "latency_p50_ns"), ("0.99", "latency_p99_ns"))


class LiveMetrics:
    """Progress listener; `families()` is safe to call from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._experiment: dict[str, str] = {}
        self._planned = 0
        self._ended = {True: 0, False: 0}
        self._last: dict[str, tuple[Judgement, dict[str, float]]] = {}
        self._server = ""
        self._index = 0
        self._phase = ""
        self._row: IntervalRow | None = None
        self._counts: dict[tuple[str, str, bool], float] = {}
        self._errors: dict[tuple[str, str, bool], float] = {}
        self._time_sum_s: defaultdict[tuple[str, bool], float] = defaultdict(float)
        self._times: Counter[tuple[str, bool]] = Counter()

    # -- events of the experiment

    def experiment_started(self, total_trials: int, estimate_s: float, ended: int = 0) -> None:  # noqa: ARG002
        with self._lock:
            self._planned = total_trials

    def stored_as(self, identifier: str, title: str) -> None:
        with self._lock:
            self._experiment = {"experiment": identifier, "title": title}

    def build(self, server: str, line: str) -> None: ...

    def trial_started(self, index: int, server: str, block: int, planned_s: float) -> None:  # noqa: ARG002
        with self._lock:
            self._server, self._index, self._phase, self._row = server, index, "", None

    def phase(self, name: str, expected_s: float | None) -> None:  # noqa: ARG002
        with self._lock:
            self._phase = name

    def row(self, row: IntervalRow) -> None:
        with self._lock:
            self._row = row
            for field, _, _ in COUNTED:
                self._add(field, getattr(row, field), row.in_window)
            for kind, count in row.errors.items():
                key = (self._server, kind, row.in_window)
                self._errors[key] = self._errors.get(key, 0) + count
            if row.mean_ns is not None:
                key_of_times = (self._server, row.in_window)
                self._times[key_of_times] += row.completed
                self._time_sum_s[key_of_times] += row.mean_ns * row.completed / NS_PER_S

    def trial_stored(
        self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, float]
    ) -> None: ...

    def trial_ended(
        self,
        judgement: Judgement,
        figures: Mapping[str, float],
        seconds: float,  # noqa: ARG002
    ) -> None:
        with self._lock:
            self._ended[judgement.conforms] += 1
            known = {name: figures[name] for name in BUDGETED if name in figures and judgement.conforms}
            self._last[self._server] = judgement, known
            self._phase, self._row = "", None

    def note(self, text: str) -> None: ...

    def finished(self) -> None: ...

    def _add(self, field: str, value: float | None, measured: bool) -> None:
        if value is not None:
            key = (field, self._server, measured)
            self._counts[key] = self._counts.get(key, 0) + value

    # -- what is scraped

    def families(self) -> tuple[Family, ...]:
        """The current values; empty families are left out of the text."""
        with self._lock:
            return (*self._of_experiment(), *self._of_trials(), *self._of_load(), *self._of_times())

    def _of_experiment(self) -> list[Family]:
        now = () if not self._server else (Sample(1, {"server": self._server, "phase": self._phase}),)
        return [
            Family("prony_build", "info", "The laboratory", (Sample(1, {"version": __version__}),)),
            Family("prony_experiment", "info", "What is measured",
                (Sample(1, self._experiment),) if self._experiment else ()),
            Family("prony_trials_planned", "gauge", "Trials planned at the start",
                (Sample(self._planned, {}),)),
            Family("prony_trials_ended", "counter", "Trials that have ended, by whether they conform",
                tuple(Sample(n, {"conforms": _text(conforms)}) for conforms, n in self._ended.items())),
            Family("prony_trial_index", "gauge", "Number of the running trial, from 1",
                (Sample(self._index, {}),)),
            Family("prony_trial_phase", "info", "Phase of the running trial", now),
        ]  # fmt: skip

    def _of_trials(self) -> list[Family]:
        """The last trial of each server; a trial that does not conform has no figures."""
        conforming: list[Sample] = []
        values: list[Sample] = []
        biases: list[Sample] = []
        for server, (judgement, figures) in self._last.items():
            conforming.append(Sample(judgement.conforms, {"server": server}))
            for figure, value in figures.items():
                name, factor = in_base_units(figure)
                labels = {"server": server, "figure": name}
                bias = judgement.bias(figure)
                low, high = (-1.0 if bias.low is None else bias.low), bias.high
                values.append(Sample(value * factor, labels))
                biases.append(Sample(low, labels | {"side": "low"}))
                biases.append(Sample(math.inf if high is None else high, labels | {"side": "high"}))
        of = "of each server's last trial that ended"
        return [
            Family("prony_trial_conforms", "gauge", f"Whether it conforms, {of}", tuple(conforming)),
            Family("prony_figure", "gauge", f"Figures, {of}", tuple(values)),
            Family(
                "prony_figure_bias_ratio",
                "gauge",
                "Bounds of the bias, relative, low and high; -1 and +Inf: not bounded",
                tuple(biases),
            ),
        ]

    def _of_load(self) -> list[Family]:
        families = [
            Family(
                name,
                "counter",
                words,
                tuple(
                    Sample(value, _labels(server, measured))
                    for (counted, server, measured), value in self._counts.items()
                    if counted == field
                ),
            )
            for field, name, words in COUNTED
        ]
        errors = tuple(
            Sample(value, _labels(server, measured) | {"kind": kind})
            for (server, kind, measured), value in self._errors.items()
        )
        families.append(Family("prony_request_errors", "counter", "Errors by kind (docs/engine.md)", errors))
        row = self._row
        for field, name, words, factor in GAUGES:
            value = None if row is None else getattr(row, field)
            samples = () if value is None else (Sample(value * factor, {"server": self._server}),)
            families.append(Family(name, "gauge", words, samples))
        return families

    def _of_times(self) -> list[Family]:
        """Summaries: quantiles of the last row; sum and count of all rows."""
        samples = [*self._quantiles(QUANTILES)]
        for key, count in self._times.items():
            labels = _labels(*key)
            samples.append(Sample(self._time_sum_s[key], labels, "_sum"))
            samples.append(Sample(count, labels, "_count"))
        return [
            Family("prony_service_time_seconds", "summary",
                "From the actual send to the last byte: quantiles of the last row", tuple(samples)),
            Family("prony_latency_seconds", "summary",
                "From the intended send (open load): quantiles of the last row",
                tuple(self._quantiles(LATENCIES))),
        ]  # fmt: skip

    def _quantiles(self, wanted: tuple[tuple[str, str], ...]) -> list[Sample]:
        row = self._row
        if row is None:
            return []
        labels = _labels(self._server, row.in_window)
        return [
            Sample(ns / NS_PER_S, labels | {"quantile": quantile})
            for quantile, field in wanted
            if (ns := getattr(row, field)) is not None
        ]


def _labels(server: str, measured: bool) -> dict[str, str]:
    """`measured`: whether the row lies in the measurement window."""
    return {"server": server, "measured": _text(measured)}


def _text(value: bool) -> str:
    return str(value).lower()
