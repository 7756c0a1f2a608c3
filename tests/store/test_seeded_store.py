"""The seeded store holds what it says: the planted changes, the break, and nothing else."""

from __future__ import annotations

import statistics
from pathlib import Path

from prony.store import Store
from prony_serve.trends.stored import SeriesTrial, series_trials
from tests import seeded_store

NIGHTS = 20
"""Enough for the first change."""


def level(trials: list[SeriesTrial]) -> float:
    return statistics.median(float(one.figures["requests_per_s"]) for one in trials)


def test_a_seeded_store_has_the_history_that_it_says(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "seeded.db")
    made = seeded_store.seed(store, NIGHTS)
    assert made.trials == NIGHTS * 6
    assert store.search().total == NIGHTS
    (planted,) = made.planted
    for server, change in ((made.server, planted.change), (made.unchanged, 0.0)):
        trials = series_trials(store, server, made.workload, made.load_name)
        assert len(trials) == NIGHTS * 3
        conforming = [one for one in trials if one.conforms and not one.repeated]
        before = [one for one in conforming if one.started < planted.when]
        after = [one for one in conforming if one.started >= planted.when]
        assert abs(level(after) / level(before) - 1 - change) < 0.012
        assert len({(one.fingerprint_key, one.plan_key) for one in trials}) == 1
        assert all(one.versions["commit"] for one in trials)
        assert 0 < len(trials) - len(conforming) == sum(bool(one.reason) for one in trials)
    assert len(store.trials(planted.experiment_id)) == 6
    assert store.experiment(planted.experiment_id).name.startswith("Nightly")
