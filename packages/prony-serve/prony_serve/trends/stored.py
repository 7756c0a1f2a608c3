"""What trends and hosts read of a store: summaries, without records."""

from __future__ import annotations

import json
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic import ValidationError
from sqlalchemy import Connection, Row, func, or_, select

from prony import redaction
from prony.evidence.host import Fingerprint
from prony.judge.finding import Judgement
from prony.store import Search, Store, schema
from prony.store.columns import column_time, is_time, stored_figures, time_of
from prony.store.search import EXPLAINED, within

_E, _T, _TS = schema.experiments.c, schema.trials.c, schema.trial_summaries.c
_J = schema.judgements.c
_EVERY = schema.judgements.alias().c
_NEWEST = (
    select(func.max(_EVERY.id)).where(_EVERY.trial_id == _T.id).correlate(schema.trials).scalar_subquery()
)

AS_STORED = (
    "experiment_id", "cell", "block", "kind", "quick", "fingerprint_key", "plan_key", "conforms", "bound_by",
    "build_key", "prony_version",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SeriesName:
    server: str
    workload: str
    load_name: str
    trials: int
    newest: datetime


@dataclass(frozen=True, slots=True)
class SeriesTrial:
    """A trial of a series, without its record."""

    trial_id: str
    experiment_id: str
    cell: str
    """Empty in experiments of the first version."""
    block: int
    kind: Literal["trial", "control", "explained"]
    quick: bool
    repeated: bool
    """Whether a later attempt replaces it."""
    started: datetime
    fingerprint_key: str
    plan_key: str
    """Hash over target and trial in the plan; empty if not known."""
    conforms: bool
    bound_by: str
    reason: str
    """Why it does not conform, at most 300 characters; else empty."""
    failure: str | None
    figures: dict[str, Any]
    judgement: Judgement | None
    """The newest; None where it cannot be read."""
    versions: dict[str, str]
    build_key: str | None
    prony_version: str


@dataclass(frozen=True, slots=True)
class SeenHost:
    fingerprint: Fingerprint
    experiments: int
    newest: datetime


def series_names(store: Store) -> tuple[SeriesName, ...]:
    query = (
        select(
            *(_T.server, _T.workload, _T.load_name),
            func.count().label("trials"),
            func.max(_T.started).label("newest"),
        )
        .where(_T.kind != EXPLAINED)
        .group_by(_T.server, _T.workload, _T.load_name)
        .order_by(_T.server, _T.workload, _T.load_name)
    )
    return tuple(
        SeriesName(row.server, row.workload, row.load_name, row.trials, time_of(row.newest))
        for row in store.read(lambda connection: connection.execute(query).all())
        if is_time(row.newest)
    )


def series_trials(
    store: Store,
    server: str,
    workload: str,
    load_name: str,
    *,
    tag: str | None = None,
    fingerprint_key: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> tuple[SeriesTrial, ...]:
    """Trials of a series in order, conforming or not, without explained ones: of a host, time and tag."""
    wanted = Search(tag=tag, fingerprint_key=fingerprint_key, since=since, until=until)
    conditions = [_T.server == server, _T.workload == workload, _T.load_name == load_name]
    conditions.append(_T.kind != EXPLAINED)
    conditions += within(wanted, _T.experiment_id, _T.fingerprint_key, _T.started)
    query = (
        select(
            *(_T.id, _T.experiment_id, _T.block, _T.kind, _T.quick, _T.started, _T.failure),
            *(_T.fingerprint_key, _T.prony_version, _TS.cell, _TS.plan_key, _TS.conforms, _TS.bound_by),
            *(_TS.reason, _TS.figures, _TS.versions, _TS.build_key, _J.judgement),
        )
        .select_from(
            schema.trials.join(schema.trial_summaries)
            .join(schema.experiments, _E.id == _T.experiment_id)
            .outerjoin(schema.judgements, _J.trial_id == _T.id)
        )
        .where(*conditions, or_(_J.id.is_(None), _J.id == _NEWEST))
        .order_by(_E.created, _TS.number)
    )
    rows: list[Any] = [
        row for row in store.read(lambda connection: connection.execute(query).all()) if is_time(row.started)
    ]
    last = {_place(row): row.id for row in rows}
    return tuple(_series_trial(row, repeated=last[_place(row)] != row.id) for row in rows)


def fingerprints(store: Store, key: str | None = None) -> tuple[SeenHost, ...]:
    """Hosts with their software (all, or of a fingerprint), latest first, without unreadable experiments."""
    return store.read(lambda connection: _hosts(connection, key))


def fingerprint(store: Store, key: str) -> Fingerprint | None:
    hosts = fingerprints(store, key)
    return hosts[0].fingerprint if hosts else None


def _hosts(connection: Connection, key: str | None = None) -> tuple[SeenHost, ...]:
    query = select(_E.id, _E.fingerprint_key, _E.created).where(
        *([] if key is None else [_E.fingerprint_key == key])
    )
    times: dict[str, list[tuple[datetime, str]]] = defaultdict(list)
    for row in connection.execute(query):
        if is_time(row.created):
            times[row.fingerprint_key].append((time_of(row.created), row.id))
    hosts: list[SeenHost] = []
    for of_host in times.values():
        newest, identifier = max(of_host)
        text = connection.execute(select(_E.fingerprint).where(_E.id == identifier)).scalar_one()
        with suppress(ValidationError):
            hosts.append(SeenHost(Fingerprint.model_validate_json(text), len(of_host), newest))
    return tuple(sorted(hosts, key=lambda host: host.newest, reverse=True))


def _place(row: Row[Any]) -> tuple[Any, ...]:
    """Key shared by attempts at the same trial; unique for trials of the first version."""
    return (row.experiment_id, row.cell, row.block, row.kind) if row.cell else (row.id,)


def _series_trial(row: Row[Any], *, repeated: bool) -> SeriesTrial:
    figures, odd = stored_figures(row.figures)
    return SeriesTrial(
        **{name: row._mapping[name] for name in AS_STORED},
        trial_id=row.id,
        repeated=repeated,
        started=column_time("started", row.started),
        reason=redaction.text(row.reason) or "; ".join(odd),
        failure=None if row.failure is None else redaction.text(row.failure),
        figures=figures,
        judgement=_judgement(row.judgement),
        versions=_mapping(row.versions),
    )


def _judgement(text: str | None) -> Judgement | None:
    with suppress(ValueError):
        return None if text is None else Judgement.model_validate_json(redaction.as_json(text))
    return None


def _mapping(text: str) -> dict[str, str]:
    with suppress(ValueError):
        document = json.loads(text)
        if isinstance(document, dict):
            return {name: str(value) for name, value in document.items()}
    return {}
