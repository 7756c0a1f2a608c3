"""The same store on PostgreSQL, on a server that the tests start (tests/store/postgresql.py)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import create_engine

from prony.errors import StoreError
from prony.evidence.host import Fingerprint
from prony.judge.finding import Judgement
from prony.store import Store, schema
from tests.store.conftest import MakeTrial
from tests.store.postgresql import postgresql

pytestmark = [pytest.mark.e2e, pytest.mark.needs("postgresql")]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with postgresql() as url:
        yield url


@pytest.fixture
def shared(url: str) -> Iterator[Store]:
    store = Store.open(url)
    yield store
    store.close()
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    schema.metadata.drop_all(engine)
    engine.dispose()


def test_results_are_shared(
    url: str, shared: Store, fingerprint: Fingerprint, judgement: Judgement, make_trial: MakeTrial
) -> None:
    shared.check_writable()
    identifier = shared.create_experiment(
        name="a vs b", spec={"users": 10}, fingerprint=fingerprint, seed=2**63 + 1, quick=False
    )
    record = make_trial(identifier)
    shared.add_trial(record, judgement, {"a": 1.5})
    shared.add_judgements({record.id: (judgement, {"a": 2.5})})
    shared.finish_experiment(identifier)
    another = Store.open(url)
    row = another.experiment("latest")
    assert (row.id, row.status, row.seed, row.trials) == (identifier, "finished", 2**63 + 1, 1)
    (stored,) = another.trials(identifier)
    assert stored.record == record
    assert [one.figures for one in stored.judgements] == [{"a": 1.5}, {"a": 2.5}]
    another.close()


@pytest.mark.usefixtures("shared")
def test_refusals_are_sentences(url: str) -> None:
    with pytest.raises(StoreError, match="does not exist"):
        Store.open(url.rpartition("/")[0] + "/no_such_database")
