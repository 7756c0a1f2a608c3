"""From the view to the JSON models of schema.py. Pure."""

from __future__ import annotations

import math

from prony.compare.scaling import Scaling
from prony.evidence.engine import Histogram
from prony.evidence.trial import Evidence
from prony.judge.figures import times_ms
from prony.judge.finding import BUDGETED, CAPACITY
from prony.judge.times import NAMED, window_times
from prony.judge.window import measured
from prony.plan.load import OpenLoad
from prony.report import schema as out
from prony.report.answer import answer
from prony.report.cell_view import CellView, TrialView
from prony.report.hosts import hosts_of
from prony.report.listings import NoteOut
from prony.report.result import PartView, ResultView, SearchView
from prony.report.scaling import capacity_words, law_words
from prony.report.shapes import finding_groups, shape_of
from prony.report.trial_tables import steps_of, time_parts_of

ENDS = ("value_ms", "low_ms", "high_ms")


def to_json(view: ResultView) -> out.ResultOut:
    """A stored experiment in full."""
    return out.ResultOut.filled(
        view,
        note=view.plan.note,
        command=view.plan.command,
        seed=view.plan.seed,
        notes=[NoteOut.of(note) for note in view.notes],
        created=view.created.isoformat(),
        status=view.state,
        sentence=answer(view).sentence,
        planned_trials=view.planned,
        ended_trials=len(view.trials),
        parts=[_part(part) for part in view.parts],
        host=view.fingerprint,
        plan=view.plan.as_stored(),
    )


def _part(part: PartView) -> out.PartOut:
    laws = [_law(server, law, part) for server, law in part.laws.items() if law is not None]
    explained = part.explanation
    return out.PartOut.filled(
        part.part,
        part,
        conforms=part.usable if part.trials or part.failure else None,
        explanations=[] if explained is None else explained.servers,
        differences=[] if explained is None else explained.differences,
        cells=[_cell(cell) for cell in part.cells],
        aa=part.aa,
        gate=part.gate,
        findings=list(finding_groups(part)),
        laws=laws,
        search=None if part.search is None else _search(part.search),
        cross_check=shape_of(part).cross_check(part),
    )


def _cell(cell: CellView) -> out.CellOut:
    trial = cell.cell.trial
    names = dict.fromkeys([*(name for trial in cell.counting for name in trial.figures), *NAMED])
    figures = {name: spread for name in names if (spread := cell.figure(name)) is not None}
    return out.CellOut.filled(
        cell,
        cell.cell,
        workload=trial.workload.name,
        load=trial.load_name,
        offered_per_s=trial.load.rate_per_s if isinstance(trial.load, OpenLoad) else None,
        not_conforming=cell.why_not,
        uncertainty={name: off for name in figures if (off := cell.uncertainty(name)) is not None},
        budget=[
            out.BudgetOut.filled(line, figure=name)
            for name in BUDGETED
            if name in figures
            for line in cell.budget(name)
        ],
        planned_trials=cell.cell.trials,
        ended_trials=len(cell.trials),
        counting_trials=len(cell.counting),
        figures=figures,
        trials=[
            *(_trial(trial) for trial in cell.every),
            *(_trial(trial, repeated=True) for trial in cell.superseded),
        ],
    )


def _trial(trial: TrialView, *, repeated: bool = False) -> out.TrialOut:
    evidence, printed = trial.record.evidence, trial.conforms
    engine, start, is_open = evidence.engine, evidence.start_up, evidence.load.model == "open"
    window = measured(evidence)
    shown = window if printed else None
    response = None if shown is None else shown.response_time
    return out.TrialOut.filled(
        trial,
        trial.record,
        not_conforming=[out.NotConformingOut(code=code, reason=why) for code, why in trial.reasons],
        counts=trial.counts and not repeated,
        repeated=repeated,
        bound_by=trial.judgement.bound_by,
        driver=engine.ready.driver if engine is not None else None,
        duration_s=window.duration_s if window is not None else None,
        figures=dict(trial.estimates),
        budget=[
            out.BudgetOut.filled(line.finding, line.bias, figure=name, source=line.finding.check)
            for name in (*BUDGETED, *CAPACITY)
            if name in trial.figures or name in CAPACITY
            for line in trial.judgement.budget(name)
        ],
        service_time=None if shown is None else _times(shown.service_time, evidence),
        response_time=None if response is None else _times(response, evidence),
        latency=None if shown is None or not is_open else _times(shown.latency, evidence),
        percentiles=_percentiles(trial) if printed else {},
        reported=dict(start.reported) if start is not None and printed else {},
        counters=_counters(trial),
        steps=steps_of(trial),
        time_parts=time_parts_of(trial),
        hosts=hosts_of(trial),
        findings=trial.judgement.findings,
    )


def _times(histogram: Histogram | None, evidence: Evidence) -> out.TimesOut:
    return out.TimesOut.model_validate(times_ms(window_times(histogram, evidence)))


def _percentiles(trial: TrialView) -> dict[str, out.PercentileOut]:
    return {
        name: out.PercentileOut.filled(
            percentile,
            **{end: value if math.isfinite(value := getattr(percentile, end)) else None for end in ENDS},
            above_ms=percentile.above_ms if math.isinf(percentile.value_ms) else None,
        )
        for name, percentile in trial.percentiles.items()
    }


def _counters(trial: TrialView) -> out.CountsOut:
    evidence = trial.record.evidence
    engine, window = evidence.engine, measured(evidence)
    if engine is None:
        return out.CountsOut()
    whole = {
        "connections_opened": engine.totals.connections_opened,
        "tls_handshakes": engine.totals.tls_handshakes if evidence.load.tls else None,
        "tls_resumptions": engine.totals.tls_resumptions if evidence.load.tls else None,
    }
    if window is None:
        return out.CountsOut(**whole)
    return out.CountsOut.filled(
        window,
        requests=window.completed,
        errors={kind: n for kind, n in window.errors.items() if n},
        status_codes=dict(window.status),
        blocked=window.blocked if evidence.load.model == "open" else None,
        **whole,
    )


def _law(server: str, law: Scaling, part: PartView) -> out.LawOut:
    users = sorted({cell.users for cell in part.of(server) if cell.users is not None})
    return out.LawOut.filled(
        law,
        server=server,
        rate_1_per_s=law.rate_1,
        peak_users=law.peak,
        sweet_spot_users=law.sweet_spot,
        fitted_per_s={str(number): law.per_s(number) for number in users},
        sentences=law_words(law),
    )


def _search(search: SearchView) -> out.SearchOut:
    return out.SearchOut.filled(
        search,
        search.result,
        end=None if search.result.end is None else search.result.end.value,
        sentence=capacity_words(search),
        tried=[
            out.TriedOut.filled(tried, trial=tried.trial.record.id, outcome=tried.outcome.value)
            for tried in search.tried
        ],
    )
