"""A load on a running server as a plan file, and back. Must not run it."""

from __future__ import annotations

from pathlib import Path

from prony.errors import UsageError
from prony.experiment.running import RunningLoad, Target
from prony.plan.load import SteadyWindow
from prony.plan.target import TlsOptions
from prony.plan.urlplan import UrlKeys, UrlPlan


def as_plan(load: RunningLoad, *, title: str = "", note: str = "") -> UrlPlan:
    """The plan file of this load. The seed is left out: each run draws its own, and records it."""
    tls = load.tls
    return UrlPlan(
        title=title or load.title or f"load {load.target.url}",
        note=note,
        servers=UrlKeys(
            url=load.target.base,
            ca=_name(tls.ca),
            insecure=tls.insecure,
            client_cert=_name(tls.client_cert),
            client_key=_name(tls.client_key),
            sni=tls.sni,
            addresses=load.addresses,
            source_addresses=load.source_addresses,
        ),
        workload=load.workload,
        loads=load.load,
        measured=load.measured,
        warm_up_s=load.warm_up_s,
        connections=load.connections,
        request_timeout_ms=load.request_timeout_ms,
        connect_timeout_ms=load.connect_timeout_ms,
        driver=load.driver,
        asks_first=load.asks_first,
        parts=load.parts,
        log=_name(load.log),
        before=load.before,
        after=load.after,
        script=load.script,
    )


def as_load(plan: UrlPlan, seed: int) -> RunningLoad:
    """The load of this plan file. Raises UsageError for what cannot be run."""
    target = Target.parse(plan.servers.url)
    if target.path != "/":
        raise UsageError(
            f"the plan's url is {plan.servers.url}; expected scheme, host and port alone: {target.base} "
            "(the paths stand in the workload's steps)"
        )
    if plan.warm_up_s and not isinstance(plan.measured, SteadyWindow):
        raise UsageError("warm_up_s goes with a steady window (measured: window_s); leave it out")
    return RunningLoad(
        target=target,
        workload=plan.workload,
        load=plan.loads,
        measured=plan.measured,
        warm_up_s=plan.warm_up_s,
        driver=plan.driver,
        seed=plan.seed if plan.seed is not None else seed,
        connections=plan.connections,
        tls=TlsOptions(
            ca=_path(plan.servers.ca),
            insecure=plan.servers.insecure,
            client_cert=_path(plan.servers.client_cert),
            client_key=_path(plan.servers.client_key),
            sni=plan.servers.sni,
        ),
        request_timeout_ms=plan.request_timeout_ms,
        connect_timeout_ms=plan.connect_timeout_ms,
        asks_first=plan.asks_first,
        script=plan.script,
        addresses=plan.servers.addresses,
        source_addresses=plan.servers.source_addresses,
        title=plan.title,
        parts=plan.parts,
        log=_path(plan.log),
        before=plan.before,
        after=plan.after,
    )


def _name(path: Path | None) -> str | None:
    return None if path is None else str(path.absolute())


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)
