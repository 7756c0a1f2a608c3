"""Search by summaries, without records and plans: ten thousand trials in milliseconds."""

from __future__ import annotations

import fnmatch
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import median
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, or_, select

from prony import redaction
from prony.store import moving, schema
from prony.store.columns import column_time, is_time, time_of
from prony.store.labels import notes_of, tags_of
from prony.store.rows import Found, FoundExperiment, Unreadable

_E, _T = schema.experiments.c, schema.trials.c
_ES, _TS = schema.experiment_summaries.c, schema.trial_summaries.c

EXPLAINED = "explained"
"""Kind of trials with a profiler, which are in no count and no series."""
NEWEST = 10
"""Newest trials from which a duration is estimated."""
MOST_AT_ONCE = 500
"""Ids per query: databases take some 30,000 values."""


@dataclass(frozen=True, slots=True)
class Search:
    """Conditions; None: any. `server`, `workload`, `command`: case-sensitive patterns with *, ? and [...].
    Server, workload and conforming must hold for the same trial.
    """

    server: str | None = None
    workload: str | None = None
    command: str | None = None
    conforming: bool | None = None
    tag: str | None = None
    text: str | None = None
    """Part of the title, or prefix of the id; case-insensitive."""
    fingerprint_key: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def search(connection: Connection, wanted: Search, limit: int | None, offset: int) -> Found:
    joined = schema.experiments.join(schema.experiment_summaries)
    matching = select(_E.id).select_from(joined).where(*_conditions(connection, wanted))
    newest_first = matching.order_by(_E.created.desc(), _ES.number.desc())
    every = connection.execute(newest_first).scalars().all()
    chosen = every[offset : None if limit is None else offset + limit]
    page: list[FoundExperiment] = []
    unreadable: list[Unreadable] = []
    for begin in range(0, len(chosen), MOST_AT_ONCE):
        page += _looked_up(connection, chosen[begin : begin + MOST_AT_ONCE], unreadable)
    return Found(tuple(page), len(every), tuple(unreadable))


def _looked_up(
    connection: Connection, ids: Sequence[str], unreadable: list[Unreadable]
) -> list[FoundExperiment]:
    query = (
        select(
            *(_E.id, _E.name, _E.created, _E.ended, _E.status, _E.quick, _E.prony_version, _E.owner),
            *(_E.fingerprint_key, _ES.command, _ES.hostname),
        )
        .select_from(schema.experiments.join(schema.experiment_summaries))
        .where(_E.id.in_(ids))
    )
    selected: list[Any] = list(connection.execute(query))
    rows = {row.id: row for row in selected}
    read: list[FoundExperiment] = []
    for identifier in ids:
        if identifier not in rows:
            continue  # removed since its id was read
        try:
            read.append(_row_of(rows[identifier]))
        except ValueError as fault:
            unreadable.append(Unreadable(identifier, f"experiment {identifier} cannot be read: {fault}"))
    return _completed(connection, read, unreadable)


def _row_of(row: Row[Any]) -> FoundExperiment:
    same = ("id", "command", "prony_version", "fingerprint_key", "hostname", "quick")
    return FoundExperiment(
        **{name: row._mapping[name] for name in same},
        name=redaction.text(row.name),
        created=column_time("created", row.created),
        ended=column_time("ended", row.ended) if row.ended else None,
        status=moving.status_of(row),
    )


