"""Offers the load of a trial again, with half as many users again, after its window: does the rate rise?"""

from __future__ import annotations

from prony.evidence.engine import EngineReport
from prony.evidence.trial import LoadFacts, ScalingProbe
from prony.load.base import StartEngine
from prony.load.contract import EngineLoad
from prony.load.short import GRACE_S
from prony.plan.load import ClosedLoad
from prony.plan.trial import TrialPlan
from prony.steady.detector import full_rows

MORE_USERS = 1.5


def probed(plan: TrialPlan, facts: LoadFacts, *, owned: bool) -> bool:
    """Whether this trial ends with a probe: it claims a capacity, of a server that Prony launched. To
    somebody else's server no more users are sent than were asked for.
    """
    return owned and facts.claim == "capacity" and plan.probe_s > 0


def scaling_probe(load: EngineLoad, seconds: float, start: StartEngine) -> ScalingProbe:
    """Run it; the rows from the second one on count, as connections are opened in the first. Raises
    EnvironmentFault when the engine cannot do it.
    """
    assert isinstance(load.load, ClosedLoad), "only a closed load claims a capacity"
    users = max(load.load.users + 1, round(load.load.users * MORE_USERS))
    bounds = {
        "load": ClosedLoad(users=users),
        "after_s": seconds,
        "total_requests": None,
        "iterations_per_user": None,
        "window": "all",
        "marks": (),
        "rate_groups": None,
        "parts": False,
        "log": None,
    }
    report = start(load.model_copy(update=bounds)).run_to_end(seconds + GRACE_S)
    rows = full_rows(report.rows)[1:]
    return ScalingProbe(
        users=users,
        rates_per_s=tuple(row.completed_per_s for row in rows),
        failed_share=_failed_share(report),
        client_cpu=_client_cpu(report),
    )


def _client_cpu(report: EngineReport) -> float | None:
    threads = report.window.threads if report.window is not None else ()
    shares = [share for thread in threads if (share := thread.busy_share) is not None]
    return max(shares) if shares and len(shares) == len(threads) else None


def _failed_share(report: EngineReport) -> float:
    ended = report.totals.completed + report.totals.failed
    return report.totals.failed / ended if ended else 1.0
