"""Load hosts of a trial, and the evidence of each alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

from prony.evidence.hosts import HostEvidence
from prony.evidence.trial import Evidence


def load_hosts(evidence: Evidence) -> tuple[HostEvidence, ...]:
    """The load hosts; empty where everything ran on one host."""
    return tuple(host for host in evidence.hosts if host.role == "load")


def each_load_host(evidence: Evidence) -> tuple[tuple[HostEvidence, Evidence], ...]:
    """Each load host with its own engine's and host's evidence, without calibration and scaling probe, which
    cover all hosts together.
    """
    return tuple(
        (
            host,
            evidence.model_copy(
                update={
                    "engine": host.engine,
                    "host_window": host.host_window,
                    "host_rows": host.host_rows,
                    "hosts": (),
                    "calibration": None,
                    "scaling_probe": None,
                }
            ),
        )
        for host in load_hosts(evidence)
    )


def hosts_needed(shares: Sequence[float], limit: float) -> int:
    """Number of such hosts that keeps each below the limit with the busy time split evenly."""
    return max(1, math.floor(sum(shares) / limit) + 1)
