"""The catalogue of results: experiments and their trials, each written in one transaction and never changed
(but for the calibration that follows a trial).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from prony import __version__, redaction
from prony.errors import StoreError, UsageError
from prony.evidence.host import Fingerprint
from prony.evidence.trial import TrialRecord
from prony.judge.finding import Judgement
from prony.store import (
    keeping,
    labels,
    moving,
    owner,
    pruning,
    reading,
    rescue,
    schema,
    search,
    summaries,
)
from prony.store.database import Database
from prony.store.ids import experiment_id
from prony.store.rows import (
    ExperimentRow,
    ExperimentStatus,
    Found,
    FoundExperiment,
    Note,
    RawExperiment,
    SeenHost,
    SeriesName,
    SeriesTrial,
    StoredTrial,
)

_PROBE_BYTES = 256 * 1024
"""Size of `check_writable`'s probe: more than a long trial's record, so that one still fits afterwards."""

_ID_ATTEMPTS = 64


class Store:
    """An open catalogue. Every method raises StoreError, in one sentence, when the database fails; where the
    connection to a server is lost it is tried again for a minute first.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._running: dict[str, dict[str, Any]] = {}
        """Rows of the experiments that this process runs, for saving a trial that cannot be stored."""

    @classmethod
    def open(cls, target: str | Path | None = None) -> Store:
        """Open a file or an SQLAlchemy URL (default: `$PRONY_DB`, else the user's data directory), creating
        it when absent and migrating it when an earlier Prony wrote it. Refuses, without changing it, a file
        that is not Prony's and a schema newer than this program.
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
        """Start an experiment; returns its id. `spec` is the plan, plain JSON values only; it is kept without
        credentials, as everything is.
        """
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
                    continue  # two experiments within the same instant
                self._running[identifier] = {"ended": None, **row}
                return identifier
        raise StoreError(f"No free experiment id in {self.where}; try again.")

    def add_trial(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, Any]) -> None:
        """Store a trial with its judgement in one transaction.

        When the database refuses, the trial is saved as a file that `prony results import` takes, and the
        StoreError names it. An interrupt while writing does not lose it either.
        """
        judged = keeping.judgement_values(record.id, judgement, figures)
        try:
            try:
                self._insert_trial(record, judged)
            except KeyboardInterrupt:
                self._insert_trial(record, judged, patience_s=0.0)  # who interrupts waits no minute
                raise
        except StoreError as fault:
            saved = rescue.save(self._running.get(record.experiment_id), keeping.trial_values(record), judged)
            kept = (
                f"Trial {record.id} was saved as {saved}. To store it later: prony results import {saved}"
                if saved is not None
                else f"Trial {record.id} could not be saved as a file either."
            )
            raise StoreError(f"{fault} {kept}") from None

    def _insert_trial(
        self, record: TrialRecord, judged: Mapping[str, Any], *, patience_s: float | None = None
    ) -> None:
        """Changes nothing when the same trial is stored already, as after a connection that was lost while it
        was committed.
        """
        try:
            self._database.write(
                lambda connection: keeping.insert_trial(connection, record, judged), patience_s=patience_s
            )
        except IntegrityError:
            known = self._database.read(lambda connection: keeping.record_of(connection, record.id))
            if known == keeping.record_text(record):
                return
            why = (
                "a trial of this id is already stored, and a stored trial is never changed"
                if known is not None
                else f"no experiment {record.experiment_id}"
            )
            raise StoreError(f"Trial {record.id} cannot be stored in {self.where}: {why}.") from None

    def complete_trial(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, Any]) -> None:
        """Replace a trial that `add_trial` stored a moment ago by the same one with its calibration, and its
        judgement by the one that follows; whoever reads meanwhile finds the earlier or the later.
        """
        judged = keeping.judgement_values(record.id, judgement, figures)
        self._database.write(lambda connection: keeping.replace_trial(connection, record, judged))

    def add_judgements(self, made: Mapping[str, tuple[Judgement, Mapping[str, Any]]]) -> None:
        """Store new judgements and figures by trial id, beside the older ones: all or none."""
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
        """Replace the stored plan, which has grown by cells. Trials stay as they are; credentials are left
        out.
        """
        text = _stored(spec)
        self._update(experiment_id, spec=text)
        if experiment_id in self._running:
            self._running[experiment_id]["spec"] = text

    def drop_empty(self, experiment_id: str) -> None:
        """Remove an experiment that has no trial; one that has any stays."""

        def work(connection: Connection) -> None:
            trial = select(schema.trials.c.id).where(schema.trials.c.experiment_id == experiment_id)
            if connection.execute(trial.limit(1)).first() is None:
                pruning.remove(connection, experiment_id)

        self._database.write(work, alone=True)

    def finish_experiment(self, experiment_id: str, status: ExperimentStatus = "finished") -> None:
        """Record how an experiment ended."""
        self._update(experiment_id, status=status, ended=datetime.now(UTC).isoformat())

    def _update(self, experiment_id: str, **values: str) -> None:
        query = update(schema.experiments).where(schema.experiments.c.id == experiment_id).values(**values)
        self._database.write(lambda connection: connection.execute(query))

    def resume_experiment(self, experiment_id: str) -> None:
        """Make this process the one that runs a stored experiment. StoreError when another one does."""
        query = select(schema.experiments).where(schema.experiments.c.id == experiment_id)
        mine = {"status": "running", "owner": owner.this_process(), "ended": None}

        def work(connection: Connection) -> dict[str, Any]:
            row = connection.execute(query).first()
            if row is None:
                raise StoreError(f"No experiment {experiment_id} in {self.where}.")
            if row.status == "running" and row.owner != mine["owner"] and not owner.is_gone(row.owner):
                raise StoreError(f"{experiment_id} is being run by another process; wait for it.")
            connection.execute(
                update(schema.experiments).where(schema.experiments.c.id == experiment_id).values(**mine)
            )
            return dict(row._mapping)

        self._running[experiment_id] = self._database.write(work, alone=True) | mine

    # -- reading
    # ---------------------------------------------------------------------------------------------------

    def experiments(
        self, *, command: str | None = None, fingerprint_key: str | None = None
    ) -> list[ExperimentRow]:
        """All experiments that can be read, or those of a command or a fingerprint, newest first. A list
        that shows no plan wants `search`, which is quicker and names the others.
        """
        conditions = []
        if command is not None:
            conditions.append(schema.experiment_summaries.c.command == command)
        if fingerprint_key is not None:
            conditions.append(schema.experiments.c.fingerprint_key == fingerprint_key)
        return self._database.read(
            lambda connection: reading.experiments(connection, self.where, *conditions, readable=True)
        )

    def experiment(self, which: str) -> ExperimentRow:
        """One experiment by its id, a unique prefix of it (or of the part after the dash), a tag (the newest
        that has it), or `latest`. Raises UsageError when there is none or more than one.
        """

        def work(connection: Connection) -> ExperimentRow:
            identifier = reading.identify(connection, self.where, which)
            (row,) = reading.experiments(connection, self.where, schema.experiments.c.id == identifier)
            return row

        return self._database.read(work)

    def ahead_s(self) -> float:
        """By how much the newest stored experiment is newer than this host's clock: more than 0 when the
        clock went back, or another host's is ahead.
        """
        newest = self.search(limit=1).experiments
        return (newest[0].created - datetime.now(UTC)).total_seconds() if newest else 0.0

    def has(self, experiment_id: str) -> bool:
        """Whether an experiment of this full id is stored."""
        query = select(schema.experiments.c.id).where(schema.experiments.c.id == experiment_id)
        return self._database.read(lambda connection: connection.execute(query).first() is not None)

    def trials(self, experiment_id: str) -> list[StoredTrial]:
        """All trials of an experiment (its full id) in the order in which they were stored, which is that in
        which they ran, whatever the host's clock did.
        """
        mine = schema.trials.c.experiment_id == experiment_id
        return self._database.read(lambda connection: reading.trials(connection, self.where, mine))

    def trial(self, trial_id: str) -> StoredTrial:
        """One trial by its full id. Raises UsageError when there is none."""
        mine = schema.trials.c.id == trial_id
        found = self._database.read(lambda connection: reading.trials(connection, self.where, mine))
        if not found:
            raise UsageError(f"No trial '{trial_id}' in {self.where}.")
        return found[0]

    # -- searching
    # ---------------------------------------------------------------------------------------------------

    def search(
        self, wanted: search.Search | None = None, *, limit: int | None = None, offset: int = 0
    ) -> Found:
        """The experiments that match, newest first, without their plans."""
        chosen = wanted or search.Search()
        return self._database.read(lambda connection: search.search(connection, chosen, limit, offset))

    def series_names(self) -> tuple[SeriesName, ...]:
        """Every server x workload x load of which a trial is stored, in the order of their names."""
        return self._database.read(search.series_names)

    def series(
        self,
        server: str,
        workload: str,
        load_name: str,
        *,
        tag: str | None = None,
        fingerprint_key: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> tuple[SeriesTrial, ...]:
        """The trials of one series in the order in which they ran, whether they conform or not: of all
        experiments, or of those with a tag, on one host, or of a time.
        """
        return self._database.read(
            lambda connection: search.series(
                *(connection, server, workload, load_name),
                tag=tag,
                fingerprint_key=fingerprint_key,
                since=since,
                until=until,
            )
        )

    def fingerprints(self) -> tuple[SeenHost, ...]:
        """Hosts with their software, the newest seen first."""
        return self._database.read(search.fingerprints)

    def fingerprint(self, key: str) -> Fingerprint | None:
        """The fingerprint of this key, as the newest experiment on it read it."""
        found = self._database.read(lambda connection: search.fingerprints(connection, key))
        return found[0].fingerprint if found else None

    # -- tags and notes (of full ids)
    # ---------------------------------------------------------------------------------------------------

    def tag(self, experiment_id: str, name: str, *, only: bool = False) -> None:
        """Give an experiment a tag; with `only` no other keeps it. Raises UsageError for an odd name."""
        labels.checked_tag(name)

        def work(connection: Connection) -> None:
            labels.add_tag(connection, experiment_id, name, only=only)

        self._database.write(work, alone=True)

    def untag(self, experiment_id: str, name: str) -> bool:
        """Whether it had this tag, which is gone now."""
        return self._database.write(lambda connection: labels.remove_tag(connection, experiment_id, name))

    def tags(self) -> dict[str, int]:
        """Every tag -> how many experiments have it."""
        return self._database.read(labels.tags)

    def tagged(self, name: str) -> tuple[FoundExperiment, ...]:
        """The experiments with a tag, newest first."""
        return self.search(search.Search(tag=name)).experiments

    def labels_of(self, experiment_id: str) -> tuple[tuple[str, ...], tuple[Note, ...]]:
        """The tags of an experiment, and its notes, the oldest first."""

        def work(connection: Connection) -> tuple[tuple[str, ...], tuple[Note, ...]]:
            mine = (experiment_id,)
            tagged, noted = labels.tags_of(connection, mine), labels.notes_of(connection, mine, [])
            return tuple(tagged.get(experiment_id, ())), tuple(noted.get(experiment_id, ()))

        return self._database.read(work)

    def note(self, experiment_id: str, text: str) -> None:
        """Add a note to an experiment. Raises UsageError for an empty or an absurdly long one."""
        row = labels.new_note(experiment_id, redaction.text(labels.checked_note(text)))
        self._database.write(lambda connection: labels.add_notes(connection, (row,)))

    # -- pruning
    # ---------------------------------------------------------------------------------------------------

    def stored_bytes(self, experiment_id: str) -> int:
        """About how much room an experiment takes."""
        return self._database.read(lambda connection: pruning.stored_bytes(connection, experiment_id))

    def remove(self, experiment_id: str) -> bool:
        """Remove an experiment with everything in it, for good; False when it is gone, tagged or running."""
        return self._database.write(
            lambda connection: (
                pruning.unwanted(connection, experiment_id) and pruning.remove(connection, experiment_id)
            ),
            alone=True,
        )

    def shrink(self) -> None:
        """Give the room of what was removed back to the disk."""
        self._database.shrink()

    # -- moving to another store
    # ---------------------------------------------------------------------------------------------------

    def raw(self, experiment_id: str) -> RawExperiment:
        """The raw rows of an experiment (full id), for another store."""
        return self._database.read(lambda connection: moving.raw(connection, experiment_id))

    def add_raw(self, found: RawExperiment) -> int:
        """Add what is new, in one transaction; returns the number of new trials. Raises StoreError, changing
        nothing, when another experiment or trial has the same id.
        """
        try:
            return self._database.write(
                lambda connection: moving.add(connection, found, self.where), alone=True
            )
        except IntegrityError as fault:
            raise StoreError(
                f"{found.experiment.get('id')} contradicts what is stored in {self.where}; nothing was "
                "imported.",
                details=str(fault.orig),
            ) from None


def _stored(spec: Mapping[str, Any]) -> str:
    """A plan as JSON, without credentials."""
    return json.dumps(redaction.plain(spec))
