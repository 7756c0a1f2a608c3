"""Measures a server that is already running (`prony load`): the same evidence and judge, without owning the
server.

Must not start, pin or stop the server. What only an owner can know stays None, and its checks say *unknown*.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from prony.errors import EnvironmentFault, UsageError
from prony.evidence.host import HostWindow, Limits
from prony.evidence.server import Probe, ServerWindow
from prony.evidence.trial import Calibration, Evidence, LoadFacts, Phase, StageReport, TrialRecord, WarmUp
from prony.experiment.bench import Bench, Progress
from prony.experiment.conclude import conclude, refuse
from prony.experiment.one_trial import trial_id
from prony.experiment.recording import ready
from prony.experiment.stages import offer_stage, stage_notes
from prony.host.resource_limits import towards
from prony.host.sampler import HostSampler
from prony.load.contract import EngineLoad
from prony.load.engine import EngineRun
from prony.load.facts import load_facts
from prony.load.reference import calibrate
from prony.load.short import walk_once
from prony.plan import given
from prony.plan.load import DRAIN_S, Connections, Load, Measured, SteadyWindow, WholeRun
from prony.plan.script import Script
from prony.plan.stage import Stage
from prony.plan.target import TlsOptions
from prony.plan.trial import TrialPlan
from prony.plan.workload import Workload
from prony.server.foreign import ForeignServer
from prony.store import Store
from prony.trial.probing import probe_workload
from prony.trial.session import INTERRUPTED, WORTH_KEEPING_S, ServerDied, Session, over_window
from prony.trial.session import Measured as Borders

SLACK_S = 30.0
REACH_TIMEOUT_S = 5.0
"""For the connection that shows whether anybody listens, where no request is to be sent by hand."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the load goes."""

    url: str
    host: str
    port: int
    tls: bool
    path: str
    unix: str | None = None
    """The path of a Unix socket, in place of host and port."""

    @classmethod
    def parse(cls, url: str) -> Target:
        """From what a user typed. Raises UsageError naming what is missing."""
        if url.startswith("unix:"):
            return cls._unix(url)
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
        except ValueError as fault:
            raise UsageError(f"the URL '{url}' is none ({fault}); expected http://HOST:PORT/PATH") from fault
        try:
            port = parts.port
        except ValueError as fault:
            raise UsageError(f"the URL '{url}' has no valid port; expected 1 to 65535") from fault
        if parts.scheme not in ("http", "https"):
            raise UsageError(
                f"the URL '{url}' has the scheme '{parts.scheme}'; expected http://HOST:PORT/PATH"
            )
        if not parts.hostname:
            raise UsageError(f"the URL '{url}' names no host; expected http://HOST:PORT/PATH")
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        tls = parts.scheme == "https"
        return cls(url, parts.hostname, port or (443 if tls else 80), tls, path)

    @classmethod
    def _unix(cls, url: str) -> Target:
        """`unix:/path/of.sock`, and behind another colon what is requested: `unix:/run/app.sock:/hello`."""
        file, colon, path = url.removeprefix("unix:").partition(":/")
        if not file.startswith("/"):
            raise UsageError(
                f"the URL '{url}' names no socket; expected unix:/PATH/OF.sock or unix:/PATH/OF.sock:/PATH"
            )
        return cls(url, "localhost", 0, False, f"/{path}" if colon else "/", file)

    @property
    def base(self) -> str:
        """Scheme, host and port, or the socket."""
        if self.unix is not None:
            return f"unix:{self.unix}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class RunningLoad:
    """A load on a running server, a closed loop of `users` or an open one: for a time after a warm-up, or for
    a number of requests from the first one.
    """

    target: Target
    workload: Workload
    load: Load
    measured: Measured
    warm_up_s: float
    """Before a window; nobody watches whether it is enough."""
    driver: Literal["auto", "io_uring", "epoll"]
    seed: int
    connections: Connections = field(default_factory=Connections)
    tls: TlsOptions = field(default_factory=TlsOptions)
    request_timeout_ms: int = 10_000
    connect_timeout_ms: int = 5_000
    asks_first: bool = True
    """One request per step is sent by hand before the load. False: the server sees the load alone, as it does
    with the tool whose script this is; answers are then compared with each other.
    """
    addresses: tuple[str, ...] = ()
    """HOST:PORT where connections go in place of the URL's host, such as a proxy."""
    source_addresses: tuple[str, ...] = ()
    """Addresses of this host that connections come from; the kernel chooses when there are none."""
    script: Script | None = None
    """A script in Lua that says what is sent, in place of the workload's one step."""
    rate_groups: int | None = None
    """At most so many threads of the engine, and so many groups of users whose rates are counted."""
    title: str = ""
    """What the result is called; without it by the URL."""
    parts: bool = False
    """Takes the time of each request apart."""
    log: Path | None = None
    """A file for one row per request (`prony.load.request_log`)."""
    before: Stage | None = None
    """A load of its own that ends before this one begins."""
    after: Stage | None = None
    """One that begins when this one has ended."""

    @property
    def plan(self) -> TrialPlan:
        """The same as a trial's plan."""
        return TrialPlan(
            workload=self.workload,
            load=self.load,
            measured=self.measured,
            connections=self.connections,
            driver=self.driver,
            request_timeout_ms=self.request_timeout_ms,
        )

    @property
    def bound_s(self) -> float:
        """The longest this may take, whatever the server does."""
        if isinstance(self.measured, SteadyWindow):
            return self.warm_up_s + self.measured.window_s + SLACK_S
        return self.plan.deadline_s

    @property
    def facts(self) -> LoadFacts:
        """What is asked, in the terms of the checks."""
        facts = load_facts(
            self.load,
            self.workload,
            self.connections,
            claim="protocol" if isinstance(self.measured, WholeRun) else None,
            duration_s=self.bound_s,
            tls=self.target.tls,
        )
        return facts.model_copy(
            update={
                "driver": self.driver,
                "asked_first": self.asks_first,
                "transport": "tcp" if self.target.unix is None else "unix",
                "sources": max(1, len(self.source_addresses)),
                "destinations": max(1, len(self.addresses)),
            }
        )


