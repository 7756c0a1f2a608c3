"""From the store to the view that every output reads: judged trials, comparisons, history. Must not print anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from prony.compare import Comparison, Sample, compare
from prony.errors import StoreError
from prony.experiment.plan_text import plan_yaml
from prony.judge.steady import change_points_ms
from prony.plan.workload import Published
from prony.report.model import ExperimentView, PairView, PublishedFigures, ServerView, TrialView, view

if TYPE_CHECKING:
    from prony.store import ExperimentRow, Store, StoredTrial

COMPARED = ("requests_per_s", "mean_ms", "server_cpu_us_per_request", "peak_rss_mib", "time_to_ready_s")
"""The figures that are compared pair by pair; the first one makes the headline sentences."""


def experiment_view(store: Store, which: str) -> ExperimentView:
    """Everything about one stored experiment. Raises StoreError when there is none of this id."""
    experiment = store.experiment(which)
    stored = store.trials(experiment.id)
    plan = experiment.spec
    trials = [_trial(one) for one in stored]
    servers = [_server(address, trials) for address in plan.get("servers", [])]
    return view(
        id=experiment.id,
        title=experiment.name,
        created=experiment.created,
        quick=experiment.quick,
        plan=plan,
        plan_text=plan_yaml(plan),
        servers=servers,
        trials=trials,
        pairs=pairs(trials, [server.address for server in servers]),
        fingerprint=experiment.fingerprint,
        partition=next((t.record.evidence.partition for t in trials if t.record.evidence.partition), None),
        published=published(plan),
        warnings=_warnings(experiment, trials),
    )
