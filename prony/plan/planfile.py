"""What a plan file says: the keys of `plans/*.yaml`, one part or several, before anything is expanded."""

from __future__ import annotations

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
from prony.plan.target import CountKeys, Value
from prony.plan.think import Pause, Think
from prony.plan.trial import WarmUpPlan, fixed
from prony.plan.workload import Workload


def _listed(value: object) -> object:
    """One value stands for a list of one."""
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
    """A number of seconds stands for a warm-up of exactly that length."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return value
    if not value >= 0:
        raise ValueError("expected seconds, 0 or more, or a mapping (method, min_s, cap_s …)")
    return fixed(value)


WarmUp = Annotated[WarmUpPlan, BeforeValidator(_timed, json_schema_input_type=float | WarmUpPlan)]
TRIAL_KEYS = (
    "connections",
    "request_timeout_ms",
    "connect_timeout_ms",
    "driver",
    "preflight",
    "script",
    "request_parts",
    "scaling_probe",
    "log",
    "before",
    "after",
)
"""What a trial calls as a plan file does, with the same defaults."""


class UrlKeys(Record):
    """A server that is running already: where it listens and, with https, how it is spoken to."""

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
    counts: CountKeys | None = None


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
    """One load, or a sweep: a list of users, rates or think times stands for every combination of them."""

    users: Counts | None = None
    """Closed: this many users, each waiting for its response. A list is a sweep."""
    populations: tuple[Population, ...] | None = Field(default=None, min_length=1)
    """Closed, in place of users: several groups, each with a start, an end and scenarios of its own."""
    think: Pauses | None = None
    """Closed, or open with session: user."""
    ramp_up_s: float = Field(default=0.0, ge=0)
    ramp_up_steps: int | None = Field(default=None, ge=1)
    ramp_down_s: float = Field(default=0.0, ge=0)
    ramp_down_steps: int | None = Field(default=None, ge=1)
    rate_per_s: Rates | None = None
    """Open: this many arrivals per second. A list is a sweep."""
    phases: tuple[RatePhase, ...] | None = None
    """Open: rates one after the other."""
    arrivals: Literal["constant", "poisson"] = "constant"
    session: Literal["request", "user"] = "request"
    max_users: int | None = Field(default=None, ge=1)
    at_cap: Literal["block", "wait"] = "block"
    """Open: what becomes of an arrival that finds no place."""
    connections: int | None = Field(default=None, ge=0)
    deadline_ms: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _one_model(self) -> Self:
        models = ("users", "populations", "rate_per_s", "phases")
        said = [name for name in models if getattr(self, name) is not None]
        if len(said) != 1:
            raise ValueError(
                "expected exactly one of users and populations (a closed load), rate_per_s and phases "
                "(an open one); "
                f"found {' and '.join(said) or 'none of them'}"
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
    """Which part of a run is measured: a steady window (`window_s`), or everything until the first bound."""

    window_s: float | None = Field(default=None, gt=0)
    windows: int = Field(default=1, ge=1, le=MOST_WINDOWS)
    """Of `window_s` each, one after the other in each process: how the variance is made up."""
    precision: float | None = Field(default=None, gt=0, lt=1)
    """Ends the window when its figure is known so precisely (0.02: ± 2 %)."""
    duration_s: float | None = Field(default=None, gt=0)
    total_requests: int | None = Field(default=None, ge=1)
    iterations_per_user: int | None = Field(default=None, ge=1)
    warm_up_s: float = Field(default=0.0, ge=0)
    """Before a whole run: the same load so long, as a run that is not measured; 0: a fresh server."""
    drain_s: float | None = Field(default=None, gt=0)
    """After the last arrival of an open load's phases: sessions that are under way may take so long to end
    (60).
    """

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        bounds = (self.duration_s, self.total_requests, self.iterations_per_user)
        whole = any(b is not None for b in bounds) or self.warm_up_s or self.drain_s is not None
        if self.window_s is not None and whole:
            raise ValueError("window_s is a steady window and excludes the keys of a whole run")
        if self.windows > 1 and whole:
            raise ValueError("windows are steady windows (window_s); a whole run is one by itself")
        if self.windows > 1 and self.precision is not None:
            raise ValueError("windows have a fixed length, which precision would end early: give one of them")
        if self.precision is not None and whole:
            raise ValueError("precision ends a steady window (window_s); a whole run ends by its own keys")
        return self


class PublishedCell(Record):
    """What was printed for one cell. A key that is left out holds for every server, workload, load."""

    server: str | None = None
    workload: str | None = None
    users: int | None = None
    think_ms: float | None = None
    figures: dict[str, float] = Field(min_length=1)
    """Figure (its name in docs/plans.md) -> value."""
    note: str = ""


class PublishedKeys(Record):
    """Figures of one source: history, on other hardware; shown for shape and order, never as a target."""

    source: str
    label: str = "published"
    """The heading of its column."""
    cells: tuple[PublishedCell, ...]


class ServerKeys(Record):
    """How servers of a part are started, where that differs from their own defaults."""

    jdk: Text | None = None
    heap: str | None = Field(default=None, pattern=r"^[1-9]\d*[kmgKMG]$")
    jvm_flags: tuple[str, ...] | None = None
    settings: dict[str, Value] | None = None
    """Of the server (`settings` in its server.yaml)."""


class PartKeys(ServerKeys):
    """The keys of a part; written at the top level they hold for every part that does not say otherwise."""

    servers: Servers | None = None
    """NAME, NAME:VARIANT or NAME:VARIANT+setting=value, launched for each trial; or a URL with its options:
    a server that is running already.
    """
    per_server: dict[str, ServerKeys] = Field(default_factory=dict)
    """Server, as in `servers` -> its own JDK, heap, flags, settings."""
    workloads: Workloads | None = None
    """Names, files, or written out."""
    workload_settings: dict[str, float] | None = None
    """Settings of the workloads, such as delay_ms."""
    loops: int | None = Field(default=None, ge=1)
    """How often a user walks the workload's steps in one iteration, or in one session of an open load."""
    loads: (
        Annotated[
            tuple[LoadKeys, ...],
            Field(min_length=1),
            BeforeValidator(_listed, json_schema_input_type=LoadKeys | list[LoadKeys]),
        ]
        | None
    ) = None
    """Without: the workload's users in a closed loop."""
    measured: MeasuredKeys | None = None
    warm_up: WarmUp | None = None
    """Before a steady window: until the server is level, or for this many seconds."""
    trials: int | None = Field(default=None, ge=1, le=1000)
    connections: Connections | None = None
    request_timeout_ms: int | None = Field(default=None, ge=1)
    connect_timeout_ms: int | None = Field(default=None, ge=1)
    preflight: bool | None = None
    """Whether one request per step is sent, and its response checked, before the load."""
    script: Script | None = None
    """A script in Lua that says what is sent, in place of the workload's one step; beside the plan's file."""
    log: str | None = None
    """A file for one row per request."""
    before: Stage | None = None
    """A load of its own that ends before this one begins; nothing of it is judged."""
    after: Stage | None = None
    """One that begins when this one has ended."""
    driver: Literal["auto", "io_uring", "epoll"] | None = None
    published_requests: int | None = Field(default=None, ge=1)
    """With a steady window: note when this many requests had completed since the start of the process."""
    comparisons: tuple[tuple[str, str], ...] | None = None
    """Pairs of servers; all pairs when not given, none when empty."""
    band: float | None = Field(default=None, gt=0, lt=1)
    """Of the comparisons: ratios that are surely nearer to 1 than this are equivalent (0.02)."""
    at_least: float | None = Field(default=None, ge=0, lt=100)
    """Of the comparisons: the smallest difference that is worth a claim (0.01)."""
    limits: dict[str, Any] | None = None
    """Limits of the checks (docs/method.md) in place of their defaults."""
    expected_requests_per_s: float | None = Field(default=None, gt=0)
    """For the forecast of ports where every request takes a connection of its own."""
    needs: HostNeeds | None = None
    published: tuple[PublishedKeys, ...] | None = None
    until_clear: int | None = Field(default=None, ge=3, le=MOST_LOOKS)
    """After `trials` add blocks, up to this many, until every pair of servers is clear (docs/method.md)."""
    share_process: Sharing | None = None
    """`loads`: the loads of a server under one workload are measured in one process, one after the other;
    `workloads`: all workloads and loads of a server are.
    """
    request_parts: bool | None = None
    """Takes the time of each request apart: connect, send, wait, receive; costs the client some CPU."""
    explain: bool | None = None
    """After the measured trials one more of each cell, with a profiler; nothing of it is a figure."""
    scaling_probe: bool | None = None
    """After the window of a capacity trial half as many users again for seconds: does the rate rise?"""
    soak: bool | None = None
    """Only run with --duration, which says how long."""
    optional: bool | None = None
    """Left out where the host cannot do it, and said in the report, instead of refusing the whole plan."""


