"""An experiment goes from one host's store to another's as it is, once, or not at all."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prony.errors import StoreError, UsageError
from prony.judge.finding import Judgement
from prony.store import Store, transfer
from tests.store.conftest import MakeTrial

Begin = Callable[[], str]


@pytest.fixture
def filled(store: Store, begin: Begin, make_trial: MakeTrial, judgement: Judgement) -> tuple[Store, str]:
    identifier = begin()
    for number in (1, 2, 3):
        store.add_trial(make_trial(identifier, number), judgement, {"requests_per_s": 1.5 * number})
    store.finish_experiment(identifier, "finished")
    return store, identifier


@pytest.fixture
def other(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "other" / "results.db")


def rewrite(path: Path, change: Callable[[list[str]], list[str]]) -> None:
    """Change the lines of an export by hand."""
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    path.write_bytes(gzip.compress("\n".join(change(lines)).encode()))


def test_it_arrives_as_it_was_histograms_included(
    filled: tuple[Store, str], other: Store, tmp_path: Path
) -> None:
    store, identifier = filled
    file = tmp_path / "results.prony"
    assert transfer.write(store, identifier, file) == 3
    assert transfer.read(other, file) == (identifier, 3)
    assert other.trials(identifier) == store.trials(identifier)
    mine, theirs = store.experiment(identifier), other.experiment(identifier)
    assert mine == theirs
    assert theirs.status == "finished"
    engine = other.trials(identifier)[0].record.evidence.engine
    assert engine is not None
    assert engine.window is not None
    assert engine.window.service_time is not None
    assert engine.window.service_time.v2.startswith("HISTF")


def test_reading_it_again_changes_nothing_and_a_later_export_adds_what_is_new(
    filled: tuple[Store, str], other: Store, tmp_path: Path, make_trial: MakeTrial, judgement: Judgement
) -> None:
    store, identifier = filled
    early, late = tmp_path / "early", tmp_path / "late"
    transfer.write(store, identifier, early)
    transfer.read(other, early)
    before = other.trials(identifier)
    assert transfer.read(other, early) == (identifier, 0)
    assert other.trials(identifier) == before
    store.add_trial(make_trial(identifier, 4), judgement, {})
    store.add_judgements({f"{identifier}-001": (judgement, {"requests_per_s": 9})})
    transfer.write(store, identifier, late)
    assert transfer.read(other, late) == (identifier, 1)
    assert other.trials(identifier) == store.trials(identifier)
    assert transfer.read(store, late) == (identifier, 0), "into the store that it came from"
    assert transfer.read(other, early) == (identifier, 0)
    assert len(other.trials(identifier)) == 4


def test_a_running_experiment_arrives_as_interrupted_once_its_process_is_gone(
    store: Store, begin: Begin, other: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identifier = begin()
    monkeypatch.setattr("prony.store.catalogue.owner.is_gone", lambda _owner: True)
    transfer.write(store, identifier, tmp_path / "file")
    transfer.read(other, tmp_path / "file")
    assert other.experiment(identifier).status == "interrupted"


def test_another_experiment_of_the_same_id_is_refused(
    filled: tuple[Store, str], other: Store, tmp_path: Path
) -> None:
    store, identifier = filled
    file = tmp_path / "file"
    transfer.write(store, identifier, file)
    transfer.read(other, file)

    def other_seed(lines: list[str]) -> list[str]:
        header = json.loads(lines[0])
        header["experiment"]["seed"] = "8"
        return _signed([json.dumps(header), *lines[1:-1]])

    rewrite(file, other_seed)
    before = other.trials(identifier)
    with pytest.raises(StoreError, match=identifier):
        transfer.read(other, file)
    assert other.trials(identifier) == before


def test_a_trial_that_differs_from_the_stored_one_is_refused_and_nothing_else_is_taken(
    filled: tuple[Store, str], other: Store, tmp_path: Path, make_trial: MakeTrial, judgement: Judgement
) -> None:
    store, identifier = filled
    file = tmp_path / "file"
    transfer.write(store, identifier, file)
    transfer.read(other, file)
    store.add_trial(make_trial(identifier, 4), judgement, {})
    transfer.write(store, identifier, file)

    def changed(lines: list[str]) -> list[str]:
        lines[1] = lines[1].replace('\\"driver\\":\\"epoll\\"', '\\"driver\\":\\"io_uring\\"')
        return _signed(lines[:-1])

    rewrite(file, changed)
    with pytest.raises(StoreError, match=f"{identifier}-001"):
        transfer.read(other, file)
    assert len(other.trials(identifier)) == 3


def _signed(lines: list[str]) -> list[str]:
    import hashlib

    digest = hashlib.sha256("".join(line + "\n" for line in lines).encode()).hexdigest()
    return [*lines, json.dumps({"sha256": digest})]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: path.write_bytes(b""), "is not an export"),
        (lambda path: path.write_bytes(bytes(range(256)) * 20), "is not an export"),
        (lambda path: path.write_bytes(b"{" + bytes(range(256)) * 20), "is not an export"),
        (lambda path: path.write_bytes(gzip.compress(b'{"a": 1}\n')), "is not an export"),
        (lambda path: path.write_bytes(gzip.compress(b"[1]\n")), "is not an export"),
        (lambda path: path.write_bytes(path.read_bytes()[:-200]), "is damaged"),
        (lambda path: rewrite(path, lambda lines: lines[:-1]), "its end is missing"),
        (lambda path: rewrite(path, lambda lines: [*lines[:1], *lines[2:]]), "its checksum is wrong"),
        (
            lambda path: rewrite(path, lambda lines: _signed([*lines[:1], *lines[2:-1]])),
            "does not understand",
        ),
        (
            lambda path: rewrite(
                path, lambda lines: _signed([lines[0].replace('"version": 2', '"version": 3'), *lines[1:-1]])
            ),
            "version 3 of the format",
        ),
        (lambda path: path.unlink(), "no file"),
    ],
)
def test_what_is_no_export_or_damaged_is_refused_in_one_sentence(
    filled: tuple[Store, str], other: Store, tmp_path: Path, damage: Callable[[Path], object], said: str
) -> None:
    store, identifier = filled
    file = tmp_path / "file"
    transfer.write(store, identifier, file)
    damage(file)
    with pytest.raises(UsageError) as refused:
        transfer.read(other, file)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert other.experiments() == []


def test_an_export_is_written_wholly_or_not_at_all(filled: tuple[Store, str], tmp_path: Path) -> None:
    store, identifier = filled
    with pytest.raises(StoreError, match="missing"):
        transfer.write(store, identifier, tmp_path / "missing" / "file")
    assert [entry.name for entry in tmp_path.iterdir()] == ["data"]


def at_header(change: Callable[[dict[str, Any]], object]) -> Callable[[list[str]], list[str]]:
    """The lines with a changed header, and a checksum that fits."""

    def changed(lines: list[str]) -> list[str]:
        header = json.loads(lines[0])
        change(header)
        return _signed([json.dumps(header), *lines[1:-1]])

    return changed


def at_trial(change: Callable[[dict[str, Any]], object]) -> Callable[[list[str]], list[str]]:
    """The same with the first trial's line."""

    def changed(lines: list[str]) -> list[str]:
        first = json.loads(lines[1])
        change(first)
        return _signed([lines[0], json.dumps(first), *lines[2:-1]])

    return changed


