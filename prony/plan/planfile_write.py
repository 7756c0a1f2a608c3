"""A plan as the file that says it: what `--explain` of a front end prints and `prony import` writes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from prony.plan.load import SteadyWindow
from prony.plan.plan import Plan
from prony.plan.planfile import TRIAL_KEYS
from prony.plan.target import Url
from prony.plan.trial import TrialPlan, WarmUpPlan, fixed

UNSEEN = re.compile("[\\x7f-\\xa0\\u2028\\u2029\\ufeff]")
"""Breaks and blanks that no editor shows, and that a YAML file may only hold as escapes."""


def text(plan: Plan, remarks: tuple[str, ...] = ()) -> str:
    """A plan of one cell on a running server as a file that `planfile_read.read` understands; remarks stand
    above it as comments. The seed is left out: each run draws its own, and records it.
    """
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
    """A comment has no escapes: what no file of YAML may hold stands there as Python writes it."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in line)


def _as_written(value: Any) -> Any:
    """As a person writes it: 30 and not 30.0, and 2xx for all its hundred codes."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    if isinstance(value, list):
        return [_as_written(one) for one in value]
    if not isinstance(value, dict):
        return value
    # What is expected of a body is not touched: 30 and 30.0 are two texts.
    found = {key: one if key == "expect" else _as_written(one) for key, one in value.items()}
    expected = found.get("expect")
    if isinstance(expected, dict):
        found["expect"] = expected | {
            key: _classes(expected[key])
            for key in ("status", "not_status")
            if isinstance(expected.get(key), list)
        }
    return found


def _classes(codes: list[int]) -> list[int | str]:
    """A class for each hundred that is complete, the other codes as they are."""
    found: list[int | str] = []
    for first in sorted({code // 100 for code in codes}):
        hundred = sorted({code for code in codes if code // 100 == first})
        found += [f"{first}xx"] if len(hundred) == 100 else hundred
    return found


def _server(target: Url, trial: TrialPlan) -> dict[str, Any]:
    """What differs from the defaults; files with their whole path."""
    found = target.model_dump(mode="json", exclude_defaults=True, exclude={"tls", "others"}) | {
        name: str(value.absolute()) if isinstance(value, Path) else value
        for name, value in target.tls
        if value
    }
    return found | ({"source_addresses": list(trial.source_addresses)} if trial.source_addresses else {})


def _warm_up(warm: WarmUpPlan) -> dict[str, Any]:
    """The users that come first only where somebody chose them, and for how long only where there are any."""
    chosen = {} if warm.closed_users == "auto" else {"closed_users": warm.closed_users}
    if warm.closed_users in ("auto", 0):
        return warm.model_dump(mode="json", exclude={"closed_users", "closed_s"}) | chosen
    return warm.model_dump(mode="json")


def _trial(trial: TrialPlan) -> dict[str, Any]:
    """What differs from the defaults; load and measured part always."""
    found = trial.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    load = found["load"]
    if load.get("populations"):
        del load["users"]  # it is their sum
    data = {"workloads": found["workload"], "loads": load, "measured": found["measured"]}
    if isinstance(trial.measured, SteadyWindow):
        warm = trial.warm_up
        data["warm_up"] = warm.cap_s if warm == fixed(warm.cap_s) else _warm_up(warm)
    data |= {name: found[name] for name in TRIAL_KEYS if name in found}
    if trial.log is not None:
        data["log"] = str(Path(trial.log).absolute())
    return data
