"""What an experiment leaves behind, made up; also for the processes that the tests start and kill."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from prony.evidence.engine import Counters, EngineReport, Histogram, IntervalRow, Ready, Window
from prony.evidence.host import Fingerprint
from prony.evidence.server import ServerIdentity
from prony.evidence.trial import Evidence, LoadFacts, TrialRecord
from prony.judge.finding import Bias, Finding, Judgement

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

FINGERPRINT = Fingerprint(
    key="abc",
    hostname="h",
    architecture="x86_64",
    cpu_model="m",
    cpus=2,
    memory_bytes=1,
    kernel="6",
    os="o",
)

JUDGEMENT = Judgement(
    conforms=True,
    findings=(
        Finding(
            check="errors",
            code="failed",
            bias={"requests_per_s": Bias(low=0.0, high=0.01)},
            value=0.01,
            limit="0",
            reason="one failed",
        ),
    ),
    bound_by="server-cpu",
)


def plan(
    *, command: str = "compare", window_s: float = 10, step: dict[str, object] | None = None, note: str = ""
) -> dict[str, Any]:
    """A plan of one cell."""
    trial = {
        "workload": {"name": "hello", "steps": [step or {"path": "/"}]},
        "load": {"model": "closed", "users": 10},
        "measured": {"kind": "steady", "window_s": window_s},
    }
    cell = {
        "id": "main/tomcat:async/hello/closed-10",
        "part": "main",
        "server": "tomcat:async",
        "target": {"kind": "url", "url": "http://h/"},
        "trial": trial,
        "trials": 1,
    }
    parts = [{"name": "main", "title": "x"}]
    named = {"name": "x", "command": command, "title": "x", "note": note}
    return named | {"parts": parts, "cells": [cell], "seed": 7}


def make_trial(experiment: str, number: int = 1, rows: int = 30, **values: object) -> TrialRecord:
    """A trial with an engine's report of so many rows; `values` replace fields."""
    histogram = Histogram(count=10, mean_ns=float("inf"), v2="HISTF" + "A" * 4000)
    report = EngineReport(
        ready=Ready(version="1", driver="epoll", pid=1, started_unix_ns=1, started_monotonic_ns=2**62),
        rows=tuple(IntervalRow(t_ms=1000.0 * i, duration_ms=1000.1, completed=7 * i) for i in range(rows)),
        reason="stopped",
        elapsed_ms=1.0,
        totals=Counters(sent=1, errors={"read": 1}),
        window=Window(opened_ms=1, duration_s=0.1, service_time=histogram),
    )
    started = NOON + timedelta(minutes=number)
    fields: dict[str, object] = {
        "id": f"{experiment}-{number:03d}",
        "experiment_id": experiment,
        "server": "tomcat:async",
        "workload": "hello",
        "load_name": "closed-10",
        "block": number,
        "position": 0,
        "seed": 2**63 + 1,
        "started_at": started,
        "ended_at": started + timedelta(seconds=50),
        "fingerprint_key": "abc",
        "evidence": Evidence(
            load=LoadFacts(model="closed", users=10), server=ServerIdentity(name="tomcat"), engine=report
        ),
    }
    return TrialRecord.model_validate(fields | values)