class NamedPart(PartKeys):
    """One part of a plan that has several."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    title: str = ""
    note: str = ""
    """What a reader should know about this part, shown with its table."""


class CpuKeys(Record):
    """Which CPUs, as in `0-3,8`; chosen when not given, always disjoint where the host allows."""

    server: Text | None = None
    client: Text | None = None


class PlanFile(PartKeys):
    """A whole plan file."""

    title: str = ""
    note: str = ""
    cpus: CpuKeys | None = None
    seed: int | None = Field(default=None, ge=0)
    parts: tuple[NamedPart, ...] = ()
    """Without: the keys at the top level are the only part."""

    @field_validator("parts")
    @classmethod
    def _names_differ(cls, parts: tuple[NamedPart, ...]) -> tuple[NamedPart, ...]:
        names = [part.name for part in parts]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two parts are called '{twice}'; give each a name of its own")
        return parts

    @property
    def whole_parts(self) -> tuple[NamedPart, ...]:
        """The parts with everything that they inherit from the top level."""
        inherited = {name: getattr(self, name) for name in PartKeys.model_fields}
        if not self.parts:
            return (NamedPart(name="main", title=self.title, **inherited),)
        return tuple(_inherit(part, inherited) for part in self.parts)


def _inherit(part: NamedPart, inherited: Mapping[str, Any]) -> NamedPart:
    """Mappings are merged key by key, everything else replaces."""
    merged: dict[str, Any] = {}
    for name, above in inherited.items():
        own = getattr(part, name)
        if own is None:
            merged[name] = above
        elif isinstance(own, dict) and isinstance(above, dict):
            merged[name] = above | own
    return part.model_copy(update=merged)