@dataclass(frozen=True, slots=True)
class Into:
    """The experiment, already begun, that a measurement is a trial of; who began it ends it."""

    identifier: str
    index: int
    """From 1; the end of the trial's id."""


class KeptInterrupt(KeyboardInterrupt):
    """The user ended the measurement; what had been measured is judged and stored under `identifier`."""

    def __init__(self, identifier: str) -> None:
        super().__init__(identifier)
        self.identifier = identifier


def measure_running(
    load: RunningLoad, bench: Bench, store: Store, progress: Progress, into: Into | None = None
) -> str:
    """Measure, judge, store, as an experiment of its own or `into` one; returns its id. Raises
    EnvironmentFault when the server cannot be reached, and KeptInterrupt when the user ended it after a
    while.
    """
    bench = replace(bench, limits=limits_of(load, bench))
    refuse(load.facts, bench.limits)
    probes = reach(load)
    if into is None:
        ready(store, bench)
        progress.experiment_started(1, load.warm_up_s + load.plan.measured_s + 4)
    index = 1 if into is None else into.index
    progress.trial_started(index, load.target.base, 0)
    begun, started_at = time.monotonic(), datetime.now(UTC)
    calibration = None
    if probes:
        progress.phase("calibrate", 2.5)
        calibration = _calibrate(load, bench, probes[-1].body_bytes)
    stages, values = _prepare(load, bench, progress)
    asked = replace(load, workload=given.knowing(load.workload, values))
    run = _Run(asked, bench, progress, probes)
    evidence, failure = run.run()
    later, notes = _clean_up(load, bench, progress, values)
    stages += later
    usual_bytes, hurried = _usual_bytes(evidence), False
    if not load.asks_first and usual_bytes is not None and not run.interrupted:
        progress.phase("calibrate", 2.5)
        try:
            calibration = _calibrate(load, bench, usual_bytes)
        except KeyboardInterrupt:  # the measurement is over: only its ceiling stays unknown
            hurried = True
    evidence = evidence.model_copy(update={"calibration": calibration, "stages": stages})
    identifier = _created(load, bench, store) if into is None else into.identifier
    record = TrialRecord(
        id=trial_id(identifier, index),
        experiment_id=identifier,
        server=load.target.base,
        workload=load.workload.name,
        load_name=load.plan.load_name,
        block=index - 1,
        position=0,
        seed=load.seed,
        started_at=started_at,
        ended_at=datetime.now(UTC),
        evidence=evidence,
        failure=failure,
        notes=(
            *notes,
            *stage_notes(stages),
            *((INTERRUPTED,) if run.interrupted else ()),
            *_log_notes(evidence),
        ),
        fingerprint_key=bench.fingerprint.key,
    )
    ended = conclude(record)
    store.add_trial(record, ended.judgement, ended.figures)
    if into is None:
        store.finish_experiment(identifier, "interrupted" if run.interrupted else "finished")
    progress.trial_ended(ended.judgement.verdict, ended.printable_per_s, time.monotonic() - begun)
    if run.interrupted or hurried:
        raise KeptInterrupt(identifier)
    return identifier