def with_key(key: str) -> Callable[[dict[str, Any]], object]:
    """A fingerprint of this key, everywhere where it stands."""

    def change(it: dict[str, Any]) -> None:
        fingerprint = json.loads(it["experiment"]["fingerprint"]) | {"key": key}
        it["experiment"].update(fingerprint_key=key, fingerprint=json.dumps(fingerprint))

    return change


def with_trial_id(identifier: str) -> Callable[[dict[str, Any]], object]:
    """A trial of this id, everywhere where it stands: files are named by it."""

    def change(it: dict[str, Any]) -> None:
        it["trial"].update(
            id=identifier, record=json.dumps(json.loads(it["trial"]["record"]) | {"id": identifier})
        )
        for judgement in it["judgements"]:
            judgement.update(trial_id=identifier)

    return change


@pytest.mark.parametrize(
    "change",
    [
        at_header(lambda it: it["experiment"].update(created="yesterday")),
        at_header(lambda it: it["experiment"].update(created={"a": 1})),
        at_header(lambda it: it["experiment"].update(status="fine")),
        at_header(lambda it: it["experiment"].update(seed="-1; DROP TABLE trials")),
        at_header(lambda it: it["experiment"].update(id="../../etc/passwd")),
        at_header(lambda it: it["experiment"].update(name="x" * 10_001)),
        at_header(lambda it: it["experiment"].update(spec="[]")),
        at_header(lambda it: it["experiment"].update(owner="me")),
        at_header(lambda it: it["experiment"].pop("fingerprint_key")),
        at_header(lambda it: it["experiment"].update(fingerprint_key="other")),
        at_header(with_key("../../../etc/cron.d/x")),
        at_header(lambda it: it.update(notes=[{"text": "x"}])),
        at_header(lambda it: it.update(notes="x")),
        at_header(lambda it: it.update(experiment=7)),
        at_trial(with_trial_id("../../../etc/cron.d/x")),
        at_trial(with_trial_id("/etc/cron.d/x")),
        at_trial(with_trial_id(".ssh")),
        at_trial(lambda it: it["trial"].update(server="jetty")),
        at_trial(lambda it: it["trial"].update(started="2020-01-01T00:00:00+00:00")),
        at_trial(lambda it: it["trial"].update(block="one")),
        at_trial(lambda it: it["trial"].update(extra=1)),
        at_trial(lambda it: it["trial"].update(record="{}")),
        at_trial(lambda it: it["judgements"][0].update(trial_id="261122-0000-001")),
        at_trial(lambda it: it["judgements"][0].update(conforms=False)),
        at_trial(lambda it: it["judgements"][0].update(made="x")),
        at_trial(lambda it: it["judgements"][0].update(figures="[]")),
        at_trial(lambda it: it.update(judgements=[7])),
    ],
)
def test_rows_that_no_prony_writes_are_refused_before_they_are_stored(
    filled: tuple[Store, str], other: Store, tmp_path: Path, change: Callable[[list[str]], list[str]]
) -> None:
    """Whoever may upload can write any file: one row that cannot be read would break every list."""
    store, identifier = filled
    store.note(identifier, "a note")
    file = tmp_path / "file"
    transfer.write(store, identifier, file)
    rewrite(file, change)
    with pytest.raises(UsageError, match=str(file)) as refused:
        transfer.read(other, file)
    assert "\n" not in str(refused.value)
    assert other.search().total == 0


