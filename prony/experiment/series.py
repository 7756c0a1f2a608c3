"""A sweep or a search for a capacity as one experiment of the store: what is kept of it besides its trials,
and how it is concluded again from them. Must not measure, nor show.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from prony.compare.capacity import CapacitySearch
from prony.errors import StoreError
from prony.evidence.base import Record
from prony.experiment.capacity import Capacity, Tried, lowest_rate, outcome_of
from prony.experiment.points import PointTrial
from prony.experiment.sweep import Sweep, concluded
from prony.plan.load import ClosedLoad, OpenLoad
from prony.plan.objective import objectives
from prony.store import ExperimentRow, Store


class SweepSpec(Record):
    """What was asked of `prony sweep`."""

    kind: Literal["sweep"] = "sweep"
    target: str
    users: tuple[int, ...]
    repeats: int
    window_s: float
    seed: int


class CapacitySpec(Record):
    """What was asked of `prony capacity`."""

    kind: Literal["capacity"] = "capacity"
    target: str
    objectives: str
    highest_per_s: float
    resolution: float
    most_trials: int
    window_s: float
    seed: int


Spec = Annotated[SweepSpec | CapacitySpec, Field(discriminator="kind")]
_SPEC: TypeAdapter[SweepSpec | CapacitySpec] = TypeAdapter(Spec)


def stored_series(store: Store, row: ExperimentRow) -> Sweep | Capacity | None:
    """The sweep or the search that is stored in this experiment, as far as it got; None for an experiment of
    another kind. Raises StoreError when it was written by a Prony that this one does not understand.
    """
    if row.spec.get("kind") not in ("sweep", "capacity"):
        return None
    try:
        spec = _SPEC.validate_python(row.spec)
    except ValidationError as fault:
        raise StoreError(
            f"{row.id} was stored by Prony {row.prony_version} and is not understood by this one; "
            "use that version"
        ) from fault
    trials = [PointTrial.of(stored) for stored in store.trials(row.id)]
    return concluded(spec.target, trials, spec.seed) if isinstance(spec, SweepSpec) else _search(spec, trials)


def _search(spec: CapacitySpec, trials: list[PointTrial]) -> Capacity:
    """The search told again what its trials came to, in their order."""
    wanted = objectives(spec.objectives)
    rates = [(t, t.load.rate_per_s) for t in trials if isinstance(t.load, OpenLoad) and t.load.rate_per_s]
    lowest = lowest_rate(wanted, spec.window_s)
    start = rates[0][1] if rates else lowest
    search = CapacitySearch(
        start, min(lowest, start), max(spec.highest_per_s, start), spec.resolution, spec.most_trials
    )
    tried = []
    for trial, rate in rates:
        outcome, share = outcome_of(trial, wanted)
        search.tell(rate, outcome, share)
        tried.append(Tried(rate, outcome, share, trial))
    closed = next((t for t in trials if isinstance(t.load, ClosedLoad)), None)
    return Capacity(spec.target, wanted, search.found, tuple(tried), closed)
