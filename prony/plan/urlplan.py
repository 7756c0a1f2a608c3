"""A plan file for a server that is already running: `servers: {url: …}`, with its workload written out.

What `--explain` of a front end prints and `prony import` writes. Must not know how it is run.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, field_validator

from prony.evidence.base import Record
from prony.plan import workload as workloads
from prony.plan.load import Connections, Load, Measured
from prony.plan.script import Script
from prony.plan.stage import Stage
from prony.plan.workload import Workload, beside
from prony.plan.yamlfile import read_mapping, validate

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
    asks_first: bool = True
    """Whether one request per step is sent by hand before the load."""
    seed: int | None = Field(default=None, ge=0)
    parts: bool = False
    """Takes the time of each request apart."""
    log: str | None = None
    """A file for one row per request."""
    before: Stage | None = None
    """A load of its own that ends before this one begins; nothing of it is judged."""
    after: Stage | None = None
    """One that begins when this one has ended."""

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


def read(path: Path) -> UrlPlan | None:
    """The plan of this file; None when it is one of servers that Prony starts. Raises UsageError."""
    data, lines = read_mapping(path)
    if not is_url_plan(data):
        return None
    plan = validate(UrlPlan, data, path, lines)
    script = plan.script
    if script is not None:
        script = script.model_copy(update={"file": str(path.parent.absolute() / script.file)})
    around = {
        name: stage and stage.model_copy(update={"workload": beside(stage.workload, path.parent)})
        for name, stage in (("before", plan.before), ("after", plan.after))
    }
    workload = beside(plan.workload, path.parent)
    return plan.model_copy(update={"workload": workload, "script": script, **around})


def text(plan: UrlPlan, remarks: tuple[str, ...] = ()) -> str:
    """The plan as a file that `read` understands; remarks stand above it as comments."""
    data: dict[str, Any] = plan.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    data["loads"] = plan.loads.model_dump(mode="json", exclude_defaults=True)
    data["measured"] = plan.measured.model_dump(mode="json", exclude_defaults=True)
    comments = "".join(f"# {line}\n" for remark in remarks for line in remark.splitlines())
    plain = not UNSEEN.search(json.dumps(data, ensure_ascii=False))
    return comments + yaml.safe_dump(data, sort_keys=False, allow_unicode=plain, width=110)
