"""From the view to the JSON of schema.py. Pure; must not know where it is printed."""

from __future__ import annotations

import math
from typing import Any

from pydantic import BaseModel

from prony.evidence.engine import EngineReport, Window
from prony.judge.figures import SESSION_TIMES, times_ms
from prony.report.model import ExperimentView, PublishedFigures, ServerView, TrialView
from prony.report.parts import parts_of
from prony.report.schema import (
    ClientOut,
    CompareOut,
    FindingOut,
    LoadOut,
    PairOut,
    PartOut,
    PassOut,
    ServerCostOut,
    ServerOut,
    SessionsOut,
    SpreadOut,
    StartUpOut,
    StepOut,
    TimesOut,
    TlsOut,
    TrialOut,
)
from prony.report.steps import steps_of
from prony.report.summary import LAYOUT, counting, overall, spread_of

TIMES = ("min", "mean", "p50", "p90", "p95", "p99", "p999", "max")


def to_json(view: ExperimentView) -> dict[str, Any]:
    """The JSON of an experiment; of one run against a server that Prony did not start, that of `prony
    load`.
    """
    if len(view.trials) == 1 and view.foreign:
        return load_json(view.trials[0])
    return compare_json(view)


def load_json(trial: TrialView) -> dict[str, Any]:
    """The JSON object of `prony load`."""
    record = trial.record
    made = LoadOut(id=record.experiment_id, target=record.server, **_measured(trial))
    return _dump(made)


def compare_json(view: ExperimentView) -> dict[str, Any]:
    """The JSON object of `prony compare`."""
    made = CompareOut(
        id=view.id,
        title=view.title,
        created=view.created.isoformat(),
        quick=view.quick,
        verdict=overall(view).value,
        servers=[_server(view, server) for server in view.servers],
        pairs=[
            PairOut(
                a=pair.a,
                b=pair.b,
                metric=pair.figure,
                ratio=_number(pair.ratio),
                ci_low=_number(pair.low),
                ci_high=_number(pair.high),
                verdict=pair.verdict,
                sentence=pair.sentence,
                more_trials=pair.more_trials,
            )
            for pair in view.pairs
        ],
        published=_published(view.published),
        host=view.fingerprint.model_dump(mode="json") if view.fingerprint is not None else None,
        plan=dict(view.plan),
        warnings=list(view.warnings),
        passes=[
            PassOut(
                title=made.title,
                id=made.experiment_id,
                head=list(made.head),
                rows=[list(row) for row in made.rows],
                sentences=list(made.sentences),
            )
            for made in view.passes
        ],
    )
    return _dump(made)


def _server(view: ExperimentView, server: ServerView) -> ServerOut:
    figures = dict.fromkeys(
        [f for _, _, names in LAYOUT for f in names]
        + [f for t in counting(view, server.address) for f in t.figures]
    )
    spreads = {f: s for f in figures if (s := spread_of(view, server.address, f)) is not None}
    return ServerOut(
        name=server.address,
        title=server.title,
        version=", ".join(f"{name} {version}" for name, version in server.versions.items()),
        versions=dict(server.versions),
        jdk=server.jdk,
        trials=[_trial(trial) for trial in view.trials if trial.record.server == server.address],
        summary={f: SpreadOut(median=s.median, min=s.low, max=s.high, n=s.n) for f, s in spreads.items()},
    )


def _trial(trial: TrialView) -> TrialOut:
    record = trial.record
    shown = _shown(trial)
    start = record.evidence.start_up
    reported = dict(start.reported) if start is not None and shown else {}
    return TrialOut(
        id=record.id,
        block=record.block,
        position=record.position,
        kind=record.kind,
        counts=trial.counts,
        rejected_because=trial.rejected_because,
        startup=StartUpOut(
            **{f: shown.get(f) for f in StartUpOut.model_fields if f != "reported"}, reported=reported
        ),
        server=ServerCostOut(**{f: shown.get(f) for f in ServerCostOut.model_fields}),
        **_measured(trial),
    )


def _shown(trial: TrialView) -> dict[str, float]:
    """The figures that may be printed: none of a rejected trial."""
    if trial.rejected_because is not None:
        return {}
    return {name: value for name, value in trial.figures.items() if math.isfinite(value)}


