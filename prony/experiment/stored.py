"""The plan of a stored experiment, and the credentials that are not stored with it."""

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
"""The newest ones; older ones may be of quite another code."""


def plan_of(row: ExperimentRow) -> Plan:
    """The plan of a stored experiment. Raises StoreError when this Prony does not understand it."""
    try:
        return Plan.model_validate(row.spec)
    except (ValidationError, LookupError, TypeError, ValueError, AttributeError, UsageError) as fault:
        raise StoreError(
            f"the plan of {row.id} was stored by Prony {row.prony_version} and is not understood by this "
            "one; use that version",
            details=str(fault),
        ) from fault


def timed(plan: Plan, store: Store) -> Plan:
    """The plan with the durations of such trials in this store as its estimates."""
    took_s = store.durations_s(plan.as_stored())
    cells = (cell.model_copy(update={"took_s": took_s.get(cell.id)}) for cell in plan.cells)
    return plan.model_copy(update={"cells": tuple(cells)})


def resumable(store: Store, which: str) -> tuple[ExperimentRow, Plan]:
    """An experiment that can be continued, and its plan. Raises UsageError saying why not."""
    row = store.experiment(which)
    if row.status == "running":
        raise UsageError(f"{row.id} is still running; wait for it, or end it first")
    return row, plan_of(row)


def with_credentials(plan: Plan, given: Plan | None) -> Plan:
    """A stored plan with the credentials of the plan given again. Raises UsageError for missing ones."""
    cells = tuple(_with_credentials(cell, given) for cell in plan.cells)
    missing = dict.fromkeys(name for cell in cells for name in redaction.redacted_in(_offered(cell)))
    if missing:
        again = "" if given is None else " as it was, with the values that it was begun with"
        raise UsageError(
            f"the plan sends credentials, which are never stored ({', '.join(missing)}): repeat the whole "
            f"command line{again} beside --resume, or start it anew"
        )
    return plan.model_copy(update={"cells": cells})


def lacks_credentials(plan: Plan) -> bool:
    """Whether a stored plan cannot be run without what is given again."""
    return any(redaction.redacted_in(_offered(cell)) for cell in plan.cells)


def sends_credentials(plan: Plan) -> bool:
    """Whether what is stored of a plan is less than the plan."""
    return any(redaction.plain(one) != one for one in map(_offered, plan.cells))


def _offered(cell: Cell) -> dict[str, Any]:
    return cell.model_dump(mode="json", by_alias=True, include={"target", "trial"})


def _with_credentials(cell: Cell, given: Plan | None) -> Cell:
    """Of a cell that a search has added, those of another one of its server and workload."""
    stored = _offered(cell)
    if given is None or not redaction.redacted_in(stored):
        return cell
    own = (cell.part, cell.server, cell.trial.workload.name)
    for one in given.cells:
        same = (one.part, one.server, one.trial.workload.name) == own
        if same and redaction.redacted_in(stored):
            stored = redaction.filled(stored, _offered(one))
    known = cell.model_dump(mode="json", by_alias=True) | stored
    return Cell.model_validate(known)


def history_of(workload: Workload, server: str) -> tuple[PublishedFigures, ...]:
    """What the workload's file says was printed for this server by others."""
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
    """The server measured under this tag as `cell` is to be, newest first. Raises UsageError for none."""
    tagged = store.tagged(tag)
    if not tagged:
        known = ", ".join(store.tags()) or "none"
        raise UsageError(
            f"no stored result has the tag '{tag}' (known tags: {known}); give it to one: "
            f"prony results tag ID {tag}"
        )
    same = [one for one in tagged if one.fingerprint_key == here.key]
    if not same:
        raise UsageError(
            f"of {len(tagged)} stored results with the tag '{tag}' none has the fingerprint of this host and "
            f"its software ({here.key}); measure both builds here: prony gate BASE CANDIDATE"
        )
    found: dict[str, list[StoredFigures]] = {}
    for one in same[:MOST_EXPERIMENTS]:
        row = store.experiment(one.id)
        trials = store.trials(one.id)
        plan = plan_of(row)
        for base in like(plan, cell):
            experiment = _stored_figures(row.id, row.created.isoformat(), base, trials, figures)
            if any(experiment.values.values()):
                # Of a gate without the role.
                server = base.server.partition("@")[0] if plan.command == "gate" else base.server
                found.setdefault(server, []).append(experiment)
    if not found:
        raise UsageError(
            f"no stored result with the tag '{tag}' measured {cell.trial.workload.name} under "
            f"{cell.trial.load_name} with the same warm-up, window and connections; repeat it with the "
            "options of that run, or measure both builds here: prony gate BASE CANDIDATE"
        )
    server = cell.server if cell.server in found else next(iter(found))
    if cell.server not in found and len(found) > 1:
        raise UsageError(
            f"the results with the tag '{tag}' have several servers ({', '.join(found)}) and none is called "
            f"{cell.server}; use a tag of one server's results"
        )
    return server, Baseline(tag=tag, experiments=tuple(found[server]))


def like(plan: Plan, cell: Cell) -> list[Cell]:
    """The cells of a stored plan that measured the same in the same way, but for what is never stored."""
    shared = {part.name for part in plan.parts if part.share_process is not None}
    asked = _public(cell)
    cells = [
        one for one in plan.cells if one.target.owned and _public(one) == asked and one.part not in shared
    ]
    gate = next((part.gate for part in plan.parts if part.gate is not None), None)
    # Of a gate the newer build: what is tagged is what was accepted.
    return cells if gate is None else [one for one in cells if one.server == gate.candidate]


def _public(cell: Cell) -> Any:
    return redaction.plain(cell.trial.model_dump(mode="json"))


def _stored_figures(
    identifier: str, created: str, cell: Cell, trials: Sequence[StoredTrial], figures: Sequence[str]
) -> StoredFigures:
    last = {
        one.record.block: one for one in trials if one.record.kind == "trial" and one.record.cell == cell.id
    }
    counting = [one for one in last.values() if one.record.failure is None and one.judgement.conforms]
    values = {
        figure: tuple(value for one in counting if (value := one.figures.get(figure) or 0.0) > 0)
        for figure in figures
    }
    return StoredFigures(experiment=identifier, created=created, values=values)
