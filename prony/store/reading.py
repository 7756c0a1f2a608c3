"""Reads experiments and trials from their rows, without credentials that earlier versions stored."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import pydantic
from sqlalchemy import ColumnElement, Connection, Row, func, select

from prony import __version__, redaction
from prony.errors import StoreError, UsageError
from prony.evidence.host import Fingerprint
from prony.evidence.trial import TrialRecord
from prony.judge.finding import Judgement
from prony.store import labels, moving, schema
from prony.store.columns import column_time, is_time, stored_figures
from prony.store.ids import as_typed
from prony.store.rows import ExperimentRow, StoredJudgement, StoredTrial

_E, _T, _J = schema.experiments.c, schema.trials.c, schema.judgements.c
_WITH_NUMBER = schema.experiments.join(schema.experiment_summaries)
_NEWEST_FIRST = (_E.created.desc(), schema.experiment_summaries.c.number.desc())


def experiments(
    connection: Connection, where: str, *conditions: ColumnElement[bool], readable: bool = False
) -> list[ExperimentRow]:
    """Matching experiments, newest first; `readable` skips unreadable ones instead of raising StoreError."""
    count = select(func.count()).select_from(schema.trials).where(_T.experiment_id == _E.id).scalar_subquery()
    query = (
        select(schema.experiments, count.label("trial_count"))
        .select_from(_WITH_NUMBER)
        .where(*conditions)
        .order_by(*_NEWEST_FIRST)
    )
    rows: list[ExperimentRow] = []
    for row in connection.execute(query):
        with suppress(StoreError) if readable else nullcontext():
            rows.append(_experiment(row, where))
    return rows


def identify(connection: Connection, where: str, which: str) -> str:
    """The id of an experiment by id, tag (the newest), unique prefix (also of the part after the dash) or
    `latest`. Raises UsageError for none or several.
    """
    query = select(_E.id, _E.created).select_from(_WITH_NUMBER).order_by(*_NEWEST_FIRST)
    rows: list[Any] = list(connection.execute(query))
    ids: list[str] = [row.id for row in rows]
    if not ids:
        raise UsageError(f"No results in {where} yet; measure something first.")
    if which.strip().lower() == labels.LATEST:
        return next((row.id for row in rows if is_time(row.created)), ids[0])
    typed = as_typed(which)
    if typed in ids:
        return typed
    tagged = labels.newest_tagged(connection, which.strip())
    if tagged is not None:
        return tagged
    matches = [
        identifier
        for identifier in ids
        if typed and (identifier.startswith(typed) or identifier.partition("-")[2].startswith(typed))
    ]
    if len(matches) == 1:
        return matches[0]
    shown = ", ".join((matches or ids)[:5])
    if matches:
        raise UsageError(f"'{which}' matches {len(matches)} experiments ({shown} ...); give more of the id.")
    raise UsageError(f"No experiment '{which}' in {where}; the newest are {shown}.")


def trials(connection: Connection, where: str, *conditions: ColumnElement[bool]) -> list[StoredTrial]:
    joined = schema.trials.join(schema.trial_summaries)
    number = schema.trial_summaries.c.number
    rows = connection.execute(
        select(schema.trials).select_from(joined).where(*conditions).order_by(number)
    ).all()
    judged: dict[str, list[Row[Any]]] = defaultdict(list)
    query = select(schema.judgements).join(schema.trials).where(*conditions).order_by(_J.id)
    for row_ in connection.execute(query):
        judged[row_.trial_id].append(row_)
    return [_trial(row, judged[row.id], where) for row in rows]


def _experiment(row: Row[Any], where: str) -> ExperimentRow:
    with _understood(f"Experiment {row.id}", where, row.prony_version):
        return ExperimentRow(
            **{name: row._mapping[name] for name in ("id", "quick", "prony_version")},
            name=redaction.text(row.name),
            created=column_time("created", row.created),
            ended=column_time("ended", row.ended) if row.ended else None,
            status=moving.status_of(row),
            spec=redaction.parsed(row.spec),
            fingerprint=Fingerprint.model_validate_json(row.fingerprint),
            seed=int(row.seed),
            trials=row.trial_count,
        )


def _trial(row: Row[Any], judged: list[Row[Any]], where: str) -> StoredTrial:
    with _understood(f"Trial {row.id}", where, row.prony_version):
        if row.record_format != schema.RECORD_FORMAT:
            raise ValueError(f"unknown format {row.record_format}")
        return StoredTrial(
            record=TrialRecord.model_validate_json(redaction.as_json(zlib.decompress(row.record).decode())),
            judgements=tuple(_judgement(row_) for row_ in judged),
            prony_version=row.prony_version,
        )


def _judgement(row: Row[Any]) -> StoredJudgement:
    figures, odd = stored_figures(row.figures)
    return StoredJudgement(
        judgement=Judgement.model_validate_json(redaction.as_json(row.judgement)),
        figures=figures,
        made=column_time("made", row.made),
        prony_version=row.prony_version,
        odd=odd,
    )


@contextmanager
def _understood(what: str, where: str, written_by: str) -> Iterator[None]:
    try:
        yield
    except pydantic.ValidationError as error:
        raise StoreError(
            f"{what} in {where} cannot be read: it is damaged, or Prony {written_by} wrote it in another "
            f"format than this one ({__version__}).",
            details=str(error),
        ) from None
    except (ValueError, RecursionError, zlib.error) as error:
        raise StoreError(f"{what} in {where} cannot be read and is damaged: {error}.") from None
