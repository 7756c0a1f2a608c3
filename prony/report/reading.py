"""From the store to the value that every output reads: plan, judged trials, what they come to
part by part.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import yaml

from prony.compare import MARGINS, Comparison, Later, Looks, Margins, Pair, compare
from prony.compare.false_differences import FalseDifferences, false_differences
from prony.compare.noninferiority import Change
from prony.compare.outcome import outcome_of, search_of
from prony.compare.scaling import Point, Scaling, scaling
from prony.compare.sentence import basis, for_window, sentence
from prony.errors import StoreError
from prony.evidence.trial import TrialRecord
from prony.experiment.clear import changes_of, compared_figure, later, questions, sample
from prony.experiment.stored import plan_of
from prony.judge.cell_figures import cell_figures
from prony.judge.checks.host import HostLimits
from prony.judge.checks.steady import SteadyWindowLimits
from prony.judge.drift import plateau_of
from prony.judge.finding import Finding, Judgement
from prony.judge.together import JudgedTrial, together
from prony.plan.cell import Cell
from prony.plan.load import OpenLoad, SteadyWindow
from prony.plan.objective import objectives
from prony.plan.part import AATest, GateTest, Part, Search
from prony.plan.plan import Plan
from prony.report.aa import COMMAND, OnRecord, fitting
from prony.report.cell_view import HEADLINE, CellView, TrialView
from prony.report.explained import explained
from prony.report.gate import GateView, view_of
from prony.report.levels import levels_of
from prony.report.position import position_view
from prony.report.result import (
    PairView,
    PartView,
    PositionView,
    ResultView,
    SearchView,
    ServerView,
    SourceView,
    Tried,
)
from prony.report.shared import shared_views
from prony.report.wording import duration
from prony.report.words import join
from prony.steady.detector import change_points_ms
from prony.store import ExperimentRow, Store, StoredTrial
from prony.trial.load_run import INTERRUPTED

log = logging.getLogger("prony.report")
COMPARED = (HEADLINE, "p99_ms", "server_cpu_us_per_request", "peak_rss_mib", "time_to_ready_s")
"""The figures of a comparison that are compared pair by pair."""
FEWEST = 3
"""Trials per server from which a ratio is worth an interval."""


def load_result(store: Store, which: str) -> ResultView:
    """Everything about one stored experiment. Raises UsageError when there is none of this id."""
    row = store.experiment(which)
    tags, notes = store.labels_of(row.id)
    view = replace(result_view(row, store.trials(row.id)), tags=tags, notes=notes)
    if not any(map(_compares, view.parts)):
        return view
    tried = store.experiments(command=COMMAND, fingerprint_key=row.fingerprint.key)
    found = fitting(tried, row.fingerprint.key, view.plan.cells)
    known = None if found is None else _known_on_record(store, found)
    parts = (replace(p, aa_on_record=known if _compares(p) else None) for p in view.parts)
    return replace(view, parts=tuple(parts))


def _known_on_record(store: Store, found: ExperimentRow) -> OnRecord | None:
    """None where it cannot be read: its own page says why, and no other result waits for it."""
    try:
        return _on_record(result_view(found, store.trials(found.id)))
    except (StoreError, ValueError, ArithmeticError, LookupError, TypeError) as fault:
        log.info("the A/A experiment %s cannot be read: %s", found.id, fault)
        return None


def _compares(part: PartView) -> bool:
    return bool(part.pairs) or part.gate is not None


def _on_record(view: ResultView) -> OnRecord | None:
    (part, *_), (cell, *_) = view.parts, view.plan.cells
    if part.aa is None:
        return None
    return OnRecord(view.id, view.created.isoformat(), cell.server, cell.trial.workload.name, part.aa)


def result_view(row: ExperimentRow, stored: Sequence[StoredTrial]) -> ResultView:
    """The view of a stored experiment. Raises StoreError for a plan that this Prony does not understand."""
    trials = [trial_view(one) for one in stored]
    view = build(row, plan_of(row), trials)
    again = _judged_again(stored)
    odd = (f"{one.record.id}: {what}" for one in stored for what in one.judgements[-1].odd)
    return replace(view, warnings=(*view.warnings, *odd, *([again] if again else [])))


def build(row: ExperimentRow, plan: Plan, trials: Sequence[TrialView]) -> ResultView:
    """The view of these trials of this plan."""
    by_cell: dict[str, list[TrialView]] = {}
    for trial in trials:
        by_cell.setdefault(trial.record.cell, []).append(trial)
    ended = row.status != "running"
    parts = tuple(_part(plan, part, by_cell, ended=ended) for part in plan.parts)
    view = ResultView(
        id=row.id,
        title=row.name,
        created=row.created,
        state=row.status,
        plan=plan,
        plan_text=plan_yaml(plan),
        parts=tuple(part for part in parts if part.cells or part.skipped or part.part.follows),
        fingerprint=row.fingerprint,
        partition=next((p for t in trials if (p := t.record.evidence.partition) is not None), None),
    )
    return replace(view, warnings=tuple(_warnings(view)))


def plan_yaml(plan: Plan) -> str:
    """The exact plan, in the order of the model."""
    spec = plan.model_dump(mode="json", exclude_defaults=True)
    return yaml.safe_dump(spec, sort_keys=False, allow_unicode=True, width=110)


def trial_view(stored: StoredTrial) -> TrialView:
    """A stored trial as reports read it."""
    return viewed(stored.record, stored.judgement, stored.figures)


def viewed(record: TrialRecord, judgement: Judgement, figures: Mapping[str, float]) -> TrialView:
    """A trial with its newest judgement, and with the figures that only tables of cells show."""
    evidence = record.evidence
    return TrialView(
        record=record,
        judgement=judgement,
        figures={**cell_figures(evidence), **figures},
        change_points_ms=change_points_ms(evidence.engine.rows) if evidence.engine is not None else (),
    )


def _part(
    plan: Plan, part: Part, by_cell: Mapping[str, Sequence[TrialView]], *, ended: bool = True
) -> PartView:
    own = plan.of(part.name)
    cells = tuple(_cell(cell, _label(cell, own), by_cell.get(cell.id, ())) for cell in own)
    trials = [trial for cell in cells for trial in cell.every]
    servers = tuple(_server(address, trials) for address in dict.fromkeys(cell.server for cell in own))
    if part.shape in {"comparison", "matrix", "gate"}:
        cells = tuple(_with_plateau(cell) for cell in cells)
    made = PartView(
        part=part,
        cells=cells,
        servers=servers,
        skipped=tuple(one for one in plan.skipped if one.part == part.name),
        failure=_failure(plan, part, bool(own)),
        shared=shared_views(cells, part.share_process) if part.search is None else (),
        explanation=explained(cells),
    )
    match part.shape:
        case "sweep":
            return replace(made, laws={server.address: law(made.of(server.address)) for server in servers})
        case "capacity" if part.search is not None:
            return replace(made, search=search_view(part.search, made))
        case "aa" if part.aa is not None and cells:
            return replace(made, aa=_against_itself(cells[0], part, part.aa, plan.seed))
        case "gate" if part.gate is not None:
            findings = _together(made)
            return replace(made, gate=_gate(made, part.gate, findings, ended=ended), findings=findings)
        case "comparison" | "matrix":
            findings = _together(made)
            if any(not finding.conforms for finding in findings):
                return replace(made, findings=findings)
            return replace(
                made,
                pairs=tuple(_pairs(made)),
                positions=tuple(_positions(made)),
                levels=levels_of(made.cells) if part.shape == "comparison" and made.cells else None,
                findings=findings,
            )
        case _:
            return made


def _against_itself(cell: CellView, part: Part, asked: AATest, seed: int) -> FalseDifferences | None:
    figure = compared_figure(cell.cell.trial.load)
    samples = [sample(t.record, t.judgement, t.figures, figure) for t in cell.trials]
    return false_differences(
        samples, figure, each=asked.each, experiments=asked.experiments, seed=seed, band=part.band
    )


def _gate(part: PartView, asked: GateTest, findings: Sequence[Finding], *, ended: bool) -> GateView:
    """The same rule by which the experiment ended; responses that differ leave nothing to compare."""
    samples = {
        figure: [sample(t.record, t.judgement, t.figures, figure) for cell in part.cells for t in cell.trials]
        for figure in asked.figures
    }
    looks = _looks(part)
    found = changes_of(asked, samples, looks, lambda figure: _later(part.cells, figure), ended=ended)
    differ = next((one for one in findings if not one.conforms), None)
    figures, change = found.figures, found.change
    if differ is not None:
        change, why = Change.NOT_MEASURABLE, f"{differ.check}: {differ.reason}"
        figures = tuple(replace(one, change=change, why=why) for one in figures)
    trials = [t for cell in part.cells for t in cell.every]
    planned = max((cell.cell.trials for cell in part.cells), default=0)
    return view_of(
        asked,
        change,
        figures,
        found.notes,
        most_blocks=planned if looks is None else looks.most,
        first_look=planned,
        budget_s=part.part.budget_s,
        spent_s=sum((t.record.ended_at - t.record.started_at).total_seconds() for t in trials),
        ended=ended,
    )


def _failure(plan: Plan, part: Part, begun: bool) -> str:
    """Why a part that follows another has no cells."""
    if part.follows is None or begun:
        return ""
    whys = dict.fromkeys(one.why for one in plan.skipped if one.part == part.name)
    return f"{part.title}: not run, {'; '.join(whys) or 'the part it follows did not end'}."


def _label(cell: Cell, among: Sequence[Cell]) -> str:
    """What tells this cell from the others of its part: server, workload, load, as far as they vary."""

    def words(one: Cell) -> tuple[str, str, str]:
        return one.server, one.trial.workload.name, one.trial.load_name

    varying = [len({words(one)[place] for one in among}) > 1 for place in range(3)]
    named = [word for word, varies in zip(words(cell), varying, strict=True) if varies]
    return ", ".join(named) or cell.server


def _cell(cell: Cell, label: str, trials: Sequence[TrialView]) -> CellView:
    ordered = sorted(trials, key=lambda t: (t.record.started_at, t.record.id))
    last = {(t.record.kind, t.record.block): t for t in ordered}
    current = [t for t in ordered if last[t.record.kind, t.record.block] is t]
    return CellView(
        cell,
        label,
        trials=tuple(t for t in current if t.record.kind == "trial"),
        controls=tuple(t for t in current if t.record.kind == "control"),
        explained=tuple(t for t in current if t.record.kind == "explained"),
        superseded=tuple(t for t in ordered if t not in current),
    )


def _server(address: str, trials: Sequence[TrialView]) -> ServerView:
    identity = next((t.record.evidence.server for t in trials if t.record.server == address), None)
    if identity is None:
        return ServerView(address=address, title=address)
    versions = {name: version for name, version in identity.versions.items() if name != "jdk"}
    return ServerView(address, identity.title, versions, identity.versions.get("jdk", ""))


def law(cells: Sequence[CellView]) -> Scaling | None:
    """The law fitted to one server's trials; those that do not count stay out of it."""
    points = [
        Point(float(cell.users), rate, trial.record.process.id if trial.record.process is not None else "")
        for cell in cells
        for trial in cell.counting
        if cell.users is not None and (rate := trial.figure(HEADLINE)) is not None and rate > 0
    ]
    return scaling(points)


