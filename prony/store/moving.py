"""Copies an experiment's raw rows between databases."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from prony import redaction
from prony.errors import StoreError
from prony.store import labels, owner, schema, summaries
from prony.store.rows import ExperimentStatus, RawExperiment

IMPORTED = "imported"


def raw(connection: Connection, experiment_id: str) -> RawExperiment:
    chosen = schema.trials.c.experiment_id == experiment_id
    experiment = connection.execute(
        select(schema.experiments).where(schema.experiments.c.id == experiment_id)
    ).one()
    trials = connection.execute(
        select(schema.trials)
        .join(schema.trial_summaries)
        .where(chosen)
        .order_by(schema.trial_summaries.c.number)
    ).all()
    judgements = connection.execute(
        select(schema.judgements).join(schema.trials).where(chosen).order_by(schema.judgements.c.id)
    ).all()
    notes = connection.execute(
        select(schema.notes).where(schema.notes.c.experiment_id == experiment_id).order_by(schema.notes.c.id)
    ).all()
    return RawExperiment(
        experiment=_public(experiment._mapping) | {"status": status_of(experiment)},
        trials=tuple(_public(row._mapping) for row in trials),
        judgements=tuple(_without_id(_public(row._mapping)) for row in judgements),
        notes=tuple(_without_id(_public(row._mapping)) for row in notes),
    )


def _public(row: Mapping[Any, Any]) -> dict[str, Any]:
    """The row without credentials, which earlier versions stored."""
    values = {str(name): value for name, value in row.items()}
    for name in ("spec", "judgement"):
        if name in values:
            values[name] = redaction.as_json(values[name])
    for name in ("name", "failure", "text"):
        if values.get(name):
            values[name] = redaction.text(values[name])
    if "record" in values:
        text = zlib.decompress(values["record"]).decode()
        public = redaction.as_json(text)
        values["record"] = values["record"] if public == text else zlib.compress(public.encode())
    return values


def add(connection: Connection, rows: RawExperiment, where: str) -> int:
    """Adds new rows; returns the number of new trials. Raises StoreError if an id is taken by another."""
    identifier = str(rows.experiment["id"])
    mine = schema.experiments.c.id == identifier
    trials_of = schema.trials.c.experiment_id == identifier
    there = connection.execute(select(schema.experiments).where(mine)).first()
    stored_records = {
        row.id: row.record for row in connection.execute(select(schema.trials).where(trials_of))
    }
    if there is None:
        experiment = rows.experiment | {"owner": IMPORTED}
        connection.execute(insert(schema.experiments).values(**experiment))
        summaries.add_experiment(connection, experiment)
    elif any(there._mapping[key] != rows.experiment[key] for key in ("created", "seed")):
        raise StoreError(f"{where} has another experiment with the id {identifier}; nothing was imported.")
    elif there.owner == IMPORTED and len(rows.trials) >= len(stored_records):
        progress = {key: rows.experiment[key] for key in ("status", "ended", "spec")}
        connection.execute(update(schema.experiments).where(mine).values(**progress))
        summaries.renew_experiment(connection, identifier, progress["spec"])
    new = [trial for trial in rows.trials if trial["id"] not in stored_records]
    for trial in rows.trials:
        stored = stored_records.get(trial["id"])
        if stored is not None and stored != trial["record"] and _text(stored) != _text(trial["record"]):
            raise StoreError(
                f"Trial {trial['id']} in {where} differs from the imported one, and stored trials are "
                "immutable; nothing was imported."
            )
    for trial in new:
        connection.execute(insert(schema.trials).values(**trial))
    more = [judgement for judgement in rows.judgements if add_judgement(connection, judgement)]
    added = {trial["id"] for trial in new}
    for trial in new:
        summaries.add_trial(connection, trial, summaries.newest_judgement(connection, trial["id"]))
    for trial_id in dict.fromkeys(
        judgement["trial_id"] for judgement in more if judgement["trial_id"] not in added
    ):
        summaries.renew_trial(connection, summaries.newest_judgement(connection, trial_id))
    labels.add_notes(connection, rows.notes)
    return len(new)


def add_judgement(connection: Connection, judgement: Mapping[str, Any]) -> bool:
    """Adds a missing judgement, identified by trial and time; returns whether it was new."""
    same = (schema.judgements.c[name] == judgement[name] for name in ("trial_id", "made"))
    if connection.execute(select(schema.judgements.c.id).where(*same)).first() is not None:
        return False
    connection.execute(insert(schema.judgements).values(**judgement))
    return True


def _text(record: bytes) -> str:
    return redaction.as_json(zlib.decompress(record).decode())


def status_of(row: Row[Any]) -> ExperimentStatus:
    """The row's status; `interrupted` after its process ended."""
    status: ExperimentStatus = row.status
    return "interrupted" if status == "running" and owner.is_gone(row.owner) else status


def _without_id(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name): value for name, value in row.items() if name != "id"}
