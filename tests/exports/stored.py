"""A made-up result in a store, as an experiment leaves it."""

from __future__ import annotations

from prony.report.result import ResultView
from prony.store import Store
from tests.report import factory


def keep(store: Store, view: ResultView) -> str:
    """The id under which the result is stored now; its trials are numbered in the order in which they ran."""
    identifier = store.create_experiment(
        name=view.title,
        spec=view.plan.as_stored(),
        fingerprint=view.fingerprint or factory.FINGERPRINT,
        seed=view.plan.seed,
        quick=view.quick,
    )
    for number, trial in enumerate(view.trials, 1):
        record = trial.record.model_copy(
            update={"id": f"{identifier}-{number:03d}", "experiment_id": identifier}
        )
        store.add_trial(record, trial.judgement, dict(trial.figures))
    store.finish_experiment(identifier)
    return identifier