def search_view(asked: Search, part: PartView) -> SearchView:
    """The search, told again what its trials came to in the order in which they ran."""
    wanted = objectives(asked.objectives)
    cell_of = {trial.record.id: cell.cell for cell in part.cells for trial in cell.every}
    rated = [
        (trial, load.rate_per_s)
        for trial in part.trials
        if isinstance(load := cell_of[trial.record.id].trial.load, OpenLoad) and load.rate_per_s
    ]
    measured = part.cells[0].cell.trial.measured if part.cells else None
    window_s = measured.length_s if isinstance(measured, SteadyWindow) else 10.0
    search = search_of(asked, window_s, rated[0][1] if rated else None)
    tried = []
    for trial, rate in rated:
        outcome, share = outcome_of(trial.record, trial.judgement, trial.figures, wanted)
        search.tell(rate, outcome, share)
        tried.append(Tried(trial, rate, outcome, share))
    return SearchView(wanted, search.found, tuple(sorted(tried, key=lambda one: one.rate_per_s)))


def _limits(trials: Sequence[TrialView]) -> Mapping[str, float]:
    """Those that these trials of one plan were judged by, where they are not the defaults."""
    return trials[0].judgement.limits if trials else {}


def _together(part: PartView) -> tuple[Finding, ...]:
    """What the trials that are compared with each other say about each other; each sentence once."""
    found: dict[tuple[str, str], Finding] = {}
    groups = _questions(part)
    for where, group in groups.items():
        trials = [
            JudgedTrial(cell.cell.server, trial.record.block, trial.record.evidence)
            for cell in group
            for trial in cell.counting
        ]
        judged = HostLimits.among(_limits([trial for cell in group for trial in cell.counting]))
        for one in together(trials, judged, group[0].cell.trial.workload.responses_differ):
            reason = f"{where}: {one.reason}" if len(groups) > 1 else one.reason
            found.setdefault((one.check, reason), one.model_copy(update={"reason": reason}))
    return tuple(found.values())


