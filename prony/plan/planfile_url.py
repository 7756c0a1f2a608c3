"""A plan file for a server that is already running: `servers: {url: …}`, with its workload written out.

What `--explain` of a front end prints and `prony import` writes. Must not know how it is run.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, Field, field_validator, model_validator

from prony.errors import UsageError
from prony.evidence.base import Record
from prony.plan import workload as workloads
from prony.plan.load import Connections, Load, Measured, SteadyWindow
from prony.plan.plan import MAIN, Plan, cell_of, one_part
from prony.plan.script import Script
from prony.plan.stage import Stage
from prony.plan.target import TlsOptions, Url, parse_url
from prony.plan.trial import TrialPlan, fixed
from prony.plan.workload import Workload, beside
from prony.plan.yamlfile import read_mapping, validate

RENAMED = {"asks_first": "preflight", "parts": "request_parts"}
"""Earlier name of a key -> its name; files with the earlier one are still read."""
UNSEEN = re.compile("[\\x7f-\\xa0\\u2028\\u2029\\ufeff]")
"""Breaks and blanks that no editor shows, and that a YAML file may only hold as escapes."""


class UrlKeys(Record):
    """The server: where it listens and, with https, how it is spoken to."""

    url: str
    """Scheme, host and port; the paths stand in the workload."""
    ca: str | None = None
    insecure: bool = False
    client_cert: str | None = None
    client_key: str | None = None
    sni: str | None = None
    addresses: tuple[str, ...] = ()
    """HOST:PORT where connections go in place of the URL's host, such as a proxy."""
    source_addresses: tuple[str, ...] = ()