def _prepare(
    load: RunningLoad, bench: Bench, progress: Progress
) -> tuple[tuple[StageReport, ...], Mapping[str, str]]:
    """One user walks the workload's preparation, and what comes before the load is offered; what the former
    captured is returned too. Raises EnvironmentFault where an answer to it is wrong.
    """
    values: Mapping[str, str] = {}
    if load.workload.prepare:
        progress.phase("prepare", None)
        walked = walk_once(load.target.base, load.workload, load.workload.prepare, tls=load.tls)
        if walked.wrong is not None:
            raise EnvironmentFault(
                f"what comes before the load failed: {walked.wrong}; nothing else has been sent"
            )
        values = walked.values
    if load.before is None:
        return (), values
    progress.phase("prepare", None)
    return (offer_stage(engine_load(load, bench.partition.client), load.before, "before"),), values


def _clean_up(
    load: RunningLoad, bench: Bench, progress: Progress, values: Mapping[str, str]
) -> tuple[tuple[StageReport, ...], tuple[str, ...]]:
    """Offer what comes after the load, and take back what was prepared; a note when that goes wrong."""
    stages: tuple[StageReport, ...] = ()
    if load.after is not None:
        progress.phase("clean-up", None)
        stages = (offer_stage(engine_load(load, bench.partition.client), load.after, "after"),)
    cleanup = load.workload.cleanup
    if not cleanup:
        return stages, ()
    progress.phase("clean-up", None)
    wrong = walk_once(load.target.base, load.workload, cleanup, tls=load.tls, values=values).wrong
    return stages, () if wrong is None else (f"what comes after the load failed: {wrong}",)


def _log_notes(evidence: Evidence) -> tuple[str, ...]:
    """What must be said of the request log: nothing when it is whole."""
    log = None if evidence.engine is None else evidence.engine.log
    if log is None or log.error is None:
        return ()
    return (f"the request log {log.path} is not whole, {log.rows_lost} requests are missing: {log.error}",)


def _created(load: RunningLoad, bench: Bench, store: Store) -> str:
    return store.create_experiment(
        name=load.title or f"load {load.target.url}",
        spec=_spec(load),
        fingerprint=bench.fingerprint,
        seed=load.seed,
        quick=False,
    )


def _usual_bytes(evidence: Evidence) -> int | None:
    """The length of the most frequent answer; None when nothing was answered."""
    answers = evidence.engine.totals.answers if evidence.engine is not None else ()
    return answers[0].body_bytes if answers else None


def _calibrate(load: RunningLoad, bench: Bench, body_bytes: int) -> Calibration | None:
    """The reference server speaks plain HTTP: what is reached against it says nothing of a load over TLS."""
    if load.target.tls:
        return None
    return calibrate(
        bench.partition,
        load.workload,
        load.load.at_once,
        body_bytes,
        load.driver,
        load.connections.pipeline,
    )


def _spec(load: RunningLoad) -> dict[str, object]:
    trial = load.plan.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    return {
        "servers": [load.target.base],
        "url": load.target.url,
        "trial": trial,
        "load": load.plan.load_name,
        "warm_up_s": load.warm_up_s,
        "driver": load.driver,
        "script": None if load.script is None else load.script.model_dump(mode="json"),
        "seed": load.seed,
        "parts": load.parts,
        "tls": load.tls.model_dump(mode="json", exclude_defaults=True) if load.target.tls else None,
    }


def reach(load: RunningLoad) -> tuple[Probe, ...]:
    """What it answers before the load, by step. Raises EnvironmentFault when that is nothing, or wrong."""
    target = load.target
    if target.unix is not None:
        if load.asks_first or load.workload.prepare or load.workload.cleanup or load.addresses:
            raise UsageError(
                f"{target.base} is a Unix socket, at which nothing is requested by hand: leave out prepare "
                "and cleanup of the workload, other addresses, and asks_first (false)"
            )
        _connect_unix(target.unix)
        return ()
    # What the preparation captures nobody has yet.
    missing = dict.fromkeys(given.captured(load.workload.prepare), "")
    walks = given.knowing(load.workload, missing).walks
    if not load.asks_first or not any(walk.leading for walk in walks):
        _connect(*_goes_to(load))
        return ()
    probes = probe_workload(*_goes_to(load), load.workload, tls=target.tls)
    if probes is None:
        raise EnvironmentFault(
            f"nothing answers HTTP at {target.base}: start the server first, or correct the address and port"
        )
    if not probes[-1].meets_expectation:
        raise EnvironmentFault(
            f"{load.workload.all_steps[0].method} {target.url} answers {probes[-1].why_not}; "
            "load on an error page says nothing; correct it"
        )
    return probes


def limits_of(load: RunningLoad, bench: Bench) -> Limits:
    """The host's limits towards this target: on loopback the kernel may give a port out again after 1 s."""
    return bench.limits if load.target.unix else towards(bench.limits, _goes_to(load))


