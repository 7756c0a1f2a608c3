"""The base of a gate from the store: experiments that measured the same thing on the same host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prony import redaction
from prony.errors import UsageError
from prony.evidence.host import Fingerprint
from prony.experiment.stored import plan_of
from prony.plan.cell import Cell
from prony.plan.part import Baseline, StoredFigures
from prony.plan.plan import Plan
from prony.store import Store, StoredTrial

MOST_EXPERIMENTS = 20
"""The newest ones; older ones may be of quite another code."""


def stored_base(
    store: Store, tag: str, here: Fingerprint, cell: Cell, figures: Sequence[str]
) -> tuple[str, Baseline]:
    """The server that was measured under this tag as `cell` is to be, and its experiments, newest first.
    Raises UsageError when there is none: another host or software, another workload, load or length.
    """
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
                found.setdefault(_role(plan, base), []).append(experiment)
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
    """The cells of a stored plan that measured what this one is to measure, in the same way: but for what is
    never stored.
    """
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


def _role(plan: Plan, cell: Cell) -> str:
    """The server's name without its role in a gate."""
    return cell.server.partition("@")[0] if plan.command == "gate" else cell.server


def _stored_figures(
    identifier: str,
    created: str,
    cell: Cell,
    trials: Sequence[StoredTrial],
    figures: Sequence[str],
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
