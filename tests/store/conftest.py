"""A store in a folder of its own, and samples to put into it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from prony.evidence.host import Fingerprint
from prony.evidence.trial import TrialRecord
from prony.judge.finding import Judgement
from prony.store import Store
from tests.store import store_samples
from tests.store.postgresql import postgresql

_numbers = itertools.count()

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
            name="a vs b", spec=store_samples.plan(), fingerprint=fingerprint, seed=7, quick=True
        )

    return create


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The URL of a PostgreSQL server's first database, of a user who may do everything."""
    with postgresql() as url:
        yield url


@pytest.fixture
def url(server: str) -> str:
    """An empty database of a test's own."""
    name = f"results{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{server.rpartition('/')[0]}/{name}"
