"""Conformance checks: single requests in every form that a client may send, and short loads by the engine."""

from __future__ import annotations

import functools
import math
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Self

from prony.errors import EnvironmentFault
from prony.evidence.base import Record
from prony.evidence.conformance import CheckStatus
from prony.load.short import complaint, run_short, short_load
from prony.plan.load import Connections
from prony.plan.step import Step
from prony.plan.workload import Scenario, Workload
from prony_conformance.http2 import Http2Wire
from prony_conformance.walk import Subject, reads, why_wrong
from prony_conformance.wire import Line, Wire, WireError, WireRequest, WireResponse


class CheckOutcome(Record):
    status: CheckStatus
    found: str
    expected: str

    @classmethod
    def of(cls, right: bool, observed: str, expected: str) -> Self:
        """Passed or failed."""
        return cls(
            status=CheckStatus.PASSED if right else CheckStatus.FAILED, found=observed, expected=expected
        )


Check = Callable[[Subject], CheckOutcome]
CLOSE_PATIENCE_S = 5.0
OVERSIZED_BYTES = (64 << 10, 1 << 20, 4 << 20)
"""Up to the first refusal: default limits are 8 KiB to 1 MiB."""
RESET_ATTEMPTS = 3
NOT_COMPARED = {"content-length", "transfer-encoding", "connection", "keep-alive", "date", "set-cookie"}
"""May differ between HEAD and GET, or have a check of their own."""
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
AS_DECLARED = "every response as the workload declares"


class _NotApplicable(Exception):
    """`str()` says why."""


def _check(expected: str, *, judged: bool = True) -> Callable[[Callable[[Subject], tuple[bool, str]]], Check]:
    """A check from a function: is the server right, and the finding. Not `judged`: only noted."""

    def outcome_of(ask: Callable[[Subject], tuple[bool, str]]) -> Check:
        @functools.wraps(ask)
        def check(subject: Subject) -> CheckOutcome:
            try:
                right, found = ask(subject)
            except _NotApplicable as why:
                return CheckOutcome(status=CheckStatus.LEFT_OUT, found=str(why), expected="")
            except WireError as fault:
                right, found = False, str(fault)
            if not judged:
                return CheckOutcome(status=CheckStatus.NOTED, found=found, expected=expected)
            return CheckOutcome.of(right, found, expected)

        return check

    return outcome_of


@_check(AS_DECLARED)
def responses(subject: Subject) -> tuple[bool, str]:
    """Every step of every scenario, on one connection each, up to the first wrong response."""
    return _as_declared(subject, subject.afresh())


@_check(AS_DECLARED)
def further(subject: Subject) -> tuple[bool, str]:
    """The steps that the workload declares for this suite alone: unknown paths, refusals."""
    workload = subject.afresh()
    if not workload.conformance:
        raise _NotApplicable("the workload declares no further requests")
    alone = {"steps": workload.conformance, "scenarios": (), "loops": 1, "variables": {}}
    return _as_declared(subject, workload.model_copy(update=alone))


def _as_declared(subject: Subject, workload: Workload) -> tuple[bool, str]:
    run = subject.ask(workload)
    count = len(run.probes)
    if run.no_response is not None:
        return False, f"{run.no_response}, after {count} responses"
    if run.wrong is not None:
        return False, f"{run.probes[-1].step}: {run.wrong}"
    return True, "1 response" if count == 1 else f"all {count} responses"


@_check("404")
def unknown_path(subject: Subject) -> tuple[bool, str]:
    """A path that does not exist."""
    with subject.connect() as line:
        status = line.ask(_unknown()).status
    return status == 404, f"status {status}"


@_check("the headers of GET, no body")
def head(subject: Subject) -> tuple[bool, str]:
    """HEAD for every GET: the same status and headers, no body, and the connection still in step."""
    requests = 0
    for place, scenario in enumerate(subject.workload.walks):
        with _connection(subject) as line:
            for number, step in enumerate(scenario.leading):
                if not reads(step):
                    continue
                requests += 1
                try:
                    why = _head_beside_get(line, step, subject.request(place, number))
                except WireError as fault:
                    why = str(fault)
                if why is not None:
                    return False, f"{step.name}: {why}"
    if not requests:
        raise _NotApplicable("no GET that is expected to succeed")
    return True, f"{requests} like GET, without a body"


