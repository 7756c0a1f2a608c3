"""The steps of a workload as the suite's own requests, with fresh `${sequence}` numbers on every walk."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prony.conformance.http2 import Http2Wire
from prony.conformance.wire import Line, Wire, WireRequest, WireResponse
from prony.plan import captured_values
from prony.plan.load import Connections
from prony.plan.step import Step
from prony.plan.target import TlsOptions
from prony.plan.workload import Scenario, Workload
from prony.server.address import Address
from prony.server.spec import HttpVersion
from prony.trial.preflight import rendered_body, rendered_headers
from prony.trial.rendering import Values

STRIDE = 1_000_000
"""How far the numbers of one walk's `${sequence}` are from those of the next: what has to be new, is."""
REPEATS = 2
"""Most repeats of a step in the suite's own requests; the engine sends all of them."""
SEQUENCE = re.compile(r"\$\$\{|\$\{\s*sequence\b(?P<options>[^}|]*)(?P<escape>\|[^}]*)?\}")


@dataclass(slots=True)
class Subject:
    """A running server under one workload."""

    address: Address
    workload: Workload
    closes_after: int | None = None
    tls: TlsOptions = field(default_factory=TlsOptions)
    """What the engine trusts; the suite's own requests check no certificate."""
    known: Mapping[str, str] = field(default_factory=dict)
    """What the workload's preparation captured, by name."""
    http_version: HttpVersion = "1.1"
    """The version that it is asked in, wherever a check does not say another one."""
    _walks: int = field(default=0)

    @property
    def url(self) -> str:
        """Where the engine's requests go."""
        return self.address.url

    @property
    def connections(self) -> Connections:
        """How the engine's users connect: each has a connection of its own."""
        return Connections(http_version=self.http_version)

    def connect(self) -> Line:
        """A connection of the suite's own. Raises WireError."""
        return Http2Wire(self.address) if self.http_version == "2" else Wire(self.address)

    def afresh(self) -> Workload:
        """The workload with unused sequence numbers and without think times."""
        self._walks += 1
        return renumbered(self.workload, self._walks * STRIDE)

    def for_engine(self) -> Workload:
        """The same with what its preparation captured, as the engine is told it."""
        return captured_values.knowing(self.afresh(), self.known)

    def walk(self, workload: Workload, scenario: Scenario) -> Walk:
        """Through a scenario of this workload."""
        return Walk(workload, scenario, self.known)

    def sample(self) -> tuple[Step, WireRequest]:
        """The first GET that is expected to succeed (else the first step), with what comes before it done.

        Raises WireError.
        """
        fresh = self.afresh()
        scenario, target = sample_step(fresh)
        walk = self.walk(fresh, scenario)
        for step, request in walk:
            if step is target:
                return step, request
            with self.connect() as line:
                walk.judge(step, line.ask(request))
        raise AssertionError("the sample is one of the steps")


class Walk:
    """One walk through a scenario: requests with what was captured so far, responses judged as declared."""

    def __init__(self, workload: Workload, scenario: Scenario, known: Mapping[str, str]) -> None:
        self._scenario = scenario
        self._values = Values(workload.feeders, known)

    def __iter__(self) -> Iterator[tuple[Step, WireRequest]]:
        for step in self._scenario.leading:
            if step.follow_redirects:
                return  # where it leads is found out before the load (prony.trial.preflight)
            for _ in range(min(step.repeat, REPEATS)):
                yield step, self.request(step)

    def request(self, step: Step) -> WireRequest:
        """The step's request with its placeholders filled in."""
        body = rendered_body(step, self._values)
        return WireRequest(
            method=step.method,
            path=self._values.render(step.path, path=True),
            headers=rendered_headers(step, self._values),
            body=None if body is None else bytes(body),
            chunked=step.chunked,
        )

    def judge(self, step: Step, response: WireResponse) -> str | None:
        """What is wrong with the response; captures are kept when nothing is."""
        why_not = why_wrong(step, response)
        return why_not or self._values.take(step.capture, response.status, response.headers, response.body)


def walked_once(workload: Workload) -> Workload:
    """The workload without its loops: the same steps again teach nothing about the responses, and 50 loops of
    a page that takes 150 ms take 7.5 s each time.
    """
    scenarios = tuple(scenario.model_copy(update={"loops": 1}) for scenario in workload.scenarios)
    return workload.model_copy(update={"loops": 1, "scenarios": scenarios})


def why_wrong(step: Step, response: WireResponse) -> str | None:
    """What is wrong with the response by the declaration; without one every status below 400 is correct."""
    if step.expect is None:
        return None if response.status < 400 else f"status {response.status}"
    return step.expect.why_not(response.status, response.headers, response.body)


def sample_step(workload: Workload) -> tuple[Scenario, Step]:
    """The first GET that is expected to succeed, else the very first step."""
    for scenario in workload.walks:
        for step in scenario.requests:
            if reads(step):
                return scenario, step
    first = workload.walks[0]
    return first, first.requests[0]


def reads(step: Step) -> bool:
    """Whether this is a GET that is expected to succeed, so that a HEAD must, too."""
    return step.method == "GET" and (step.expect is None or all(200 <= s < 300 for s in step.expect.status))


def renumbered(workload: Workload, offset: int) -> Workload:
    """The workload with every `${sequence}` starting `offset` numbers later, and without think times."""

    def later(match: re.Match[str]) -> str:
        if match["options"] is None:
            return match[0]
        options = dict(word.split("=", 1) for word in match["options"].split() if "=" in word)
        if "end" in options:  # it has no new ones
            return match[0]
        step = int(options.get("step", "1"))
        options["start"] = str(int(options.get("start", "1")) + offset * step)
        words = " ".join(f"{name}={value}" for name, value in options.items())
        return f"${{sequence {words}{match['escape'] or ''}}}"

    def text(value: str) -> str:
        return SEQUENCE.sub(later, value)

    def step(step: Step) -> Step:
        auth = step.auth
        if auth is not None and auth.bearer is not None:
            auth = auth.model_copy(update={"bearer": text(auth.bearer)})
        return step.model_copy(
            update={
                "path": text(step.path),
                "headers": {name: text(value) for name, value in step.headers.items()},
                "body": None if step.body is None else text(step.body),
                "auth": auth,
            }
        )

    return workload.with_steps(step, pausing=False)