def test_rows_of_other_names_are_taken(filled: tuple[Store, str], other: Store, tmp_path: Path) -> None:
    """What is refused above is refused for the name alone."""
    store, identifier = filled
    file = tmp_path / "file"
    transfer.write(store, identifier, file)
    rewrite(file, at_header(with_key("0123-abc")))
    rewrite(file, at_trial(with_trial_id(f"{identifier}-001-2")))
    assert transfer.read(other, file) == (identifier, 3)
    assert f"{identifier}-001-2" in {one.record.id for one in other.trials(identifier)}


def test_an_export_that_unpacks_to_too_much_is_refused(
    filled: tuple[Store, str], other: Store, tmp_path: Path
) -> None:
    store, identifier = filled
    file = tmp_path / "file"
    transfer.write(store, identifier, file)
    size = len(gzip.decompress(file.read_bytes()))
    with pytest.raises(UsageError, match=f"{size // 2:,} bytes"):
        transfer.read(other, file, most_bytes=size // 2)
    file.write_bytes(gzip.compress(b"0" * 50_000_000))
    with pytest.raises(UsageError, match="1,000,000 bytes"):
        transfer.read(other, file, most_bytes=1_000_000)
    transfer.write(store, identifier, file)
    assert transfer.read(other, file, most_bytes=2 * size) == (identifier, 3)
