"""The load hosts of a trial, each as if it alone had offered its part."""

from __future__ import annotations

import math
from collections.abc import Sequence

from prony.evidence.hosts import HostEvidence
from prony.evidence.trial import Evidence


def load_hosts(evidence: Evidence) -> tuple[HostEvidence, ...]:
    """Those that offered the load; empty where everything was on one host."""
    return tuple(host for host in evidence.hosts if host.role == "load")


def each_load_host(evidence: Evidence) -> tuple[tuple[HostEvidence, Evidence], ...]:
    """Each load host with the evidence as it would be without the others: its own engine and its own host.

    What is known of all of them only is left out: the ceiling of the calibration, and the probe with more
    users, in which another one may have been busy.
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
    """How many hosts like these offer the same load with each below the limit: their busy time together,
    shared out evenly.
    """
    return max(1, math.floor(sum(shares) / limit) + 1)
