"""Rows of a trial and its judgement, and writing them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from prony import __version__, redaction
from prony.evidence.trial import TrialRecord
from prony.judge.finding import Judgement
from prony.store import schema, summaries
from prony.store.columns import finite


def insert_trial(connection: Connection, record: TrialRecord, judged: Mapping[str, Any]) -> None:
    trial = trial_values(record)
    connection.execute(insert(schema.trials).values(**trial))
    connection.execute(insert(schema.judgements).values(**judged))
    summaries.add_trial(connection, trial, judged)


def replace_trial(connection: Connection, record: TrialRecord, judged: Mapping[str, Any]) -> None:
    """Replaces the record of a trial, and its judgements by this one."""
    values = {name: value for name, value in trial_values(record).items() if name != "id"}
    connection.execute(update(schema.trials).where(schema.trials.c.id == record.id).values(**values))
    connection.execute(delete(schema.judgements).where(schema.judgements.c.trial_id == record.id))
    connection.execute(insert(schema.judgements).values(**judged))
    summaries.renew_trial(connection, judged)


def record_of(connection: Connection, trial_id: str) -> str | None:
    query = select(schema.trials.c.record).where(schema.trials.c.id == trial_id)
    record = connection.execute(query).scalar_one_or_none()
    return None if record is None else zlib.decompress(record).decode()


def record_text(record: TrialRecord) -> str:
    return redaction.as_json(record.model_dump_json())


def trial_columns(record: TrialRecord) -> dict[str, Any]:
    """Columns that repeat parts of the record, without credentials."""
    same = ("id", "experiment_id", "kind", "block", "position", "quick", "fingerprint_key")
    return {
        **{name: getattr(record, name) for name in same},
        **{name: redaction.name(getattr(record, name)) for name in ("server", "workload", "load_name")},
        "started": record.started_at.astimezone(UTC).isoformat(),
        "ended": record.ended_at.astimezone(UTC).isoformat(),
        "failure": None if record.failure is None else redaction.text(record.failure),
    }


def trial_values(record: TrialRecord) -> dict[str, Any]:
    return trial_columns(record) | {
        "prony_version": __version__,
        "record_format": schema.RECORD_FORMAT,
        "record": zlib.compress(record_text(record).encode()),
    }


def judgement_values(trial_id: str, judgement: Judgement, figures: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "trial_id": trial_id,
        "made": datetime.now(UTC).isoformat(),
        "prony_version": __version__,
        "judgement": redaction.as_json(judgement.model_dump_json()),
        "figures": json.dumps(finite(figures)),
        "conforms": judgement.conforms,
    }
