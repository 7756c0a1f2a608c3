"""An experiment's raw rows, out of one database and into another. Must not interpret records: another version
may have written them.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row, insert, select, update

from prony.errors import StoreError
from prony.store import owner, schema
from prony.store.database import Database
from prony.store.rows import ExperimentStatus, RawExperiment

IMPORTED = "imported"
"""The owner of an experiment from another host."""


def raw(database: Database, experiment_id: str) -> RawExperiment:
    """The raw rows of an experiment (full id), for another store."""
    chosen = schema.trials.c.experiment_id == experiment_id
    with database.reading() as connection:
        experiment = connection.execute(
            select(schema.experiments).where(schema.experiments.c.id == experiment_id)
        ).one()
        trials = connection.execute(select(schema.trials).where(chosen).order_by(schema.trials.c.id)).all()
        judgements = connection.execute(
            select(schema.judgements).join(schema.trials).where(chosen).order_by(schema.judgements.c.id)
        ).all()
    return RawExperiment(
        experiment=dict(experiment._mapping) | {"status": status_of(experiment)},
        trials=tuple(dict(row._mapping) for row in trials),
        judgements=tuple(_without_id(row._mapping) for row in judgements),
    )


def add(database: Database, found: RawExperiment) -> int:
    """Add what is new, in one transaction; returns the number of new trials. Raises StoreError, changing
    nothing, when another experiment or trial has the same id.
    """
    identifier = str(found.experiment["id"])
    trials_of = schema.trials.c.experiment_id == identifier
    with database.faults(), database.writing() as connection:
        query = select(schema.experiments).where(schema.experiments.c.id == identifier)
        there = connection.execute(query).first()
        known = {
            row.id: dict(row._mapping) for row in connection.execute(select(schema.trials).where(trials_of))
        }
        judged = {
            (row.trial_id, row.made)
            for row in connection.execute(select(schema.judgements).join(schema.trials).where(trials_of))
        }
        if there is None:
            connection.execute(insert(schema.experiments).values(**found.experiment | {"owner": IMPORTED}))
        elif any(there._mapping[key] != found.experiment[key] for key in ("created", "seed")):
            raise StoreError(
                f"{database.where} has another experiment {identifier}, "
                "made at the same instant; nothing was imported."
            )
        elif there.owner == IMPORTED and len(found.trials) >= len(known):
            progress = {key: found.experiment[key] for key in ("status", "ended", "spec")}
            connection.execute(
                update(schema.experiments).where(schema.experiments.c.id == identifier).values(**progress)
            )
        added = 0
        for trial in found.trials:
            mine = known.get(trial["id"])
            if mine is None:
                connection.execute(insert(schema.trials).values(**trial))
                added += 1
            elif zlib.decompress(mine["record"]) != zlib.decompress(trial["record"]):
                raise StoreError(
                    f"Trial {trial['id']} in {database.where} differs from the imported one, and a "
                    "stored trial is never changed; nothing was imported."
                )
        for judgement in found.judgements:
            if (judgement["trial_id"], judgement["made"]) not in judged:
                connection.execute(insert(schema.judgements).values(**judgement))
    return added


def status_of(row: Row[Any]) -> ExperimentStatus:
    """The status of the row; `interrupted` when the process that ran it has gone."""
    status: ExperimentStatus = row.status
    return "interrupted" if status == "running" and owner.is_gone(row.owner) else status


def _without_id(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name): value for name, value in row.items() if name != "id"}
