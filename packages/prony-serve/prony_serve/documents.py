"""A result as documents of Elasticsearch or OpenSearch: experiments, trials and the rows of their runs.
Document ids are deterministic. Pure.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from prony import __version__
from prony.evidence.engine import IntervalRow
from prony.judge.finding import Finding, Kind
from prony.judge.window import measured
from prony.plan.cell import Cell
from prony.plan.load import ClosedLoad, OpenLoad
from prony.report import tidy
from prony.report.answer import answer
from prony.report.cell_view import TrialView
from prony.report.result import ResultView
from prony.report.tidy import at

EXPERIMENTS, TRIALS, INTERVALS = "prony-experiments", "prony-trials", "prony-intervals"
"""Names of the data streams."""
LONGEST = 8_192
"""Maximum characters per text: search engines refuse terms of 32 KiB, and the store keeps the whole text."""
NS_PER_MS = 1e6

OF_PAIR = ("a", "b", "figure", "ratio", "low", "high", "worst_low", "worst_high", "at_least", "within")
OF_HOST = ("cpu_model", "cpus", "kernel", "os")


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a data stream; `@timestamp` is in its body."""

    stream: str
    id: str
    body: Mapping[str, Any]


def _finite(value: Any) -> Any:
    """With null for what JSON has not (NaN, infinity)."""
    if isinstance(value, Mapping):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True, slots=True)
class Origin:
    """The experiment's fields that every document carries."""

    id: str
    title: str
    command: str
    created: datetime
    quick: bool
    hostname: str
    fingerprint_key: str
    """Two laboratories may use the same experiment id; their hosts differ."""

    @classmethod
    def of(cls, view: ResultView) -> Origin:
        """The origin of a stored result."""
        host = view.fingerprint
        return cls(
            view.id,
            view.title,
            view.plan.command,
            view.created,
            view.quick,
            "" if host is None else host.hostname,
            "" if host is None else host.key,
        )

    @property
    def fields(self) -> dict[str, Any]:
        """The fields as they stand in a document."""
        return {
            "experiment": {
                "id": self.id,
                "title": short(self.title),
                "command": self.command,
                "quick": self.quick,
            },
            "host": {"name": self.hostname, "fingerprint": self.fingerprint_key},
            "prony": {"version": __version__},
        }

    def named(self, *parts: str) -> str:
        """A document id that is unique across laboratories."""
        return "/".join((self.fingerprint_key, *parts))


def documents(view: ResultView) -> Iterator[Document]:
    """All documents of one experiment: each trial's rows, each trial, then the experiment."""
    origin = Origin.of(view)
    for part in view.parts:
        for cell, trial in tidy.every(part):
            yield from of_trial(origin, cell.cell, trial, repeated=tidy.is_repeated(cell, trial))
    yield of_experiment(origin, view)


def of_experiment(origin: Origin, view: ResultView) -> Document:
    """The experiment now. Data streams are append-only: resumed or re-judged, it gets another document."""
    ended = max((trial.record.ended_at for trial in view.trials), default=view.created)
    body = origin.fields | {
        "@timestamp": _iso(ended),
        "status": view.state,
        "conforms": view.conforms,
        "sentence": short(answer(view).sentence),
        "trials": len(view.trials),
        "conforming_trials": sum(trial.conforms for trial in view.trials),
        "planned_trials": view.planned,
        "servers": [server.address for server in view.servers],
        "warnings": [short(warning) for warning in view.warnings],
        "pairs": [
            {name: getattr(pair, name) for name in OF_PAIR} | {"claim": pair.claim.value}
            for part in view.parts
            for pair in part.pairs
        ],
    }
    body["created"] = _iso(view.created)
    if view.fingerprint is not None:
        body["host"] |= {name: getattr(view.fingerprint, name) for name in OF_HOST}
    return Document(EXPERIMENTS, origin.named(view.id, _digest(repr(body))), body)


