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
from prony.report.cross_check import opinions_of
from prony.report.findings import finding_groups
from prony.report.hosts import hosts_of
from prony.report.listings import NoteOut
from prony.report.result import PartView, ResultView, SearchView
from prony.report.scaling import capacity_words, law_words
from prony.report.trial_tables import steps_of, time_parts_of


def to_json(view: ResultView) -> out.ResultOut:
    """Everything about one stored experiment."""
    return out.ResultOut(
        id=view.id,
        title=view.title,
        note=view.plan.note,
        tags=list(view.tags),
        notes=[NoteOut.of(note) for note in view.notes],
        command=view.plan.command,
        created=view.created.isoformat(),
        status=view.state,
        quick=view.quick,
        conforms=view.conforms,
        sentence=answer(view).sentence,
        planned_trials=view.planned,
        ended_trials=len(view.trials),
        warnings=list(view.warnings),
        servers=list(view.servers),
        parts=[_part(part) for part in view.parts],
        seed=view.plan.seed,
        host=view.fingerprint,
        partition=view.partition,
        plan=view.plan.as_stored(),
    )


def _part(part: PartView) -> out.PartOut:
    laws = [_law(server, law, part) for server, law in part.laws.items() if law is not None]
    return out.PartOut(
        name=part.part.name,
        title=part.part.title,
        note=part.part.note,
        shape=part.part.shape,
        conforms=part.usable if part.trials or part.failure else None,
        explanations=list(part.explanation.servers) if part.explanation is not None else [],
        differences=list(part.explanation.differences) if part.explanation is not None else [],
        failure=part.failure,
        cells=[_cell(cell) for cell in part.cells],
        skipped=list(part.skipped),
        pairs=list(part.pairs),
        positions=list(part.positions),
        shared=list(part.shared),
        levels=part.levels,
        aa=part.aa,
        aa_on_record=part.aa_on_record,
        gate=part.gate,
        findings=list(finding_groups(part)),
        laws=laws,
        search=None if part.search is None else _search(part.search),
        cross_check=_cross_check(part),
    )


def _cell(cell: CellView) -> out.CellOut:
    load = cell.cell.trial.load
    names = dict.fromkeys([*(name for trial in cell.counting for name in trial.figures), *NAMED])
    figures = {name: found for name in names if (found := cell.figure(name)) is not None}
    return out.CellOut(
        id=cell.cell.id,
        server=cell.cell.server,
        workload=cell.cell.trial.workload.name,
        load=cell.cell.trial.load_name,
        users=cell.users,
        offered_per_s=load.rate_per_s if isinstance(load, OpenLoad) else None,
        conforms=cell.conforms,
        not_conforming=list(cell.why_not),
        bound_by=cell.bound_by,
        plateau=cell.plateau,
        uncertainty={name: off for name in figures if (off := cell.uncertainty(name)) is not None},
        budget=[
            out.BudgetOut(
                source=line.source,
                code=line.code,
                figure=name,
                low=line.low,
                high=line.high,
                assumption=line.assumption,
                advice=line.advice,
            )
            for name in BUDGETED
            if name in figures
            for line in cell.budget(name)
        ],
        provided=list(cell.provided),
        planned_trials=cell.cell.trials,
        ended_trials=len(cell.trials),
        counting_trials=len(cell.counting),
        figures=figures,
        published=list(cell.cell.published),
        trials=[
            *(_trial(trial) for trial in cell.every),
            *(_trial(trial, repeated=True) for trial in cell.superseded),
        ],
    )


