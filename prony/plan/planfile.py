"""The keys of plan files (`plans/*.yaml`); `python -m prony.plan.planfile` prints their JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator, model_validator

from prony.evidence.base import Record
from prony.plan.cell import HostNeeds
from prony.plan.load import MOST_WINDOWS, Connections, RatePhase
from prony.plan.part import MOST_LOOKS, Sharing
from prony.plan.population import Population
from prony.plan.script import Script
from prony.plan.stage import Stage
from prony.plan.target import CountKeys, TlsOptions, Value
from prony.plan.think import Pause, Think
from prony.plan.trial import WarmUpPlan, fixed
from prony.plan.workload import Workload


def _listed(value: object) -> object:
    return value if isinstance(value, list | tuple) or value is None else [value]


def _text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Text = Annotated[str, BeforeValidator(_text, json_schema_input_type=str | int)]
"""Text that may be written as a number, such as the major version of a JDK."""
Counts = Annotated[
    tuple[Annotated[int, Field(ge=1)], ...],
    Field(min_length=1),
    BeforeValidator(_listed, json_schema_input_type=int | list[int]),
]
Rates = Annotated[
    tuple[Annotated[float, Field(gt=0)], ...],
    Field(min_length=1),
    BeforeValidator(_listed, json_schema_input_type=float | list[float]),
]
Pauses = Annotated[
    tuple[Pause, ...],
    Field(min_length=1),
    BeforeValidator(_listed, json_schema_input_type=str | Think | list[str | Think]),
]


def _timed(value: object) -> object:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return value
    if not value >= 0:
        raise ValueError("expected seconds, 0 or more, or a mapping (method, min_s, cap_s …)")
    return fixed(value)


WarmUp = Annotated[WarmUpPlan, BeforeValidator(_timed, json_schema_input_type=float | WarmUpPlan)]
TRIAL_KEYS = (
    "connections", "request_timeout_ms", "connect_timeout_ms", "driver", "preflight", "script",
    "request_parts", "scaling_probe", "instructions", "log", "before", "after",
)  # fmt: skip
"""Keys with the same name and default in `TrialPlan`."""


class UrlKeys(TlsOptions):
    """A running server: its URL and, with https, TLS options."""

    url: str
    """Scheme, host and port; paths are in the workload."""
    addresses: tuple[str, ...] = ()
    """HOST:PORT to connect to instead of the URL's host, such as a proxy."""
    source_addresses: tuple[str, ...] = ()
    counts: CountKeys | None = None

    @model_validator(mode="after")
    def _spoken(self) -> Self:
        if self.tls != TlsOptions() and not self.url.startswith("https:"):
            raise ValueError(
                "ca, insecure, client_cert, client_key and sni go with an https:// URL: this one is "
                f"{self.url}"
            )
        return self

    @property
    def tls(self) -> TlsOptions:
        return TlsOptions.model_validate({name: getattr(self, name) for name in TlsOptions.model_fields})


def _written(value: object) -> str:
    return "name" if isinstance(value, str) else "written"


Servers = Annotated[
    tuple[
        Annotated[Annotated[str, Tag("name")] | Annotated[UrlKeys, Tag("written")], Discriminator(_written)],
        ...,
    ],
    Field(min_length=1),
    BeforeValidator(_listed, json_schema_input_type=str | UrlKeys | list[str | UrlKeys]),
]
Workloads = Annotated[
    tuple[
        Annotated[Annotated[str, Tag("name")] | Annotated[Workload, Tag("written")], Discriminator(_written)],
        ...,
    ],
    Field(min_length=1),
    BeforeValidator(_listed, json_schema_input_type=str | Workload | list[str | Workload]),
]