def of_trial(origin: Origin, cell: Cell, trial: TrialView, *, repeated: bool = False) -> Iterator[Document]:
    """The trial's rows, then the trial: a trial that is searchable has its rows. `repeated`: a later trial of
    the same block replaces this one, so it does not count.
    """
    record = trial.record
    shared = origin.fields | {
        "trial": {
            "id": record.id,
            "block": record.block + 1,
            "position": record.position + 1,
            "kind": record.kind,
        },
        "part": cell.part,
        "cell": cell.id,
        "server": cell.server,
        "workload": record.workload,
        "load": _load(cell),
    }
    yield from _rows(origin, shared, trial)
    body = shared | _trial(trial) | {"repeated": repeated, "counts": trial.counts and not repeated}
    yield Document(TRIALS, origin.named(record.id, judged_as(trial, repeated=repeated)), _finite(body))


def judged_as(trial: TrialView, *, repeated: bool = False) -> str:
    """A digest of the trial's judgement, failure and `repeated`: the same state gives the same text."""
    state = trial.judgement.model_dump_json() + (trial.record.failure or "")
    return _digest(f"{state} repeated" if repeated else state)


def short(text: str) -> str:
    """The text, cut to LONGEST characters."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text) - LONGEST} more characters)"


def _trial(trial: TrialView) -> dict[str, Any]:
    record = trial.record
    evidence = record.evidence
    window = measured(evidence)
    values = tidy.values(trial)
    body: dict[str, Any] = {
        "@timestamp": _iso(record.ended_at),
        "started": _iso(record.started_at),
        "conforms": trial.conforms,
        "not_conforming": [code for code, _ in trial.reasons],
        "why": short(trial.why_not or ""),
        "bound_by": trial.judgement.bound_by,
        "figures": {name: value.value for name, value in values.items() if value.value is not None},
        "uncertainty": {name: _known(value) for name, value in values.items()},
        "findings": [
            _finding(finding) for finding in trial.judgement.findings if finding.kind is not Kind.FINE
        ],
        "versions": [f"{name} {version}" for name, version in sorted(evidence.server.versions.items())],
        "notes": [short(note) for note in record.notes],
    }
    if window is not None:
        body["window"] = {
            "duration_s": window.duration_s,
            "completed": window.completed,
            "failed": window.failed,
            "errors": [{"kind": kind, "count": n} for kind, n in window.errors.items() if n],
            "status": [{"code": int(code), "count": n} for code, n in window.status.items()],
        }
    return body


def _known(figure: tidy.Value) -> dict[str, float]:
    """The bounds of a figure that are known."""
    names = (*tidy.ESTIMATED[1:], "above")
    return {name: value for name in names if (value := getattr(figure, name)) is not None}


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "check": finding.check,
        "code": finding.code,
        "kind": finding.kind.value,
        "provided": short(finding.provided),
        "value": None if finding.value is None else short(str(finding.value)),
        "limit": short(finding.limit),
        "reason": short(finding.reason),
        "advice": short(finding.advice),
    }


def _load(cell: Cell) -> dict[str, Any]:
    load = cell.trial.load
    return {
        "name": cell.trial.load_name,
        "model": load.model,
        "users": load.users if isinstance(load, ClosedLoad) else None,
        "offered_per_s": load.rate_per_s if isinstance(load, OpenLoad) else None,
    }


def _rows(origin: Origin, shared: Mapping[str, Any], trial: TrialView) -> Iterator[Document]:
    engine = trial.record.evidence.engine
    for row in () if engine is None else engine.rows:
        body = dict(shared) | {"@timestamp": _iso(at(trial, row.t_ms)), "row": _row(row)}
        yield Document(INTERVALS, origin.named(trial.record.id, f"{row.t_ms:.0f}"), _finite(body))


def _row(row: IntervalRow) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "t_ms": row.t_ms,
        "duration_ms": row.duration_ms,
        "in_window": row.in_window,
        "completed": row.completed,
        "completed_per_s": row.completed_per_s,
        "failed": row.failed,
        "errors": [{"kind": kind, "count": n} for kind, n in row.errors.items() if n],
        "in_flight": row.in_flight,
        "users": row.users,
        "connections_open": row.connections_open,
        "client_cpu": row.client_cpu,
        "offered": row.offered,
        "sent": row.sent,
    }
    for name in ("mean", "p50", "p90", "p99", "max", "latency_p50", "latency_p99", "send_lag_p99"):
        ns = getattr(row, f"{name}_ns")
        fields[f"{name}_ms"] = None if ns is None else ns / NS_PER_MS
    return fields


def _iso(when: datetime) -> str:
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