def _head_beside_get(line: _Connection, step: Step, request: WireRequest) -> str | None:
    got, again = line.ask(request), line.ask(request)
    only_head = line.ask(WireRequest("HEAD", request.path, request.headers))
    if only_head.status != got.status:
        return f"HEAD has the status {only_head.status}, GET {got.status}"
    missing = sorted(set(got.headers) - set(only_head.headers) - NOT_COMPARED)
    if missing:
        return f"the response to HEAD lacks {', '.join(missing)}"
    kind = only_head.headers.get("content-type")
    if kind != got.headers.get("content-type"):
        return f"HEAD has the type {kind}, GET {got.headers.get('content-type')}"
    length = only_head.headers.get("content-length")
    steady = len(got.body) == len(again.body)
    if steady and length is not None and length != str(len(got.body)):
        return f"HEAD has the length {length}, the body of GET {len(got.body)}"
    if surplus := line.unasked():
        return f"bytes after the response to HEAD: {surplus[:40]!r}"
    try:
        after = line.ask(request)
    except WireError as fault:
        return f"after HEAD the connection is out of sync: {fault}"
    return why_wrong(step, after)


@_check("a correct response, then the connection is closed")
def close(subject: Subject) -> tuple[bool, str]:
    """`Connection: close` requested."""
    step, request = subject.sample()
    with Wire(subject.address) as wire:
        response = wire.ask(replace(request, headers={**request.headers, "Connection": "close"}))
        why = why_wrong(step, response) or _still_open(wire)
    how = "announced" if response.announces_close else "without announcing it"
    return why is None, why or f"closed, {how}"


@_check("a correct response without chunks, then the connection is closed")
def http_1_0(subject: Subject) -> tuple[bool, str]:
    """An HTTP/1.0 client: no keep-alive, no chunks."""
    step, request = subject.sample()
    with Wire(subject.address, alpn=()) as wire:  # such a client knows no ALPN
        response = wire.ask(replace(request, chunked=False, version="1.0"))
        why = why_wrong(step, response)
        if why is None and "transfer-encoding" in response.headers:
            why = f"Transfer-Encoding: {response.headers['transfer-encoding']}, unknown to HTTP/1.0"
        why = why or _still_open(wire)
    return why is None, why or f"answered as HTTP/{response.version}, closed"


def _still_open(wire: Wire) -> str | None:
    ended = wire.ended(CLOSE_PATIENCE_S)
    return None if ended else f"the connection is still open after {CLOSE_PATIENCE_S:g} s"


@_check("two responses, in order (not judged)", judged=False)
def pipelined(subject: Subject) -> tuple[bool, str]:
    """Two requests in one write. Browsers never do it, so it is noted and not judged."""
    step, request = subject.sample()
    with Wire(subject.address) as wire:
        second = _unknown()
        wire.send(request.encoded(wire.address) + second.encoded(wire.address))
        first = wire.read(request.method)
        why = why_wrong(step, first)
        if why is not None:
            return False, f"the first response is wrong: {why}"
        try:
            status = wire.read(second.method).status
        except WireError as fault:
            return False, f"only the first is answered: {fault}"
    return True, f"both answered: {first.status}, then {status} for an unknown path"


@_check("Date (not judged)", judged=False)
def headers(subject: Subject) -> tuple[bool, str]:
    """Response headers cost bytes, and servers' defaults differ."""
    _, request = subject.sample()
    with subject.connect() as line:
        received = line.ask(request).headers
    date = "Date" if "date" in received else "no Date"
    server = f"Server: {received['server']}" if "server" in received else "no Server"
    others = sorted(set(received) - {"date", "server"})
    return True, f"{date}, {server}; also {', '.join(others) or 'nothing'}"


