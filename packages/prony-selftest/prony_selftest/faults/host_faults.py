"""Faults of the host, the network, and the server's CPUs, sockets and memory."""

from __future__ import annotations

from functools import partial

from prony.judge.cross_trial import JudgedTrial, clock
from prony.judge.finding import Kind
from prony.plan.load import ClosedLoad, Connections
from prony_selftest.faults.disturbances import burner, cpu_quota, deep_link, foreign_traffic, shallow_link
from prony_selftest.faults.edited import (
    clock_dips,
    clock_level,
    clock_low,
    heap_collected,
    heap_uncollected,
    quota_unreadable,
)
from prony_selftest.faults.model import LONG, Entry, ExtraCase, Setup, SetupResult, coded, conditional, hello
from prony_selftest.faults.other_process import SHARED

CROWD = ClosedLoad(users=64)
"""A hash that spreads 64 connections over two processes gives 48 of them to one in 1 of 15,000 draws."""


def _one_slow_clock(dips: SetupResult) -> ExtraCase:
    """A clock that is low throughout a trial is level within it, so trials are compared."""
    trials = [JudgedTrial("a", block, clock_level(dips.evidence)) for block in range(3)]
    slow = JudgedTrial("b", 0, clock_low(dips.evidence))
    faulty, clean = clock([*trials, slow]), clock(trials)
    failure = None
    if faulty is None or faulty.kind is not Kind.BUDGET:
        failure = "a trial with a clock 30 % lower than the others was not detected"
    elif clean is None or clean.kind is not Kind.FINE:
        failure = "trials with the same clock were flagged"
    return ExtraCase(f"between trials: {faulty.reason if faulty is not None else 'nothing'}", failure)


HOST_FAULTS: tuple[Entry, ...] = (
    Entry(20, "another process on the server's CPU", "another process takes half of the server's CPU",
        Setup(disturbance=burner("server"), needs=("two-cpus",)), ("isolation",), Setup(),
        partial(coded, "isolation", "other_processes"), biased=("requests_per_s", "mean_ms", "p99_ms")),
    Entry(21, "CPU quota", "a control group limits the server to 30 % of a CPU",
        Setup(disturbance=cpu_quota(0.3), needs=("cgroup",)), ("isolation", "bound_by"), Setup(),
        biased=("requests_per_s", "mean_ms", "p99_ms")),
    Entry(31, "the CPU clock falls",
        "the clock is 30 % lower for half of the window, and back at its end (edited: a guest cannot set it)",
        Setup(edited=clock_dips, measured=LONG), ("host",), Setup(edited=clock_level, measured=LONG),
        partial(coded, "host", "slower_clock"), second_case=_one_slow_clock, other_tools=False),
    Entry(34, "the accept queue overflows",
        "a backlog of 1 and a connection per request: SYNs are dropped and sent again a second later",
        Setup(command=(*SHARED, "{host}", "{port}", "works", "narrow"),
            connections=Connections(keep_alive=False)), ("network",),
        Setup(command=(*SHARED, "{host}", "{port}", "works"), connections=Connections(keep_alive=False)),
        partial(coded, "network", "accept_queue"), biased=("requests_per_s",)),
    Entry(35, "segments are lost",
        "a link with a short queue drops segments, and their requests wait for TCP's timers",
        Setup(serve=("--body-bytes", "30000"), workload=hello(expect=False), context=shallow_link,
            needs=("root", "tc")), ("network",),
        Setup(serve=("--body-bytes", "30000"), workload=hello(expect=False), context=deep_link,
            needs=("root", "tc")), partial(coded, "network", "retransmitted"),
        biased=("requests_per_s", "mean_ms"), other_tools=False),
    Entry(36, "40 ms of delayed acknowledgement",
        "the server writes head and body apart, and Nagle's algorithm holds the body back",
        Setup(command=(*SHARED, "{host}", "{port}", "works", "apart")), ("network",),
        Setup(serve=("--delay", "fixed:40ms")), partial(coded, "network", "delayed_acks")),
    Entry(37, "one worker process has all connections",
        "with SO_REUSEPORT, the second of two processes began to listen when the connections were there",
        Setup(command=(*SHARED, "{host}", "{port}", "works", "late"), load=CROWD), ("spread",),
        Setup(command=(*SHARED, "{host}", "{port}", "works", "pair"), load=CROWD)),
    Entry(38, "a leak without a slowdown",
        "the server keeps 32 KiB of every response; nothing gets slower yet",
        Setup(command=(*SHARED, "{host}", "{port}", "works", "leaks"), measured=LONG), ("memory",),
        Setup(command=(*SHARED, "{host}", "{port}", "works"), measured=LONG),
        partial(coded, "memory", "growing")),
    Entry(48, "work deferred past the window",
        "responses come at once, and the work of each is done when the load has ended",
        Setup(command=(*SHARED, "{host}", "{port}", "small", "defers")), ("deferred",),
        Setup(command=(*SHARED, "{host}", "{port}", "small")), partial(coded, "deferred", "put_off"),
        biased=("requests_per_s", "mean_ms", "server_cpu_us_per_request")),
    Entry(39, "a heap that is never collected",
        "a JVM's heap grows by 200 MiB without a collection (edited: the self-test starts no JVM)",
        Setup(edited=heap_uncollected, measured=LONG), ("memory",),
        Setup(edited=heap_collected, measured=LONG), partial(coded, "memory", "not_collected"),
        other_tools=False),
    Entry(40, "soft interrupts of other traffic",
        "packets that have nothing to do with the load are handled on the server's CPU",
        Setup(disturbance=foreign_traffic, needs=("root", "two-cpus", "steering")), ("isolation",), Setup(),
        partial(coded, "isolation", "soft_interrupts"), biased=("requests_per_s", "mean_ms", "p99_ms")),
    Entry(41, "CPU quota that cannot be read",
        "the counters of the server's control group are hidden (edited)", Setup(edited=quota_unreadable),
        ("isolation",), Setup(), partial(conditional, "isolation"), other_tools=False),
)  # fmt: skip
