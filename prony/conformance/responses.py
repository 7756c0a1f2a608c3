"""Checks made with single requests, in every form that a client may send.

Each takes a running server under a workload and returns an Outcome.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from prony.conformance.http2 import Http2Wire
from prony.conformance.result import CheckOutcome, CheckStatus
from prony.conformance.walk import Subject, reads, why_wrong
from prony.conformance.wire import Line, Wire, WireError, WireRequest, WireResponse
from prony.plan.step import Step
from prony.plan.workload import Workload

CLOSE_PATIENCE_S = 5.0
OVERSIZED_BYTES = (64 << 10, 1 << 20, 4 << 20)
"""Up to the first refusal: default limits are 8 KiB to 1 MiB."""
RESET_ATTEMPTS = 3
NOT_COMPARED = {"content-length", "transfer-encoding", "connection", "keep-alive", "date", "set-cookie"}
"""May differ between HEAD and GET, or have a check of their own."""


def responses(subject: Subject) -> CheckOutcome:
    """Every step of every scenario, on one connection each, up to the first wrong response."""
    return _as_declared(subject, subject.afresh())


def _as_declared(subject: Subject, workload: Workload) -> CheckOutcome:
    asked = subject.ask(workload)
    count = len(asked.probes)
    found = "1 response" if count == 1 else f"all {count} responses"
    if asked.silence is not None:
        found = f"{asked.silence}, after {count} responses"
    elif asked.wrong is not None:
        found = f"{asked.probes[-1].step}: {asked.wrong}"
    right = asked.silence is None and asked.wrong is None
    return CheckOutcome.of(right, found, "every response as the workload declares")


def further(subject: Subject) -> CheckOutcome:
    """The steps that the workload declares for this suite alone: unknown paths, refusals."""
    workload = subject.afresh()
    if not workload.conformance:
        return _left_out("the workload declares no further requests")
    alone = {"steps": workload.conformance, "scenarios": (), "loops": 1, "variables": {}}
    return _as_declared(subject, workload.model_copy(update=alone))


def unknown_path(subject: Subject) -> CheckOutcome:
    """A path that does not exist."""
    expected = "404"
    try:
        with subject.connect() as line:
            response = line.ask(_unknown())
    except WireError as fault:
        return CheckOutcome.of(False, str(fault), expected)
    return CheckOutcome.of(response.status == 404, f"status {response.status}", expected)


def head(subject: Subject) -> CheckOutcome:
    """HEAD beside every GET: the same status and headers, no body, and the connection still in step."""
    expected = "the headers of GET, no body"
    asked = 0
    for place, scenario in enumerate(subject.workload.walks):
        with _connection(subject) as line:
            for number, step in enumerate(scenario.leading):
                if not reads(step):
                    continue
                asked += 1
                try:
                    why = _head_beside_get(line, step, subject.request(place, number))
                except WireError as fault:
                    why = str(fault)
                if why is not None:
                    return CheckOutcome.of(False, f"{step.name}: {why}", expected)
    if not asked:
        return _left_out("no GET that is expected to succeed")
    return CheckOutcome.of(True, f"{asked} like GET, without a body", expected)


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


def close(subject: Subject) -> CheckOutcome:
    """`Connection: close` requested: a correct response, then the connection is closed."""
    expected = "a correct response, then the connection is closed"
    try:
        step, request = subject.sample()
        with Wire(subject.address) as wire:
            headers = {**request.headers, "Connection": "close"}
            response = wire.ask(
                WireRequest(request.method, request.path, headers, request.body, request.chunked)
            )
            why = why_wrong(step, response)
            if why is None and not wire.ended(CLOSE_PATIENCE_S):
                why = f"the connection is still open after {CLOSE_PATIENCE_S:g} s"
    except WireError as fault:
        why = str(fault)
    else:
        if why is None:
            said = "announced" if response.announces_close else "without announcing it"
            return CheckOutcome.of(True, f"closed, {said}", expected)
    return CheckOutcome.of(False, why, expected)


def http_1_0(subject: Subject) -> CheckOutcome:
    """An HTTP/1.0 client: no keep-alive, no chunks."""
    expected = "a correct response without chunks, then the connection is closed"
    try:
        step, request = subject.sample()
        with Wire(subject.address, alpn=()) as wire:  # such a client knows no ALPN
            response = wire.ask(
                WireRequest(request.method, request.path, request.headers, request.body, version="1.0")
            )
            why = why_wrong(step, response)
            if why is None and "transfer-encoding" in response.headers:
                why = f"Transfer-Encoding: {response.headers['transfer-encoding']}, unknown to HTTP/1.0"
            if why is None and not wire.ended(CLOSE_PATIENCE_S):
                why = f"the connection is still open after {CLOSE_PATIENCE_S:g} s"
    except WireError as fault:
        why = str(fault)
    found = why or f"answered as HTTP/{response.version}, closed"
    return CheckOutcome.of(why is None, found, expected)


def pipelined(subject: Subject) -> CheckOutcome:
    """Two requests in one write. Browsers never do it, so it is noted and not judged."""
    expected = "two responses, in order (not judged)"
    try:
        step, request = subject.sample()
        with Wire(subject.address) as wire:
            second = _unknown()
            wire.send(request.encoded(wire.address) + second.encoded(wire.address))
            first = wire.read(request.method)
            why = why_wrong(step, first)
            if why is not None:
                return _noted(f"the first response is wrong: {why}", expected)
            try:
                status = wire.read(second.method).status
            except WireError as fault:
                return _noted(f"only the first is answered: {fault}", expected)
    except WireError as fault:
        return _noted(str(fault), expected)
    return _noted(f"both answered: {first.status}, then {status} for an unknown path", expected)


def headers(subject: Subject) -> CheckOutcome:
    """Response headers cost bytes, and servers' defaults differ."""
    expected = "Date (not judged)"
    try:
        _, request = subject.sample()
        with subject.connect() as line:
            response = line.ask(request)
    except WireError as fault:
        return _noted(str(fault), expected)
    date = "Date" if "date" in response.headers else "no Date"
    server = f"Server: {response.headers['server']}" if "server" in response.headers else "no Server"
    others = sorted(set(response.headers) - {"date", "server"})
    return _noted(f"{date}, {server}; also {', '.join(others) or 'nothing'}", expected)


