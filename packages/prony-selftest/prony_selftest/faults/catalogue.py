"""Faults that one trial can show, each with the same set-up without the fault as its clean run."""

from __future__ import annotations

from functools import partial

from prony.experiment.requirements import forecasts, refusals
from prony.host.resource_limits import limits
from prony.judge.finding import Kind
from prony.load.facts import load_facts
from prony.plan.load import ClosedLoad, Connections, OpenLoad, WholeRun
from prony.plan.think import Think
from prony_selftest.faults.disturbances import burner, port_range
from prony_selftest.faults.hidden_faults import HIDDEN
from prony_selftest.faults.host_faults import HOST_FAULTS
from prony_selftest.faults.http2 import HTTP2
from prony_selftest.faults.model import LONG, SECONDS, Entry, ExtraCase, Setup, SetupResult, coded, hello
from prony_selftest.faults.other_process import BETWEEN, IN_FRONT, SHARED, VISITED
from prony_selftest.faults.partial_faults import PARTIAL
from prony_selftest.faults.trial import run_setup

MEASURED = WholeRun(duration_s=SECONDS)
QUIET = ("--delay", "fixed:5ms")
"""A server whose responses take 5 ms without CPU."""
STALLS = ("--work", "100us", "--stall", "every=2s,for=500ms")
EIGHT_WORKERS = ("--workers", "8", "--delay", "fixed:20ms")
"""Workers wait in phase, so the responses of a second vary by a wave."""
SLOW_LANE = ClosedLoad(users=50, think=Think(kind="constant", ms=100))


def _no_p999(outcome: SetupResult) -> str | None:
    printed = [name for name in outcome.figures if "p99.9" in name or "p999" in name or "p99_9" in name]
    return (
        f"{printed[0]} is printed from {outcome.figures.get('completed', 0):g} samples" if printed else None
    )


def _open(rate: float, poisson: bool = False) -> OpenLoad:
    return OpenLoad(rate_per_s=rate, arrivals="poisson" if poisson else "constant", max_users=200)


FEW_PORTS = partial(port_range, 40000, 40299)


def _forecast(_: SetupResult) -> ExtraCase:
    """At a known rate an infeasible load is refused before the first request, a feasible load is not."""
    close = Connections(keep_alive=False)
    with FEW_PORTS():
        host_limits = limits()
        loads = (load_facts(_open(rate), hello(), close, duration_s=60.0) for rate in (20_000, 4))
        many, few = ("; ".join(refusals(forecasts(load, host_limits))) for load in loads)
    if "ports" not in many:
        return ExtraCase("", "20,000 connections a second on 300 ports were not refused before the run")
    return ExtraCase(
        f"before a run at 20,000 a second: refused, {many.partition(' (')[0]}",
        f"four connections a second on 300 ports were refused: {few}" if few else None,
    )


HIDDEN_FACTOR = 3.0
"""Minimum p99 of the open loop ÷ p99 of the closed loop under the same stall; usually about 100."""


def _open_loop_shows(closed: SetupResult) -> ExtraCase:
    """The same stall in an open loop shows in p99 from the intended send."""
    outcome = run_setup(Setup(serve=STALLS, load=_open(350), measured=WholeRun(duration_s=5.0)))
    hidden, shown = closed.figures.get("p99_ms"), outcome.figures.get("p99_ms")
    if hidden is None or shown is None:
        return ExtraCase("", "p99 of one of the loops is missing")
    fault = None
    if shown < HIDDEN_FACTOR * hidden:
        fault = (
            f"p99 is {shown:.0f} ms in the open loop, {hidden:.1f} ms in the closed one: nothing was hidden"
        )
    elif outcome.kind("stall") is not Kind.FINE:
        fault = f"stall reports '{outcome.reason('stall')}' for the open loop"
    return ExtraCase(f"p99 {hidden:.1f} ms in the closed loop, {shown:.0f} ms in an open one", fault)


