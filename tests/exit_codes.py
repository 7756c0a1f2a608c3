"""Which exit code the stored judgements demand. A code that ignores whether a trial conforms, in either
direction, fails the test that compares them.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from prony.errors import ExitCode
from prony.evidence.trial import TrialRecord
from prony.experiment.stored import plan_of
from prony.plan.part import Part
from prony.plan.plan import Plan
from prony.store import Store, StoredTrial


def demanded_code(store: Store | Path, which: str = "latest", held_per_s: float | None = None) -> int:
    """OK where everything that was asked has a trial that counts, else INVALID.

    `held_per_s`: of a capacity search, which has an answer when a rate held.
    """
    if isinstance(store, Path):
        with closing(Store.open(store)) as opened:
            return demanded_code(opened, which, held_per_s)
    row = store.experiment(which)
    trials = store.trials(row.id)
    plan = plan_of(row)
    answered = bool(trials) and all(_answered(part, plan, trials, held_per_s) for part in plan.parts)
    return ExitCode.OK if answered else ExitCode.NO_FIGURE


def _answered(part: Part, plan: Plan, trials: Iterable[StoredTrial], held_per_s: float | None) -> bool:
    if part.shape == "capacity":
        return held_per_s is not None
    counting = {trial.record.cell for trial in trials if _counts(trial.record, trial)}
    cells = {cell.id for cell in plan.of(part.name)}
    if not cells:  # left out by --only, which is no failure; a second pass that found no rate is one
        return part.follows is None
    return bool(cells & counting) if part.shape == "sweep" else cells <= counting


def _counts(record: TrialRecord, trial: StoredTrial) -> bool:
    return record.kind == "trial" and record.failure is None and trial.judgement.conforms
