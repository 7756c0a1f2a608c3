"""The same store on PostgreSQL: needs a database (PRONY_TEST_POSTGRESQL, a URL) and psycopg, else it is
skipped.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator

import pytest
from sqlalchemy import create_engine

from prony.errors import StoreError
from prony.evidence.host import Fingerprint
from prony.judge.finding import Judgement
from prony.store import Store, schema
from tests.store.conftest import MakeTrial

URL = os.environ.get("PRONY_TEST_POSTGRESQL", "")

pytestmark = [
    pytest.mark.skipif(not URL, reason="PRONY_TEST_POSTGRESQL names no database to test with"),
    pytest.mark.skipif(importlib.util.find_spec("psycopg") is None, reason="psycopg is not installed"),
]


@pytest.fixture
def shared() -> Iterator[Store]:
    store = Store.open(URL)
    yield store
    store.close()
    engine = create_engine(URL.replace("postgresql://", "postgresql+psycopg://"))
    schema.metadata.drop_all(engine)
    engine.dispose()


def test_results_are_shared(
    shared: Store, fingerprint: Fingerprint, judgement: Judgement, make_trial: MakeTrial
) -> None:
    shared.check_writable()
    identifier = shared.create_experiment(
        name="a vs b", spec={"users": 10}, fingerprint=fingerprint, seed=2**63 + 1, quick=False
    )
    record = make_trial(identifier)
    shared.add_trial(record, judgement, {"a": 1.5})
    shared.add_judgements({record.id: (judgement, {"a": 2.5})})
    shared.finish_experiment(identifier)
    another = Store.open(URL)
    row = another.experiment("latest")
    assert (row.id, row.status, row.seed, row.trials) == (identifier, "finished", 2**63 + 1, 1)
    (stored,) = another.trials(identifier)
    assert stored.record == record
    assert [one.figures for one in stored.judgements] == [{"a": 1.5}, {"a": 2.5}]
    another.close()


@pytest.mark.usefixtures("shared")
def test_refusals_are_sentences() -> None:
    with pytest.raises(StoreError, match="does not exist"):
        Store.open(URL.rpartition("/")[0] + "/no_such_database")
