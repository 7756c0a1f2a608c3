"""The plan of a stored experiment, and the credentials that are not stored with it."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from prony import redaction
from prony.errors import StoreError, UsageError
from prony.plan.cell import Cell, PublishedFigures
from prony.plan.plan import Plan
from prony.plan.workload import Workload
from prony.store import ExperimentRow, Store

Spec = dict[str, Any]


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


def resumable(store: Store, which: str) -> tuple[ExperimentRow, Plan]:
    """An experiment that can be continued, and its plan. Raises UsageError saying why not."""
    row = store.experiment(which)
    if row.status == "running":
        raise UsageError(f"{row.id} is still running; wait for it, or end it first")
    return row, plan_of(row)


def with_credentials(plan: Plan, given: Plan | None) -> Plan:
    """A stored plan with what is never stored: the credentials of the plan as it is given again. Raises
    UsageError where any are missing.
    """
    cells = tuple(_with_credentials(cell, given) for cell in plan.cells)
    missing = dict.fromkeys(name for cell in cells for name in _credentials_missing(cell))
    if missing:
        again = "" if given is None else " as it was, with the values that it was begun with"
        raise UsageError(
            f"the plan sends credentials, which are never stored ({', '.join(missing)}): repeat the whole "
            f"command line{again} beside --resume, or start it anew"
        )
    return plan.model_copy(update={"cells": cells})


def lacks_credentials(plan: Plan) -> bool:
    """Whether a stored plan cannot be run without what is given again."""
    return any(_credentials_missing(cell) for cell in plan.cells)


def sends_credentials(plan: Plan) -> bool:
    """Whether what is stored of a plan is less than the plan."""
    return any(redaction.plain(one) != one for one in map(_offered, plan.cells))


def _credentials_missing(cell: Cell) -> tuple[str, ...]:
    return redaction.redacted_in(_offered(cell))


def _offered(cell: Cell) -> Spec:
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
