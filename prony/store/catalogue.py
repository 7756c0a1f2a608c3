"""The catalogue of results: experiments and trials, immutable except for a calibration that follows."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from prony import __version__, redaction
from prony.errors import StoreError, TrialNotStored, UsageError
from prony.evidence.host import Fingerprint
from prony.evidence.trial import TrialRecord
from prony.judge.finding import Judgement
from prony.store import keeping, labels, moving, owner, pruning, reading, rescue, schema, search, summaries
from prony.store.database import Database
from prony.store.ids import experiment_id
from prony.store.rows import (
    ExperimentRow,
    ExperimentStatus,
    Found,
    FoundExperiment,
    Note,
    RawExperiment,
    StoredTrial,
)

_PROBE_BYTES = 256 * 1024
"""Size of `check_writable`'s probe: more than a long trial's record."""

_ID_ATTEMPTS = 64
T = TypeVar("T")


class Store:
    """An open catalogue. Methods raise StoreError when the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._running: dict[str, dict[str, Any]] = {}

    @classmethod
    def open(cls, target: str | Path | None = None) -> Store:
        """Opens or creates a file or SQLAlchemy URL (default: `$PRONY_DB`, else the user's data directory).
        Raises StoreError, changing nothing, for a foreign file or another schema version.
        """
        return cls(Database.open(target))

    @property
    def where(self) -> str:
        return self._database.where

    def close(self) -> None:
        self._database.close()

    def read(self, work: Callable[[Connection], T]) -> T:
        """The result of `work` in one transaction."""
        return self._database.read(work)

    def check_writable(self) -> None:
        """Writes and deletes a probe, to detect a full disk or missing permission before the first trial."""
        name = f"probe-{uuid.uuid4().hex}"
        with self._database.faults():
            with self._database.writing() as connection:
                connection.execute(insert(schema.about).values(name=name, value="0" * _PROBE_BYTES))
            with self._database.writing() as connection:
                connection.execute(delete(schema.about).where(schema.about.c.name == name))

    def create_experiment(
        self, *, name: str, spec: Mapping[str, Any], fingerprint: Fingerprint, seed: int, quick: bool
    ) -> str:
        """Starts an experiment and returns its id. `spec`: the plan as plain JSON values."""
        created = datetime.now(UTC)
        values = {
            "name": redaction.text(name),
            "created": created.isoformat(),
            "status": "running",
            "spec": _stored(spec),
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
                row = {"id": identifier, **values}
                try:
                    with self._database.writing() as connection:
                        connection.execute(insert(schema.experiments).values(**row))
                        summaries.add_experiment(connection, row)
                except IntegrityError:
                    continue  # another experiment within the same instant
                self._running[identifier] = {"ended": None, **row}
                return identifier
        raise StoreError(f"No free experiment id in {self.where}; try again.")

    def add_trial(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, Any]) -> None:
        """Stores a trial with its judgement, also when interrupted. If the database refuses, it is saved as a
        file for `prony results import`, which the StoreError names.
        """
        judged = keeping.judgement_values(record.id, judgement, figures)
        try:
            try:
                self._insert_trial(record, judged)
            except KeyboardInterrupt:
                self._insert_trial(record, judged, patience_s=0.0)  # no retries after an interrupt
                raise
        except StoreError as fault:
            saved = rescue.save(self._running.get(record.experiment_id), keeping.trial_values(record), judged)
            kept = (
                f"Trial {record.id} was saved as {saved}. To store it later: prony results import {saved}"
                if saved is not None
                else f"Trial {record.id} could not be saved as a file either."
            )
            raise TrialNotStored(f"{fault} {kept}") from None

    def _insert_trial(
        self, record: TrialRecord, judged: Mapping[str, Any], *, patience_s: float | None = None
    ) -> None:
        """Idempotent, as a connection may be lost during the commit."""
        try:
            self._database.write(
                lambda connection: keeping.insert_trial(connection, record, judged), patience_s=patience_s
            )
        except IntegrityError:
            stored = self._database.read(lambda connection: keeping.record_of(connection, record.id))
            if stored == keeping.record_text(record):
                return
            why = (
                "another trial with this id is stored, and stored trials are immutable"
                if stored is not None
                else f"no experiment {record.experiment_id}"
            )
            raise StoreError(f"Trial {record.id} cannot be stored in {self.where}: {why}.") from None

    def complete_trial(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, Any]) -> None:
        """Replaces a trial just stored by the same one plus its calibration and new judgement."""
        judged = keeping.judgement_values(record.id, judgement, figures)
        self._database.write(lambda connection: keeping.replace_trial(connection, record, judged))

    def add_judgements(self, made: Mapping[str, tuple[Judgement, Mapping[str, Any]]]) -> None:
        """Adds new judgements and figures by trial id to the older ones: all or none."""
        rows = [keeping.judgement_values(trial_id, *new) for trial_id, new in made.items()]

        def work(connection: Connection) -> None:
            for row in rows:
                moving.add_judgement(connection, row)
                summaries.renew_trial(connection, row)

        try:
            self._database.write(work)
        except IntegrityError:
            raise StoreError(
                f"Not all of the trials {', '.join(made)} are in {self.where}; no judgement was stored."
            ) from None

    def update_plan(self, experiment_id: str, spec: Mapping[str, Any]) -> None:
        """Replaces the stored plan with one that has more cells, without credentials."""
        text = _stored(spec)
        self._update(experiment_id, spec=text)
        if experiment_id in self._running:
            self._running[experiment_id]["spec"] = text

    def drop_empty(self, experiment_id: str) -> None:
        def work(connection: Connection) -> None:
            trial = select(schema.trials.c.id).where(schema.trials.c.experiment_id == experiment_id)
            if connection.execute(trial.limit(1)).first() is None:
                pruning.remove(connection, experiment_id)

        self._database.write(work, alone=True)

    def finish_experiment(self, experiment_id: str, status: ExperimentStatus = "finished") -> None:
        self._update(experiment_id, status=status, ended=datetime.now(UTC).isoformat())

    def _update(self, experiment_id: str, **values: str) -> None:
        query = update(schema.experiments).where(schema.experiments.c.id == experiment_id).values(**values)
        self._database.write(lambda connection: connection.execute(query))

    def resume_experiment(self, experiment_id: str) -> None:
        """Makes this process an experiment's owner. Raises StoreError if another process runs it."""
        query = select(schema.experiments).where(schema.experiments.c.id == experiment_id)
        mine = {"status": "running", "owner": owner.this_process(), "ended": None}

        def work(connection: Connection) -> dict[str, Any]:
            row = connection.execute(query).first()
            if row is None:
                raise StoreError(f"No experiment {experiment_id} in {self.where}.")
            if row.status == "running" and row.owner != mine["owner"] and not owner.is_gone(row.owner):
                raise StoreError(f"{experiment_id} runs in another process; wait for its end.")
            connection.execute(
                update(schema.experiments).where(schema.experiments.c.id == experiment_id).values(**mine)
            )
            return dict(row._mapping)

        self._running[experiment_id] = self._database.write(work, alone=True) | mine

    def experiments(
        self, *, command: str | None = None, fingerprint_key: str | None = None
    ) -> list[ExperimentRow]:
        """Readable experiments, newest first. Without plans `search` is faster, and names unreadable ones."""
        conditions = []
        if command is not None:
            conditions.append(schema.experiment_summaries.c.command == command)
        if fingerprint_key is not None:
            conditions.append(schema.experiments.c.fingerprint_key == fingerprint_key)
        return self._database.read(
            lambda connection: reading.experiments(connection, self.where, *conditions, readable=True)
        )

    def experiment(self, which: str) -> ExperimentRow:
        """An experiment by whatever `reading.identify` understands. Raises UsageError for none or several."""

        def work(connection: Connection) -> ExperimentRow:
            identifier = reading.identify(connection, self.where, which)
            (row,) = reading.experiments(connection, self.where, schema.experiments.c.id == identifier)
            return row

        return self._database.read(work)

    def ahead_s(self) -> float:
        """Newest stored experiment - this host's clock (s)."""
        newest = self.search(limit=1).experiments
        return (newest[0].created - datetime.now(UTC)).total_seconds() if newest else 0.0

    def has(self, experiment_id: str) -> bool:
        query = select(schema.experiments.c.id).where(schema.experiments.c.id == experiment_id)
        return self._database.read(lambda connection: connection.execute(query).first() is not None)

    def trials(self, experiment_id: str) -> list[StoredTrial]:
        """Trials of an experiment (full id) in the order of storing and running."""
        mine = schema.trials.c.experiment_id == experiment_id
        return self._database.read(lambda connection: reading.trials(connection, self.where, mine))

    def trial(self, trial_id: str) -> StoredTrial:
        mine = schema.trials.c.id == trial_id
        trials = self._database.read(lambda connection: reading.trials(connection, self.where, mine))
        if not trials:
            raise UsageError(f"No trial '{trial_id}' in {self.where}.")
        return trials[0]

    def search(
        self, wanted: search.Search | None = None, *, limit: int | None = None, offset: int = 0
    ) -> Found:
        chosen = wanted or search.Search()
        return self._database.read(lambda connection: search.search(connection, chosen, limit, offset))

    def durations_s(self, spec: Mapping[str, Any]) -> dict[str, float]:
        """Cell of a plan -> median duration (s) of its stored trials; without unmeasured cells."""
        keys = summaries.plan_keys(json.dumps(spec))
        took_s = self._database.read(lambda connection: search.durations_s(connection, set(keys.values())))
        return {cell: took_s[key] for cell, key in keys.items() if key in took_s}

    def tag(self, experiment_id: str, name: str, *, only: bool = False) -> None:
        """Tags an experiment; with `only`, others lose the tag. Raises UsageError for an invalid name."""
        labels.checked_tag(name)
        self._database.write(
            lambda connection: labels.add_tag(connection, experiment_id, name, only=only), alone=True
        )

    def untag(self, experiment_id: str, name: str) -> bool:
        return self._database.write(lambda connection: labels.remove_tag(connection, experiment_id, name))

    def tags(self) -> dict[str, int]:
        return self._database.read(labels.tags)

    def tagged(self, name: str) -> tuple[FoundExperiment, ...]:
        return self.search(search.Search(tag=name)).experiments

    def labels_of(self, experiment_id: str) -> tuple[tuple[str, ...], tuple[Note, ...]]:
        def work(connection: Connection) -> tuple[tuple[str, ...], tuple[Note, ...]]:
            mine = (experiment_id,)
            tagged, noted = labels.tags_of(connection, mine), labels.notes_of(connection, mine, [])
            return tuple(tagged.get(experiment_id, ())), tuple(noted.get(experiment_id, ()))

        return self._database.read(work)

    def note(self, experiment_id: str, text: str) -> None:
        """Adds a note to an experiment. Raises UsageError for an empty or too long one."""
        row = labels.new_note(experiment_id, redaction.text(labels.checked_note(text)))
        self._database.write(lambda connection: labels.add_notes(connection, (row,)))

    def answered(self, experiment_id: str, sentence: str) -> None:
        """Stores an experiment's main conclusion, for lists."""
        values = {"experiment_id": experiment_id, "sentence": redaction.text(sentence)}
        mine = schema.answers.c.experiment_id == experiment_id
        known = select(schema.answers.c.sentence).where(mine)
        if self.read(lambda connection: connection.execute(known).scalar()) == values["sentence"]:
            return

        def work(connection: Connection) -> None:
            connection.execute(delete(schema.answers).where(mine))
            connection.execute(insert(schema.answers).values(**values))

        self._database.write(work)

    def stored_bytes(self, experiment_id: str) -> int:
        return self._database.read(lambda connection: pruning.stored_bytes(connection, experiment_id))

    def remove(self, experiment_id: str) -> bool:
        """Permanently removes an experiment; False if it is gone, tagged or running."""
        return self._database.write(
            lambda connection: (
                pruning.unwanted(connection, experiment_id) and pruning.remove(connection, experiment_id)
            ),
            alone=True,
        )

    def shrink(self) -> None:
        self._database.shrink()

    def raw(self, experiment_id: str) -> RawExperiment:
        return self._database.read(lambda connection: moving.raw(connection, experiment_id))

    def add_raw(self, rows: RawExperiment) -> int:
        """As `moving.add`, in a transaction."""
        try:
            return self._database.write(
                lambda connection: moving.add(connection, rows, self.where), alone=True
            )
        except IntegrityError as fault:
            raise StoreError(
                f"{rows.experiment.get('id')} contradicts what is stored in {self.where}; nothing was "
                "imported.",
                details=str(fault.orig),
            ) from None


def _stored(spec: Mapping[str, Any]) -> str:
    return json.dumps(redaction.plain(spec))