def _pairs(part: PartView) -> list[PairView]:
    """Comparisons within each workload and load, of the pairs that the plan names or of all."""
    found: list[PairView] = []
    groups = _questions(part)
    for where, group in groups.items():
        servers = [cell.cell.server for cell in group]
        if len(set(servers)) < 2:
            continue
        if part.part.shape == "comparison" and part.part.follows is None:
            figures: Sequence[str] = COMPARED
        elif part.part.follows is not None:
            figures = ("p50_ms", "p99_ms")
        elif max(len(cell.trials) for cell in group) < FEWEST:
            continue
        else:
            figures = (compared_figure(group[0].cell.trial.load),)
        for figure in figures:
            found += figure_pairs(
                group,
                figure,
                looks=_looks(part),
                margins=Margins(part.part.band, part.part.at_least),
                where=where if len(groups) > 1 else "",
            )
    wanted = part.part.comparisons
    if wanted is None:
        return found
    named = {frozenset(pair) for pair in wanted}
    return [pair for pair in found if frozenset((pair.a, pair.b)) in named]


def _questions(part: PartView) -> dict[str, list[CellView]]:
    views = {view.cell.id: view for view in part.cells}
    found = questions(part.part, [view.cell for view in part.cells])
    return {where: [views[cell.id] for cell in group] for where, group in found.items()}