def _completed(
    connection: Connection, experiments: list[FoundExperiment], unreadable: list[Unreadable]
) -> list[FoundExperiment]:
    ids = [experiment.id for experiment in experiments]
    counts = (
        select(_T.experiment_id, _T.server, _T.workload, _TS.conforms, func.count().label("trials"))
        .select_from(schema.trials.join(schema.trial_summaries))
        .where(_T.experiment_id.in_(ids), _T.kind != EXPLAINED)
        .group_by(_T.experiment_id, _T.server, _T.workload, _TS.conforms)
        .order_by(func.min(_TS.number))
    )
    seen: dict[str, list[Row[Any]]] = defaultdict(list)
    for row in connection.execute(counts):
        seen[row.experiment_id].append(row)
    tags, notes = tags_of(connection, ids), notes_of(connection, ids, unreadable)
    answers: dict[str, str] = dict(
        connection.execute(
            select(schema.answers.c.experiment_id, schema.answers.c.sentence).where(
                schema.answers.c.experiment_id.in_(ids)
            )
        ).all()
    )
    return [
        replace(
            experiment,
            trials=sum(row.trials for row in seen[experiment.id]),
            conforming=sum(row.trials for row in seen[experiment.id] if row.conforms),
            servers=tuple(dict.fromkeys(row.server for row in seen[experiment.id])),
            workloads=tuple(dict.fromkeys(row.workload for row in seen[experiment.id])),
            tags=tuple(tags.get(experiment.id, ())),
            notes=tuple(notes.get(experiment.id, ())),
            answer=answers.get(experiment.id, ""),
        )
        for experiment in experiments
    ]


def _conditions(connection: Connection, wanted: Search) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if wanted.command is not None:
        conditions.append(_ES.command.in_(_names(connection, _ES.command, wanted.command)))
    conditions += within(wanted, _E.id, _E.fingerprint_key, _E.created)
    if wanted.text is not None:
        conditions.append(
            or_(
                _E.name.icontains(wanted.text, autoescape=True),
                _E.id.istartswith(wanted.text, autoescape=True),
            )
        )
    trial = _trial_conditions(connection, wanted)
    if trial:
        judged = schema.trials if wanted.conforming is None else schema.trials.join(schema.trial_summaries)
        conditions.append(_E.id.in_(select(_T.experiment_id).select_from(judged).where(*trial)))
    return conditions


def within(
    wanted: Search, experiment: ColumnElement[str], key: ColumnElement[str], time: ColumnElement[str]
) -> list[ColumnElement[bool]]:
    """Conditions of host, time and tag, on these columns."""
    conditions: list[ColumnElement[bool]] = []
    if wanted.fingerprint_key is not None:
        conditions.append(key == wanted.fingerprint_key)
    if wanted.since is not None:
        conditions.append(time >= _text(wanted.since))
    if wanted.until is not None:
        conditions.append(time < _text(wanted.until))
    if wanted.tag is not None:
        tagged = select(schema.tags.c.experiment_id).where(schema.tags.c.name == wanted.tag)
        conditions.append(experiment.in_(tagged))
    return conditions


def _trial_conditions(connection: Connection, wanted: Search) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if wanted.server is not None:
        conditions.append(_T.server.in_(_names(connection, _T.server, wanted.server)))
    if wanted.workload is not None:
        conditions.append(_T.workload.in_(_names(connection, _T.workload, wanted.workload)))
    if wanted.conforming is not None:
        conditions.append(_TS.conforms.is_(wanted.conforming))
    return [*conditions, _T.kind != EXPLAINED] if conditions else []


def _names(connection: Connection, column: ColumnElement[str], pattern: str) -> list[str]:
    """The stored names that match; not in SQL, as LIKE differs between databases."""
    names = connection.execute(select(column).distinct()).scalars()
    return [name for name in names if fnmatch.fnmatchcase(name, pattern)]


def durations_s(connection: Connection, keys: Collection[str]) -> dict[str, float]:
    """Plan key -> median duration of its newest trials that measured something."""
    query = (
        select(_TS.plan_key, _T.started, _T.ended)
        .select_from(schema.trials.join(schema.trial_summaries))
        .where(_TS.plan_key.in_(keys), _T.kind == "trial", _T.failure.is_(None))
        .order_by(_TS.number.desc())
        .limit(MOST_AT_ONCE)
    )
    times_s: dict[str, list[float]] = defaultdict(list)
    for row in connection.execute(query):
        if is_time(row.started) and is_time(row.ended) and len(times_s[row.plan_key]) < NEWEST:
            times_s[row.plan_key].append((time_of(row.ended) - time_of(row.started)).total_seconds())
    return {key: median(times) for key, times in times_s.items() if times}


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()
