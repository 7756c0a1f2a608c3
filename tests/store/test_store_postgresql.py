"""The same store on PostgreSQL, on a server that the tests start (tests/store/postgresql.py): shared by
several laboratories, over a network that fails.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from prony.errors import StoreError
from prony.evidence.host import Fingerprint
from prony.judge.finding import Judgement
from prony.store import Search, Store, database, location, owner, transfer
from prony_serve.trends.stored import fingerprints, series_trials
from tests.store import store_samples
from tests.store.conftest import MakeTrial
from tests.store.proxy import Proxy, proxy
from tests.store.several import several_labs
from tests.store.test_store_rescue import saved_trial

pytestmark = [pytest.mark.e2e, pytest.mark.needs("postgresql")]


@pytest.fixture
def shared(url: str) -> Iterator[Store]:
    store = Store.open(url)
    yield store
    store.close()


@pytest.fixture
def network(url: str) -> Iterator[Proxy]:
    with proxy(int(url.rpartition(":")[2].partition("/")[0])) as made:
        yield made


@pytest.fixture
def far(url: str, network: Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The store over a network that can be cut."""
    monkeypatch.setattr(database, "FIRST_PAUSE_S", 0.01)
    near = url.rpartition(":")
    store = Store.open(f"{near[0]}:{network.port}/{near[2].partition('/')[2]}")
    yield store
    store.close()


Begin = Callable[[Store], str]


@pytest.fixture
def begin_in(fingerprint: Fingerprint) -> Begin:
    def begin(store: Store) -> str:
        return store.create_experiment(
            name="a vs b", spec=store_samples.plan(), fingerprint=fingerprint, seed=2**63 + 1, quick=False
        )

    return begin


def test_results_are_shared(
    url: str, shared: Store, begin_in: Begin, judgement: Judgement, make_trial: MakeTrial
) -> None:
    shared.check_writable()
    identifier = begin_in(shared)
    record = make_trial(identifier)
    shared.add_trial(record, judgement, {"a": 1.5})
    shared.add_judgements({record.id: (judgement, {"a": 2.5})})
    shared.finish_experiment(identifier)
    shared.tag(identifier, "main")
    shared.note(identifier, "the first one")
    another = Store.open(url)
    row = another.experiment("latest")
    assert (row.id, row.status, row.seed, row.trials) == (identifier, "finished", 2**63 + 1, 1)
    (stored,) = another.trials(identifier)
    assert stored.record == record
    assert [one.figures for one in stored.judgements] == [{"a": 1.5}, {"a": 2.5}]
    (found,) = another.search(Search(server="tomcat*", tag="main"), limit=10).experiments
    assert (found.id, found.trials, found.notes[0].text) == (identifier, 1, "the first one")
    (point,) = series_trials(another, "tomcat:async", "hello", "closed-10", tag="main")
    assert (point.trial_id, point.figures) == (record.id, {"a": 2.5})
    assert [(one.fingerprint.key, one.experiments) for one in fingerprints(another)] == [("abc", 1)]
    another.untag(identifier, "main")
    assert another.remove(identifier)
    assert shared.search().total == 0
    another.close()


@pytest.mark.usefixtures("shared")
def test_refusals_are_sentences(url: str) -> None:
    with pytest.raises(StoreError, match="no_such_database"):
        Store.open(url.rpartition("/")[0] + "/no_such_database")


def test_several_labs_may_write_at_once_and_even_make_the_tables_together(url: str) -> None:
    several_labs(url)


