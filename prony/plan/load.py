"""Loads: how requests are offered, and which part of the run is measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from prony.evidence.base import Record
from prony.plan.population import Population, most_at_once
from prony.plan.think import NO_THINK, Think

WHOLE_CAP_S = 3600.0
"""Longest run bounded by requests or iterations alone."""
DRAIN_S = 60.0
"""Longest drain after the last arrival."""


class RatePhase(Record):
    """A phase with a linearly changing rate of arrivals; a pause has the rate 0 at both ends."""

    duration_s: float = Field(gt=0)
    from_per_s: float = Field(ge=0)
    to_per_s: float = Field(ge=0)
    max_users: int | None = Field(default=None, ge=1)
    """Cap on concurrent arrivals in this phase; further arrivals are blocked."""


class ClosedLoad(Record):
    """Closed loop: a fixed number of users, each waiting for its response."""

    model: Literal["closed"] = "closed"
    users: int = Field(ge=1)
    """Sum over populations, if any."""
    populations: tuple[Population, ...] = ()
    """Groups of users, each with its start, end and scenarios."""
    think: Think = NO_THINK
    ramp_up_s: float = Field(default=0.0, ge=0)
    """Users start evenly over this time."""
    ramp_up_steps: int | None = Field(default=None, ge=1)
    ramp_down_s: float = Field(default=0.0, ge=0)
    ramp_down_steps: int | None = Field(default=None, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _counted(cls, value: object) -> object:
        if not isinstance(value, Mapping) or not value.get("populations") or value.get("users") is not None:
            return value
        counts = [
            group.get("users") if isinstance(group, Mapping) else getattr(group, "users", 0)
            for group in value["populations"]
        ]
        return {**value, "users": sum(count for count in counts if isinstance(count, int)) or 1}

    @model_validator(mode="after")
    def _one_ramp(self) -> Self:
        if not self.populations:
            return self
        total = sum(group.users for group in self.populations)
        if self.users != total:
            raise ValueError(f"users is {self.users}, but the populations have {total}; leave users out")
        ramps = (self.ramp_up_steps, self.ramp_down_s, self.ramp_down_steps, self.ramp_up_s)
        if any(ramps):
            raise ValueError("ramps do not apply to populations: give each a ramp_up_s and a duration_s")
        return self

    @property
    def started_s(self) -> float:
        """When all users have started, from the start of the run."""
        return max((group.start_s + group.ramp_up_s for group in self.populations), default=self.ramp_up_s)

    @property
    def at_once(self) -> int:
        """Requests under way at once, at most."""
        return most_at_once(self.populations) if self.populations else self.users

    @property
    def name(self) -> str:
        """Short name, such as `closed-10`, `closed-1000-think-500ms` or `closed-30-in-2-groups`."""
        if self.populations:
            groups = len(self.populations)
            return f"closed-{self.users}-in-{groups}-group{'s' if groups > 1 else ''}"
        if self.think.kind == "none":
            return f"closed-{self.users}"
        return f"closed-{self.users}-think-{self.think.expected_ms:g}ms"


class OpenLoad(Record):
    """Open loop: arrivals on a schedule that no response delays, by `rate_per_s` or `phases`."""

    model: Literal["open"] = "open"
    rate_per_s: float | None = Field(default=None, gt=0)
    ramp_up_s: float = Field(default=0.0, ge=0)
    """With `rate_per_s`: the rate rises from 0 over this time."""
    phases: tuple[RatePhase, ...] = ()
    arrivals: Literal["constant", "poisson"] = "constant"
    session: Literal["request", "user"] = "request"
    """An arrival is a request, or a new user who walks the scenario once."""
    think: Think = NO_THINK
    """Between a user's requests; only with session: user."""
    max_users: int | None = Field(default=None, ge=1)
    """Cap on concurrent arrivals. Default: one second of arrivals, 100 to 10,000."""
    at_cap: Literal["block", "wait"] = "block"
    """An arrival above the cap is blocked and counted, or waits; latency counts from its due time."""
    connections: int | None = Field(default=None, ge=0)
    """Opened before the first arrival and kept open. Default: 10 ms of arrivals."""
    deadline_ms: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _one_schedule(self) -> Self:
        if (self.rate_per_s is None) == (not self.phases):
            raise ValueError("expected exactly one of rate_per_s and phases")
        if self.phases and self.ramp_up_s:
            raise ValueError("ramp_up_s applies to rate_per_s; with phases write the ramp as a phase")
        if self.session == "request" and self.think.kind != "none":
            raise ValueError("think applies to session: user; arrivals that are requests have no think time")
        return self

    @property
    def started_s(self) -> float:
        return self.ramp_up_s

    @property
    def highest_per_s(self) -> float:
        if self.rate_per_s is not None:
            return self.rate_per_s
        return max(max(phase.from_per_s, phase.to_per_s) for phase in self.phases)

    @property
    def total_s(self) -> float | None:
        return sum(phase.duration_s for phase in self.phases) if self.phases else None

    @property
    def mean_per_s(self) -> float:
        """Mean rate over the whole schedule, without `ramp_up_s`."""
        if self.rate_per_s is not None:
            return self.rate_per_s
        arrivals = sum(p.duration_s * (p.from_per_s + p.to_per_s) / 2 for p in self.phases)
        return arrivals / sum(p.duration_s for p in self.phases)

    @property
    def user_cap(self) -> int:
        if self.max_users is not None:
            return self.max_users
        return int(min(10_000, max(100, math.ceil(self.highest_per_s))))

    @property
    def ready_connections(self) -> int:
        """`connections`, or its default: 10 ms of arrivals, none for sessions, which open their own."""
        if self.connections is not None:
            return self.connections
        if self.session == "user":
            return 0
        return min(self.user_cap, max(10, math.ceil(self.highest_per_s / 100)))

    @property
    def at_once(self) -> int:
        """Initial connections; slow responses need more."""
        return max(1, self.ready_connections)

    @property
    def name(self) -> str:
        """Short name, such as `open-1000-poisson`."""
        what = "sessions-" if self.session == "user" else ""
        return f"open-{what}{self.highest_per_s:g}-{self.arrivals}"