@_check("SETTINGS (not judged)", judged=False)
def settings(subject: Subject) -> tuple[bool, str]:
    """HTTP/2 SETTINGS: a limit of streams makes a client wait."""
    if subject.http_version != "2":
        raise _NotApplicable("the load is not over HTTP/2")
    _, request = subject.sample()
    with Http2Wire(subject.address) as line:
        line.ask(request)
        announced = line.settings()
    streams, longest = announced["streams"], announced["header_list_bytes"]
    found = [
        "no limit of streams" if streams is None else f"{streams} streams at once",
        f"a window of {announced['window_bytes']} bytes for a stream",
        "no limit of header bytes" if longest is None else f"{longest} header bytes",
    ]
    return True, ", ".join(found)


@_check("an error status, and the next request is served")
def oversized_header(subject: Subject) -> tuple[bool, str]:
    """An oversized header: refused, and the next client is served as before."""
    step, request = subject.sample()
    for size in OVERSIZED_BYTES:
        answer, refused = _with_filler(subject, request, size)
        found = f"{answer} at " + (f"{size >> 10} KiB" if size < 1 << 20 else f"{size >> 20} MiB")
        if refused:
            break
    with subject.connect() as line:
        why = why_wrong(step, line.ask(request))
    if why is not None:
        return False, f"{found}; the next response is wrong: {why}"
    return refused, found


def _with_filler(subject: Subject, request: WireRequest, size: int) -> tuple[str, bool]:
    """The server's answer, and whether it is a refusal: an error status, RST_STREAM or GOAWAY. Sent again, as
    the reset after a refusal may lose it (RFC 9112, 9.6).
    """
    filled = WireRequest(request.method, request.path, {**request.headers, "X-Filler": "a" * size})
    for attempt in range(1, RESET_ATTEMPTS + 1):
        with subject.connect() as line:
            try:
                status = line.ask_oversized(filled).status
                return f"status {status}", status >= 400
            except WireError as fault:
                if fault.refusal:
                    return str(fault), True
                if not fault.hung_up or attempt == RESET_ATTEMPTS:
                    raise WireError(f"to a header of {size >> 10} KiB: {fault}") from fault
    raise AssertionError("the last attempt returns or raises")


