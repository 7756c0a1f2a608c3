"""A load as a value: how the requests of a workload are offered, and which part of the run is measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from prony.evidence.base import Record
from prony.plan.population import Population, most_at_once
from prony.plan.think import NO_THINK, Think

WHOLE_CAP_S = 3600.0
"""A run that is bounded by requests or iterations alone is ended after this."""
DRAIN_S = 60.0
"""What is under way when the last arrival has come may take this long to end."""


class RatePhase(Record):
    """A stretch over which the rate of arrivals changes linearly; a pause has the rate 0 at both ends."""

    duration_s: float = Field(gt=0)
    from_per_s: float = Field(ge=0)
    to_per_s: float = Field(ge=0)
    max_users: int | None = Field(default=None, ge=1)
    """At most this many are under way when an arrival of this phase is due; else it is blocked."""


class ClosedLoad(Record):
    """A fixed number of users, each waiting for its response before it goes on."""

    model: Literal["closed"] = "closed"
    users: int = Field(ge=1)
    """Of all populations together, where there are any."""
    populations: tuple[Population, ...] = ()
    """Several groups, each with a start, an end and scenarios of its own."""
    think: Think = NO_THINK
    ramp_up_s: float = Field(default=0.0, ge=0)
    """Users start evenly spread over this time."""
    ramp_up_steps: int | None = Field(default=None, ge=1)
    ramp_down_s: float = Field(default=0.0, ge=0)
    ramp_down_steps: int | None = Field(default=None, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _counted(cls, value: object) -> object:
        if not isinstance(value, Mapping) or not value.get("populations") or value.get("users") is not None:
            return value
        counts = [
            one.users if isinstance(one, Population) else one.get("users") if isinstance(one, Mapping) else 0
            for one in value["populations"]
        ]
        return {**value, "users": sum(count for count in counts if isinstance(count, int)) or 1}

    @model_validator(mode="after")
    def _one_ramp(self) -> Self:
        if not self.populations:
            return self
        total = sum(one.users for one in self.populations)
        if self.users != total:
            raise ValueError(f"users is {self.users}, but the populations have {total}; leave users out")
        ramps = (self.ramp_up_steps, self.ramp_down_s, self.ramp_down_steps, self.ramp_up_s)
        if any(ramps):
            raise ValueError(
                "ramps do not stand beside populations: each has a ramp_up_s of its own, and a duration_s"
            )
        return self

    @property
    def started_s(self) -> float:
        """When all users have started, from the start of the run."""
        return max((one.start_s + one.ramp_up_s for one in self.populations), default=self.ramp_up_s)

    @property
    def at_once(self) -> int:
        """Requests under way at once, at most."""
        return most_at_once(self.populations) if self.populations else self.users

    @property
    def name(self) -> str:
        """The load in a word, such as `closed-10`, `closed-1000-think-500ms` or `closed-30-in-2-groups`."""
        if self.populations:
            groups = len(self.populations)
            return f"closed-{self.users}-in-{groups}-group{'s' if groups > 1 else ''}"
        if self.think.kind == "none":
            return f"closed-{self.users}"
        return f"closed-{self.users}-think-{self.think.expected_ms:g}ms"


class OpenLoad(Record):
    """Arrivals on a schedule that no response can delay: `rate_per_s`, or `phases` one after the other."""

    model: Literal["open"] = "open"
    rate_per_s: float | None = Field(default=None, gt=0)
    ramp_up_s: float = Field(default=0.0, ge=0)
    """With `rate_per_s`: the rate rises from 0 over this time."""
    phases: tuple[RatePhase, ...] = ()
    arrivals: Literal["constant", "poisson"] = "constant"
    session: Literal["request", "user"] = "request"
    """An arrival is one request, or a new user who walks the scenario once."""
    think: Think = NO_THINK
    """Between the requests of a user; only with session: user."""
    max_users: int | None = Field(default=None, ge=1)
    """Arrivals under way at once. A second's worth, 100 to 10,000, when not given."""
    at_cap: Literal["block", "wait"] = "block"
    """An arrival that finds no place is blocked and counted, or waits for one; its latency counts from when
    it was due.
    """
    connections: int | None = Field(default=None, ge=0)
    """Opened before the first arrival and kept open; ten milliseconds' worth when not given."""
    deadline_ms: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _one_schedule(self) -> Self:
        if (self.rate_per_s is None) == (not self.phases):
            raise ValueError("expected exactly one of rate_per_s and phases")
        if self.phases and self.ramp_up_s:
            raise ValueError("ramp_up_s applies to rate_per_s; with phases write the ramp as a phase")
        if self.session == "request" and self.think.kind != "none":
            raise ValueError(
                "think applies to session: user; an arrival that is one request has no think time"
            )
        return self

    @property
    def started_s(self) -> float:
        """When the rate is what it should be, from the start of the run."""
        return self.ramp_up_s

    @property
    def highest_per_s(self) -> float:
        """The highest rate of arrivals that is asked for."""
        if self.rate_per_s is not None:
            return self.rate_per_s
        return max(max(phase.from_per_s, phase.to_per_s) for phase in self.phases)

    @property
    def total_s(self) -> float | None:
        """How long the schedule is; None when it has no end of its own."""
        return sum(phase.duration_s for phase in self.phases) if self.phases else None

    @property
    def mean_per_s(self) -> float:
        """Arrivals ÷ time over the whole schedule, without the ramp of `ramp_up_s`."""
        if self.rate_per_s is not None:
            return self.rate_per_s
        arrivals = sum(p.duration_s * (p.from_per_s + p.to_per_s) / 2 for p in self.phases)
        return arrivals / sum(p.duration_s for p in self.phases)

    @property
    def user_cap(self) -> int:
        """`max_users`, or what stands in for it."""
        if self.max_users is not None:
            return self.max_users
        return int(min(10_000, max(100, math.ceil(self.highest_per_s))))

    @property
    def ready_connections(self) -> int:
        """`connections`, or what stands in for it: ten milliseconds' worth, and none where each user of a
        session opens its own.
        """
        if self.connections is not None:
            return self.connections
        if self.session == "user":
            return 0
        return min(self.user_cap, max(10, math.ceil(self.highest_per_s / 100)))

    @property
    def at_once(self) -> int:
        """Connections to begin with: more are opened when responses take longer."""
        return max(1, self.ready_connections)

    @property
    def name(self) -> str:
        """The load in a word, such as `open-1000-poisson`."""
        what = "sessions-" if self.session == "user" else ""
        return f"open-{what}{self.highest_per_s:g}-{self.arrivals}"


