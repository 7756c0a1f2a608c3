"""Reads trends from the store: the trials of a series, and the differences between two trials."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from prony.errors import StoreError
from prony.evidence.host import Fingerprint
from prony.host.fingerprint import differences as host_differences
from prony.report.out import filled
from prony.store import Store, StoredTrial
from prony_serve.trends.series import JDK, Difference, Setting, TrendTrial, TrendView, trend
from prony_serve.trends.stored import SeriesTrial, fingerprint

HEADLINES = ("requests_per_s", "p99_ms", "server_cpu_us_per_request")
"""Figures whose change points are in the feed."""
MOST_TEXT = 200
"""Maximum characters of a differing value; a plan may hold a whole body."""


def trend_of(
    store: Store, series: Sequence[SeriesTrial], server: str, workload: str, load: str, figure: str
) -> TrendView:
    """The trend of one figure of a series; without a trial when the store has none."""
    between = _Between(store)
    return trend(
        [trend_trial(trial, figure) for trial in series if not trial.repeated],
        server=server,
        workload=workload,
        load=load,
        figure=figure,
        differences=between.differences,
    )


def figures_of(series: Sequence[SeriesTrial]) -> tuple[str, ...]:
    """Names of the figures that any trial has, headlines first."""
    known = dict.fromkeys(name for trial in series for name in trial.figures)
    return tuple([name for name in HEADLINES if name in known] + [n for n in known if n not in HEADLINES])


def trend_trial(stored: SeriesTrial, figure: str) -> TrendTrial:
    """A stored trial as a trend's trial; None as its value when it does not conform."""
    conforms = stored.failure is None and stored.conforms
    return filled(
        TrendTrial,
        stored,
        id=stored.trial_id,
        setting=Setting(stored.fingerprint_key, stored.versions.get(JDK, ""), stored.plan_key),
        conforms=conforms,
        value=stored.figures.get(figure) if conforms else None,
        bias=math.inf if stored.judgement is None else stored.judgement.bias(figure).size,
        control=stored.kind != "trial",
        reason=stored.failure or stored.reason or "",
    )


class _Between:
    """Differences between two trials: versions, build, plan, Prony, and the fingerprint field by field."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._trials: dict[str, StoredTrial] = {}

    def differences(self, before: str, after: str) -> tuple[Difference, ...]:
        """Differences between the trials with these ids; an unreadable record is itself listed."""
        try:
            left, right = self._facts(before), self._facts(after)
        except (StoreError, LookupError) as fault:
            return (("record", f"cannot be read: {fault}", ""),)
        changed = [
            (what, _text(left.get(what)), _text(right.get(what)))
            for what in dict.fromkeys([*left, *right])
            if left.get(what) != right.get(what)
        ]
        hosts = (self._fingerprint(before), self._fingerprint(after))
        if hosts[0] is not None and hosts[1] is not None:
            changed += _host(hosts[0], hosts[1])
        return tuple(changed)

    def _facts(self, trial_id: str) -> dict[str, Any]:
        stored = self._trial(trial_id)
        server = stored.record.evidence.server
        versions = {f"version: {name}": version for name, version in server.versions.items()}
        return {
            **versions,
            "build": server.build_key,
            "Prony": stored.prony_version,
            "driver": stored.record.evidence.load.driver,
            **{f"plan: {name}": value for name, value in self._plan(stored.record.experiment_id, trial_id)},
        }

    def _plan(self, experiment_id: str, trial_id: str) -> list[tuple[str, Any]]:
        from prony.experiment.stored import plan_of

        row = self._store.experiment(experiment_id)
        plan = plan_of(row)
        named = self._trial(trial_id).record.cell
        if all(cell.id != named for cell in plan.cells):
            raise StoreError(f"the plan of {experiment_id} has no cell {named}")
        cell = plan.cell(named)
        dumped = cell.model_dump(mode="json", include={"target", "trial", "limits"}, exclude_defaults=True)
        return flat(dumped)

    def _fingerprint(self, trial_id: str) -> Fingerprint | None:
        return fingerprint(self._store, self._trial(trial_id).record.fingerprint_key)

    def _trial(self, trial_id: str) -> StoredTrial:
        if trial_id not in self._trials:
            self._trials[trial_id] = self._store.trial(trial_id)
        return self._trials[trial_id]


def _host(before: Fingerprint, after: Fingerprint) -> list[Difference]:
    changed = [
        (f"host: {what}", _text(left), _text(right)) for what, left, right in host_differences(before, after)
    ]
    if before.hostname != after.hostname:
        changed.insert(0, ("host: name", before.hostname, after.hostname))
    return changed


def flat(value: Mapping[str, Any], path: str = "") -> list[tuple[str, Any]]:
    """Nested values by their path, such as trial.load.users."""
    leaves: list[tuple[str, Any]] = []
    for key, item in value.items():
        where = f"{path}.{key}" if path else key
        if isinstance(item, Mapping):
            leaves += flat(item, where)
        else:
            leaves.append((where, item))
    return leaves


def _text(value: object) -> str:
    if value is None:
        return "–"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]} … ({len(text):,} characters)"