def _looks(part: PartView) -> Looks | None:
    """The looks of a part that adds trials until it is clear."""
    most = part.part.until_clear
    return None if most is None else Looks(min(view.cell.trials for view in part.cells), most)


def _positions(part: PartView) -> list[PositionView]:
    """The effect of position on the figure that each question is about."""
    groups = _questions(part)
    found = []
    for where, group in groups.items():
        compared = _compared(group, compared_figure(group[0].cell.trial.load))
        if compared is not None and compared.position is not None:
            found.append(position_view(compared, compared.position, where if len(groups) > 1 else ""))
    return found


def figure_pairs(
    cells: Sequence[CellView],
    figure: str,
    *,
    looks: Looks | None = None,
    margins: Margins = MARGINS,
    where: str = "",
) -> list[PairView]:
    """Every pair of servers in one figure. Nothing when no trial has the figure."""
    compared = _compared(cells, figure, looks=looks, margins=margins)
    if compared is None:
        return []
    by_server = {cell.cell.server: cell for cell in cells}
    return [_pair_view(pair, compared, by_server, where) for pair in compared.pairs]


def _pair_view(pair: Pair, compared: Comparison, by_server: Mapping[str, CellView], where: str) -> PairView:
    conditions = {(one.check, one.code): one for side in (pair.a, pair.b) for one in by_server[side].provided}
    return PairView(
        a=pair.a,
        b=pair.b,
        figure=pair.figure,
        ratio=pair.ratio,
        low=pair.low,
        high=pair.high,
        worst_low=pair.worst_low,
        worst_high=pair.worst_high,
        later_low=pair.later_low,
        later_high=pair.later_high,
        horizon_s=pair.horizon_s,
        claim=pair.claim,
        at_least=pair.at_least,
        within=pair.within,
        better=pair.better,
        settles=pair.settles,
        sources=tuple(
            SourceView(one.name, one.bias.low, one.bias.high, one.cancelled) for one in pair.sources
        ),
        provided=tuple(conditions.values()),
        sentence=sentence(pair),
        window_sentence=for_window(pair),
        basis="" if pair.low is None else basis(pair, compared.family),
        where=where,
    )


