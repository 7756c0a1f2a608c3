"""What a server answers to each step of a workload, sent once before a load."""

from __future__ import annotations

from prony.evidence.server import Probe
from prony.load.preflight import request_once
from prony.load.short import short_load
from prony.plan.target import TlsOptions
from prony.plan.workload import Workload


def answers(url: str, workload: Workload, tls: TlsOptions | None = None) -> tuple[Probe, ...]:
    """Fails when a request has no response."""
    result = request_once(short_load(url, workload, tls=tls))
    assert result.no_response is None
    return result.probes
