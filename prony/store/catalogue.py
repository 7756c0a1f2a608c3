"""The catalogue of results: experiments and their trials, each written in one transaction and never changed
(but for the calibration that follows a trial).

Must not know how a trial is run, judged or shown.
"""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pydantic
from sqlalchemy import Row, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from prony import __version__
from prony.errors import StoreError, UsageError
from prony.evidence.host import Fingerprint
from prony.evidence.trial import TrialRecord
from prony.judge.finding import Judgement
from prony.store import moving, owner, rescue, schema
from prony.store.database import Database
from prony.store.ids import as_typed, experiment_id
from prony.store.rows import ExperimentRow, ExperimentStatus, RawExperiment, StoredJudgement, StoredTrial

LATEST = "latest"

_PROBE_BYTES = 256 * 1024
"""Size of `check_writable`'s probe: more than a long trial's record, so that one still fits afterwards."""

_ID_ATTEMPTS = 64


class Store:
    """An open catalogue. Every method raises StoreError, in one sentence, when the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._running: dict[str, dict[str, Any]] = {}
        """Rows of the experiments that this process runs, for saving a trial that cannot be stored."""

    @classmethod
    def open(cls, target: str | Path | None = None) -> Store:
        """Open a file or an SQLAlchemy URL (default: `$PRONY_DB`, else the user's data directory), creating
        it when absent. Refuses, without changing it, a file that is not Prony's and a schema newer than this
        program.
        """
        return cls(Database.open(target))

    @property
    def where(self) -> str:
        """The file or URL, without a password."""
        return self._database.where

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    # -- writing
    # ---------------------------------------------------------------------------------------------------

    def check_writable(self) -> None:
        """Write and delete a probe, so that a full disk or missing permission is found before the first
        trial.
        """
        name = f"probe-{uuid.uuid4().hex}"
        with self._database.faults():
            with self._database.writing() as connection:
                connection.execute(insert(schema.about).values(name=name, value="0" * _PROBE_BYTES))
            with self._database.writing() as connection:
                connection.execute(delete(schema.about).where(schema.about.c.name == name))

    def create_experiment(
        self, *, name: str, spec: Mapping[str, Any], fingerprint: Fingerprint, seed: int, quick: bool
    ) -> str:
        """Start an experiment; returns its id. `spec` is the plan, plain JSON values only."""
        created = datetime.now(UTC)
        values = {
            "name": name,
            "created": created.isoformat(),
            "status": "running",
            "spec": json.dumps(spec),
            "fingerprint_key": fingerprint.key,
            "fingerprint": fingerprint.model_dump_json(),
            "seed": str(seed),
            "quick": quick,
            "prony_version": __version__,
            "owner": owner.this_process(),
        }
        with self._database.faults():
            for later in range(_ID_ATTEMPTS):
                identifier = experiment_id(created, later)
                try:
                    with self._database.writing() as connection:
                        connection.execute(insert(schema.experiments).values(id=identifier, **values))
                except IntegrityError:
                    continue  # two experiments within the same instant
                self._running[identifier] = {"id": identifier, "ended": None, **values}
                return identifier
        raise StoreError(f"No free experiment id in {self.where}; try again.")

    def add_trial(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, Any]) -> None:
        """Store a trial with its judgement in one transaction.

        When the database refuses, the trial is saved as a file that `prony results import` takes, and the
        StoreError names it. An interrupt while writing does not lose it either.
        """
        try:
            try:
                self._insert_trial(record, judgement, figures)
            except KeyboardInterrupt:
                if not self._has_trial(record.id):
                    self._insert_trial(record, judgement, figures)
                raise
        except StoreError as fault:
            judged = _judgement_values(record.id, judgement, figures)
            saved = rescue.save(self._running.get(record.experiment_id), _trial_values(record), judged)
            kept = (
                f"Trial {record.id} was saved as {saved}. To store it later: prony results import {saved}"
                if saved is not None
                else f"Trial {record.id} could not be saved as a file either."
            )
            raise StoreError(f"{fault} {kept}") from None

    def complete_trial(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, Any]) -> None:
        """Replace a trial that `add_trial` stored a moment ago by the same one with its calibration, and its
        judgement by the one that follows; whoever reads meanwhile finds the earlier or the later.
        """
        mine = schema.judgements.c.trial_id == record.id
        values = {name: value for name, value in _trial_values(record).items() if name != "id"}
        with self._database.faults(), self._database.writing() as connection:
            connection.execute(update(schema.trials).where(schema.trials.c.id == record.id).values(**values))
            connection.execute(delete(schema.judgements).where(mine))
            connection.execute(
                insert(schema.judgements).values(**_judgement_values(record.id, judgement, figures))
            )

    def _insert_trial(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, Any]) -> None:
        with self._database.faults():
            try:
                with self._database.writing() as connection:
                    connection.execute(insert(schema.trials).values(**_trial_values(record)))
                    connection.execute(
                        insert(schema.judgements).values(**_judgement_values(record.id, judgement, figures))
                    )
            except IntegrityError:
                why = (
                    "a trial of this id is already stored, and a stored trial is never changed"
                    if self._has_trial(record.id)
                    else f"no experiment {record.experiment_id}"
                )
                raise StoreError(f"Trial {record.id} cannot be stored in {self.where}: {why}.") from None

    def _has_trial(self, trial_id: str) -> bool:
        with self._database.reading() as connection:
            query = select(schema.trials.c.id).where(schema.trials.c.id == trial_id)
            return connection.execute(query).first() is not None

    def add_judgements(self, made: Mapping[str, tuple[Judgement, Mapping[str, Any]]]) -> None:
        """Store new judgements and figures by trial id, beside the older ones: all or none."""
        rows = [_judgement_values(trial_id, *new) for trial_id, new in made.items()]
        with self._database.faults():
            try:
                with self._database.writing() as connection:
                    for row in rows:
                        connection.execute(insert(schema.judgements).values(**row))
            except IntegrityError:
                raise StoreError(
                    f"Not all of the trials {', '.join(made)} are in {self.where}; no judgement was stored."
                ) from None

    def update_plan(self, experiment_id: str, spec: Mapping[str, Any]) -> None:
        """Replace the stored plan, which has grown by cells. Trials stay as they are."""
        query = update(schema.experiments).where(schema.experiments.c.id == experiment_id)
        with self._database.faults(), self._database.writing() as connection:
            connection.execute(query.values(spec=json.dumps(spec)))
        if experiment_id in self._running:
            self._running[experiment_id]["spec"] = json.dumps(spec)

    def drop_empty(self, experiment_id: str) -> None:
        """Remove an experiment that has no trial; one that has any stays."""
        mine = schema.experiments.c.id == experiment_id
        trial = select(schema.trials.c.id).where(schema.trials.c.experiment_id == experiment_id)
        with self._database.faults(), self._database.writing() as connection:
            connection.execute(delete(schema.experiments).where(mine, ~trial.exists()))

    def finish_experiment(self, experiment_id: str, status: ExperimentStatus = "finished") -> None:
        """Record how an experiment ended."""
        query = update(schema.experiments).where(schema.experiments.c.id == experiment_id)
        with self._database.faults(), self._database.writing() as connection:
            connection.execute(query.values(status=status, ended=datetime.now(UTC).isoformat()))

    def resume_experiment(self, experiment_id: str) -> None:
        """Make this process the one that runs a stored experiment. StoreError when another one does."""
        query = select(schema.experiments).where(schema.experiments.c.id == experiment_id)
        change = update(schema.experiments).where(schema.experiments.c.id == experiment_id)
        with self._database.faults(), self._database.writing() as connection:
            row = connection.execute(query).first()
            if row is None:
                raise StoreError(f"No experiment {experiment_id} in {self.where}.")
            if row.status == "running" and not owner.is_gone(row.owner):
                raise StoreError(f"{experiment_id} is being run by another process; wait for it.")
            connection.execute(change.values(status="running", owner=owner.this_process(), ended=None))
            self._running[experiment_id] = dict(row._mapping) | {"status": "running", "ended": None}

    # -- reading
    # ---------------------------------------------------------------------------------------------------

    def experiments(self) -> list[ExperimentRow]:
        """All experiments, newest first."""
        count = (
            select(func.count())
            .select_from(schema.trials)
            .where(schema.trials.c.experiment_id == schema.experiments.c.id)
            .scalar_subquery()
        )
        query = select(schema.experiments, count.label("trial_count")).order_by(
            schema.experiments.c.created.desc(), schema.experiments.c.id.desc()
        )
        with self._database.reading() as connection:
            return [self._experiment(row) for row in connection.execute(query)]

    def experiment(self, which: str) -> ExperimentRow:
        """One experiment by its id, a unique prefix of it (or of the part after the dash), or `latest`.
        Raises UsageError when there is none or more than one.
        """
        rows = self.experiments()
        if not rows:
            raise UsageError(f"No results in {self.where} yet; measure something first.")
        if which.strip().lower() == LATEST:
            return rows[0]
        typed = as_typed(which)
        exact = [row for row in rows if row.id == typed]
        found = exact or [
            row
            for row in rows
            if typed and (row.id.startswith(typed) or row.id.partition("-")[2].startswith(typed))
        ]
        if len(found) == 1:
            return found[0]
        shown = ", ".join(row.id for row in (found or rows)[:5])
        if found:
            raise UsageError(
                f"'{which}' matches {len(found)} experiments ({shown} ...); type more of the id."
            )
        raise UsageError(f"No experiment '{which}' in {self.where}; the newest are {shown}.")

    def trials(self, experiment_id: str) -> list[StoredTrial]:
        """All trials of an experiment (its full id) in the order in which they ran."""
        chosen = schema.trials.c.experiment_id == experiment_id
        trial_query = (
            select(schema.trials).where(chosen).order_by(schema.trials.c.started, schema.trials.c.id)
        )
        judgement_query = (
            select(schema.judgements).join(schema.trials).where(chosen).order_by(schema.judgements.c.id)
        )
        with self._database.reading() as connection:
            trial_rows = connection.execute(trial_query).all()
            judgement_rows = connection.execute(judgement_query).all()
        return [
            self._trial(row, [one for one in judgement_rows if one.trial_id == row.id]) for row in trial_rows
        ]

    def _experiment(self, row: Row[Any]) -> ExperimentRow:
        status = moving.status_of(row)
        with self._understood(f"Experiment {row.id}", row.prony_version):
            return ExperimentRow(
                id=row.id,
                name=row.name,
                created=datetime.fromisoformat(row.created),
                ended=datetime.fromisoformat(row.ended) if row.ended else None,
                status=status,
                spec=json.loads(row.spec),
                fingerprint=Fingerprint.model_validate_json(row.fingerprint),
                seed=int(row.seed),
                quick=bool(row.quick),
                prony_version=row.prony_version,
                trials=row.trial_count,
            )

    def _trial(self, row: Row[Any], judged: list[Row[Any]]) -> StoredTrial:
        with self._understood(f"Trial {row.id}", row.prony_version):
            if row.record_format != schema.RECORD_FORMAT:
                raise ValueError(f"unknown format {row.record_format}")
            return StoredTrial(
                record=TrialRecord.model_validate_json(zlib.decompress(row.record)),
                judgements=tuple(
                    StoredJudgement(
                        judgement=Judgement.model_validate_json(one.judgement),
                        figures=json.loads(one.figures),
                        made=datetime.fromisoformat(one.made),
                        prony_version=one.prony_version,
                    )
                    for one in judged
                ),
                prony_version=row.prony_version,
            )

    # -- moving to another store
    # -------------------------------------------------------------------------------------------------------

    def raw(self, experiment_id: str) -> RawExperiment:
        """The raw rows of an experiment (full id), for another store."""
        return moving.raw(self._database, experiment_id)

    def add_raw(self, found: RawExperiment) -> int:
        """Add what is new, in one transaction; returns the number of new trials. Raises StoreError, changing
        nothing, when another experiment or trial has the same id.
        """
        return moving.add(self._database, found)

    @contextmanager
    def _understood(self, what: str, written_by: str) -> Iterator[None]:
        try:
            yield
        except (pydantic.ValidationError, ValueError, zlib.error) as error:
            raise StoreError(
                f"{what} in {self.where} cannot be read: it is damaged, or Prony {written_by}, "
                f"which wrote it, records something else than this one ({__version__}).",
                details=str(error),
            ) from None


def _trial_values(record: TrialRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "experiment_id": record.experiment_id,
        "server": record.server,
        "workload": record.workload,
        "load_name": record.load_name,
        "kind": record.kind,
        "block": record.block,
        "position": record.position,
        "quick": record.quick,
        "started": record.started_at.astimezone(UTC).isoformat(),
        "ended": record.ended_at.astimezone(UTC).isoformat(),
        "failure": record.failure,
        "fingerprint_key": record.fingerprint_key,
        "prony_version": __version__,
        "record_format": schema.RECORD_FORMAT,
        "record": zlib.compress(record.model_dump_json().encode()),
    }


def _judgement_values(trial_id: str, judgement: Judgement, figures: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "trial_id": trial_id,
        "made": datetime.now(UTC).isoformat(),
        "prony_version": __version__,
        "verdict": judgement.verdict.value,
        "judgement": judgement.model_dump_json(),
        "figures": json.dumps(dict(figures)),
    }
