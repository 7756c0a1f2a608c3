"""From the store to the value that every output reads."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import yaml

from prony.errors import StoreError
from prony.evidence.trial import TrialRecord
from prony.experiment.stored import plan_of
from prony.judge.figures import cell_figures
from prony.judge.finding import Judgement
from prony.plan.cell import Cell
from prony.plan.part import Part
from prony.plan.plan import Plan
from prony.report.aa import COMMAND, OnRecord, fitting
from prony.report.answer import answer
from prony.report.cell_view import HEADLINE, CellView, TrialView
from prony.report.result import PartView, ResultView, ServerView, explained
from prony.report.shape import shared_views
from prony.report.shapes import shape_named
from prony.report.wording import duration, join
from prony.store import ExperimentRow, Store, StoredTrial
from prony.trial.load_run import INTERRUPTED

log = logging.getLogger("prony.report")


def load_result(store: Store, which: str) -> ResultView:
    """A stored experiment as a view. Raises UsageError for an unknown id."""
    row = store.experiment(which)
    tags, notes = store.labels_of(row.id)
    view = replace(result_view(row, store.trials(row.id)), tags=tags, notes=notes)
    if not any(map(_compares, view.parts)):
        return view
    tried = store.experiments(command=COMMAND, fingerprint_key=row.fingerprint.key)
    record = fitting(tried, row.fingerprint.key, view.plan.cells)
    known = None if record is None else _known_on_record(store, record)
    parts = (replace(p, aa_on_record=known if _compares(p) else None) for p in view.parts)
    return replace(view, parts=tuple(parts))


def remember_answer(store: Store, view: ResultView) -> None:
    """Stores a result's answer for lists, unless the store is read-only."""
    with suppress(StoreError):
        store.answered(view.id, answer(view).sentence)


def load_exported(file: Path) -> ResultView:
    """The result in an export file, read without keeping it. Raises UsageError for a file that is none."""
    from prony.store import transfer

    with tempfile.TemporaryDirectory(prefix="prony-export-") as folder:
        store = Store.open(Path(folder) / "results.db")
        try:
            identifier, _ = transfer.read(store, file)
            return load_result(store, identifier)
        finally:
            store.close()


def _known_on_record(store: Store, aa_row: ExperimentRow) -> OnRecord | None:
    """None where it cannot be read: its own page says why, and no other result waits for it."""
    try:
        view = result_view(aa_row, store.trials(aa_row.id))
        (part, *_), (cell, *_) = view.parts, view.plan.cells
        known = (view.id, view.created.isoformat(), cell.server, cell.trial.workload.name)
        return None if part.aa is None else OnRecord(*known, part.aa)
    except (StoreError, ValueError, ArithmeticError, LookupError, TypeError) as fault:
        log.info("the A/A experiment %s cannot be read: %s", aa_row.id, fault)
        return None


def _compares(part: PartView) -> bool:
    return bool(part.pairs) or part.gate is not None


def result_view(row: ExperimentRow, stored: Sequence[StoredTrial]) -> ResultView:
    """The view of a stored experiment. Raises StoreError for a plan that this Prony does not understand."""
    trials = [viewed(trial.record, trial.judgement, trial.figures) for trial in stored]
    view = build(row, plan_of(row), trials)
    again = _judged_again(stored)
    odd = (f"{trial.record.id}: {what}" for trial in stored for what in trial.judgements[-1].odd)
    return replace(view, warnings=(*view.warnings, *odd, *([again] if again else [])))


def build(row: ExperimentRow, plan: Plan, trials: Sequence[TrialView]) -> ResultView:
    """The view of these trials of this plan."""
    by_cell: dict[str, list[TrialView]] = {}
    for trial in trials:
        by_cell.setdefault(trial.record.cell, []).append(trial)
    ended = row.status == "finished"
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


def viewed(record: TrialRecord, judgement: Judgement, figures: Mapping[str, float]) -> TrialView:
    """A trial with its newest judgement, and with the figures that only tables of cells show."""
    return TrialView(record, judgement, {**cell_figures(record.evidence), **figures})


