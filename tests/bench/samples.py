"""Made-up runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench.disturbance import Disturbance
from bench.measure import Run
from bench.server import Counts
from bench.tools import Claim

QUIET = Disturbance(client=0.0, server=0.0, steal=0.0)
LOUD = Disturbance(client=0.4, server=0.0, steal=0.0, busiest="rustc")


def run(cost_us: float = 8.0, *, counts: dict[str, Any] | None = None, **changes: Any) -> Run:
    """A run of a second and a half with 150,000 requests, and 200,000 over its whole life."""
    whole = {
        "requests": 200_000,
        "connections": 64,
        "bytes_received": 8_200_000,
        "bytes_sent": 1,
        "cpu_s": 1.0,
    }
    made = Run(
        requests_measured=150_000,
        cpu_s_measured=150_000 * cost_us / 1e6,
        wall_s_measured=1.5,
        server_cpu_s_measured=0.9,
        whole=Counts.model_validate(whole | (counts or {})),
        claim=Claim(requests=199_990),
        peak_rss_bytes=10 * 1024 * 1024,
        disturbance=QUIET,
        seconds=2,
    )
    return replace(made, **changes)