def _which_load(value: object) -> str:
    """What is written decides; a load with a rate or phases needs no `model: open`."""
    if isinstance(value, Mapping):
        return str(value.get("model", "open" if "rate_per_s" in value or "phases" in value else "closed"))
    return str(getattr(value, "model", "closed"))


def _which_part(value: object) -> str:
    if isinstance(value, Mapping):
        return str(value.get("kind", "steady" if "window_s" in value else "whole"))
    return str(getattr(value, "kind", "whole"))


Load = Annotated[
    Annotated[ClosedLoad, Tag("closed")] | Annotated[OpenLoad, Tag("open")], Discriminator(_which_load)
]
"""Closed when it names users, open when it names a rate or phases."""


MOST_WINDOWS = 100
"""Per process."""


class SteadyWindow(Record):
    """Warm up until the server is level, then measure for so long."""

    kind: Literal["steady"] = "steady"
    window_s: float = Field(gt=0)
    windows: int = Field(default=1, ge=1, le=MOST_WINDOWS)
    """So many windows of this length follow each other in one process, under one load. The trial's figures
    are those of all of them together; how they differ shows what a process adds to the variance.
    """
    precision: float | None = Field(default=None, gt=0, lt=1)
    """Ends the window as soon as half of the 95 % interval of its figure ÷ the figure is this small;
    `window_s` is then the longest.
    """

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if self.windows > 1 and self.precision is not None:
            raise ValueError("windows have a fixed length, which precision would end early: give one of them")
        return self

    @property
    def length_s(self) -> float:
        """Of all windows together."""
        return self.windows * self.window_s


