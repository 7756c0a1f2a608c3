"""Runs checks under one workload: on a fresh server, or on a running one."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from prony.errors import EnvironmentFault, UsageError
from prony.evidence.conformance import (
    CLEAN_UP,
    PREPARE,
    START,
    STOP,
    CheckResult,
    CheckStatus,
    Conformance,
)
from prony.evidence.server import Probe
from prony.load.contract import EngineLoad
from prony.load.preflight import Preflight, Responses
from prony.load.short import short_load
from prony.plan.load import Connections
from prony.plan.workload import Workload
from prony.server.build import Built
from prony.server.launch import RunningServer, launch
from prony.server.spec import HttpVersion, ServerSpec
from prony.trial.preparation import Preparation
from prony_conformance import checks
from prony_conformance.checks import AS_DECLARED, Check, CheckOutcome
from prony_conformance.walk import Subject, walked_once

CHECKS: Mapping[str, Check] = {
    "answers": checks.responses, "further": checks.further, "unknown-path": checks.unknown_path,
    "head": checks.head, "keep-alive": checks.keep_alive, "closes-after": checks.closes_after,
    "concurrent": checks.concurrent, "streams": checks.streams, "delay": checks.delay, "close": checks.close,
    "http-1.0": checks.http_1_0, "pipelined": checks.pipelined, "headers": checks.headers,
    "settings": checks.settings, "oversized-header": checks.oversized_header,
}  # fmt: skip
"""In running order: what every figure depends on first, what may harm the server last."""
START_TIMEOUT_S = 60.0
WRONG_PATIENCE_S = 15.0
"""A server with wrong responses may still be deploying its application."""
DEATH_SHOWS_WITHIN_S = 0.5


def check(
    server: RunningServer, workload: Workload, *, only: Collection[str], http_version: HttpVersion
) -> Conformance:
    """These checks of a running process, by its workload in this version of HTTP."""
    spec = server.built.spec
    return _conformance(spec, workload, _asked(server, walked_once(workload), _wanted(only), http_version))


def check_fresh(
    built: Built,
    workload: Workload,
    *,
    only: Collection[str] | None = None,
    start_timeout_s: float = START_TIMEOUT_S,
) -> Conformance:
    """Every check (or those in `only`) on a fresh process. A server that does not start is a result. Raises
    UsageError for an unknown placeholder.
    """
    outcomes = _outcomes(built, walked_once(workload), _wanted(only), start_timeout_s)
    return _conformance(built.spec, workload, outcomes)


def _wanted(only: Collection[str] | None) -> Mapping[str, Check]:
    return {name: ask for name, ask in CHECKS.items() if only is None or name in only}


def _conformance(
    spec: ServerSpec, workload: Workload, outcomes: Iterable[tuple[str, CheckOutcome]]
) -> Conformance:
    results = tuple(_result(spec, workload.name, name, outcome) for name, outcome in outcomes)
    return Conformance(server=spec.name, workload=workload.name, results=results)


def _outcomes(
    built: Built, workload: Workload, wanted: Mapping[str, Check], start_timeout_s: float
) -> Iterator[tuple[str, CheckOutcome]]:
    """Name and outcome of every check, as they end."""
    try:
        server = launch(built)
    except EnvironmentFault as fault:
        yield START, _start(str(fault))
        return
    with server:
        load = short_load(server.url, workload, tls=server.tls)
        try:
            # Over HTTP/1.1: whether it speaks another version the checks say.
            server.wait_ready(_Readiness(server, load), start_timeout_s)
        except EnvironmentFault as fault:
            yield START, _start(str(fault))
            return
        yield START, _start(None)
        for name, outcome in _asked(server, workload, wanted, built.spec.http_version):
            yield name, outcome
            if name == STOP or (name == PREPARE and outcome.status is CheckStatus.FAILED):
                return
        clean = server.stop()
        yield (
            STOP,
            CheckOutcome.of(clean, "stopped" if clean else "processes or a listening socket remain", _GONE),
        )


def _asked(
    server: RunningServer, workload: Workload, wanted: Mapping[str, Check], http_version: HttpVersion
) -> Iterator[tuple[str, CheckOutcome]]:
    """Of a process that responds: up to the clean-up, or its death."""
    load = short_load(server.url, workload, tls=server.tls)
    connections = Connections(http_version=http_version)
    preparation = Preparation(load.model_copy(update={"connections": connections}))
    if workload.prepare:
        wrong = preparation.prepare()
        yield PREPARE, CheckOutcome.of(wrong is None, wrong or "done", AS_DECLARED)
        if wrong is not None:
            return
    closes_after = server.built.spec.ceilings.closes_after
    subject = Subject(server.address, workload, closes_after, server.tls, preparation.values, http_version)
    for name, ask in wanted.items():
        outcome = ask(subject)
        yield name, outcome
        if outcome.status is CheckStatus.FAILED and _died(server):
            died = f"exited during '{name}': {server.exit_description()}"
            yield STOP, CheckOutcome.of(False, died, _GONE)
            return
    if workload.cleanup:
        wrong = preparation.clean_up()
        yield CLEAN_UP, CheckOutcome.of(wrong is None, wrong or "done", AS_DECLARED)


_GONE = "runs until SIGTERM, then exits and closes its socket"


def _died(server: RunningServer) -> bool:
    """A process that just closed its connections may take a moment to exit."""
    deadline_s = time.monotonic() + DEATH_SHOWS_WITHIN_S
    while server.alive():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.02)
    return True


def _start(fault: str | None) -> CheckOutcome:
    return CheckOutcome.of(fault is None, fault or "ready", "a correct response on its own port")


class _Readiness:
    """Sends the workload's steps (or the `ready` request) until the response is right or stays wrong."""

    def __init__(self, server: RunningServer, load: EngineLoad) -> None:
        asking = Preflight(load)
        own = bool(load.workload.prepare) or not asking.possible
        self._asking = server.own_probe if own else asking
        self._first_response_s: float | None = None

    @property
    def result(self) -> Responses:
        return self._asking.result

    def __call__(self) -> Probe | None:
        probe = self._asking()
        if probe is None or probe.meets_expectation:
            return probe
        now_s = time.monotonic()
        if self._first_response_s is None:
            self._first_response_s = now_s
        if now_s - self._first_response_s < WRONG_PATIENCE_S:
            return probe
        return probe.model_copy(update={"meets_expectation": True})


def _result(spec: ServerSpec, workload: str, name: str, outcome: CheckOutcome) -> CheckResult:
    """A declared deviation is no failure; one declared in vain is reported."""
    status, found = outcome.status, outcome.found
    reason = spec.deviates.get(f"{workload}/{name}", spec.deviates.get(name))
    if reason is not None and status is CheckStatus.FAILED:
        status, found = CheckStatus.DECLARED, f"{found} (declared: {reason})"
    elif reason is not None and status is CheckStatus.PASSED:
        found = f"{found} (its server.yaml declares a deviation that did not occur)"
    return CheckResult(
        server=spec.name, workload=workload, check=name, status=status, found=found, expected=outcome.expected
    )


def claimed(spec: ServerSpec, requested: Sequence[str]) -> tuple[str, ...]:
    """The requested workloads, or all that the server declares. Raises UsageError for an undeclared one."""
    if not requested:
        return spec.workloads
    for name in requested:
        if spec.workloads and name not in spec.workloads:
            offered = ", ".join(spec.workloads)
            raise UsageError(f"server '{spec.name}' has no workload '{name}'; it offers: {offered}")
    return tuple(requested)
