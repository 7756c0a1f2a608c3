"""Checks made with the engine: its connections are kept alive, and a hundred concurrent ones get correct
responses.

Each takes a running server under a workload and returns an Outcome.
"""

from __future__ import annotations

import math

from prony.conformance.result import CheckOutcome, CheckStatus
from prony.conformance.walk import Subject
from prony.errors import EnvironmentFault
from prony.evidence.engine import EngineReport
from prony.load.short import complaint, run_short
from prony.plan.load import Connections
from prony.plan.workload import Scenario, Workload

KEPT_REQUESTS = 20
LONG_REQUESTS = 1_100
"""More than servers' default limits (Tomcat 100, Grizzly 256, nginx 1,000)."""
CONCURRENT = 100
LONGEST_S = 20.0
"""A check that takes longer by the workload's own delay is left out."""
DELAY_SLACK = 0.01
"""A server's timer may be early by this share."""
DELAY_LATE_SHARE, DELAY_LATE_MS = 1.5, 50.0
"""If the fastest response is later than this, the server waits for something else."""


def keep_alive(subject: Subject) -> CheckOutcome:
    """Twenty requests on one connection."""
    return _on_connections(subject, KEPT_REQUESTS)


def closes_after(subject: Subject) -> CheckOutcome:
    """Twice the requests that the server declares per connection; 1,100 on one if it declares nothing."""
    declared = subject.closes_after
    requests = LONG_REQUESTS if declared is None else 2 * declared + 1
    wait_s = (subject.workload.delay_ms or 0.0) * requests / 1000
    if wait_s > LONGEST_S:
        return CheckOutcome(
            status=CheckStatus.LEFT_OUT,
            found=f"{requests} requests in sequence would take {wait_s:.0f} s under this workload",
            expected="",
        )
    return _on_connections(subject, requests)


def _on_connections(subject: Subject, at_least: int) -> CheckOutcome:
    """At least this many requests of one user, and the connections they took."""
    workload = _single(subject.for_engine())
    length = _length(workload)
    iterations = math.ceil(at_least / length)
    requests = iterations * length
    connections = 1 if subject.closes_after is None else math.ceil(requests / subject.closes_after)
    expected = f"{requests} correct responses on {_connections(connections)}"
    try:
        report = run_short(
            subject.url, workload, iterations=iterations, tls=subject.tls, connections=subject.connections
        )
    except EnvironmentFault as fault:
        return CheckOutcome.of(False, str(fault), expected)
    opened = report.totals.connections_opened
    why = complaint(report, requests)
    found = f"{report.totals.completed} responses on {_connections(opened or 0)}"
    if why is not None:
        return CheckOutcome.of(False, f"{why}; {found}", expected)
    return CheckOutcome.of(opened == connections, found, expected)


def concurrent(subject: Subject) -> CheckOutcome:
    """A hundred concurrent users, each with its own connection."""
    return _at_once(subject, subject.connections, f"{CONCURRENT} concurrent connections", CONCURRENT)


def streams(subject: Subject) -> CheckOutcome:
    """A hundred concurrent users on one connection of HTTP/2, each on a stream."""
    if subject.http_version != "2":
        return CheckOutcome(status=CheckStatus.LEFT_OUT, found="the load is not over HTTP/2", expected="")
    shared = Connections(http_version="2", count=1)
    return _at_once(subject, shared, f"concurrent streams of {_connections(1)}", 1)


def _at_once(subject: Subject, connections: Connections, on: str, opened: int) -> CheckOutcome:
    """A hundred concurrent users over these connections, of which so many are expected to be opened."""
    workload = subject.for_engine()
    lengths = {_length(_single(workload, scenario)) for scenario in workload.walks}
    requests = CONCURRENT * lengths.pop() if len(lengths) == 1 else None
    expected = f"all responses correct on {on}"
    try:
        report = run_short(subject.url, workload, users=CONCURRENT, tls=subject.tls, connections=connections)
    except EnvironmentFault as fault:
        return CheckOutcome.of(False, str(fault), expected)
    why = complaint(report, requests)
    counted = report.totals.connections_opened or 0
    found = f"{report.totals.completed} responses on {_connections(counted)}"
    if why is not None:
        return CheckOutcome.of(False, f"{why}; {found}", expected)
    return CheckOutcome.of(counted == 1 if opened == 1 else counted >= opened, found, expected)


def delay(subject: Subject) -> CheckOutcome:
    """The declared delay, and no more: the fastest of five responses, one at a time."""
    delay_ms = subject.workload.delay_ms
    if delay_ms is None:
        return CheckOutcome(status=CheckStatus.LEFT_OUT, found="the workload declares none", expected="")
    latest_ms = delay_ms * DELAY_LATE_SHARE + DELAY_LATE_MS
    expected = f"{delay_ms:g} to {latest_ms:g} ms (the fastest of 5 responses)"
    try:
        report = run_short(
            subject.url, subject.for_engine(), iterations=5, tls=subject.tls, connections=subject.connections
        )
    except EnvironmentFault as fault:
        return CheckOutcome.of(False, str(fault), expected)
    fastest_ms = _fastest_ms(report)
    if fastest_ms is None:
        return CheckOutcome.of(False, complaint(report) or "no response", expected)
    right = delay_ms * (1 - DELAY_SLACK) <= fastest_ms <= latest_ms
    return CheckOutcome.of(right, f"{fastest_ms:.1f} ms", expected)


def _fastest_ms(report: EngineReport) -> float | None:
    times = report.window.service_time if report.window is not None else None
    return None if times is None or times.min_ns is None else times.min_ns / 1e6


def _single(workload: Workload, scenario: Scenario | None = None) -> Workload:
    """With one scenario alone (default: the first), so that a user's requests are known."""
    chosen = scenario or workload.walks[0]
    return workload.model_copy(
        update={
            "steps": chosen.steps,
            "loops": chosen.loops,
            "variables": chosen.variables,
            "scenarios": (),
        }
    )


def _length(workload: Workload) -> int:
    """Requests of one iteration."""
    return workload.walks[0].length


def _connections(count: int) -> str:
    return "1 connection" if count == 1 else f"{count} connections"