def side_by_side(*calls: Callable[[], object]) -> list[object]:
    """What these came to at the same time: a result, or the sentence of a StoreError."""
    found: list[object] = [None] * len(calls)
    gate = threading.Barrier(len(calls))

    def one(at: int) -> None:
        gate.wait(60)
        try:
            found[at] = calls[at]()
        except StoreError as fault:
            found[at] = str(fault)

    threads = [threading.Thread(target=one, args=(at,)) for at in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return found


def test_the_same_file_imported_twice_at_once_is_there_once(
    url: str, store: Store, begin_in: Begin, judgement: Judgement, make_trial: MakeTrial, tmp_path: Path
) -> None:
    identifier = begin_in(store)
    for number in (1, 2, 3):
        store.add_trial(make_trial(identifier, number), judgement, {})
    store.note(identifier, "once")
    transfer.write(store, identifier, tmp_path / "file")
    labs = [Store.open(url) for _ in range(4)]
    calls = [lambda lab=lab: transfer.read(lab, tmp_path / "file")[1] for lab in labs]
    assert sorted(map(str, side_by_side(*calls))) == ["0", "0", "0", "3"]
    assert labs[0].trials(identifier) == store.trials(identifier)
    assert labs[0].search().experiments[0].notes == store.search().experiments[0].notes
    for lab in labs:
        lab.close()


def test_one_of_two_that_resume_at_once_does(
    url: str, shared: Store, begin_in: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    identifier = begin_in(shared)
    shared.finish_experiment(identifier, "interrupted")
    monkeypatch.setattr(owner, "this_process", lambda: f"another-host|b|{threading.get_ident()}|1")
    labs = [Store.open(url) for _ in range(3)]
    calls = [lambda lab=lab: lab.resume_experiment(identifier) for lab in labs]
    found = side_by_side(*calls)
    assert found.count(None) == 1
    assert all("another process" in str(one) for one in found if one is not None)
    for lab in labs:
        lab.close()


@pytest.mark.parametrize(
    ("word", "after"),
    [
        (b"INSERT INTO trials", False),
        (b"INSERT INTO judgements", False),
        (b"COMMIT", False),
        (b"COMMIT", True),
    ],
    ids=["trial", "judgement", "before the commit", "after the commit"],
)
def test_a_connection_that_drops_while_a_trial_is_stored_loses_and_doubles_nothing(
    far: Store,
    network: Proxy,
    begin_in: Begin,
    judgement: Judgement,
    make_trial: MakeTrial,
    word: bytes,
    after: bool,
) -> None:
    identifier = begin_in(far)
    record = make_trial(identifier)
    network.cut_at(word, after=after)
    far.add_trial(record, judgement, {"a": 1.0})
    (stored,) = far.trials(identifier)
    assert (stored.record, len(stored.judgements), stored.figures) == (record, 1, {"a": 1.0})
    network.cut_at(word.replace(b"INSERT INTO trials", b"UPDATE trials"), after=after)
    far.complete_trial(record, judgement, {"a": 2.0})
    (stored,) = far.trials(identifier)
    assert (len(stored.judgements), stored.figures) == (1, {"a": 2.0})
    network.cut_at(b"COMMIT", after=after)
    far.add_judgements({record.id: (judgement, {"a": 3.0})})
    assert [one.figures for one in far.trials(identifier)[0].judgements] == [{"a": 2.0}, {"a": 3.0}]


def test_a_server_that_restarts_in_the_middle_of_a_trial(
    far: Store, network: Proxy, begin_in: Begin, judgement: Judgement, make_trial: MakeTrial
) -> None:
    identifier = begin_in(far)
    network.cut()
    network.refuses = 4
    far.add_trial(make_trial(identifier), judgement, {})
    assert network.refused == 4
    network.cut()
    network.refuses = 2
    assert len(far.trials(identifier)) == 1, "reading waits, too"
    network.cut()
    far.finish_experiment(identifier)
    assert far.experiment(identifier).status == "finished"


def test_a_server_that_is_gone_for_good_leaves_the_trial_in_a_file(
    url: str,
    far: Store,
    network: Proxy,
    begin_in: Begin,
    judgement: Judgement,
    make_trial: MakeTrial,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(location, "RECONNECT_S", 0.05)
    identifier = begin_in(far)
    record = make_trial(identifier)
    network.cut()
    network.refuses = 10_000
    with pytest.raises(StoreError, match="results import") as caught:
        far.add_trial(record, judgement, {"a": 1.0})
    assert "\n" not in str(caught.value)
    back = Store.open(url)
    assert transfer.read(back, saved_trial(str(caught.value))) == (identifier, 1)
    assert transfer.read(back, saved_trial(str(caught.value))) == (identifier, 0)
    (stored,) = back.trials(identifier)
    assert (stored.record, stored.figures) == (record, {"a": 1.0})
    back.close()


def test_a_user_who_may_only_read(
    server: str, url: str, shared: Store, begin_in: Begin, judgement: Judgement, make_trial: MakeTrial
) -> None:
    identifier = begin_in(shared)
    shared.add_trial(make_trial(identifier), judgement, {"a": 1.0})
    shared.finish_experiment(identifier)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS reader")
        connection.execute("CREATE ROLE reader LOGIN")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    reader = Store.open(url.replace("prony@", "reader@"))
    assert reader.trials(identifier)[0].figures == {"a": 1.0}
    assert reader.search(Search(server="tomcat*")).total == 1
    for refused in (
        reader.check_writable,
        lambda: reader.tag(identifier, "main"),
        lambda: reader.remove(identifier),
    ):
        with pytest.raises(StoreError, match="may not write there"):
            refused()
    reader.close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE prony_schema SET value = '1' WHERE name = 'version'")
    with pytest.raises(StoreError, match=r"\(schema 1; "):
        Store.open(url.replace("prony@", "reader@"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP OWNED BY reader")
        connection.execute("DROP ROLE reader")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE ROLE stranger LOGIN")
        connection.execute("CREATE DATABASE empty")
    with pytest.raises(StoreError, match="may not write there"):
        Store.open(f"{server.rpartition('/')[0]}/empty".replace("prony@", "stranger@"))
