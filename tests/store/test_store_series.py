"""Series of trials, which `prony serve` reads from summaries alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.evidence.server import ServerIdentity
from prony.evidence.trial import TrialRecord
from prony.store import Search, Store, transfer
from prony_serve.trends.stored import fingerprint, fingerprints, series_names, series_trials
from tests.store.conftest import MakeTrial
from tests.store.store_samples import NOON
from tests.store.test_store_search import FINE, WRONG, Add, add, listening

__all__ = ["add"]


def test_neither_records_nor_plans_are_read(store: Store, add: Add) -> None:
    add(1)
    with listening() as said:
        store.search(Search(server="tomcat*", conforming=True, tag="x", text="y"), limit=10)
        store.search()
        series_names(store)
    with listening() as of_a_series:  # whose weights are in its judgements
        series_trials(store, "tomcat:async", "hello", "closed-10")
    assert said
    for one in (*said, *(text.replace("judgements.judgement", "") for text in of_a_series)):
        for large in (
            "trials.record",
            "experiments.spec",
            "judgements.judgement",
            "experiments.fingerprint,",
        ):
            assert large not in one


def test_a_series_is_in_the_order_of_time_and_says_what_is_comparable(store: Store, add: Add) -> None:
    late = add(9, "compare", (FINE, WRONG), fingerprint_key="new")
    early = add(3, "compare", (FINE,), window_s=20)
    add(5, "compare", (FINE,), server="jetty")
    found = series_trials(store, "tomcat:async", "hello", "closed-10")
    assert [(one.experiment_id, one.conforms) for one in found] == [
        (early, True),
        (late, True),
        (late, False),
    ]
    assert [one.figures["requests_per_s"] for one in found] == [301, 901, 902]
    assert [one.reason[:18] for one in found] == ["", "", "it stepped by 14 %"]
    assert len(found[2].reason) == 300
    assert found[1].plan_key == found[2].plan_key
    assert found[0].plan_key != found[1].plan_key
    store.tag(early, "main")
    assert [
        one.experiment_id for one in series_trials(store, "tomcat:async", "hello", "closed-10", tag="main")
    ] == [early]
    since = datetime(2026, 11, 4, tzinfo=UTC)
    assert len(series_trials(store, "tomcat:async", "hello", "closed-10", since=since)) == 2
    assert len(series_trials(store, "tomcat:async", "hello", "closed-10", until=since)) == 1
    assert len(series_trials(store, "tomcat:async", "hello", "closed-10", fingerprint_key="new")) == 2
    names = [(one.server, one.workload, one.load_name, one.trials) for one in series_names(store)]
    assert names == [("jetty", "hello", "closed-10", 1), ("tomcat:async", "hello", "closed-10", 3)]
    assert [one.fingerprint.key for one in fingerprints(store)] == ["new", "abc"]
    known = fingerprint(store, "new")
    assert known is not None
    assert known.kernel == "new"
    assert fingerprint(store, "nothing") is None
    assert store.trial(found[0].trial_id).record.experiment_id == early
    with pytest.raises(UsageError, match="'x'"):
        store.trial("x")


def test_a_trial_that_was_repeated_is_marked(store: Store, add: Add) -> None:
    identifier = add(3, "compare", (WRONG,))
    first = store.trials(identifier)[0].record
    store.add_trial(first.model_copy(update={"id": f"{first.id}-2"}), FINE, {})
    found = series_trials(store, "tomcat:async", "hello", "closed-10")
    assert [(one.trial_id, one.repeated) for one in found] == [(first.id, True), (f"{first.id}-2", False)]


def test_versions_and_the_commit_come_from_the_record(
    store: Store, begin: Callable[[], str], make_trial: MakeTrial
) -> None:
    record: TrialRecord = make_trial(begin())
    identity = ServerIdentity(name="tomcat", versions={"tomcat": "10.1", "commit": "c0ffee"}, build_key="b")
    evidence = record.evidence.model_copy(update={"server": identity})
    store.add_trial(record.model_copy(update={"evidence": evidence}), FINE, {})
    (point,) = series_trials(store, "tomcat:async", "hello", "closed-10")
    assert (point.versions["tomcat"], point.versions["commit"], point.build_key) == ("10.1", "c0ffee", "b")


def test_a_clock_that_went_back_changes_no_order_and_no_attempt(
    store: Store, begin: Callable[[], str], make_trial: MakeTrial, tmp_path: Path
) -> None:
    identifier = begin()
    cell = "main/tomcat:async/hello/closed-10"
    for number, minute in ((1, 50), (2, 10), (3, 20)):
        started = NOON + timedelta(minutes=minute)
        record = make_trial(identifier, number, rows=1, cell=cell, started_at=started, ended_at=started)
        store.add_trial(record, FINE, {})
    ran = [f"{identifier}-00{number}" for number in (1, 2, 3)]
    assert [one.record.id for one in store.trials(identifier)] == ran
    assert [one.trial_id for one in series_trials(store, "tomcat:async", "hello", "closed-10")] == ran
    transfer.write(store, identifier, tmp_path / "file")
    other = Store.open(tmp_path / "other.db")
    transfer.read(other, tmp_path / "file")
    assert [one.record.id for one in other.trials(identifier)] == ran


def test_an_explained_trial_is_in_no_series_and_found_whether_it_conforms_or_not(
    store: Store, add: Add
) -> None:
    identifier = add(3)
    first = store.trials(identifier)[0].record
    later = first.started_at + timedelta(hours=1)
    changed = {"id": f"{first.id}-9", "kind": "explained", "started_at": later}
    store.add_trial(first.model_copy(update=changed), WRONG, {"requests_per_s": 1.0})
    found = series_trials(store, "tomcat:async", "hello", "closed-10")
    assert [one.trial_id for one in found] == [first.id]
    (name,) = series_names(store)
    assert (name.trials, name.newest) == (1, first.started_at)
    assert store.search(Search(conforming=False)).total == 0
    assert store.search(Search(conforming=True)).total == 1
