"""A store in a folder of its own, and samples to put into it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from prony.evidence.host import Fingerprint
from prony.evidence.trial import TrialRecord
from prony.judge.finding import Judgement
from prony.store import Store
from tests.store import store_samples

MakeTrial = Callable[..., TrialRecord]


@pytest.fixture
def fingerprint() -> Fingerprint:
    return store_samples.FINGERPRINT


@pytest.fixture
def judgement() -> Judgement:
    return store_samples.JUDGEMENT


@pytest.fixture
def make_trial() -> MakeTrial:
    return store_samples.make_trial


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "results.db"


@pytest.fixture
def store(path: Path) -> Store:
    return Store.open(path)


@pytest.fixture
def begin(store: Store, fingerprint: Fingerprint) -> Callable[[], str]:
    def create() -> str:
        return store.create_experiment(
            name="a vs b", spec={"users": 10}, fingerprint=fingerprint, seed=7, quick=True
        )

    return create
