"""Preflight: each request of a workload once before its load, over the same kind of connections."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from prony.errors import LoadRefused, UsageError
from prony.evidence.engine import EngineReport, RecordedResponse, headers_of
from prony.evidence.server import Probe
from prony.load.base import StartEngine
from prony.load.contract import EngineLoad
from prony.load.engine import EngineRun
from prony.load.short import GRACE_S, by_one_user, in_words
from prony.plan import captured_values
from prony.plan.response import Expectation
from prony.plan.step import Step
from prony.plan.workload import Scenario

LONGEST_S = 600.0
"""Cap for all requests of a scenario, in addition to their own deadlines."""
NO_CONNECTION = ("connect_refused", "connect_timeout", "connect_other")
ANY_BUT_ERRORS = Expectation(status=(), not_status=tuple(range(400, 600)))


@dataclass(frozen=True, slots=True)
class Responses:
    probes: tuple[Probe, ...] = ()
    no_response: str | None = None
    """Why the next request has no response; None if every request has."""
    timed_out: bool = False
    """Whether that request was sent but not answered in time: the server may be busy."""
    without_tls: bool = False
    """Whether TLS was not agreed for that request: also a server that starts agrees at once, or never."""
    answered_monotonic_s: float | None = None
    """Time of the last response, by the requesting host's clock."""

    @property
    def wrong(self) -> str | None:
        return self.probes[-1].why_not if self.probes else None


class ReadyProbe(Protocol):
    @property
    def result(self) -> Responses:
        """The latest responses, or why there are none."""

    def __call__(self) -> Probe | None:
        """The first wrong response, else the last; None without a response."""


@dataclass(slots=True)
class Preflight:
    """A server's responses to each step before a load; repeatable."""

    load: EngineLoad
    start: StartEngine | None = None
    """None: on this host. A host is sent values only, and no function."""
    result: Responses = Responses()

    @property
    def possible(self) -> bool:
        return any(walk.leading for walk in self.load.workload.walks)

    def ask(self, known: Mapping[str, str] | None = None) -> Probe | None:
        """Sends every step once; returns the first wrong response, else the last; None without a response."""
        self.result = request_once(self.load, known, self.start or EngineRun)
        return None if self.result.no_response is not None else self.result.probes[-1]

    def __call__(self) -> Probe | None:
        return self.ask()

    @property
    def wrong_request(self) -> Step | None:
        if self.result.wrong is None:
            return None
        steps = [step for walk in self.load.workload.walks for step in walk.leading]
        return next((step for step in steps if step.name == self.result.probes[-1].step), steps[0])


def request_once(
    load: EngineLoad, known: Mapping[str, str] | None = None, start: StartEngine = EngineRun
) -> Responses:
    """Sends every step of every scenario up to its first block, until a wrong or missing response. `known`:
    values captured by a preparation. Raises UsageError for requests that cannot be sent as written.
    """
    probes: list[Probe] = []
    result = Responses()
    for scenario in load.workload.walks:
        if scenario.leading:
            result = _ask_scenario(load, scenario, known or {}, start)
            probes += result.probes
            if result.no_response is not None or result.wrong is not None:
                break
    return replace(result, probes=tuple(probes))


def _ask_scenario(
    load: EngineLoad, scenario: Scenario, known: Mapping[str, str], start: StartEngine
) -> Responses:
    steps = scenario.leading
    alone = load.workload.model_copy(
        update={
            "steps": tuple(map(_once, steps)),
            "scenarios": (),
            "loops": 1,
            "variables": captured_values.variables(steps, known),
        }
    )
    # The numbers before the load's first.
    asking = by_one_user(load, captured_values.renumbered(alone, -1), LONGEST_S, responses=True)
    try:
        report = start(asking).run_to_end(LONGEST_S + GRACE_S)
    except LoadRefused as fault:
        raise UsageError(str(fault), details=fault.details) from fault
    responses = report.responses
    wrong = next((place for place, response in enumerate(responses, 1) if response.error), None)
    responses = responses[:wrong]  # drop requests sent before the run ended
    probes = tuple(_probe(steps[response.step_index], response, report) for response in responses)
    answered_s = responses[-1].ended_monotonic_ns / 1e9 if responses else None
    if len(responses) == len(steps) or wrong is not None:
        return Responses(probes, answered_monotonic_s=answered_s)
    kind = next(iter(report.totals.errors), None)
    if kind in NO_CONNECTION:
        for address in report.ready.addresses[1:]:  # some of a name's addresses may have no listener
            other = load.model_copy(update={"addresses": (address,)})
            if (result := _ask_scenario(other, scenario, known, start)).no_response is None:
                return result
    return Responses(probes, in_words(kind, report), kind == "timeout", kind == "tls", answered_s)


def _once(step: Step) -> Step:
    """The step without a time limit, as a server that has just started is slow."""
    expect = (step.expect or ANY_BUT_ERRORS).model_copy(update={"max_ms": None})
    return step.model_copy(update={"repeat": 1, "ends_run_on_error": True, "expect": expect})


def _probe(step: Step, response: RecordedResponse, report: EngineReport) -> Probe:
    headers = headers_of(response.head)
    why_not = _why_not(step, response, headers, report)
    return Probe(
        step=step.name,
        status=response.status,
        body_bytes=response.body_bytes,
        content_type=headers.get("content-type"),
        meets_expectation=why_not is None,
        why_not=why_not,
        keeps_alive=response.keep_alive,
        body_digest=None
        if response.body is None
        else body_digest(response.body, headers.get("content-type")),
        body_sha256=None if response.body is None else hashlib.sha256(response.body).hexdigest()[:16],
        via=headers.get("via"),
        server_header=headers.get("server"),
        elapsed_ms=response.took_ms,
    )


def _why_not(
    step: Step, response: RecordedResponse, headers: dict[str, str], report: EngineReport
) -> str | None:
    """The fault of a response by the engine, and by its digest, which the engine does not check."""
    expect = step.expect
    if response.error is None and (expect is None or expect.body_sha256 is None):
        return None
    if response.error == "expect_status" and expect is None:
        return f"status {response.status}"
    fault = None
    if expect is not None and response.body is not None:
        fault = expect.why_not(response.status, headers, response.body)
    return fault if response.error is None else fault or in_words(response.error, report)


def body_digest(body: bytes, content_type: str | None) -> str:
    """A short SHA-256 of a body; for JSON independent of spaces and the order of keys."""
    if content_type is not None and "json" in content_type.lower():
        with suppress(ValueError):
            body = json.dumps(json.loads(body), sort_keys=True, separators=(",", ":")).encode()
    return hashlib.sha256(body).hexdigest()[:16]
