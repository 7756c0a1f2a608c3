"""Experiments are found by their trials, tags and time without reading a record; series are in order and say
what may be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from prony.errors import UsageError
from prony.evidence.host import Fingerprint
from prony.evidence.server import ServerIdentity
from prony.evidence.trial import TrialRecord
from prony.judge.finding import Bias, Finding, Judgement
from prony.store import Found, Search, Store, catalogue, search, transfer
from prony_serve.trends.stored import fingerprint, fingerprints, series_names, series_trials
from tests.store.conftest import MakeTrial
from tests.store.store_samples import NOON, plan

FINE = Judgement(conforms=True, findings=(), bound_by="server-cpu")
WRONG = Judgement(
    conforms=False,
    findings=(
        Finding(check="errors", bias={"p99_ms": Bias(high=0.1)}, reason="one failed"),
        Finding(check="content", conforms=False, reason="it stepped by 14 %" + "!" * 10_000_000),
    ),
)


Add = Callable[..., str]


@pytest.fixture
def add(
    store: Store, fingerprint: Fingerprint, make_trial: MakeTrial, monkeypatch: pytest.MonkeyPatch
) -> Add:
    """An experiment of a day, with a trial for each judgement; returns its id."""

    def create(
        day: int, command: str = "compare", judged: tuple[Judgement, ...] = (FINE,), **values: object
    ) -> str:
        moment = datetime(2026, 11, day, 12, tzinfo=UTC)

        class Stopped(datetime):
            @classmethod
            def now(cls, _tz: tzinfo | None = None) -> Stopped:
                return cls(2026, 11, day, 12, tzinfo=UTC)

        monkeypatch.setattr(catalogue, "datetime", Stopped)
        window_s = int(str(values.pop("window_s", 10)))
        key = str(values.get("fingerprint_key", "abc"))
        identifier = store.create_experiment(
            name=f"Night {day}",
            spec=plan(command=command, window_s=window_s),
            fingerprint=fingerprint.model_copy(update={"key": key, "kernel": key}),
            seed=day,
            quick=False,
        )
        for number, judgement in enumerate(judged, start=1):
            started = moment + timedelta(minutes=number)
            fields = {"started_at": started, "ended_at": started + timedelta(seconds=50), **values}
            cell = "main/tomcat:async/hello/closed-10"
            record = make_trial(identifier, number, rows=1, **{"cell": cell, **fields})
            store.add_trial(record, judgement, {"requests_per_s": 100.0 * day + number})
        store.finish_experiment(identifier)
        return identifier

    return create


def ids(found: Found) -> list[str]:
    return [one.id for one in found.experiments]


def test_every_criterion_finds_what_it_says(store: Store, add: Add) -> None:
    tomcat = add(1)
    jetty = add(2, "run", (WRONG, FINE), server="jetty")
    other = add(3, "load", (WRONG,), server="tomcat:virtual", workload="crud", fingerprint_key="def")
    empty = add(4, "compare", ())
    store.tag(jetty, "main")
    everything = [empty, other, jetty, tomcat]
    for wanted, expected in {
        Search(): everything,
        Search(server="tomcat*"): [other, tomcat],
        Search(server="tomcat"): [],
        Search(server="TOMCAT*"): [],
        Search(server="j?tt[xyz]"): [jetty],
        Search(workload="crud"): [other],
        Search(conforming=True): [jetty, tomcat],
        Search(conforming=False): [other, jetty],
        Search(server="tomcat*", conforming=True): [tomcat],
        Search(command="run"): [jetty],
        Search(command="[!r]*"): [empty, other, tomcat],
        Search(tag="main"): [jetty],
        Search(tag="other"): [],
        Search(text="night 3"): [other],
        Search(text="%"): [],
        Search(text="261102-"): [jetty],
        Search(fingerprint_key="def"): [other],
        Search(since=datetime(2026, 11, 2, 12, tzinfo=UTC)): [empty, other, jetty],
        Search(until=datetime(2026, 11, 2, 12, tzinfo=UTC)): [tomcat],
        Search(since=NOON - timedelta(days=19), until=NOON - timedelta(days=18)): [jetty],
    }.items():
        found = store.search(wanted)
        assert ids(found) == expected, wanted
        assert found.total == len(expected)
    assert ids(store.search(limit=2)) == [empty, other]
    assert ids(store.search(limit=2, offset=1)) == [other, jetty]
    assert store.search(limit=2, offset=9).total == 4


def test_a_found_experiment_says_what_a_list_shows(store: Store, add: Add) -> None:
    identifier = add(2, "run", (FINE, WRONG, FINE))
    store.tag(identifier, "b")
    store.tag(identifier, "a")
    store.note(identifier, "  after the upgrade ")
    (found,) = store.search().experiments
    assert (found.name, found.command, found.status, found.hostname) == ("Night 2", "run", "finished", "h")
    assert (found.trials, found.conforming) == (3, 2)
    assert (found.servers, found.workloads) == (("tomcat:async",), ("hello",))
    assert (found.tags, [note.text for note in found.notes]) == (("a", "b"), ["after the upgrade"])
    assert "@" in found.notes[0].by
    store.add_judgements({f"{identifier}-002": (FINE, {})})
    assert store.search().experiments[0].conforming == 3, "the newest judgement counts"


@contextmanager
def listening() -> Iterator[list[str]]:
    """Every statement that a database is asked within the block."""
    said: list[str] = []

    def listen(*event: object) -> None:
        said.append(str(event[2]))

    event.listen(Engine, "before_cursor_execute", listen)
    try:
        yield said
    finally:
        event.remove(Engine, "before_cursor_execute", listen)


def test_a_page_goes_through_all_trials_once(store: Store, add: Add) -> None:
    for day in (1, 2, 3):
        store.tag(add(day), "main")
    with listening() as said:
        found = store.search(Search(server="tomcat*", conforming=True, tag="main"), limit=2)
    assert (len(found.experiments), found.total) == (2, 3)
    assert len([one for one in said if "trial_summaries.conforms IS" in one]) == 1
    assert len([one for one in said if "tags.name =" in one]) == 1


def test_more_experiments_than_one_query_takes_are_found(
    store: Store, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = [add(day) for day in (1, 2, 3, 4, 5)][::-1]
    store.tag(everything[4], "oldest")
    monkeypatch.setattr(search, "MOST_AT_ONCE", 2)
    found = store.search()
    assert ids(found) == everything
    assert [one.tags for one in found.experiments] == [(), (), (), (), ("oldest",)]
    assert {one.trials for one in found.experiments} == {1}


def test_neither_records_nor_plans_are_read(store: Store, add: Add) -> None:
    add(1)
    with listening() as said:
        store.search(Search(server="tomcat*", conforming=True, tag="x", text="y"), limit=10)
        store.search()
        series_trials(store, "tomcat:async", "hello", "closed-10")
        series_names(store)
    assert said
    for one in said:
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
    with pytest.raises(UsageError, match="No trial 'x'"):
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


# -- tags


def test_a_tag_names_experiments_and_only_moves_it(store: Store, add: Add) -> None:
    first, second = add(1), add(2)
    store.tag(first, "release/1.0")
    store.tag(first, "release/1.0")
    store.tag(second, "release/1.0")
    assert store.tags() == {"release/1.0": 2}
    assert [one.id for one in store.tagged("release/1.0")] == [second, first]
    assert store.experiment("release/1.0").id == second
    store.tag(first, "release/1.0", only=True)
    assert [one.id for one in store.tagged("release/1.0")] == [first]
    assert store.untag(first, "release/1.0")
    assert not store.untag(first, "release/1.0")
    assert store.tags() == {}


def test_a_tag_comes_before_the_beginning_of_an_id_and_after_an_id(store: Store, add: Add) -> None:
    first, second = add(1), add(2)
    beginning = second[:6]
    store.tag(first, beginning)
    assert store.experiment(beginning).id == first
    assert store.experiment(second).id == second


@pytest.mark.parametrize(
    "name", ["", "latest", "LATEST", "-x", "a b", "x" * 65, "261122-9k3f", "<b>", "ä", "a\n"]
)
def test_odd_names_are_no_tags(store: Store, add: Add, name: str) -> None:
    identifier = add(1)
    with pytest.raises(UsageError, match="tag"):
        store.tag(identifier, name)
    assert store.tags() == {}


@pytest.mark.parametrize(
    ("text", "said"), [("", "is empty"), (" \n", "is empty"), ("x" * 10_001, "10,001 char")]
)
def test_odd_notes_are_refused(store: Store, add: Add, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        store.note(add(1), text)


def test_notes_go_along_with_an_export_and_tags_do_not(store: Store, add: Add, tmp_path: Path) -> None:
    identifier = add(1)
    store.tag(identifier, "main")
    store.note(identifier, "kernel <b>6.12</b>")
    transfer.write(store, identifier, tmp_path / "file")
    other = Store.open(tmp_path / "other.db")
    for _ in range(2):
        transfer.read(other, tmp_path / "file")
    (found,) = other.search().experiments
    assert (found.tags, found.notes) == ((), store.search().experiments[0].notes)


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
