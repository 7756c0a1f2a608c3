"""The plan of a stored experiment, and its credentials, which are not stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from prony import redaction
from prony.errors import StoreError, UsageError
from prony.evidence.host import Fingerprint
from prony.plan.cell import Cell, PublishedFigures
from prony.plan.part import Baseline, StoredFigures
from prony.plan.plan import Plan
from prony.plan.workload import Workload
from prony.store import ExperimentRow, Store, StoredTrial

MOST_EXPERIMENTS = 20
"""The newest; older ones may be of unrelated code."""


def plan_of(row: ExperimentRow) -> Plan:
    """The plan of a stored experiment. Raises StoreError where this version cannot read it."""
    try:
        return Plan.model_validate(row.spec)
    except (ValidationError, LookupError, TypeError, ValueError, AttributeError, UsageError) as fault:
        raise StoreError(
            f"the plan of {row.id} was stored by Prony {row.prony_version}, which this version cannot read; "
            f"use Prony {row.prony_version}",
            details=str(fault),
        ) from fault


def timed(plan: Plan, store: Store) -> Plan:
    """The plan with durations of equal trials in this store as estimates."""
    took_s = store.durations_s(plan.as_stored())
    cells = (cell.model_copy(update={"took_s": took_s.get(cell.id)}) for cell in plan.cells)
    return plan.model_copy(update={"cells": tuple(cells)})


def resumable(store: Store, which: str) -> tuple[ExperimentRow, Plan]:
    """An experiment to resume, and its plan. Raises UsageError with the reason."""
    row = store.experiment(which)
    if row.status == "running":
        raise UsageError(f"{row.id} is running; wait for its end, or interrupt it")
    return row, plan_of(row)


def with_credentials(plan: Plan, given: Plan | None) -> Plan:
    """A stored plan with the credentials of `given`. Raises UsageError for missing ones."""
    cells = tuple(_with_credentials(cell, given) for cell in plan.cells)
    missing = dict.fromkeys(name for cell in cells for name in redaction.redacted_in(_offered(cell)))
    if missing:
        again = "" if given is None else " unchanged, with the original values,"
        raise UsageError(
            f"credentials are never stored ({', '.join(missing)}): repeat the whole command line{again} with "
            "--resume, or start a new experiment"
        )
    return plan.model_copy(update={"cells": cells})


def lacks_credentials(plan: Plan) -> bool:
    """Whether a stored plan needs its credentials again to run."""
    return any(redaction.redacted_in(_offered(cell)) for cell in plan.cells)


def sends_credentials(plan: Plan) -> bool:
    """Whether the plan has credentials, which are not stored."""
    return any(redaction.plain(offered) != offered for offered in map(_offered, plan.cells))


def _offered(cell: Cell) -> dict[str, Any]:
    return cell.model_dump(mode="json", by_alias=True, include={"target", "trial"})


def _with_credentials(cell: Cell, given: Plan | None) -> Cell:
    """A cell added by a search takes those of another cell of its server and workload."""
    stored = _offered(cell)
    if given is None or not redaction.redacted_in(stored):
        return cell
    own = (cell.part, cell.server, cell.trial.workload.name)
    for other in given.cells:
        same = (other.part, other.server, other.trial.workload.name) == own
        if same and redaction.redacted_in(stored):
            stored = redaction.filled(stored, _offered(other))
    known = cell.model_dump(mode="json", by_alias=True) | stored
    return Cell.model_validate(known)


def history_of(workload: Workload, server: str) -> tuple[PublishedFigures, ...]:
    """Figures that others published for this server, from the workload's file."""
    known = workload.published
    if known is None:
        return ()
    figures = {name: values[server] for name, values in known.figures.items() if server in values}
    if not figures:
        return ()
    return (PublishedFigures(label="published", source=known.source, figures=figures, note=known.note),)


def stored_base(
    store: Store, tag: str, here: Fingerprint, cell: Cell, figures: Sequence[str]
) -> tuple[str, Baseline]:
    """Stored results of this tag under the conditions of `cell`, newest first. Raises UsageError."""
    tagged = store.tagged(tag)
    if not tagged:
        known = ", ".join(store.tags()) or "none"
        raise UsageError(
            f"no stored result has the tag '{tag}' (known tags: {known}); tag a result: "
            f"prony results tag ID {tag}"
        )
    same = [tagged_row for tagged_row in tagged if tagged_row.fingerprint_key == here.key]
    if not same:
        raise UsageError(
            f"none of {len(tagged)} stored results with the tag '{tag}' has this host's fingerprint "
            f"({here.key}); measure both builds here: prony gate BASE CANDIDATE"
        )
    by_server: dict[str, list[StoredFigures]] = {}
    for tagged_row in same[:MOST_EXPERIMENTS]:
        row = store.experiment(tagged_row.id)
        trials = store.trials(tagged_row.id)
        plan = plan_of(row)
        for base in like(plan, cell):
            experiment = _stored_figures(row.id, row.created.isoformat(), base, trials, figures)
            if any(experiment.values.values()):
                # Without the role in a gate.
                server = base.server.partition("@")[0] if plan.command == "gate" else base.server
                by_server.setdefault(server, []).append(experiment)
    if not by_server:
        raise UsageError(
            f"no stored result with the tag '{tag}' measured {cell.trial.workload.name} under "
            f"{cell.trial.load_name} with the same warm-up, window and connections; repeat the options of "
            "that run, or measure both builds here: prony gate BASE CANDIDATE"
        )
    server = cell.server if cell.server in by_server else next(iter(by_server))
    if cell.server not in by_server and len(by_server) > 1:
        raise UsageError(
            f"the results with the tag '{tag}' have several servers ({', '.join(by_server)}), but not "
            f"{cell.server}; use a tag with a single server"
        )
    return server, Baseline(tag=tag, experiments=tuple(by_server[server]))


def like(plan: Plan, cell: Cell) -> list[Cell]:
    """The cells of a stored plan with the same trial plan, credentials aside."""
    shared = {part.name for part in plan.parts if part.share_process is not None}
    wanted = _public(cell)
    cells = [
        stored
        for stored in plan.cells
        if stored.target.owned and _public(stored) == wanted and stored.part not in shared
    ]
    gate = next((part.gate for part in plan.parts if part.gate is not None), None)
    # Of a gate, the candidate: the tag marks what was accepted.
    return cells if gate is None else [stored for stored in cells if stored.server == gate.candidate]


def _public(cell: Cell) -> Any:
    return redaction.plain(cell.trial.model_dump(mode="json"))


def _stored_figures(
    identifier: str, created: str, cell: Cell, trials: Sequence[StoredTrial], figures: Sequence[str]
) -> StoredFigures:
    last = {
        trial.record.block: trial
        for trial in trials
        if trial.record.kind == "trial" and trial.record.cell == cell.id
    }
    counting = [
        counted for counted in last.values() if counted.record.failure is None and counted.judgement.conforms
    ]
    values = {
        figure: tuple(value for counted in counting if (value := counted.figures.get(figure) or 0.0) > 0)
        for figure in figures
    }
    return StoredFigures(experiment=identifier, created=created, values=values)