def _trial(trial: TrialView, *, repeated: bool = False) -> out.TrialOut:
    record, printed = trial.record, trial.conforms
    evidence = record.evidence
    engine, window = evidence.engine, measured(evidence)
    start = evidence.start_up
    is_open = evidence.load.model == "open"
    return out.TrialOut(
        id=record.id,
        block=record.block,
        position=record.position,
        kind=record.kind,
        process=record.process,
        conforms=trial.conforms,
        not_conforming=[out.NotConformingOut(code=code, reason=why) for code, why in trial.reasons],
        counts=trial.counts and not repeated,
        repeated=repeated,
        bound_by=trial.judgement.bound_by,
        driver=engine.ready.driver if engine is not None else None,
        duration_s=window.duration_s if window is not None else None,
        figures=dict(trial.estimates),
        budget=_budget(trial),
        service_time=_times(window.service_time, evidence) if window is not None and printed else None,
        response_time=_times(window.response_time, evidence)
        if window is not None and printed and window.response_time is not None
        else None,
        latency=_times(window.latency, evidence) if window is not None and printed and is_open else None,
        percentiles=_percentiles(trial) if printed else {},
        reported=dict(start.reported) if start is not None and printed else {},
        counters=_counters(trial),
        steps=steps_of(trial),
        time_parts=time_parts_of(trial),
        hosts=hosts_of(trial),
        findings=list(trial.judgement.findings),
        notes=list(record.notes),
    )


def _budget(trial: TrialView) -> list[out.BudgetOut]:
    return [
        out.BudgetOut(
            source=line.finding.check,
            code=line.finding.code,
            figure=name,
            low=line.bias.low,
            high=line.bias.high,
            assumption=line.finding.assumption,
            advice=line.finding.advice,
        )
        for name in (*BUDGETED, *CAPACITY)
        if name in trial.figures or name in CAPACITY
        for line in trial.judgement.budget(name)
    ]


def _times(histogram: Histogram | None, evidence: Evidence) -> out.TimesOut:
    return out.TimesOut.model_validate(times_ms(window_times(histogram, evidence)))


def _percentiles(trial: TrialView) -> dict[str, out.PercentileOut]:
    def finite(value_ms: float) -> float | None:
        return value_ms if math.isfinite(value_ms) else None

    return {
        name: out.PercentileOut(
            value_ms=finite(found.value_ms),
            low_ms=finite(found.low_ms),
            high_ms=finite(found.high_ms),
            above_ms=found.above_ms if math.isinf(found.value_ms) else None,
            responses_ms=found.responses_ms,
        )
        for name, found in trial.percentiles.items()
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
    return out.CountsOut(
        requests=window.completed,
        failed=window.failed,
        errors={kind: n for kind, n in window.errors.items() if n},
        status_codes=dict(window.status),
        blocked=window.blocked if evidence.load.model == "open" else None,
        sessions_begun=window.sessions_begun,
        sessions_completed=window.sessions_completed,
        **whole,
    )


def _law(server: str, law: Scaling, part: PartView) -> out.LawOut:
    users = sorted({cell.users for cell in part.of(server) if cell.users is not None})
    return out.LawOut(
        server=server,
        rising=law.rising,
        rate_1_per_s=law.rate_1,
        alpha=law.alpha,
        beta=law.beta,
        peak_users=law.peak,
        peak_seen=law.peak_seen,
        sweet_spot_users=law.sweet_spot,
        miss=law.miss,
        poor=law.poor,
        confidence=law.confidence,
        fitted_per_s={str(number): law.per_s(number) for number in users},
        sentences=law_words(law),
    )


def _search(search: SearchView) -> out.SearchOut:
    found = search.found
    return out.SearchOut(
        objectives=list(search.objectives),
        held_per_s=found.held_per_s,
        failed_per_s=found.failed_per_s,
        client_per_s=found.client_per_s,
        undecided_per_s=found.undecided_per_s,
        end=None if found.end is None else found.end.value,
        sentence=capacity_words(search),
        tried=[
            out.TriedOut(
                trial=one.trial.record.id,
                rate_per_s=one.rate_per_s,
                outcome=one.outcome.value,
                pressure=one.pressure,
            )
            for one in search.tried
        ],
    )


def _cross_check(part: PartView) -> out.CrossCheckOut | None:
    asked = part.part.cross_check
    if asked is None:
        return None
    return out.CrossCheckOut(opinions=list(opinions_of(part)), left_out=asked.left_out)