class WholeRun(Record):
    """Everything from the first request to the last is measured, as most published runs do: until the first
    of the bounds that are given. An open load with phases ends with its last session.
    """

    kind: Literal["whole"] = "whole"
    duration_s: float | None = Field(default=None, gt=0)
    total_requests: int | None = Field(default=None, ge=1)
    iterations_per_user: int | None = Field(default=None, ge=1)
    warm_up_s: float = Field(default=0.0, ge=0)
    """The same load runs so long beforehand, as a run of its own that is not measured; 0: a fresh server."""
    drain_s: float | None = Field(default=None, gt=0)
    """What is under way after the last arrival of an open load's phases may take so long to end; a minute
    when not given.
    """


Measured = Annotated[
    Annotated[SteadyWindow, Tag("steady")] | Annotated[WholeRun, Tag("whole")], Discriminator(_which_part)
]
"""A steady window when it names a window_s, else a whole run."""


class Connections(Record):
    """How long a connection lives and, where the server speaks HTTPS, how it is secured."""

    keep_alive: bool = True
    """False: a connection per request."""
    http_version: Literal["1.0", "1.1", "2"] = "1.1"
    """With 1.0 a connection is only kept where client and server both ask for it; 2 is agreed on by ALPN over
    TLS, and taken for granted without it.
    """
    streams: int = Field(default=1, ge=1)
    """HTTP/2: users who share a connection, and so requests under way on it at once."""
    count: int | None = Field(default=None, ge=1)
    """HTTP/2: connections that all users share; in place of `streams`."""
    stream_window_bytes: int | None = Field(default=None, ge=1, le=2**31 - 1)
    """HTTP/2: what the server may send on a stream before it is given more; so much that no window of the
    client bounds it when not given.
    """
    connection_window_bytes: int | None = Field(default=None, ge=65_535, le=2**31 - 1)
    """HTTP/2: the same of all streams of a connection."""
    header_table_bytes: int | None = Field(default=None, ge=0, le=65_536)
    """HTTP/2: the dynamic table of header compression, either way; 4096 when not given."""
    max_requests: int | None = Field(default=None, ge=1)
    """The client closes after this many."""
    pipeline: int = Field(default=1, ge=1, le=1024)
    """This many requests go out together before their responses are waited for."""
    shared: bool = False
    """A user who arrives in an open load takes over a connection that another has left, instead of opening
    one and closing it when leaving, as browsers do. Only with session: user.
    """
    tls_resumption: bool = True
    tls_version: Literal["1.2", "1.3"] | None = None
    """Only this version; both when not given."""

    @model_validator(mode="after")
    def _fits_the_version(self) -> Self:
        shares = self.streams > 1 or self.count is not None
        if self.http_version != "2":
            if shares:
                raise ValueError("streams and count are for http_version '2': add it, or leave them out")
            sizes = (self.stream_window_bytes, self.connection_window_bytes, self.header_table_bytes)
            if any(size is not None for size in sizes):
                raise ValueError(
                    "stream_window_bytes, connection_window_bytes and header_table_bytes are for "
                    "http_version '2': add it, or leave them out"
                )
            return self
        if self.pipeline > 1:
            raise ValueError("pipeline is for HTTP/1.1: with http_version '2' give streams")
        if self.streams > 1 and self.count is not None:
            raise ValueError("streams and count both say how users share connections: give one of them")
        if shares and (not self.keep_alive or self.max_requests is not None):
            raise ValueError(
                "users who share a connection cannot close it: leave keep_alive and max_requests out"
            )
        return self

    def shared_by(self, users: int) -> int | None:
        """HTTP/2: the connections that so many users share; None: each has its own."""
        if self.count is not None:
            return min(self.count, users)
        return None if self.streams == 1 else -(-users // self.streams)
