"""A plan as a plan file, for a front end's `--explain` and `prony import`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from prony.plan.load import SteadyWindow
from prony.plan.plan import Plan
from prony.plan.planfile import TRIAL_KEYS
from prony.plan.target import Url
from prony.plan.trial import TrialPlan, WarmUpPlan, fixed

UNSEEN = re.compile("[\\x7f-\\xa0\\u2028\\u2029\\ufeff]")
"""Invisible breaks and blanks, which YAML needs as escapes."""


def text(plan: Plan, remarks: Iterable[str] = ()) -> str:
    """A single cell on a running server as a plan file, with remarks as comments and no seed."""
    (cell,) = plan.cells
    assert isinstance(cell.target, Url)
    data: dict[str, Any] = {"title": plan.title}
    if plan.note:
        data["note"] = plan.note
    data |= {"servers": _server(cell.target, cell.trial), **_trial(cell.trial)}
    if cell.trials > 1:
        data["trials"] = cell.trials
    if cell.limits:
        data["limits"] = cell.limits
    data = _as_written(data)
    comments = "".join(f"# {_printable(line)}\n" for remark in remarks for line in remark.splitlines())
    plain = not UNSEEN.search(json.dumps(data, ensure_ascii=False))
    return comments + yaml.safe_dump(data, sort_keys=False, allow_unicode=plain, width=110)


def _printable(line: str) -> str:
    """A comment line with unprintable characters as Python escapes: YAML comments have none."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in line)


def _as_written(value: Any) -> Any:
    """Short forms: 30 for 30.0, 2xx for all its codes."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    if isinstance(value, list):
        return [_as_written(item) for item in value]
    if not isinstance(value, dict):
        return value
    # Expected bodies stay: 30 and 30.0 are different texts.
    keys = {key: item if key == "expect" else _as_written(item) for key, item in value.items()}
    expected = keys.get("expect")
    if isinstance(expected, dict):
        keys["expect"] = expected | {
            key: _classes(expected[key])
            for key in ("status", "not_status")
            if isinstance(expected.get(key), list)
        }
    return keys


def _classes(codes: list[int]) -> list[int | str]:
    entries: list[int | str] = []
    for first in sorted({code // 100 for code in codes}):
        hundred = sorted({code for code in codes if code // 100 == first})
        entries += [f"{first}xx"] if len(hundred) == 100 else hundred
    return entries


def _server(target: Url, trial: TrialPlan) -> dict[str, Any]:
    keys = target.model_dump(mode="json", exclude_defaults=True, exclude={"tls", "others"}) | {
        name: str(value.absolute()) if isinstance(value, Path) else value
        for name, value in target.tls
        if value and target.url.startswith("https:")
    }
    return keys | ({"source_addresses": list(trial.source_addresses)} if trial.source_addresses else {})


def _warm_up(warm: WarmUpPlan) -> dict[str, Any]:
    """Keys of the first users only where chosen."""
    chosen = {} if warm.closed_users == "auto" else {"closed_users": warm.closed_users}
    if warm.closed_users in ("auto", 0):
        return warm.model_dump(mode="json", exclude={"closed_users", "closed_s"}) | chosen
    return warm.model_dump(mode="json")


def _trial(trial: TrialPlan) -> dict[str, Any]:
    keys = trial.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    load = keys["load"]
    if load.get("populations"):
        del load["users"]  # it is their sum
    data = {"workloads": keys["workload"], "loads": load, "measured": keys["measured"]}
    if isinstance(trial.measured, SteadyWindow):
        warm = trial.warm_up
        data["warm_up"] = warm.cap_s if warm == fixed(warm.cap_s) else _warm_up(warm)
    data |= {name: keys[name] for name in TRIAL_KEYS if name in keys}
    if trial.log is not None:
        data["log"] = str(Path(trial.log).absolute())
    return data
