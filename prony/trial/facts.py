"""What a trial asks of the engine, in the terms of the checks. A pure function."""

from __future__ import annotations

from prony.evidence.trial import LoadFacts
from prony.load.facts import load_facts
from prony.plan.load import WholeRun
from prony.plan.trial import TrialPlan
from prony.targets.base import ServerUnderTest


def trial_facts(plan: TrialPlan, server: ServerUnderTest) -> LoadFacts:
    """Known before anything is started; also what ports and descriptors are forecast from."""
    plan = plan.spoken(server.http_version)
    facts = load_facts(
        plan.load,
        plan.workload,
        plan.connections,
        claim="protocol" if isinstance(plan.measured, WholeRun) else None,
        duration_s=plan.deadline_s,
        server_closes_after=server.closes_after,
        tls=server.https,
    )
    return facts.model_copy(
        update={
            "driver": plan.driver,
            "preflight": plan.preflight,
            "transport": "tcp" if server.unix is None else "unix",
            "sources": max(1, len(plan.source_addresses)),
            "destinations": server.destinations,
        }
    )