def _which_load(value: object) -> str:
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


MOST_WINDOWS = 100


class SteadyWindow(Record):
    """Warm-up until the server is level, then a measured window."""

    kind: Literal["steady"] = "steady"
    window_s: float = Field(gt=0)
    windows: int = Field(default=1, ge=1, le=MOST_WINDOWS)
    """Consecutive windows of this length in a process. Figures cover all of them; their spread separates the
    variance within and between processes.
    """
    precision: float | None = Field(default=None, gt=0, lt=1)
    """Ends the window at this half-width (95 %) ÷ value of its figure; `window_s` is then the cap."""

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if self.windows > 1 and self.precision is not None:
            raise ValueError("windows (fixed length) and precision (early end) exclude each other")
        return self

    @property
    def length_s(self) -> float:
        return self.windows * self.window_s


class WholeRun(Record):
    """Everything from the first request to the first given bound is measured, as in most published runs. An
    open load with phases ends with its last session.
    """

    kind: Literal["whole"] = "whole"
    duration_s: float | None = Field(default=None, gt=0)
    total_requests: int | None = Field(default=None, ge=1)
    iterations_per_user: int | None = Field(default=None, ge=1)
    warm_up_s: float = Field(default=0.0, ge=0)
    """Length of a separate, unmeasured run of the same load beforehand; 0: a fresh server."""
    drain_s: float | None = Field(default=None, gt=0)
    """Longest drain after the last arrival of an open load's phases. Default: 60 s."""


Measured = Annotated[
    Annotated[SteadyWindow, Tag("steady")] | Annotated[WholeRun, Tag("whole")], Discriminator(_which_part)
]


class Connections(Record):
    """Lifetime of connections, and TLS with HTTPS."""

    keep_alive: bool = True
    """False: a connection per request."""
    http_version: Literal["1.0", "1.1", "2"] = "1.1"
    """With 1.0 keep-alive needs the request of both sides; 2 is agreed by ALPN over TLS, assumed without."""
    streams: int = Field(default=1, ge=1)
    """HTTP/2: users per connection, and so its concurrent requests."""
    count: int | None = Field(default=None, ge=1)
    """HTTP/2: connections shared by all users; in place of `streams`."""
    stream_window_bytes: int | None = Field(default=None, ge=1, le=2**31 - 1)
    """HTTP/2: flow-control window of a stream. Default: too large to bound the server."""
    connection_window_bytes: int | None = Field(default=None, ge=65_535, le=2**31 - 1)
    """HTTP/2: flow-control window of a connection."""
    header_table_bytes: int | None = Field(default=None, ge=0, le=65_536)
    """HTTP/2: dynamic table of header compression in both directions. Default: 4096."""
    max_requests: int | None = Field(default=None, ge=1, le=2**31)
    """Requests after which the client closes."""
    pipeline: int = Field(default=1, ge=1, le=1024)
    """Requests sent together before waiting for their responses."""
    shared: bool = False
    """Whether a new user of an open load takes over an idle connection instead of opening and closing its
    own, as browsers do. Only with session: user.
    """
    family: Literal["ipv4", "ipv6"] | None = None
    """Only addresses of this family. Default: both, unless only one answers before the load."""
    close: Literal["client", "wait", "reset"] = "client"
    """Who closes first and holds a port in TIME_WAIT: client, server (awaited for 1 s), neither (reset)."""
    tls_sessions: Literal["user", "shared", "none"] = "user"
    """TLS sessions that a handshake resumes: the user's own, those of any user of its thread, or none."""
    tls_version: Literal["1.2", "1.3"] | None = None
    """Only this version. Default: both."""

    @model_validator(mode="before")
    @classmethod
    def _as_before(cls, value: object) -> object:
        """Accepts the values of earlier versions."""
        if not isinstance(value, Mapping) or "tls_resumption" not in value:
            return value
        rest = {key: setting for key, setting in value.items() if key != "tls_resumption"}
        return rest | {"tls_sessions": "shared" if value["tls_resumption"] else "none"}

    @model_validator(mode="after")
    def _fits_the_version(self) -> Self:
        if not self.keep_alive and self.max_requests is not None:
            raise ValueError(
                "keep_alive: false and max_requests both set when the client closes: give one of them"
            )
        if self.pipeline > 1 and (not self.keep_alive or self.http_version == "1.0"):
            raise ValueError(
                "pipeline does not go with keep_alive: false or http_version '1.0': leave them out"
            )
        shares = self.streams > 1 or self.count is not None
        if self.http_version == "2" and self.close == "wait":
            raise ValueError("close: wait does not go with http_version '2': give client or reset")
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
            raise ValueError("streams and count both set how users share connections: give one of them")
        if shares and (not self.keep_alive or self.max_requests is not None):
            raise ValueError(
                "users who share a connection cannot close it: leave keep_alive and max_requests out"
            )
        return self

    def shared_by(self, users: int) -> int | None:
        """HTTP/2: number of connections shared by this many users; None: each user has its own."""
        if self.count is not None:
            return min(self.count, users)
        return None if self.streams == 1 else -(-users // self.streams)