class LoadKeys(Record):
    """A load, or a sweep: lists of users, rates or think times give every combination."""

    users: Counts | None = None
    """Closed loop: number of users. A list is a sweep."""
    populations: tuple[Population, ...] | None = Field(default=None, min_length=1)
    """Closed loop: groups of users in place of `users`, each with its start, end and scenarios."""
    think: Pauses | None = None
    """Closed loop, or open loop with session: user."""
    ramp_up_s: float = Field(default=0.0, ge=0)
    ramp_up_steps: int | None = Field(default=None, ge=1)
    ramp_down_s: float = Field(default=0.0, ge=0)
    ramp_down_steps: int | None = Field(default=None, ge=1)
    rate_per_s: Rates | None = None
    """Open loop: arrivals per second. A list is a sweep."""
    phases: tuple[RatePhase, ...] | None = None
    """Open loop: consecutive rates."""
    arrivals: Literal["constant", "poisson"] = "constant"
    session: Literal["request", "user"] = "request"
    max_users: int | None = Field(default=None, ge=1)
    at_cap: Literal["block", "wait"] = "block"
    """Open loop: handling of arrivals above `max_users`."""
    connections: int | None = Field(default=None, ge=0)
    deadline_ms: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _one_model(self) -> Self:
        models = ("users", "populations", "rate_per_s", "phases")
        given = [name for name in models if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                "expected exactly one of users and populations (a closed load), rate_per_s and phases "
                f"(an open one); found {' and '.join(given) or 'none of them'}"
            )
        closed = self.users is not None or self.populations is not None
        other = (
            ("arrivals", "session", "max_users", "at_cap", "connections", "deadline_ms")
            if closed
            else ("ramp_up_steps", "ramp_down_s", "ramp_down_steps")
        )
        for name in other:
            if getattr(self, name) != type(self).model_fields[name].default:
                model = "an open load (rate_per_s or phases)" if closed else "a closed load (users)"
                raise ValueError(f"{name} applies to {model}")
        return self


class MeasuredKeys(Record):
    """The measured part of a run: a steady window (`window_s`), or everything until the first bound."""

    window_s: float | None = Field(default=None, gt=0)
    windows: int = Field(default=1, ge=1, le=MOST_WINDOWS)
    """Consecutive windows of `window_s` in each process, to separate the levels of variance."""
    precision: float | None = Field(default=None, gt=0, lt=1)
    """Ends the window at this precision of its figure (0.02: ± 2 %)."""
    duration_s: float | None = Field(default=None, gt=0)
    total_requests: int | None = Field(default=None, ge=1)
    iterations_per_user: int | None = Field(default=None, ge=1)
    warm_up_s: float = Field(default=0.0, ge=0)
    """Whole run: length of an unmeasured run of the same load beforehand; 0: a fresh server."""
    drain_s: float | None = Field(default=None, gt=0)
    """Longest drain after the last arrival of an open load's phases (60)."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        bounds = (self.duration_s, self.total_requests, self.iterations_per_user)
        whole = any(b is not None for b in bounds) or self.warm_up_s or self.drain_s is not None
        if self.window_s is not None and whole:
            raise ValueError("window_s is a steady window and excludes the keys of a whole run")
        if self.windows > 1 and whole:
            raise ValueError("windows applies to steady windows (window_s), not to a whole run")
        if self.windows > 1 and self.precision is not None:
            raise ValueError("windows (fixed length) and precision (early end) exclude each other")
        if self.precision is not None and whole:
            raise ValueError("precision ends a steady window (window_s); a whole run ends by its own keys")
        return self


class PublishedCell(Record):
    """Published figures of a cell. An omitted key matches every server, workload or load."""

    server: str | None = None
    workload: str | None = None
    users: int | None = None
    think_ms: float | None = None
    figures: dict[str, float] = Field(min_length=1)
    """Figure (its name in docs/plans.md) -> value."""
    note: str = ""


class PublishedKeys(Record):
    """Figures of a source, on other hardware: for shape and order, not as a target."""

    source: str
    label: str = "published"
    """Heading of its column."""
    cells: tuple[PublishedCell, ...]


class ServerKeys(Record):
    """How servers of a part are launched, where not by default."""

    jdk: Text | None = None
    heap: str | None = Field(default=None, pattern=r"^[1-9]\d*[kmgKMG]$")
    jvm_flags: tuple[str, ...] | None = None
    settings: dict[str, Value] | None = None
    """Settings of the server (`settings` in its server.yaml)."""


class PartKeys(ServerKeys):
    """The keys of a part; at the top level they are defaults for every part."""

    servers: Servers | None = None
    """NAME, NAME:VARIANT or NAME:VARIANT+setting=value (launched), or the URL of a running server."""
    per_server: dict[str, ServerKeys] = Field(default_factory=dict)
    """Server, as in `servers` -> its own JDK, heap, flags, settings."""
    workloads: Workloads | None = None
    """Names, files, or inline."""
    workload_settings: dict[str, float] | None = None
    """Settings of the workloads, such as delay_ms."""
    loops: int | None = Field(default=None, ge=1)
    """Walks through the workload's steps per iteration, or per session of an open load."""
    loads: (
        Annotated[
            tuple[LoadKeys, ...],
            Field(min_length=1),
            BeforeValidator(_listed, json_schema_input_type=LoadKeys | list[LoadKeys]),
        ]
        | None
    ) = None
    """Default: the workload's users in a closed loop."""
    measured: MeasuredKeys | None = None
    warm_up: WarmUp | None = None
    """Before a steady window: until the server is level, or for this many seconds."""
    trials: int | None = Field(default=None, ge=1, le=1000)
    connections: Connections | None = None
    request_timeout_ms: int | None = Field(default=None, ge=1)
    connect_timeout_ms: int | None = Field(default=None, ge=1)
    preflight: bool | None = None
    """Whether a request per step is sent, and its response checked, before the load."""
    script: Script | None = None
    """A Lua script that writes the requests in place of the single step; relative to the plan file."""
    log: str | None = None
    """File for a row per request."""
    before: Stage | None = None
    """A separate load that ends before this one; not judged."""
    after: Stage | None = None
    """A separate load after this one; not judged."""
    driver: Literal["auto", "io_uring", "epoll"] | None = None
    published_requests: int | None = Field(default=None, ge=1)
    """With a steady window: record the time of this many requests from the start of the process."""
    comparisons: tuple[tuple[str, str], ...] | None = None
    """Pairs of servers. Default: all pairs; none when empty."""
    band: float | None = Field(default=None, gt=0, lt=1)
    """Comparisons: ratios shown to be within this of 1 are equivalent (0.02)."""
    at_least: float | None = Field(default=None, ge=0, lt=100)
    """Comparisons: smallest difference that is claimed (0.01)."""
    limits: dict[str, Any] | None = None
    """Limits of checks (docs/method.md) that replace defaults."""
    expected_requests_per_s: float | None = Field(default=None, gt=0)
    """For the forecast of ports without keep-alive."""
    needs: HostNeeds | None = None
    published: tuple[PublishedKeys, ...] | None = None
    until_clear: int | None = Field(default=None, ge=3, le=MOST_LOOKS)
    """Cap on blocks added after `trials` until every pair of servers is clear (docs/method.md)."""
    share_process: Sharing | None = None
    """`loads`: a process per server and workload; `workloads`: a process per server."""
    duet: bool | None = None
    """The servers of a block are alive together and take turns of a second under load (docs/method.md)."""
    request_parts: bool | None = None
    """Breaks down request time into connect, send, wait and receive; costs the client some CPU."""
    explain: bool | None = None
    """An additional trial per cell with a profiler; its measurements are no figures."""
    scaling_probe: bool | None = None
    """Ends a capacity trial with half as many users again for seconds: does the rate rise?"""
    instructions: bool | None = None
    """Counts the server's instructions per request, where the CPU's counter can be read."""
    soak: bool | None = None
    """Only runs with --duration, which sets its length."""
    optional: bool | None = None
    """Whether a host without the needs skips it, as the report shows, instead of refusing the plan."""