class _Connection:
    """Reconnects when the server closed it: keep-alive has a check of its own."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._line: Line | None = None

    def ask(self, request: WireRequest) -> WireResponse:
        used = self._line is not None
        try:
            response = self._connected().ask(request)
        except WireError as fault:
            self.drop()
            if not (used and fault.hung_up):
                raise
            response = self._connected().ask(request)
        if response.announces_close:
            self.drop()
        return response

    def unasked(self) -> bytes:
        return b"" if self._line is None else self._line.unasked()

    def drop(self) -> None:
        if self._line is not None:
            self._line.close()
        self._line = None

    def _connected(self) -> Line:
        if self._line is None:
            self._line = self._subject.connect()
        return self._line


@contextmanager
def _connection(subject: Subject) -> Iterator[_Connection]:
    line = _Connection(subject)
    try:
        yield line
    finally:
        line.drop()


def _unknown() -> WireRequest:
    return WireRequest(path=f"/no-such-path-{secrets.token_hex(6)}")


def keep_alive(subject: Subject) -> CheckOutcome:
    """Twenty requests on one connection."""
    return _on_connections(subject, KEPT_REQUESTS)


def closes_after(subject: Subject) -> CheckOutcome:
    """Twice the requests that the server declares per connection; 1,100 on one if it declares nothing."""
    declared = subject.closes_after
    requests = LONG_REQUESTS if declared is None else 2 * declared + 1
    wait_s = (subject.workload.delay_ms or 0.0) * requests / 1000
    if wait_s > LONGEST_S:
        why = f"{requests} requests in sequence would take {wait_s:.0f} s under this workload"
        return CheckOutcome(status=CheckStatus.LEFT_OUT, found=why, expected="")
    return _on_connections(subject, requests)


def _on_connections(subject: Subject, at_least: int) -> CheckOutcome:
    """At least this many requests of one user, and the connections they took."""
    workload = _single(subject.for_engine())
    length = workload.walks[0].length
    iterations = math.ceil(at_least / length)
    requests = iterations * length
    count = 1 if subject.closes_after is None else math.ceil(requests / subject.closes_after)
    return _loaded(
        subject, workload, subject.connections, 1, iterations, requests,
        f"{requests} correct responses on {_connections(count)}", lambda opened: opened == count,
    )  # fmt: skip


def concurrent(subject: Subject) -> CheckOutcome:
    """A hundred concurrent users, each with its own connection."""
    on = f"{CONCURRENT} concurrent connections"
    return _at_once(subject, subject.connections, on, lambda opened: opened >= CONCURRENT)


def streams(subject: Subject) -> CheckOutcome:
    """A hundred concurrent users on one connection of HTTP/2, each on a stream."""
    if subject.http_version != "2":
        why = "the load is not over HTTP/2"
        return CheckOutcome(status=CheckStatus.LEFT_OUT, found=why, expected="")
    shared = Connections(http_version="2", count=1)
    on = f"concurrent streams of {_connections(1)}"
    return _at_once(subject, shared, on, lambda opened: opened == 1)


def _at_once(
    subject: Subject, connections: Connections, on: str, right: Callable[[int], bool]
) -> CheckOutcome:
    workload = subject.for_engine()
    lengths = {_single(workload, scenario).walks[0].length for scenario in workload.walks}
    requests = CONCURRENT * lengths.pop() if len(lengths) == 1 else None
    expected = f"all responses correct on {on}"
    return _loaded(subject, workload, connections, CONCURRENT, 1, requests, expected, right)


def _loaded(
    subject: Subject,
    workload: Workload,
    connections: Connections,
    users: int,
    iterations: int,
    requests: int | None,
    expected: str,
    right: Callable[[int], bool],
) -> CheckOutcome:
    """A short load: so many `requests` (None: not known), and opened connections that are `right`."""
    try:
        load = short_load(
            subject.url,
            workload,
            users=users,
            iterations=iterations,
            tls=subject.tls,
            connections=connections,
        )
        report = run_short(load)
    except EnvironmentFault as fault:
        return CheckOutcome.of(False, str(fault), expected)
    why = complaint(report, requests)
    opened = report.totals.connections_opened or 0
    found = f"{report.totals.completed} responses on {_connections(opened)}"
    return CheckOutcome.of(why is None and right(opened), f"{why}; {found}" if why else found, expected)


def delay(subject: Subject) -> CheckOutcome:
    """The declared delay, and no more: the fastest of five responses, one at a time."""
    delay_ms = subject.workload.delay_ms
    if delay_ms is None:
        return CheckOutcome(status=CheckStatus.LEFT_OUT, found="the workload declares none", expected="")
    latest_ms = delay_ms * DELAY_LATE_SHARE + DELAY_LATE_MS
    expected = f"{delay_ms:g} to {latest_ms:g} ms (the fastest of 5 responses)"
    try:
        load = short_load(
            subject.url, subject.for_engine(), iterations=5, tls=subject.tls, connections=subject.connections
        )
        report = run_short(load)
    except EnvironmentFault as fault:
        return CheckOutcome.of(False, str(fault), expected)
    times = report.window.service_time if report.window is not None else None
    if times is None or times.min_ns is None:
        return CheckOutcome.of(False, complaint(report) or "no response", expected)
    fastest_ms = times.min_ns / 1e6
    right = delay_ms * (1 - DELAY_SLACK) <= fastest_ms <= latest_ms
    return CheckOutcome.of(right, f"{fastest_ms:.1f} ms", expected)


def _single(workload: Workload, scenario: Scenario | None = None) -> Workload:
    """With one scenario alone (default: the first), so that a user's requests are known."""
    chosen = scenario or workload.walks[0]
    alone = {"steps": chosen.steps, "loops": chosen.loops, "variables": chosen.variables, "scenarios": ()}
    return workload.model_copy(update=alone)


def _connections(count: int) -> str:
    return "1 connection" if count == 1 else f"{count} connections"