def settings(subject: Subject) -> CheckOutcome:
    """HTTP/2 SETTINGS: a limit of streams makes a client wait."""
    expected = "SETTINGS (not judged)"
    if subject.http_version != "2":
        return _left_out("the load is not over HTTP/2")
    try:
        _, request = subject.sample()
        with Http2Wire(subject.address) as line:
            line.ask(request)
            announced = line.settings()
    except WireError as fault:
        return _noted(str(fault), expected)
    streams, longest = announced["streams"], announced["header_list_bytes"]
    found = [
        "no limit of streams" if streams is None else f"{streams} streams at once",
        f"a window of {announced['window_bytes']} bytes for a stream",
        "no limit of header bytes" if longest is None else f"{longest} header bytes",
    ]
    return _noted(", ".join(found), expected)


def oversized_header(subject: Subject) -> CheckOutcome:
    """An oversized header: refused, and the next client is served as before."""
    expected = "an error status, and the next request is served"
    try:
        step, request = subject.sample()
        found = "accepted"
        refused = False
        for size in OVERSIZED_BYTES:
            said, refused = _with_filler(subject, request, size)
            found = f"{said} at " + (f"{size >> 10} KiB" if size < 1 << 20 else f"{size >> 20} MiB")
            if refused:
                break
        with subject.connect() as line:
            why = why_wrong(step, line.ask(request))
    except WireError as fault:
        return CheckOutcome.of(False, str(fault), expected)
    if why is not None:
        return CheckOutcome.of(False, f"{found}; the next response is wrong: {why}", expected)
    return CheckOutcome.of(refused, found, expected)


def _with_filler(subject: Subject, request: WireRequest, size: int) -> tuple[str, bool]:
    """The server's answer to such a header, and whether it is a refusal: an error status, over HTTP/2 also
    RST_STREAM or GOAWAY. A refusal may be lost in the reset that follows (RFC 9112, 9.6), so it is asked for
    again.
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


def _left_out(why: str) -> CheckOutcome:
    return CheckOutcome(status=CheckStatus.LEFT_OUT, found=why, expected="")


def _noted(found: str, expected: str) -> CheckOutcome:
    return CheckOutcome(status=CheckStatus.NOTED, found=found, expected=expected)