def _compared(
    cells: Sequence[CellView],
    figure: str,
    *,
    looks: Looks | None = None,
    margins: Margins = MARGINS,
) -> Comparison | None:
    """Controls take no part; trials that do not conform are known to the comparison and have no figure. None
    when no trial has the figure.
    """
    trials = [trial for cell in cells for trial in cell.trials]
    if not any(figure in trial.figures for trial in trials):
        return None
    samples = [sample(t.record, t.judgement, t.figures, figure) for t in trials]
    servers = list(dict.fromkeys(cell.cell.server for cell in cells))
    took_s = [(t.record.ended_at - t.record.started_at).total_seconds() for t in trials]
    return compare(
        samples,
        figure,
        servers=servers,
        looks=looks,
        margins=margins,
        later=_later(cells, figure),
        block_s=fmean(took_s) * len(servers) if took_s else None,
    )


def _later(cells: Sequence[CellView], figure: str) -> Later | None:
    """Residual drift of a figure of these cells."""
    trials = {cell.cell.server: [t.record.evidence for t in cell.counting] for cell in cells}
    counting = [trial for cell in cells for trial in cell.counting]
    return later(trials, figure, SteadyWindowLimits.among(_limits(counting)))


def _with_plateau(cell: CellView) -> CellView:
    figure = compared_figure(cell.cell.trial.load)
    found = _later([cell], figure)
    if found is None:
        return cell
    plateau = plateau_of(found.coming.get(cell.cell.server), found.sign, found.horizon_s)
    return replace(cell, plateau=plateau)


def _warnings(view: ResultView) -> list[str]:
    """What stands above everything: interrupted, shared CPUs, controls that disagree."""
    found = list(view.plan.changes)
    if view.state != "finished":
        ended = sum(len(cell.every) for cell in view.cells)
        command = view.plan.resume_command if view.state == "interrupted" else None
        again = "" if command is None else f"; continue with: prony {command} --resume {view.id}"
        found.append(f"{view.state.capitalize()}: {ended} of {view.planned} trials ended{again}")
    for cell in view.cells:
        found += [_cut_short(cell, trial) for trial in cell.every if INTERRUPTED in trial.record.notes]
    if view.partition is not None and view.partition.shared:
        found.append(f"Server and client shared CPUs: {view.partition.note}")
    repeated = [cell.label for cell in view.cells if any(map(_disturbed, cell.superseded))]
    if repeated:
        found.append(f"Disturbed trials were repeated: {join(repeated)}; the earlier ones are in no figure.")
    for cell in view.cells:
        found += [said for control in cell.controls if (said := _agreement(cell, control)) is not None]
    return found


def _judged_again(stored: Sequence[StoredTrial]) -> str:
    """When trials were judged again, and under which limits."""
    newest = [one.judgements[-1] for one in stored if len(one.judgements) > 1]
    if not newest:
        return ""
    limits = {key: value for one in newest for key, value in one.judgement.limits.items()}
    under = f" (limits: {', '.join(f'{key}={value:g}' for key, value in limits.items())})" if limits else ""
    return f"Judged again on {max(one.made for one in newest):%Y-%m-%d}{under}."


def _disturbed(trial: TrialView) -> bool:
    return INTERRUPTED not in trial.record.notes


def _cut_short(cell: CellView, trial: TrialView) -> str:
    engine = trial.record.evidence.engine
    window = engine.window if engine is not None else None
    after = f" after {duration(window.duration_s)}" if window is not None else ""
    return f"{cell.label}, block {trial.record.block + 1}: interrupted{after}; figures up to then."


def _agreement(cell: CellView, control: TrialView) -> str | None:
    """Do both ways of warming up agree? The control is one trial, so this is a look and not a test."""
    mine, others = control.figure(HEADLINE), cell.figure(HEADLINE)
    if mine is None or others is None or not control.conforms:
        return None
    inside = others.low * 0.98 <= mine <= others.high * 1.02
    where = "within their range (± 2 %)" if inside else "outside their range: the faster warm-up is in doubt"
    return (
        f"Control of {cell.label}, pinned from the start: {mine:,.0f} requests/s, trials warmed up on all "
        f"CPUs {others.low:,.0f} to {others.high:,.0f}: {where}."
    )