def _part(
    plan: Plan, part: Part, by_cell: Mapping[str, Sequence[TrialView]], *, ended: bool = True
) -> PartView:
    own = plan.of(part.name)
    cells = tuple(_cell(cell, _label(cell, own), by_cell.get(cell.id, ())) for cell in own)
    trials = [trial for cell in cells for trial in cell.every]
    servers = tuple(_server(address, trials) for address in dict.fromkeys(cell.server for cell in own))
    made = PartView(
        part=part,
        cells=cells,
        servers=servers,
        skipped=tuple(left_out for left_out in plan.skipped if left_out.part == part.name),
        failure=_failure(plan, part, bool(own)),
        shared=shared_views(cells, part.share_process) if part.search is None else (),
        explanation=explained(cells),
        seed=plan.seed,
        ended=ended,
    )
    return shape_named(part.shape).analysed(made)


def _failure(plan: Plan, part: Part, begun: bool) -> str:
    if part.follows is None or begun:
        return ""
    whys = dict.fromkeys(left_out.why for left_out in plan.skipped if left_out.part == part.name)
    return f"{part.title}: not run, {'; '.join(whys) or 'the part it follows did not end'}."


def _label(cell: Cell, among: Sequence[Cell]) -> str:
    """Server, workload and load, as far as they vary."""

    def words(other: Cell) -> tuple[str, str, str]:
        return other.server, other.trial.workload.name, other.trial.load_name

    varying = [len({words(other)[place] for other in among}) > 1 for place in range(3)]
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


def _warnings(view: ResultView) -> list[str]:
    warnings = list(view.plan.changes)
    if view.state != "finished":
        ended = sum(len(cell.every) for cell in view.cells)
        command = view.plan.resume_command if view.state == "interrupted" else None
        again = "" if command is None else f"; continue with: prony {command} --resume {view.id}"
        warnings.append(f"{view.state.capitalize()}: {ended} of {view.planned} trials ended{again}")
    for cell in view.cells:
        warnings += [_cut_short(cell, trial) for trial in cell.every if INTERRUPTED in trial.record.notes]
    if view.partition is not None and view.partition.shared:
        warnings.append(f"Server and client shared CPUs: {view.partition.note}")
    repeated = [c.label for c in view.cells if any(INTERRUPTED not in t.record.notes for t in c.superseded)]
    if repeated:
        warnings.append(
            f"Disturbed trials were repeated: {join(repeated)}; earlier attempts are in no figure."
        )
    for cell in view.cells:
        warnings += [words for control in cell.controls if (words := _agreement(cell, control)) is not None]
    return warnings


def _judged_again(stored: Sequence[StoredTrial]) -> str:
    newest = [trial.judgements[-1] for trial in stored if len(trial.judgements) > 1]
    if not newest:
        return ""
    limits = {key: value for judgement in newest for key, value in judgement.judgement.limits.items()}
    under = f" (limits: {', '.join(f'{key}={value:g}' for key, value in limits.items())})" if limits else ""
    return f"Judged again on {max(judgement.made for judgement in newest):%Y-%m-%d}{under}."


def _cut_short(cell: CellView, trial: TrialView) -> str:
    engine = trial.record.evidence.engine
    window = engine.window if engine is not None else None
    after = f" after {duration(window.duration_s)}" if window is not None else ""
    return f"{cell.label}, block {trial.record.block + 1}: interrupted{after}; figures up to then."


def _agreement(cell: CellView, control: TrialView) -> str | None:
    """Agreement with a single control trial; no test."""
    mine, others = control.figure(HEADLINE), cell.figure(HEADLINE)
    if mine is None or others is None or not control.conforms:
        return None
    inside = others.low * 0.98 <= mine <= others.high * 1.02
    where = "within their range (± 2 %)" if inside else "outside their range: the faster warm-up is in doubt"
    return (
        f"Control of {cell.label}, pinned from the start: {mine:,.0f} requests/s, trials warmed up on all "
        f"CPUs {others.low:,.0f} to {others.high:,.0f}: {where}."
    )
