"""One request per step before the load: is the server ready, and what does a right answer look like there?

Must not be used while a window is open: measured requests are the engine's alone.
"""

from __future__ import annotations

from prony.evidence.server import Probe
from prony.plan.workload import Step, Workload
from prony.server.probe import http_probe

PROBE_TIMEOUT_S = 2.0


def probe_workload(
    host: str, port: int, workload: Workload, *, tls: bool = False
) -> tuple[Probe, ...] | None:
    """Every step once, in order; None when the server does not answer yet."""
    probes: list[Probe] = []
    for step in workload.steps:
        try:
            probes.append(_probe(host, port, step, tls))
        except OSError:
            return None
    return tuple(probes)


def _probe(host: str, port: int, step: Step, tls: bool) -> Probe:
    answer = http_probe(
        host,
        port,
        step.method,
        step.path,
        step.headers,
        None if step.body is None else step.body.encode(),
        PROBE_TIMEOUT_S,
        tls=tls,
    )
    headers = {name.lower(): value for name, value in answer.headers.items()}
    if step.expect is not None:
        why_not = step.expect.why_not(answer.status, headers, answer.body)
    else:
        why_not = None if answer.status < 400 else f"status {answer.status}"
    return Probe(
        step=step.name,
        status=answer.status,
        body_bytes=len(answer.body),
        content_type=headers.get("content-type"),
        meets_expectation=why_not is None,
        why_not=why_not,
        keeps_alive=answer.keeps_alive,
    )
