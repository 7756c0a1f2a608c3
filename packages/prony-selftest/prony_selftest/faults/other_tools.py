"""Output of wrk and ab for the same set-up."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from prony.host.partition import partition
from prony.plan.load import ClosedLoad
from prony.server.build import Built
from prony.server.launch import launch
from prony.server.probe import status_probe
from prony_peers import LoadGenerator, PeerLoad
from prony_peers.ab import Ab
from prony_peers.base import Offer
from prony_peers.runner import PeerRun, run
from prony_peers.wrk import Wrk
from prony_selftest.faults.model import RunningSetup, Setup
from prony_selftest.faults.trial import spec_of

SECONDS = 2
TOOLS: tuple[LoadGenerator, ...] = (Wrk(), Ab())
LONGEST = 80
"""Maximum characters of a tool's last error line."""


def run_tools(setup: Setup) -> str:
    """The rate and errors printed by each installed tool, as one line."""
    installed = [(tool, program) for tool in TOOLS if (program := tool.find()) is not None]
    results = [f"{tool.name} {words(_run(tool, program, setup))}" for tool, program in installed]
    return "; ".join(results) or "neither wrk nor ab is installed"


def _run(tool: LoadGenerator, program: Path, setup: Setup) -> PeerRun:
    users = setup.load.users if isinstance(setup.load, ClosedLoad) else 10
    chosen = partition()
    server_cpus = chosen.client if setup.shared_cpus else chosen.server
    with setup.context(), launch(Built(spec_of(setup)), cpus=server_cpus) as server:
        server.wait_ready(status_probe(server.host, server.port, tls=setup.tls), 20.0)
        running = RunningSetup(server_cpus, chosen.client, server.pid)
        with setup.disturbance(running) if setup.disturbance is not None else nullcontext():
            load = PeerLoad(
                Offer(connections=users, tls=setup.tls), f"{server.url}/", SECONDS, 0.0, "", chosen.client[0]
            )
            return run(tool, program, load, chosen.client)


def words(ran: PeerRun) -> str:
    """The printed rate and errors."""
    if ran.failure is not None or ran.claim.per_s is None:
        return f"ended without a rate ({(ran.failure or 'it printed none')[:LONGEST]})"
    errors = f" ({ran.claim.errors:,} errors)" if ran.claim.errors else ""
    return f"{ran.claim.per_s:,.0f}/s{errors}"
