"""Measures a server that is already running (`prony load`): the same evidence and judge, without owning the
server.

Must not start, pin or stop the server. What only an owner can know stays None, and its checks say *unknown*.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from prony.errors import UsageError
from prony.evidence.host import Limits
from prony.evidence.trial import Calibration, LoadFacts, TrialRecord
from prony.experiment.bench import Bench, Progress
from prony.experiment.conclude import conclude, refuse
from prony.experiment.one_trial import trial_id
from prony.experiment.recording import ready
from prony.load.reference import calibrate
from prony.plan.load import Connections, Load, Measured
from prony.plan.script import Script
from prony.plan.stage import Stage
from prony.plan.target import TlsOptions, Url
from prony.plan.trial import TrialPlan, fixed
from prony.plan.workload import Workload
from prony.store import Store
from prony.target import ExternalServer, RunningExternal
from prony.trial.facts import trial_facts
from prony.trial.run import run_trial, usual_bytes
from prony.trial.surroundings import Surroundings


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
    def at(self) -> Url:
        """The target of the plan."""
        target = self.target
        return Url(url=target.base, tls=self.tls, addresses=self.addresses)

    @property
    def plan(self) -> TrialPlan:
        """The same as a trial's plan."""
        return TrialPlan(
            workload=self.workload,
            load=self.load,
            measured=self.measured,
            connections=self.connections,
            warm_up=fixed(self.warm_up_s),
            driver=self.driver,
            request_timeout_ms=self.request_timeout_ms,
            connect_timeout_ms=self.connect_timeout_ms,
            preflight=self.asks_first,
            source_addresses=self.source_addresses,
            script=self.script,
            rate_groups=self.rate_groups,
            request_parts=self.parts,
            log=None if self.log is None else str(self.log),
            before=self.before,
            after=self.after,
        )

    @property
    def facts(self) -> LoadFacts:
        """What is asked, in the terms of the checks."""
        return trial_facts(self.plan, ExternalServer(self.at))


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
    server = ExternalServer(load.at)
    refuse(load.facts, server.limits(bench.limits))
    if into is None:
        server.prepare(progress.build)
        ready(store, bench)
        progress.experiment_started(1, load.warm_up_s + load.plan.measured_s + 4)
    index = 1 if into is None else into.index
    progress.trial_started(index, load.target.base, 0)
    begun, started_at = time.monotonic(), datetime.now(UTC)
    surroundings = Surroundings(bench.partition, server.limits(bench.limits))
    outcome = run_trial(load.plan, server, surroundings, progress, seed=load.seed)
    if outcome.fault is not None:
        raise outcome.fault
    body_bytes, calibration, hurried = usual_bytes(outcome.evidence), None, outcome.interrupted
    if body_bytes is not None and not hurried:
        progress.phase("calibrate", 2.5)
        try:
            calibration = _calibrate(load, bench, body_bytes)
        except KeyboardInterrupt:  # the measurement is over: only its ceiling stays unknown
            hurried = True
    evidence = outcome.evidence.model_copy(update={"calibration": calibration})
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
        failure=outcome.failure,
        notes=outcome.notes,
        fingerprint_key=bench.fingerprint.key,
    )
    ended = conclude(record)
    store.add_trial(record, ended.judgement, ended.figures)
    if into is None:
        store.finish_experiment(identifier, "interrupted" if outcome.interrupted else "finished")
    took_s = time.monotonic() - begun
    progress.trial_ended(ended.judgement.verdict, ended.printable_per_s, took_s, ended.why)
    if hurried:
        raise KeptInterrupt(identifier)
    return identifier


def _created(load: RunningLoad, bench: Bench, store: Store) -> str:
    return store.create_experiment(
        name=load.title or f"load {load.target.url}",
        spec=_spec(load),
        fingerprint=bench.fingerprint,
        seed=load.seed,
        quick=False,
    )


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


def reach(load: RunningLoad) -> None:
    """Raises EnvironmentFault when nobody listens there."""
    RunningExternal(load.at).wait_ready(None, 5.0)


def limits_of(load: RunningLoad, bench: Bench) -> Limits:
    """The host's limits towards this target: on loopback the kernel may give a port out again after 1 s."""
    return ExternalServer(load.at).limits(bench.limits)
