"""The steps of a workload as single requests of the engine, from which malformed ones are derived."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import h11

from prony.load.contract import EngineLoad
from prony.load.engine import EngineRun
from prony.load.preflight import Responses, request_once
from prony.load.short import short_load, walk_once
from prony.plan import captured_values
from prony.plan.load import Connections
from prony.plan.step import Step
from prony.plan.target import TlsOptions
from prony.plan.workload import Scenario, Workload
from prony.server.address import Address
from prony.server.spec import HttpVersion
from prony_conformance.http2 import Http2Wire
from prony_conformance.wire import (
    LONGEST_HEAD_BYTES,
    PIECE_BYTES,
    Line,
    Wire,
    WireError,
    WireRequest,
    WireResponse,
)

HEARD_WITHIN_S = 10.0
STRIDE = 1_000_000
"""Between the `${sequence}` numbers of two walks: what has to be new, is."""


@dataclass(slots=True)
class Subject:
    address: Address
    workload: Workload
    closes_after: int | None = None
    tls: TlsOptions = field(default_factory=TlsOptions)
    """For the engine; the suite's own requests check no certificate."""
    known: Mapping[str, str] = field(default_factory=dict)
    """Captured by the workload's preparation."""
    http_version: HttpVersion = "1.1"
    """Unless a check sets another."""
    _walks: int = field(default=0)

    @property
    def url(self) -> str:
        return self.address.url

    @property
    def connections(self) -> Connections:
        """One per user."""
        return Connections(http_version=self.http_version)

    def connect(self) -> Line:
        """Of the suite's own. Raises WireError."""
        return Http2Wire(self.address) if self.http_version == "2" else Wire(self.address)

    def afresh(self) -> Workload:
        """With unused sequence numbers and without think times."""
        self._walks += 1
        return captured_values.renumbered(self.workload, self._walks * STRIDE)

    def for_engine(self) -> Workload:
        """With what its preparation captured."""
        return captured_values.knowing(self.afresh(), self.known)

    def ask(self, workload: Workload) -> Responses:
        """Every leading step once, by the engine. Raises EnvironmentFault."""
        return request_once(self._load(workload), self.known)

    def sample(self) -> tuple[Step, WireRequest]:
        """The first GET that should succeed, else the first step. Raises WireError."""
        scenario, step = sample_step(self.workload)
        return step, self.request(self.workload.walks.index(scenario), scenario.leading.index(step))

    def request(self, scenario: int, step: int) -> WireRequest:
        """This step as the engine writes it, after its predecessors. Raises WireError."""
        fresh = self.afresh()
        load, steps = self._load(fresh), fresh.walks[scenario].leading
        walked = walk_once(load, steps[:step], values=self.known)
        if walked.wrong is not None:
            raise WireError(f"before {steps[step].name}: {walked.wrong}")
        values = captured_values.variables(steps[step : step + 1], {**self.known, **walked.values})
        once = steps[step].model_copy(update={"repeat": 1, "server": None})
        alone = fresh.model_copy(update={"steps": (once,), "scenarios": (), "loops": 1, "variables": values})
        return as_sent(load.model_copy(update={"workload": alone}), once)

    def _load(self, workload: Workload) -> EngineLoad:
        return short_load(self.url, workload, tls=self.tls, connections=self.connections)


def as_sent(load: EngineLoad, step: Step) -> WireRequest:
    """The request as the engine writes it to a silent listener. Raises WireError, EnvironmentFault."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as beside:
        listener.settimeout(HEARD_WITHIN_S)
        heard = beside.submit(_hear, listener)
        where = {"url": f"http://127.0.0.1:{listener.getsockname()[1]}", "connections": Connections()}
        EngineRun(load.model_copy(update=where)).run_to_end(HEARD_WITHIN_S)
        head, body = heard.result()
    own = {name.lower() for name in step.headers}
    added = {"host", "content-length", "transfer-encoding", "expect", "connection"} - own
    return WireRequest(
        method=step.method,
        path=head.target.decode("latin-1"),
        headers={
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in head.headers.raw_items()
            if name.decode("latin-1").lower() not in added
        },
        body=body or (b"" if step.body is not None else None),
        chunked=step.chunked,
    )


def _hear(listener: socket.socket) -> tuple[h11.Request, bytes]:
    peer = h11.Connection(h11.SERVER, max_incomplete_event_size=LONGEST_HEAD_BYTES)
    head: h11.Request | None = None
    body = bytearray()
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(HEARD_WITHIN_S)
        while True:
            match peer.next_event():
                case h11.Request() as head:
                    pass
                case h11.Data() as piece:
                    body += piece.data
                case h11.EndOfMessage() if head is not None:
                    return head, bytes(body)
                case h11.ConnectionClosed():
                    raise WireError("the engine sent no request")
                case _:
                    peer.receive_data(connection.recv(PIECE_BYTES))


def walked_once(workload: Workload) -> Workload:
    """Without its loops: repeated steps teach nothing about the responses, and take time."""
    scenarios = tuple(scenario.model_copy(update={"loops": 1}) for scenario in workload.scenarios)
    return workload.model_copy(update={"loops": 1, "scenarios": scenarios})


def why_wrong(step: Step, response: WireResponse) -> str | None:
    """By the declaration; without one every status below 400 is correct."""
    if step.expect is None:
        return None if response.status < 400 else f"status {response.status}"
    return step.expect.why_not(response.status, response.headers, response.body)


def sample_step(workload: Workload) -> tuple[Scenario, Step]:
    """Raises WireError."""
    leading = [(scenario, step) for scenario in workload.walks for step in scenario.leading]
    if not leading:
        raise WireError("the workload begins with a block, so no request is sent in any case")
    return next((pair for pair in leading if reads(pair[1])), leading[0])


def reads(step: Step) -> bool:
    """A GET that should succeed, so a HEAD must, too."""
    return step.method == "GET" and (step.expect is None or all(200 <= s < 300 for s in step.expect.status))