ENTRIES: tuple[Entry, ...] = (
    Entry(1, "client saturated", "a real-time process takes the load generator's CPU for 5 ms of each 10",
        Setup(disturbance=burner("client", real_time=True), needs=("two-cpus", "root")),
        ("client", "isolation"), Setup(), biased=("requests_per_s", "mean_ms", "p99_ms")),
    Entry(2, "server on the client's CPU", "server and load generator compete for one CPU",
        Setup(shared_cpus=True, needs=("two-cpus",)), ("isolation",), Setup(),
        biased=("requests_per_s", "mean_ms", "p99_ms")),
    Entry(3, "bound by worker threads",
        "8 workers that wait 20 ms each cap the rate at 400/s, with the CPU idle",
        Setup(serve=EIGHT_WORKERS, load=ClosedLoad(users=24), measured=LONG, workload=hello(delay_ms=20)),
        ("bound_by",),
        Setup(serve=EIGHT_WORKERS, load=ClosedLoad(users=24), measured=LONG, workload=hello(delay_ms=20),
            worker_threads=8)),
    Entry(4, "load too small for a capacity",
        "two users leave the server idle; their rate is called its capacity",
        Setup(serve=QUIET, load=ClosedLoad(users=2), measured=LONG), ("bound_by",), Setup(measured=LONG)),
    Entry(5, "keep-alive silently off",
        "the server closes every connection although keep-alive was requested",
        Setup(serve=("--work", "100us", "--ignore-keep-alive")), ("connections",), Setup()),
    Entry(6, "a TLS handshake per request", "HTTPS with a full handshake for every request",
        Setup(serve=("--ignore-keep-alive", "--no-resumption"), tls=True), ("connections",),
        Setup(serve=("--work", "100us"), tls=True), partial(coded, "connections", "extra"),
        other_tools=False),
    Entry(7, "ports run out", "a connection per request, closed by the client, with 300 ephemeral ports",
        Setup(command=(*SHARED, "{host}", "{port}", "patient"), context=FEW_PORTS,
            connections=Connections(keep_alive=False), load=ClosedLoad(users=8), needs=("root",)), ("ports",),
        Setup(context=FEW_PORTS, needs=("root",)), second_case=_forecast, other_tools=False),
    Entry(9, "a stall that a closed loop hides", "the server stops for 500 ms every 2 s",
        Setup(serve=STALLS, measured=WholeRun(duration_s=5.0)), ("stall",),
        Setup(), second_case=_open_loop_shows),
    Entry(10, "the offered rate is not reached", "600 requests/s are offered to a server that can answer 250",
        Setup(serve=("--work", "4ms"), load=_open(600), measured=MEASURED), ("schedule",),
        Setup(serve=("--delay", "fixed:100ms"), load=_open(200), measured=MEASURED)),
    Entry(11, "Poisson arrivals requested, even spacing delivered", "the pacer sends evenly spaced requests",
        Setup(serve=("--delay", "fixed:100ms"), load=_open(200, poisson=True), measured=MEASURED,
            injected_faults=("even_arrivals",)), ("arrivals",),
        Setup(serve=("--delay", "fixed:100ms"), load=_open(200, poisson=True), measured=MEASURED),
        other_tools=False),
    Entry(12, "think times stretched", "the client's timers fire 20 ms late",
        Setup(serve=QUIET, load=SLOW_LANE, injected_faults=("late_timers",)), ("think",),
        Setup(serve=QUIET, load=SLOW_LANE), other_tools=False),
    Entry(13, "users that died silently", "one user in ten stops after its first request",
        Setup(serve=QUIET, load=SLOW_LANE, injected_faults=("vanishing_users",)), ("little",),
        Setup(serve=QUIET, load=SLOW_LANE), other_tools=False),
    Entry(14, "still warming up", "the server speeds up throughout the window",
        Setup(serve=("--work", "50us", "--warmup", "from=100,over=16s"), measured=LONG), ("steady",),
        Setup(measured=LONG)),
    Entry(15, "slowing down", "a leak makes every request slower than the one before",
        Setup(serve=("--work", "50us", "--slowdown", "per-minute=40,after=5s"), measured=LONG), ("steady",),
        Setup(measured=LONG)),
    Entry(16, "200 OK with an error page", "2 % of the responses are an error page with status 200",
        Setup(serve=("--work", "100us", "--wrong-body", "share=0.02")), ("errors", "content"), Setup()),
    Entry(17, "fast errors raise the rate", "2 % of the responses are an immediate 503",
        Setup(serve=("--work", "100us", "--errors", "share=0.02,fast=yes")), ("errors",), Setup()),
    Entry(18, "bodies shorter than declared", "2 % of the responses end before their Content-Length",
        Setup(serve=("--work", "100us", "--truncate", "share=0.02")), ("errors",), Setup()),
    Entry(24, "p99.9 of 300 samples", "a percentile is printed that 300 samples cannot support",
        Setup(serve=QUIET, load=ClosedLoad(users=2), measured=WholeRun(total_requests=300)), ("samples",),
        Setup(measured=WholeRun(duration_s=SECONDS)), _no_p999),
    Entry(26, "a retry hidden in the client", "the client resends a lost request without counting it",
        Setup(serve=("--work", "100us", "--reset", "share=0.01"), injected_faults=("hidden_retries",)),
        ("counts",), Setup(), other_tools=False),
    Entry(33, "pages cut short, and only the status is checked",
        "2 % of the responses have half of the page, with a length that says so",
        Setup(command=(*SHARED, "{host}", "{port}", "works", "halves"), workload=hello(status_only=True)),
        ("content",), Setup(command=(*SHARED, "{host}", "{port}", "works"), workload=hello(status_only=True)),
        partial(coded, "content", "differ"), other_tools=False),
    VISITED,
    BETWEEN,
    IN_FRONT,
    *PARTIAL,
    *HOST_FAULTS,
    *HTTP2,
    *HIDDEN,
)  # fmt: skip
