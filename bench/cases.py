"""The cases, equal for all tools."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType

from prony.errors import UsageError

IO_URING = "prony-io_uring"
EPOLL = "prony-epoll"
BASELINE, BASELINE_2 = "wrk", "h2load"
EVIDENCE = ("parts", "log", "parts+log")
"""Optional evidence of Prony, see `bench.tools.prony`."""


def _no_aims() -> MappingProxyType[str, float]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of load. `rate_per_s` None: closed loop."""

    name: str
    title: str
    connections: int
    tls: bool = False
    per_request: bool = False
    """A new connection per request (with `tls`: a full handshake each)."""
    streams: int | None = None
    """HTTP/2: concurrent requests per connection; None: HTTP/1.1."""
    nghttpd: bool = False
    """True: against nghttpd, which has no counters, so requests are the tool's claim. False: the reference
    server.
    """
    rate_per_s: int | None = None
    aims: MappingProxyType[str, float] = field(default_factory=_no_aims)
    """Tool -> aim for its CPU per request, as a multiple of the baseline's."""
    send_lag_aim_us: float | None = None
    """Aim for p99 of the send lag (actual - intended send)."""
    tools: tuple[str, ...] = ()
    """Tools of this case; empty: all without optional evidence."""
    baseline: str = BASELINE
    """Reference tool of the comparison."""

    def takes(self, tool: str) -> bool:
        """Whether a tool takes part."""
        return tool in self.tools if self.tools else "+" not in tool


def _http2(connections: int, streams: int, *, tls: bool, nghttpd: bool) -> Case:
    """An HTTP/2 case, with the tools that support it."""
    where = " on nghttpd" if nghttpd else ""
    return Case(
        f"{'h2' if tls else 'h2c'}-{connections}x{streams}{'-nghttpd' if nghttpd else ''}",
        f"HTTP/2{' over TLS' if tls else ' in clear'}{where}, {connections} connections x {streams} "
        f"stream{'s' if streams > 1 else ''}",
        connections,
        tls=tls,
        streams=streams,
        nghttpd=nghttpd,
        aims=MappingProxyType({IO_URING: 0.80, EPOLL: 0.80}),
        tools=(BASELINE_2, "oha", IO_URING, EPOLL),
        baseline=BASELINE_2,
    )


HTTP2 = tuple(
    _http2(connections, streams, tls=tls, nghttpd=nghttpd)
    for nghttpd in (False, True)
    for connections, streams in ((64, 1), (8, 32))
    for tls in (False, True)
)


def with_evidence(tool: str) -> tuple[str, ...]:
    """Names of a driver without and with each kind of optional evidence."""
    return (tool, *(f"{tool}+{what}" for what in EVIDENCE))


CASES: tuple[Case, ...] = (
    Case("closed-1", "Closed loop, 1 connection", 1),
    Case(
        "closed-64",
        "Closed loop, 64 connections",
        64,
        aims=MappingProxyType({IO_URING: 0.65, EPOLL: 0.80}),
    ),
    Case("closed-1000", "Closed loop, 1000 connections", 1000),
    Case("per-request-64", "A connection per request, 64 at once", 64, per_request=True),
    Case(
        "https-64",
        "HTTPS, 64 connections kept alive",
        64,
        tls=True,
        aims=MappingProxyType({IO_URING: 0.80, EPOLL: 0.80}),
    ),
    Case(
        "https-handshake-64",
        "HTTPS with a full handshake per request, 64 at once",
        64,
        tls=True,
        per_request=True,
        aims=MappingProxyType({IO_URING: 0.80, EPOLL: 0.80}),
    ),
    Case("open-10k", "Open loop, 10,000 requests per second", 64, rate_per_s=10_000, send_lag_aim_us=50.0),
    *(
        Case(
            f"evidence-{tool.removeprefix('prony-')}",
            f"Cost of time parts and request log: closed loop, 64 connections, {tool}",
            64,
            tools=with_evidence(tool),
            baseline=tool,
        )
        for tool in (IO_URING, EPOLL)
    ),
    *HTTP2,
)
QUICK_WITHOUT = frozenset(
    {"closed-1", "evidence-io_uring", "evidence-epoll", *(case.name for case in HTTP2 if case.nghttpd)}
)
"""Left out of quick runs."""


def chosen(names: list[str], *, quick: bool) -> tuple[Case, ...]:
    """The named cases in their own order; without names all, or the quick selection."""
    if not names:
        return tuple(case for case in CASES if not (quick and case.name in QUICK_WITHOUT))
    known = {case.name for case in CASES}
    for name in names:
        if name not in known:
            raise UsageError(f"--only names '{name}'; expected one of {', '.join(sorted(known))}")
    return tuple(case for case in CASES if case.name in names)
