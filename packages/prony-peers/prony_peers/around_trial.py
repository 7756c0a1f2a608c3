"""Cross-checks: other load generators run a trial's load on its server, before and after Prony."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from prony.errors import EnvironmentFault
from prony.evidence.trial import ToolRun
from prony.plan.load import OpenLoad
from prony.plan.part import CrossCheck
from prony.plan.trial import TrialPlan
from prony.targets.base import RunningTarget
from prony_peers import PEERS
from prony_peers.base import NotOffered, Offer, PeerLoad
from prony_peers.runner import run


def available(tools: Sequence[str], plan: TrialPlan, url: str) -> CrossCheck:
    """Versions of the tools that can offer this load, and the reason for each that cannot."""
    versions: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for tool in (peer for peer in PEERS if peer.name in tools):
        program = tool.find()
        if program is None:
            left_out[tool.name] = f"it is not installed: {tool.install}"
            continue
        try:
            tool.command(program, request_of(plan, url, cpu=0, seed=0))
            versions[tool.name] = tool.version(program)
        except NotOffered as reason:
            left_out[tool.name] = str(reason)
    return CrossCheck(versions=versions, left_out=left_out)


def run_tool(name: str, plan: TrialPlan, server: RunningTarget, cpus: Sequence[int], seed: int) -> ToolRun:
    """Runs one tool on these CPUs. A failure goes into the result: the trial itself has not failed."""
    tool = next(peer for peer in PEERS if peer.name == name)
    request = request_of(plan, server.url, cpu=cpus[0], seed=seed)
    counted = server.request_count()
    try:
        ran = run(tool, tool.find() or Path(name), request, cpus)
    except (EnvironmentFault, NotOffered) as fault:
        return ToolRun(
            tool=name, requests=0, errors=0, seconds=request.seconds, wall_s=0.0, failure=str(fault)
        )
    after = None if counted is None else server.request_count()
    end = server.exit_description()
    return ToolRun(
        tool=name,
        requests=ran.claim.requests,
        errors=ran.claim.errors,
        seconds=request.seconds,
        client_cpu_s=ran.cpu_s,
        wall_s=ran.wall_s,
        counted=None if counted is None or after is None else after - counted,
        failure=ran.failure if end is None else f"the server ended under its load: {end}",
    )


def request_of(plan: TrialPlan, url: str, *, cpu: int, seed: int) -> PeerLoad:
    """The trial's load in terms common to all tools: one plain GET, for whole seconds."""
    load, path = plan.load, plan.workload.all_steps[0].path
    over = plan.connections
    shared = over.shared_by(load.at_once) if over.http_version == "2" else None
    connections = shared or load.at_once
    offer = Offer(
        connections=connections,
        tls=url.startswith("https:"),
        per_request=not plan.connections.keep_alive,
        rate_per_s=round(load.highest_per_s) if isinstance(load, OpenLoad) else None,
        streams=-(-load.at_once // connections) if over.http_version == "2" else None,
    )
    return PeerLoad(offer, f"{url}{path}", round(plan.measured_s), 0.0, "", cpu, seed)
