"""Other load generators compared with Prony under the same load, and the check that explains a difference."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prony.evidence.trial import TrialRecord
from prony.judge.finding import Judgement

PRONY = "prony"
AGREE = 0.05
"""Largest difference from Prony's median, as a share, that counts as agreement."""
BUSY = 0.85
"""Share of its usable CPUs from which the tool, not the server, may be the limit."""
MISCOUNTED = 0.01
"""Allowed difference between a tool's count and the server's: requests in flight at its end."""
IN_FLIGHT = 128
"""Requests of a short run that may be in flight at its end."""
ONE_THREAD = frozenset({"ab", "wrk", "h2load"})


@dataclass(frozen=True, slots=True)
class Run:
    """A round of a tool."""

    tool: str
    round: int
    requests: int
    """By its own account."""
    errors: int
    seconds: float
    """Requested; for Prony, measured."""
    client_cpu_s: float | None
    """By the kernel."""
    wall_s: float
    counted: int | None
    """By the server, in the same time; None when it does not count."""
    failure: str | None = None
    conforms: bool | None = None
    finding: tuple[str, str] | None = None
    """Prony only: (check, reason) that does not conform, else of the largest bias of the rate."""
    identifier: str | None = None

    @property
    def per_s(self) -> float:
        """Requests per second: the server's count where there is one, else the tool's own."""
        return (self.requests if self.counted is None else self.counted) / self.seconds

    def busy(self, cpus: int) -> float | None:
        if self.client_cpu_s is None or self.wall_s <= 0:
            return None
        return self.client_cpu_s / self.wall_s / (1 if self.tool in ONE_THREAD else cpus)


@dataclass(frozen=True, slots=True)
class Opinion:
    """A tool over all rounds, compared with Prony."""

    tool: str
    version: str
    runs: tuple[Run, ...]
    per_s: float | None
    """Median over rounds; None when no run ended well."""
    ratio: float | None
    """Its median ÷ Prony's."""
    agrees: bool | None
    check: str | None = None
    """The check that explains a difference …"""
    why: str = ""
    """… in a sentence."""


def own_run(record: TrialRecord, judgement: Judgement, round_: int) -> Run | None:
    engine = record.evidence.engine
    window = None if engine is None else engine.window
    if window is None:
        return None
    threads = [thread.cpu_s for thread in window.threads]
    used_s = sum(cpu_s for cpu_s in threads if cpu_s is not None) if None not in threads else None
    counted = record.evidence.server_count
    lines = [line.finding for line in judgement.budget("requests_per_s") if line.bias.counts]
    first = next(iter((*judgement.not_conforming, *lines)), None)
    return Run(
        PRONY,
        round_,
        window.completed,
        window.failed,
        window.duration_s,
        used_s,
        window.duration_s,
        None if counted is None else counted.requests,
        failure=record.failure,
        conforms=judgement.conforms,
        finding=None if first is None else (first.check, first.reason),
        identifier=record.id,
    )


def opinions(runs: Sequence[Run], versions: Mapping[str, str], cpus: int) -> tuple[Opinion, ...]:
    """Every tool with the explanation of its difference from Prony. `versions`: of the other tools."""
    own = [run for run in runs if run.tool == PRONY]
    reference = statistics.median(run.per_s for run in own) if own else None
    result = []
    for name in (PRONY, *versions):
        mine = tuple(run for run in runs if run.tool == name)
        good = [run.per_s for run in mine if run.failure is None]
        median = statistics.median(good) if good else None
        ratio = median / reference if median is not None and reference else None
        agrees = None if ratio is None else abs(ratio - 1) <= AGREE
        check, why = _explained(mine, own, cpus, agrees)
        result.append(Opinion(name, versions.get(name, ""), mine, median, ratio, agrees, check, why))
    return tuple(result)


def _explained(
    runs: Sequence[Run], own: Sequence[Run], cpus: int, agrees: bool | None
) -> tuple[str | None, str]:
    failed = next((run.failure for run in runs if run.failure), None)
    if failed is not None:
        return "errors", failed
    if not runs:
        return None, ""
    for run in runs:
        if run.counted is not None and abs(run.counted - run.requests) > max(
            run.counted * MISCOUNTED, IN_FLIGHT
        ):
            return "counts", f"{run.requests} requests by its own count, {run.counted} by the server's"
    errors, requests = sum(run.errors for run in runs), sum(run.requests for run in runs)
    if errors > 0.01 * max(1, requests):
        return "errors", f"{errors} of its {requests} requests failed"
    if agrees is not False:
        return None, ""
    busiest = max((run.busy(cpus) or 0.0 for run in runs), default=0.0)
    if runs[0].tool != PRONY and busiest >= BUSY:
        return "client", f"{busiest:.0%} of its CPU in use: the tool is the limit, not the server"
    slower = bool(own) and max(run.per_s for run in runs) < min(run.per_s for run in own)
    finding = next((run.finding for run in own if run.finding), None)
    if finding is not None and not (slower and finding[0] == "client"):
        check, reason = finding
        return check, f"in Prony's own run: {reason}"
    if slower and all(run.counted is not None for run in own):
        carried = statistics.median(run.per_s for run in own)
        return ("client", f"the server counted {carried:,.0f}/s under Prony's load: the tool is the limit")
    rates = [run.per_s for run in (*runs, *own)]
    spread = max(run.per_s for run in own) / max(1e-9, min(run.per_s for run in own)) - 1
    if spread > AGREE:
        return "steady", f"Prony's own rounds differ by {spread:.0%}: the server or the host is not steady"
    return None, f"no check explains it ({min(rates):.0f} to {max(rates):.0f}/s); run more rounds"