class NamedPart(PartKeys):
    """A part of a plan with several."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    title: str = ""
    note: str = ""
    """Note for readers, shown with its table."""


class CpuKeys(Record):
    """CPU sets such as `0-3,8`. Default: chosen, disjoint where the host allows."""

    server: Text | None = None
    client: Text | None = None


class PlanFile(PartKeys):
    """A plan file."""

    title: str = ""
    note: str = ""
    cpus: CpuKeys | None = None
    seed: int | None = Field(default=None, ge=0)
    parts: tuple[NamedPart, ...] = ()
    """Default: the keys at the top level are the only part."""

    @field_validator("parts")
    @classmethod
    def _names_differ(cls, parts: tuple[NamedPart, ...]) -> tuple[NamedPart, ...]:
        names = [part.name for part in parts]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two parts are named '{twice}'; give each its own name")
        return parts

    @property
    def whole_parts(self) -> tuple[NamedPart, ...]:
        inherited = {name: getattr(self, name) for name in PartKeys.model_fields}
        if not self.parts:
            return (NamedPart(name="main", title=self.title, **inherited),)
        return tuple(_inherit(part, inherited) for part in self.parts)


def _inherit(part: NamedPart, inherited: Mapping[str, Any]) -> NamedPart:
    """Merges mappings by key; other values replace the inherited ones."""
    merged: dict[str, Any] = {}
    for name, above in inherited.items():
        own = getattr(part, name)
        if own is None:
            merged[name] = above
        elif isinstance(own, dict) and isinstance(above, dict):
            merged[name] = above | own
    return part.model_copy(update=merged)


def json_schema() -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **PlanFile.model_json_schema(mode="validation", by_alias=True),
        "title": "A plan of Prony (plans/*.yaml)",
    }


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2, ensure_ascii=False))