def _measured(trial: TrialView) -> dict[str, Any]:
    shown = _shown(trial)
    engine = trial.record.evidence.engine
    window = engine.window if engine is not None else None
    return {
        "verdict": "invalid" if trial.rejected_because is not None else trial.judgement.verdict.value,
        "bound_by": trial.judgement.bound_by,
        "findings": [
            FindingOut(
                check=f.check,
                status=f.status.value,
                value=_number(f.value) if isinstance(f.value, float) else f.value,
                limit=f.limit,
                reason=f.reason,
                advice=f.advice,
            )
            for f in trial.judgement.findings
        ],
        "requests": window.completed if window is not None else None,
        "errors": {kind: n for kind, n in window.errors.items() if n} if window is not None else {},
        "status_codes": dict(window.status) if window is not None else {},
        "throughput_per_s": shown.get("requests_per_s"),
        **_times(trial, shown),
        "sessions": _sessions(window, shown),
        "tls": _tls(engine, shown) if trial.record.evidence.load.tls else None,
        "client": ClientOut(
            driver=engine.ready.driver if engine is not None else None,
            cpu_us_per_request=shown.get("client_cpu_us_per_request"),
            cpu_busy=shown.get("client_cpu_share"),
        ),
        "connections_opened": engine.totals.connections_opened if engine is not None else None,
        "duration_s": _number(window.duration_s) if window is not None else None,
        "steps": [
            StepOut(
                scenario=step.scenario,
                name=step.name,
                requests=step.completed,
                failed=step.failed,
                mean_ms=_number(step.mean_ms),
                p50_ms=_number(step.p50_ms),
                p99_ms=_number(step.p99_ms),
            )
            for step in steps_of(trial)
        ],
        "time_parts": [
            PartOut.model_validate(
                {
                    "name": part.name,
                    "samples": part.count,
                    "mean_ms": _number(part.mean_ms),
                    "p50_ms": _number(part.p50_ms),
                    "p99_ms": _number(part.p99_ms),
                }
            )
            for part in parts_of(trial)
        ],
    }


def _times(trial: TrialView, shown: dict[str, float]) -> dict[str, Any]:
    """The figures of an open loop are latencies; its service times come from a histogram of their own."""
    own = TimesOut(**{name: shown.get(f"{name}_ms") for name in TIMES})
    if trial.record.evidence.load.model == "closed":
        return {"service_time_ms": own, "latency_ms": None}
    engine = trial.record.evidence.engine
    window = engine.window if engine is not None and trial.rejected_because is None else None
    found = times_ms(window.service_time) if window is not None else {}
    return {
        "service_time_ms": TimesOut(**{name: _number(found.get(f"{name}_ms")) for name in TIMES}),
        "latency_ms": own,
    }


def _sessions(window: Window | None, shown: dict[str, float]) -> SessionsOut | None:
    if window is None or window.sessions_begun is None or window.sessions_completed is None:
        return None
    times = TimesOut(**{name: shown.get(f"session_{name}_ms") for name in SESSION_TIMES})
    return SessionsOut(
        begun=window.sessions_begun,
        completed=window.sessions_completed,
        blocked=window.blocked,
        time_ms=times,
    )


def _tls(engine: EngineReport | None, shown: dict[str, float]) -> TlsOut | None:
    if engine is None:
        return None
    return TlsOut(
        handshakes=engine.totals.tls_handshakes,
        resumptions=engine.totals.tls_resumptions,
        handshakes_per_request=shown.get("handshakes_per_request"),
    )


def _published(published: PublishedFigures | None) -> dict[str, Any] | None:
    if published is None:
        return None
    figures = {figure: dict(values) for figure, values in published.figures.items()}
    return {"source": published.source, "note": published.note, "figures": figures}


def _dump(made: BaseModel) -> dict[str, Any]:
    """JSON has no NaN and no infinity: they become null."""
    dumped = made.model_dump(mode="json", by_alias=True)
    first = {key: dumped.pop(key) for key in ("schema", "kind", "id")}
    return {key: _clean(part) for key, part in (first | dumped).items()}


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _clean(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _clean(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_clean(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
