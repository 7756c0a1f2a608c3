"""A load in the terms of the checks."""

from __future__ import annotations

from typing import Literal

from prony.evidence.trial import LoadFacts, PopulationFacts
from prony.plan.load import ClosedLoad, Connections, Load
from prony.plan.step import pauses
from prony.plan.think import NO_THINK, Think
from prony.plan.workload import Workload


def load_facts(
    load: Load,
    workload: Workload,
    connections: Connections,
    *,
    claim: Literal["protocol"] | None = None,
    duration_s: float | None = None,
    server_closes_after: int | None = None,
    tls: bool = False,
) -> LoadFacts:
    """Without a `claim`: capacity for several users without think time, latency for other loads."""
    think = thinking(load, workload)
    several = isinstance(load, ClosedLoad) and load.at_once > 1
    capacity = several and think.kind == "none"
    facts = LoadFacts(
        model=load.model,
        think_kind=think.kind,
        think_mean_ms=think.expected_ms,
        ramp_up_s=load.started_s,
        keep_alive=connections.keep_alive,
        max_requests_per_connection=connections.max_requests,
        server_closes_after=server_closes_after,
        tls=tls,
        http_version=connections.http_version,
        **_sharing(load, connections, workload.requests_at_once),
        duration_s=duration_s,
        claim=claim or ("capacity" if capacity else "latency"),
        content_declared=workload.content_declared,
        length_from_preflight=workload.length_from_preflight,
        constant=workload.constant,
        servers=1 + len(workload.other_servers),
        connections_per_user=1 if connections.http_version == "2" else workload.requests_at_once,
    )
    if isinstance(load, ClosedLoad):
        shared = {"users": load.users, "at_once": load.at_once, "ramp_down_s": load.ramp_down_s}
        groups = tuple(
            PopulationFacts(**{name: getattr(group, name) for name in PopulationFacts.model_fields})
            for group in load.populations
        )
        return facts.model_copy(update={**shared, "populations": groups})
    walks = load.session == "user"
    own = walks and connections.keep_alive and not connections.shared
    each = requests_per_walk(workload) if walks else 1.0
    # A varying schedule has no single rate: the engine counts due requests.
    level = load.rate_per_s is not None and load.session == "request"
    return facts.model_copy(
        update={
            "offered_per_s": load.mean_per_s * each,
            "arrivals": load.arrivals,
            "varies": not level,
            "phased": any(
                rate != load.highest_per_s for p in load.phases for rate in (p.from_per_s, p.to_per_s)
            ),
            "arrivals_end_s": load.total_s,
            "sessions_per_s": load.mean_per_s if walks else None,
            "own_connections": own,
            "at_once": None if own else load.at_once,
            "most_at_once": load.user_cap,
        }
    )


def _sharing(load: Load, connections: Connections, at_once: int) -> dict[str, int]:
    if connections.http_version != "2":
        return {}
    users = load.at_once if isinstance(load, ClosedLoad) else load.user_cap
    shared = connections.shared_by(users)
    if shared is None:
        return {"streams_per_connection": at_once}
    return {"shared_connections": shared, "streams_per_connection": at_once * -(-users // shared)}


def thinking(load: Load, workload: Workload) -> Think:
    """The think time between requests: the load's, or the steps' first."""
    if load.think.kind != "none":
        return load.think
    if isinstance(load, ClosedLoad):
        for step in load.populations:
            if step.think.kind != "none":
                return step.think
    own = (think for walk in workload.walks for think in pauses(walk.steps))
    return next((think for think in own if think.kind != "none"), NO_THINK)


def requests_per_walk(workload: Workload) -> float:
    walks = workload.walks
    total = sum(walk.weight for walk in walks)
    return sum(walk.weight / total * walk.length for walk in walks)