def _goes_to(load: RunningLoad) -> tuple[str, int]:
    """Host and port of the first connection."""
    if not load.addresses:
        return load.target.host, load.target.port
    host, _, port = load.addresses[0].rpartition(":")
    return host.strip("[]"), int(port)


def _connect(host: str, port: int) -> None:
    try:
        socket.create_connection((host, port), REACH_TIMEOUT_S).close()
    except socket.gaierror as fault:
        raise EnvironmentFault(
            f"the host '{host}' is not known ({fault.strerror}); correct the name, or the resolver"
        ) from fault
    except OSError as fault:
        raise EnvironmentFault(
            f"nothing takes connections at {host}:{port} ({fault.strerror or 'no answer in time'}): "
            "start the server first, or correct the address and port"
        ) from fault


def _connect_unix(file: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(REACH_TIMEOUT_S)
        try:
            client.connect(file)
        except OSError as fault:
            raise EnvironmentFault(
                f"nothing takes connections at unix:{file} ({fault.strerror or fault}): "
                "start the server first, or correct the path"
            ) from fault


def engine_load(load: RunningLoad, cpus: tuple[int, ...]) -> EngineLoad:
    """The load as the engine is asked for it, on these CPUs."""
    cpus = cpus if load.rate_groups is None else cpus[: load.rate_groups]
    whole = load.measured if isinstance(load.measured, WholeRun) else None
    return EngineLoad(
        url=load.target.base,
        addresses=load.addresses,
        source_addresses=load.source_addresses,
        tls=load.tls,
        workload=load.workload,
        load=load.load,
        connections=load.connections,
        cpus=cpus,
        driver=load.driver,
        after_s=load.bound_s,
        total_requests=None if whole is None else whole.total_requests,
        iterations_per_user=None if whole is None else whole.iterations_per_user,
        window="commanded" if whole is None else "all",
        request_timeout_ms=load.request_timeout_ms,
        connect_timeout_ms=load.connect_timeout_ms,
        seed=load.seed,
        parts=load.parts,
        log=load.log,
        script=load.script,
        rate_groups=load.rate_groups,
    )


@dataclass(slots=True)
class _Run:
    """One measurement while it runs."""

    load: RunningLoad
    bench: Bench
    progress: Progress
    probes: tuple[Probe, ...]
    interrupted: bool = False

    def run(self) -> tuple[Evidence, str | None]:
        load, bench = self.load, self.bench
        subject = ForeignServer(*_goes_to(load), load.target.unix)
        engine = EngineRun(engine_load(load, bench.partition.client))
        worth_keeping_s = WORTH_KEEPING_S if load.asks_first else 0.0  # tools print what they have
        session = Session(engine, subject, self.progress, worth_keeping_s)
        failure: str | None = None
        server_window: ServerWindow | None = None
        host_window: HostWindow | None = None
        phases: list[Phase] = []
        sampler = HostSampler(
            bench.partition.server, bench.partition.client, lambda: {engine.pid, *subject.pids()}
        )
        try:
            with sampler:
                session.start()
                try:
                    measured = self._measure(session, phases)
                    server_window = over_window(measured, subject.granted_cpus())
                    opened, closed = measured.opened.process, measured.closed.process
                    if opened and closed:
                        host_window = sampler.window(opened.t_monotonic_s, closed.t_monotonic_s)
                except ServerDied as death:
                    failure = str(death)
        finally:
            engine.stop()
        self.interrupted = session.interrupted
        started_s = 0.0 if engine.ready is None else engine.ready.started_monotonic_ns / 1e9
        evidence = Evidence(
            load=load.facts,
            engine=engine.report(),
            server=subject.identity,
            server_window=server_window,
            host_window=host_window,
            host_rows=sampler.series(started_s),
            limits=bench.limits,
            probes=self.probes,
            warm_up=WarmUp(method="fixed", cap_s=load.warm_up_s, steady=None) if load.warm_up_s else None,
            phases=tuple(phases),
        )
        return evidence, failure

    def _measure(self, session: Session, phases: list[Phase]) -> Borders:
        load = self.load
        if isinstance(load.measured, WholeRun):
            self.progress.phase("window", None)
            return session.follow(load.bound_s + DRAIN_S)
        self.progress.phase("warm-up", load.warm_up_s)
        while session.now_ms() < load.warm_up_s * 1000:
            session.next()
        warm_ms = session.now_ms()
        self.progress.phase("window", load.measured.window_s)
        measured = session.measure(load.measured.window_s)
        phases.append(Phase(name="warm-up", start_ms=0, end_ms=warm_ms))
        phases.append(Phase(name="window", start_ms=measured.opened.t_ms, end_ms=measured.closed.t_ms))
        return measured
