"""Pushing results: nothing lost and nothing doubled, whatever the far end does, and one sentence of what is
wrong.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

pytest.importorskip("opensearchpy", reason="opensearch-py is not installed: make setup")

from prony.errors import UsageError
from prony.report.reading import load_result
from prony.store import Store
from prony_serve.documents import EXPERIMENTS, INTERVALS, TRIALS, documents
from prony_serve.push import setup
from prony_serve.push.cluster import BRIEF, Cluster, Patience
from prony_serve.push.connection import API_KEY_FILE
from prony_serve.push.faults import PushFault
from prony_serve.push.pushing import Pushed, PushTrials, push
from tests.exports.stored import keep
from tests.push.far_end import FarEnd, far_end
from tests.report import factory


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRONY_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store.open(tmp_path / "results.db")
    keep(made, factory.troubled())
    return made


@pytest.fixture
def end() -> Iterator[FarEnd]:
    with far_end() as one:
        yield one


def cluster(end: FarEnd, slept: list[float] | None = None, patience: Patience | None = None) -> Cluster:
    """Its waits are noted and not waited for."""
    return Cluster(end.url, patience, sleep=(slept if slept is not None else []).append)


def pushed(store: Store, end: FarEnd, **more: bool) -> Pushed:
    return push(store, "latest", cluster(end), **more)


def expected(store: Store) -> dict[str, str]:
    """Every document that there is: id -> stream."""
    return {one.id: one.stream for one in documents(load_result(store, "latest"))}


def kept(end: FarEnd) -> dict[str, str]:
    return {identifier: document["_stream"] for identifier, document in end.documents.items()}


def test_everything_arrives_in_its_stream(store: Store, end: FarEnd) -> None:
    found = pushed(store, end)
    assert kept(end) == expected(store)
    assert Counter(kept(end).values())[TRIALS] == found.trials == 9
    assert found.sent.created == len(end.documents)
    assert found.sentence().startswith(f"pushed {found.identifier} to {end.url}: 9 trials; ")
    template = end.puts["/_index_template/prony"]
    assert template["data_stream"] == {}
    assert template["template"]["settings"]["index"]["default_pipeline"] == "prony"
    assert [next(iter(one)) for one in end.puts["/_ingest/pipeline/prony"]["processors"]] == ["set", "set"]


def test_a_second_push_sends_nothing_and_one_that_is_told_to_makes_no_second_document(
    store: Store, end: FarEnd
) -> None:
    pushed(store, end)
    before, bulks = kept(end), end.bulks
    again = pushed(store, end)
    assert (again.before, again.sent.created, end.bulks) == (9, 0, bulks)
    forced = pushed(store, end, again=True)
    assert (forced.before, forced.sent.created, forced.sent.there) == (0, 0, len(before))
    assert kept(end) == before


def test_without_what_is_remembered_the_cluster_is_asked(store: Store, end: FarEnd, tmp_path: Path) -> None:
    pushed(store, end)
    for file in (tmp_path / "cache" / "push").rglob("*.acknowledged"):
        file.unlink()
    bulks = end.bulks
    found = pushed(store, end)
    assert (found.before, found.sent.created, end.bulks) == (0, 0, bulks), "found in any generation"


def test_a_cluster_that_lost_its_streams_gets_everything_again(store: Store, end: FarEnd) -> None:
    pushed(store, end)
    end.documents.clear()
    assert pushed(store, end).sent.created == len(expected(store))
    assert kept(end) == expected(store)


def test_a_trial_that_was_judged_again_is_a_further_document(store: Store, end: FarEnd) -> None:
    pushed(store, end)
    identifier = store.experiment("latest").id
    trial = store.trials(identifier)[0]
    other = factory.judgement(factory.NOISY)
    store.add_judgements({trial.record.id: (other, trial.figures)})
    found = pushed(store, end)
    assert found.before == 8
    found_by = [
        {one["check"] for one in one["findings"]}
        for one in end.documents.values()
        if one["_stream"] == TRIALS and one["trial"]["id"] == trial.record.id
    ]
    assert len(found_by) == 2
    assert {"isolation"} in found_by


@pytest.mark.parametrize(
    "script",
    [
        [429, 429, 503],
        [503, None, 502, None, 504],
        ["half"],
        ["half", 429, "half", "short"],
        ["short", "short"],
        [500],
    ],
    ids=str,
)
def test_what_passes_is_tried_again_and_nothing_is_lost_or_doubled(
    script: list[int | str | None], store: Store
) -> None:
    with far_end(script=script) as end:
        slept: list[float] = []
        push(store, "latest", cluster(end, slept))
        assert kept(end) == expected(store)
        assert not end.script
        assert slept, "it waits before it tries again"


def test_waits_grow_and_end() -> None:
    waits_s = list(Patience(attempts=8, first_wait_s=0.5).waits_s())
    assert waits_s == [0.5, 1, 2, 4, 8, 16, 16]


@pytest.mark.parametrize("status", [429, 503])
def test_a_cluster_that_stays_full_is_said_and_what_it_took_is_remembered(status: int, store: Store) -> None:
    trials = [one.record.id for one in load_result(store, "latest").trials]
    full = {trials[4]: status}
    with far_end(item_status=full) as end:
        said = rf"\b7 attempts \({status}: "
        with pytest.raises(PushFault, match=said):
            pushed(store, end)
        end.item_status = {}
        found = pushed(store, end)
        assert found.before == 4
        assert kept(end) == expected(store)


def test_a_rejected_document_is_named_and_the_others_arrive(store: Store) -> None:
    wanted = expected(store)
    chosen = sorted(one for one, stream in wanted.items() if stream == INTERVALS)[3]
    with far_end(item_status={chosen: 400}) as end:
        found = pushed(store, end)
        assert [str(one) for one in found.sent.rejected] == [f"{INTERVALS} {chosen}: 400: told: to say 400"]
        assert set(wanted) - set(kept(end)) == {chosen}
        end.item_status = {}
        assert pushed(store, end).sent.created == 1, "a trial with a rejected document is tried again"


def test_a_bulk_that_is_too_large_is_halved_and_one_document_that_is_too_large_is_named(store: Store) -> None:
    with far_end(most_documents=7) as end:
        assert pushed(store, end).sent.rejected == []
        assert kept(end) == expected(store)
    with far_end(most_documents=0) as end:
        found = pushed(store, end)
        assert len(found.sent.rejected) == len(expected(store))
        assert found.sent.rejected[0].why.endswith("(413)")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "PRONY_PUSH_API_KEY_FILE"),
        (403, "manage_index_templates"),
        (503, "503: told: no"),
        (429, "429: told: no"),
        (418, "418: told: no"),
    ],
)
def test_a_cluster_that_refuses_everything_is_one_sentence(status: int, said: str, store: Store) -> None:
    with far_end(everywhere=status) as end, pytest.raises(PushFault) as found:
        pushed(store, end)
    assert said in str(found.value)
    assert "\n" not in str(found.value)


def test_a_web_page_in_place_of_a_response_is_one_sentence(store: Store) -> None:
    with (
        far_end(script=["html"]) as end,
        pytest.raises(PushFault, match=re.escape(end.url)),
    ):
        pushed(store, end)


def test_nobody_listens(store: Store) -> None:
    with pytest.raises(PushFault, match=r"^http://127\.0\.0\.1:9 .*: Connection refused$"):
        push(store, "latest", Cluster("http://127.0.0.1:9", BRIEF, sleep=lambda _s: None))


@pytest.mark.parametrize(
    "url", ["", "localhost:9200", "ftp://a", "http://", "http://a:99999", "http://a:9200?x=1"]
)
def test_a_url_that_is_none_is_one_sentence(url: str) -> None:
    with pytest.raises(UsageError):
        Cluster(url)


def test_a_password_is_sent_and_never_said(end: FarEnd, store: Store) -> None:
    with_password = end.url.replace("http://", "http://me:s%40cret@")
    one = Cluster(with_password)
    push(store, "latest", one)
    assert one.where == end.url
    assert set(end.headers) == {"Basic bWU6c0BjcmV0"}
    with pytest.raises(UsageError) as found:
        Cluster("http://me:secret@host:9200?x=1")
    assert "secret" not in str(found.value)


def test_an_api_key_comes_from_a_file(end: FarEnd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "key"
    file.write_text("aGVsbG8=\n")
    monkeypatch.setenv(API_KEY_FILE, str(file))
    Cluster(end.url).prepare()
    assert set(end.headers) == {"ApiKey aGVsbG8="}
    monkeypatch.setenv(API_KEY_FILE, str(tmp_path / "none"))
    with pytest.raises(UsageError, match=re.escape(f"{API_KEY_FILE}={tmp_path}/none")):
        Cluster(end.url)


def test_two_pushes_at_once_leave_each_document_once(store: Store, end: FarEnd, tmp_path: Path) -> None:
    found: list[Pushed] = []
    faults: list[BaseException] = []

    def one() -> None:
        try:
            found.append(push(Store.open(tmp_path / "results.db"), "latest", Cluster(end.url)))
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert kept(end) == expected(store)
    assert sum(one.sent.created for one in found) == len(end.documents)


def test_a_cluster_without_data_streams_gets_indices(store: Store) -> None:
    with far_end(data_streams=False) as end:
        one = cluster(end)
        push(store, "latest", one)
        assert one.data_streams is False
        assert "data_stream" not in end.puts["/_index_template/prony"]
        assert kept(end) == expected(store)


def test_a_newer_template_is_left_alone(store: Store, end: FarEnd) -> None:
    newer = {"version": setup.VERSION + 1, "index_patterns": ["prony-*"]}
    end.puts["/_index_template/prony"] = newer
    pushed(store, end)
    assert end.puts["/_index_template/prony"] == newer


def test_a_running_experiment_is_pushed_trial_by_trial(store: Store, end: FarEnd) -> None:
    identifier = store.experiment("latest").id
    trials = store.trials(identifier)
    said: list[str] = []
    one = cluster(end)
    listener = PushTrials(store, one, said.append)
    listener.begin()
    for number, trial in enumerate(trials[:3], 1):
        listener.trial_stored(trial.record, trial.judgement, trial.figures)
        assert Counter(kept(end).values())[TRIALS] == number
    rest = push(store, identifier, one)
    assert rest.before == 3
    assert kept(end) == expected(store)
    assert said == []


def test_a_trial_that_was_run_again_is_marked_as_such(store: Store, end: FarEnd) -> None:
    """When it was sent nobody knew that a later trial would take its place."""
    identifier = store.experiment("latest").id
    first = store.trials(identifier)[0]
    one = cluster(end)
    listener = PushTrials(store, one, print)
    listener.begin()
    listener.trial_stored(first.record, first.judgement, first.figures)
    again = first.record.model_copy(
        update={
            "id": f"{first.record.id}-2",
            "started_at": first.record.started_at + timedelta(hours=1),
            "ended_at": first.record.ended_at + timedelta(hours=1),
        }
    )
    store.add_trial(again, first.judgement, first.figures)
    listener.trial_stored(again, first.judgement, first.figures)
    push(store, identifier, one)

    def told(trial: str) -> list[tuple[bool, bool]]:
        """In the order of their arrival."""
        return [
            (document["repeated"], document["counts"])
            for document in end.documents.values()
            if document["_stream"] == TRIALS and document["trial"]["id"] == trial
        ]

    assert told(first.record.id) == [(False, True), (True, False)]
    assert told(again.id) == [(False, True)]
    rows = [one["trial"]["id"] for one in end.documents.values() if one["_stream"] == INTERVALS]
    engine = first.record.evidence.engine
    assert engine is not None
    assert rows.count(first.record.id) == len(engine.rows), "its rows are there once"
    assert push(store, identifier, one).sent.created == 0


def test_a_cluster_that_is_down_ends_no_experiment_and_gets_everything_later(store: Store) -> None:
    identifier = store.experiment("latest").id
    trial = store.trials(identifier)[0]
    said: list[str] = []
    with far_end(everywhere=503) as end:
        one = cluster(end, patience=BRIEF)
        listener = PushTrials(store, one, said.append)
        listener.begin()
        for _ in range(3):
            listener.trial_stored(trial.record, trial.judgement, trial.figures)
        assert len(said) == 1, "said once"
        end.everywhere = None
        push(store, identifier, one)
        assert kept(end) == expected(store)
        assert Counter(kept(end).values())[EXPERIMENTS] == 1
