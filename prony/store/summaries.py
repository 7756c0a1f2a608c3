"""Summary rows for lists and series, derived from plan, record and newest judgement."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, insert, select, update

from prony.store import schema
from prony.store.columns import storable

Row = Mapping[str, Any]

UNKNOWN_PLAN = ""
"""Plan key of a trial without a cell in its plan, as in experiments of the first version."""
MOST_REASON_CHARACTERS = 300
_OLD_COMMANDS = {"plan": "run", "sweep": "sweep", "capacity": "capacity"}
_NOT_JUDGED: Row = {"conforms": False, "judgement": "{}", "figures": "{}"}


def of_experiment(experiment: Row) -> dict[str, Any]:
    fingerprint = _mapping(experiment["fingerprint"])
    return {
        "experiment_id": experiment["id"],
        "command": _command(_mapping(experiment["spec"])),
        "hostname": storable(str(fingerprint.get("hostname") or "")),
    }


def _command(spec: Row) -> str:
    if "command" in spec:
        return storable(str(spec["command"])[:32])
    return _OLD_COMMANDS.get(str(spec.get("kind")), "load" if "url" in spec else "compare")


def plan_keys(spec: str) -> dict[str, str]:
    """Cell -> hash over its target, trial and process sharing. Trials with different keys differ by plan."""
    plan = _mapping(spec)
    sharing = {str(part.get("name")): part.get("share_process") for part in _mappings(plan.get("parts"))}
    keys = {}
    for cell in _mappings(plan.get("cells")):
        run = {name: cell.get(name) for name in ("target", "trial")}
        if kind := sharing.get(str(cell.get("part"))):
            run["share_process"] = True if kind == "loads" else kind
        text = json.dumps(run, sort_keys=True, ensure_ascii=True)
        keys[str(cell.get("id"))] = hashlib.sha256(text.encode()).hexdigest()[:12]
    return keys


def of_trial(trial: Row, judgement: Row, keys: Mapping[str, str]) -> dict[str, Any]:
    record = _record(trial["record"])
    server = record.get("evidence", {}).get("server", {})
    cell = str(record.get("cell") or "")
    return {
        "trial_id": trial["id"],
        "cell": storable(cell),
        "plan_key": keys.get(cell, UNKNOWN_PLAN),
        "versions": json.dumps(server.get("versions") or {}),
        "build_key": None if server.get("build_key") is None else storable(str(server["build_key"])),
        **_judged(judgement),
    }


def _judged(judgement: Row) -> dict[str, Any]:
    document = _mapping(judgement["judgement"])
    return {
        "conforms": judgement["conforms"],
        "bound_by": storable(str(document.get("bound_by") or "unknown")),
        "reason": "" if judgement["conforms"] else storable(_reason(document)),
        "figures": judgement["figures"],
    }


def _reason(judgement: Row) -> str:
    """Why it does not conform; judgements up to schema 2 have a `status` per finding."""
    text = next(
        (
            str(finding.get("reason", ""))
            for finding in judgement.get("findings", ())
            if finding.get("conforms") is False or finding.get("status") == "invalid"
        ),
        "",
    )
    return text if len(text) <= MOST_REASON_CHARACTERS else text[: MOST_REASON_CHARACTERS - 1] + "…"


def _mappings(value: Any) -> list[Row]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _mapping(text: str) -> dict[str, Any]:
    """A JSON object; empty for anything else, which reading the row itself reports."""
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _record(compressed: bytes) -> dict[str, Any]:
    try:
        return _mapping(zlib.decompress(compressed).decode())
    except (zlib.error, UnicodeDecodeError):
        return {}


def add_experiment(connection: Connection, experiment: Row) -> None:
    connection.execute(insert(schema.experiment_summaries).values(**of_experiment(experiment)))


def renew_experiment(connection: Connection, experiment_id: str, spec: str) -> None:
    mine = schema.experiment_summaries.c.experiment_id == experiment_id
    connection.execute(
        update(schema.experiment_summaries).where(mine).values(command=_command(_mapping(spec)))
    )


def add_trial(connection: Connection, trial: Row, judgement: Row) -> None:
    spec = connection.execute(
        select(schema.experiments.c.spec).where(schema.experiments.c.id == trial["experiment_id"])
    ).scalar_one()
    connection.execute(insert(schema.trial_summaries).values(**of_trial(trial, judgement, plan_keys(spec))))


def renew_trial(connection: Connection, judgement: Row) -> None:
    mine = schema.trial_summaries.c.trial_id == judgement["trial_id"]
    connection.execute(update(schema.trial_summaries).where(mine).values(**_judged(judgement)))


def newest_judgement(connection: Connection, trial_id: str) -> Row:
    mine = schema.judgements.c.trial_id == trial_id
    query = select(schema.judgements).where(mine).order_by(schema.judgements.c.id.desc()).limit(1)
    row = connection.execute(query).first()
    return _NOT_JUDGED if row is None else dict(row._mapping)