class UrlPlan(Record):
    """One load on one running server."""

    title: str = ""
    note: str = ""
    servers: UrlKeys
    workload: Workload
    """Written out, or the name of one."""
    loads: Load
    measured: Measured
    warm_up_s: float = Field(default=0.0, ge=0)
    """Before a steady window."""
    connections: Connections = Connections()
    request_timeout_ms: int = Field(default=10_000, ge=1)
    connect_timeout_ms: int = Field(default=5_000, ge=1)
    driver: Literal["auto", "io_uring", "epoll"] = "auto"
    script: Script | None = None
    """A script in Lua that says what is sent, in place of the workload's one step; beside the plan's file."""
    preflight: bool = True
    """Whether one request per step is sent, and its response checked, before the load."""
    limits: dict[str, Any] = Field(default_factory=dict)
    """Limits of the checks (docs/method.md) in place of their defaults."""
    trials: int = Field(default=1, ge=1, le=1000)
    seed: int | None = Field(default=None, ge=0)
    request_parts: bool = False
    """Takes the time of each request apart."""
    log: str | None = None
    """A file for one row per request."""
    before: Stage | None = None
    """A load of its own that ends before this one begins; nothing of it is judged."""
    after: Stage | None = None
    """One that begins when this one has ended."""

    @model_validator(mode="before")
    @classmethod
    def _present_names(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        for earlier, name in RENAMED.items():
            if earlier in value and name in value:
                raise ValueError(f"both {earlier} and {name} are given; they are one key: give {name}")
        return {RENAMED.get(key, key): what for key, what in value.items()}

    @field_validator("workload", mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
        """A name stands for the workload of the catalogue."""
        if isinstance(value, str):
            return workloads.load(value)
        if isinstance(value, dict):
            return {"name": "url", **value}
        return value


def is_url_plan(data: dict[str, object]) -> bool:
    """Whether what was read from a plan file is one of these."""
    return isinstance(data.get("servers"), dict)


def read(path: Path, *, limits: type[BaseModel], seed: int) -> Plan | None:
    """The plan of this file; None when it is one of servers that Prony starts. `seed` is used when the file
    names none. Raises UsageError.
    """
    data, lines = read_mapping(path)
    if not is_url_plan(data):
        return None
    plan = validate(UrlPlan, data, path, lines)
    below = {where[1:]: line for where, line in lines.items() if where[:1] == ("limits",)}
    validate(limits, plan.limits, path, below)
    script = plan.script
    if script is not None:
        script = script.model_copy(update={"file": str(path.parent.absolute() / script.file)})
    around = {
        name: stage and stage.model_copy(update={"workload": beside(stage.workload, path.parent)})
        for name, stage in (("before", plan.before), ("after", plan.after))
    }
    workload = beside(plan.workload, path.parent)
    whole = plan.model_copy(update={"workload": workload, "script": script, **around})
    return _as_plan(whole, path.stem, seed)


def _as_plan(file: UrlPlan, name: str, seed: int) -> Plan:
    target, path = parse_url(file.servers.url)
    if path != "/":
        raise UsageError(
            f"the plan's url is {file.servers.url}; expected scheme, host and port alone: {target.url} "
            "(the paths stand in the workload's steps)"
        )
    if file.warm_up_s and not isinstance(file.measured, SteadyWindow):
        raise UsageError("warm_up_s applies to a steady window (measured: window_s); leave it out")
    tls = TlsOptions.model_validate({name: getattr(file.servers, name) for name in TlsOptions.model_fields})
    target = target.model_copy(update={"tls": tls, "addresses": file.servers.addresses})
    trial = TrialPlan.model_validate(
        {name: getattr(file, name) for name in TRIAL_KEYS}
        | {
            "load": file.loads,
            "warm_up": fixed(file.warm_up_s),
            "source_addresses": file.servers.source_addresses,
        }
    )
    made = one_part(
        "run",
        file.title or f"load {file.servers.url}",
        [cell_of(MAIN, target.url, target, trial, file.trials, limits=file.limits)],
        seed=seed if file.seed is None else file.seed,
        shape="single",
    )
    return made.model_copy(update={"name": name, "note": file.note, "goes_on": True})


TRIAL_KEYS = (
    "workload",
    "measured",
    "connections",
    "request_timeout_ms",
    "connect_timeout_ms",
    "driver",
    "preflight",
    "script",
    "request_parts",
    "log",
    "before",
    "after",
)
"""What a trial calls as the file does."""


def file_of(plan: Plan) -> UrlPlan:
    """The file of a plan with one cell, on a running server. The seed is left out: each run draws its own,
    and records it.
    """
    (cell,) = plan.cells
    target, trial = cell.target, cell.trial
    assert isinstance(target, Url)
    tls = {name: _absolute(value) for name, value in target.tls if value}
    return UrlPlan.model_validate(
        {name: getattr(trial, name) for name in TRIAL_KEYS}
        | {
            "title": plan.title,
            "note": plan.note,
            "servers": {
                "url": target.url,
                **tls,
                "addresses": target.addresses,
                "source_addresses": trial.source_addresses,
            },
            "loads": trial.load,
            "warm_up_s": trial.warm_up.cap_s if isinstance(trial.measured, SteadyWindow) else 0.0,
            "log": None if trial.log is None else str(Path(trial.log).absolute()),
            "trials": cell.trials,
            "limits": cell.limits,
        }
    )


def _absolute(value: object) -> object:
    return str(value.absolute()) if isinstance(value, Path) else value


def text(plan: Plan, remarks: tuple[str, ...] = ()) -> str:
    """The plan as a file that `read` understands; remarks stand above it as comments."""
    file = file_of(plan)
    data: dict[str, Any] = file.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    data["loads"] = file.loads.model_dump(mode="json", exclude_defaults=True)
    data["measured"] = file.measured.model_dump(mode="json", exclude_defaults=True)
    comments = "".join(f"# {line}\n" for remark in remarks for line in remark.splitlines())
    plain = not UNSEEN.search(json.dumps(data, ensure_ascii=False))
    return comments + yaml.safe_dump(data, sort_keys=False, allow_unicode=plain, width=110)
