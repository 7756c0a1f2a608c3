"""Experiments are found by their trials, tags and time without reading a record."""

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
from prony.judge.finding import Bias, Finding, Judgement
from prony.store import Found, Search, Store, catalogue, search, transfer
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


@pytest.mark.parametrize(("text", "said"), [("", "note"), (" \n", "note"), ("x" * 10_001, "10,001")])
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
