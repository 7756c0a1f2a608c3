"""What a server answers to each step of a workload, as the laboratory asks it before a load."""

from __future__ import annotations

from prony.evidence.server import Probe
from prony.load.asked import ask_once
from prony.load.short import short_load
from prony.plan.target import TlsOptions
from prony.plan.workload import Workload


def answers(url: str, workload: Workload, tls: TlsOptions | None = None) -> tuple[Probe, ...]:
    """Fails when a request has no response."""
    asked = ask_once(short_load(url, workload, tls=tls))
    assert asked.silence is None
    return asked.probes
