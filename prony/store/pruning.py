"""Selection and removal of experiments that are not kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, func, select

from prony.errors import UsageError
from prony.store import moving, schema
from prony.store.columns import is_time, time_of
from prony.store.rows import ExperimentStatus, FoundExperiment

_E, _T = schema.experiments.c, schema.trials.c
AHEAD = timedelta(hours=1)
"""Lead of a result over the clock that shows a wrong clock."""

RUNS_AT_MOST = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Keep:
    """Keeps the newest `newest` experiments and those of the last `age`; at least one is given."""

    newest: int | None = None
    age: timedelta | None = None

    def drops(self, experiments: Sequence[FoundExperiment], now: datetime) -> tuple[FoundExperiment, ...]:
        """The experiments to remove; `experiments`: all, newest first. Raises UsageError if the clock went
        back.
        """
        if self.age is not None and experiments and experiments[0].created > now + AHEAD:
            raise UsageError(
                f"{experiments[0].id} was stored at {experiments[0].created:%Y-%m-%d %H:%M} UTC, but this "
                f"host's clock is at {now:%Y-%m-%d %H:%M}; set the clock, or keep by number (--keep 50)"
            )
        kept = {experiment.id for experiment in experiments[: self.newest or 0]}
        if self.age is not None:
            kept |= {experiment.id for experiment in experiments if experiment.created >= now - self.age}
        return tuple(
            experiment
            for experiment in experiments
            if experiment.id not in kept
            and not experiment.tags
            and not may_run(experiment.status, experiment.created, now)
        )


def may_run(status: ExperimentStatus, created: datetime, now: datetime) -> bool:
    return status == "running" and created >= now - RUNS_AT_MOST


def stored_bytes(connection: Connection, experiment_id: str) -> int:
    size = func.coalesce(func.sum(func.length(_T.record)), 0)
    return int(connection.execute(select(size).where(_T.experiment_id == experiment_id)).scalar_one())


def unwanted(connection: Connection, experiment_id: str) -> bool:
    row: Any = connection.execute(
        select(_E.status, _E.owner, _E.created).where(_E.id == experiment_id)
    ).first()
    tag = select(schema.tags.c.name).where(schema.tags.c.experiment_id == experiment_id)
    if row is None or connection.execute(tag).first() is not None:
        return False
    # An experiment without a valid time of creation cannot be shown, and never ends.
    return not is_time(row.created) or not may_run(
        moving.status_of(row), time_of(row.created), datetime.now(UTC)
    )


def remove(connection: Connection, experiment_id: str) -> bool:
    """Removes an experiment with everything in it; returns whether it existed."""
    mine = select(_T.id).where(_T.experiment_id == experiment_id)
    for table in (schema.trial_summaries, schema.judgements):
        connection.execute(delete(table).where(table.c.trial_id.in_(mine)))
    for table in (schema.trials, schema.notes, schema.tags, schema.answers, schema.experiment_summaries):
        connection.execute(delete(table).where(table.c.experiment_id == experiment_id))
    return connection.execute(delete(schema.experiments).where(_E.id == experiment_id)).rowcount > 0
