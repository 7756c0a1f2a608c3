"""Which experiments nobody keeps, and how they are removed."""

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
"""A result that is so much newer than the clock shows that the clock is wrong."""

RUNS_AT_MOST = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Keep:
    """What stays: the newest `newest` experiments, and those of the last `age`. One of them is given at
    least; what either keeps, stays.
    """

    newest: int | None = None
    age: timedelta | None = None

    def drops(self, found: Sequence[FoundExperiment], now: datetime) -> tuple[FoundExperiment, ...]:
        """Of all experiments, the newest first, those that go. Raises UsageError when the clock went back:
        ages are then not to be trusted.
        """
        if self.age is not None and found and found[0].created > now + AHEAD:
            raise UsageError(
                f"{found[0].id} was stored at {found[0].created:%Y-%m-%d %H:%M} UTC, and this host's clock "
                f"says {now:%Y-%m-%d %H:%M}: it went back, or another host's is ahead; set the clock, or "
                "keep by number (--keep 50)"
            )
        kept = {one.id for one in found[: self.newest or 0]}
        if self.age is not None:
            kept |= {one.id for one in found if one.created >= now - self.age}
        return tuple(
            one
            for one in found
            if one.id not in kept and not one.tags and not may_run(one.status, one.created, now)
        )


def may_run(status: ExperimentStatus, created: datetime, now: datetime) -> bool:
    """Whether it may still be running: on another host, which cannot be asked, so long at the most."""
    return status == "running" and created >= now - RUNS_AT_MOST


def stored_bytes(connection: Connection, experiment_id: str) -> int:
    """Of its records, as they are stored: nearly all of what it takes."""
    size = func.coalesce(func.sum(func.length(_T.record)), 0)
    return int(connection.execute(select(size).where(_T.experiment_id == experiment_id)).scalar_one())


def unwanted(connection: Connection, experiment_id: str) -> bool:
    """Whether an experiment is there, has no tag and does not run (again)."""
    row: Any = connection.execute(
        select(_E.status, _E.owner, _E.created).where(_E.id == experiment_id)
    ).first()
    tag = select(schema.tags.c.name).where(schema.tags.c.experiment_id == experiment_id)
    if row is None or connection.execute(tag).first() is not None:
        return False
    # What says no time when it began cannot be shown, and nobody knows that it ends.
    return not is_time(row.created) or not may_run(
        moving.status_of(row), time_of(row.created), datetime.now(UTC)
    )


def remove(connection: Connection, experiment_id: str) -> bool:
    """Remove one experiment with everything in it; whether it was there."""
    mine = select(_T.id).where(_T.experiment_id == experiment_id)
    for table in (schema.trial_summaries, schema.judgements):
        connection.execute(delete(table).where(table.c.trial_id.in_(mine)))
    for table in (schema.trials, schema.notes, schema.tags, schema.experiment_summaries):
        connection.execute(delete(table).where(table.c.experiment_id == experiment_id))
    return connection.execute(delete(schema.experiments).where(_E.id == experiment_id)).rowcount > 0
