"""A file from anybody: one value that no Prony writes is refused at the door by its name, and a row that an
earlier Prony let in keeps nobody from the others.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text as sql

from prony.errors import StoreError, UsageError
from prony.evidence.host import Fingerprint
from prony.judge.finding import Judgement
from prony.store import Search, Store, transfer
from prony_serve.trends.stored import series_names, series_trials
from tests.cli.conftest import prony
from tests.exports.stored import keep
from tests.report import factory
from tests.store.conftest import MakeTrial
from tests.web.conftest import reader

__all__ = ["prony"]
Lines = list[dict[str, Any]]
Change = Callable[[Lines], object]
PAGES = ("/", "/trends", "/changes", "/changes.atom", "/hosts", "/api/results", "/api/trends", "/api/running")


def lines_of(file: Path) -> Lines:
    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).decode().splitlines()][:-1]


def signed(lines: Lines) -> bytes:
    encoded = "".join(json.dumps(line) + "\n" for line in lines)
    last = json.dumps({"sha256": hashlib.sha256(encoded.encode()).hexdigest()})
    return gzip.compress((encoded + last + "\n").encode(), mtime=0)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    """The lines of an export with a note and three trials."""
    folder = tmp_path_factory.mktemp("export")
    store = Store.open(folder / "results.db")
    identifier = keep(store, replace(factory.experiment(blocks=1), title="theirs"))
    store.note(identifier, "a note")
    transfer.write(store, identifier, folder / "file")
    store.close()
    return lines_of(folder / "file")


def within(key: str, **values: object) -> Callable[[dict[str, Any]], object]:
    """Other values within a column that is JSON; one that is `...` is taken out."""

    def change(row: dict[str, Any]) -> None:
        inner = json.loads(row[key])
        for path, value in values.items():
            at = inner
            *way, last = path.split("__")
            for name in way:
                at = at[name]
            at[last] = value
        row[key] = json.dumps(inner)

    return change


def experiment(**values: object) -> Change:
    return lambda lines: lines[0]["experiment"].update(values)


def with_twice(row: dict[str, Any], column: str, key: str) -> None:
    row[column] = f'{{"{key}": 1, {row[column][1:]}'


def host(**values: object) -> Change:
    return lambda lines: within("fingerprint", **values)(lines[0]["experiment"])


def note(**values: object) -> Change:
    return lambda lines: lines[0]["notes"][0].update(values)


def trial(**values: object) -> Change:
    return lambda lines: lines[1]["trial"].update(values)


def record(**values: object) -> Change:
    return lambda lines: within("record", **values)(lines[1]["trial"])


def judged(**values: object) -> Change:
    return lambda lines: lines[1]["judgements"][0].update(values)


def figure(value: object, name: str = "p99_ms") -> Change:
    return lambda lines: within("figures", **{name: value})(lines[1]["judgements"][0])


UNIX: tuple[object, ...] = (
    1764223200,
    1764223200.5,
    "1764223200",
    "1764223200000",
    "1764223200.5",
    -1,
    10**30,
    None,
    True,
    {},
)
ODD_TIMES = (
    "yesterday",
    "2026-11-21",
    "2026-11-21T12:00:00",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-12:00",
    "",
)
NO_NUMBERS: tuple[object, ...] = (
    float("nan"),
    float("inf"),
    float("-inf"),
    "3.5",
    "",
    None,
    True,
    [],
    {},
    10**19,
    10**400,
    -(10**400),
    1e300,
)
REFUSED: list[tuple[str, Change]] = [
    *(("experiment.created", experiment(created=value)) for value in (*UNIX, *ODD_TIMES)),
    *(("experiment.ended", experiment(ended=value)) for value in (*UNIX, *ODD_TIMES) if value is not None),
    *(("note.made", note(made=value)) for value in (*UNIX, *ODD_TIMES)),
    *((".started", trial(started=value)) for value in (*UNIX, *ODD_TIMES)),
    *((".ended", trial(ended=value)) for value in UNIX),
    *((".made", judged(made=value)) for value in (*UNIX, *ODD_TIMES)),
    *(("record.started_at", record(started_at=value)) for value in (*UNIX, *ODD_TIMES)),
    *(("record.ended_at", record(ended_at=value)) for value in UNIX),
    *(("figure p99_ms", figure(value)) for value in NO_NUMBERS),
    ("a figure is named", figure(1.0, "<script>")),
    ("a figure is named", figure(1.0, "x" * 101)),
    ("a figure is named", figure(1.0, "\ud800")),
    (".figures", judged(figures="[1]")),
    (".figures", judged(figures="{")),
    (".figures", judged(figures="NaN")),
    (".figures", judged(figures={"p99_ms": 1})),
    (".figures", judged(figures='{"p99_ms": ' + "9" * 5000 + "}")),
    ('"p99_ms" twice', judged(figures='{"p99_ms": 1, "p99_ms": 2}')),
    ('"seed" twice', lambda lines: with_twice(lines[1]["trial"], "record", "seed")),
    ('"title" twice', lambda lines: with_twice(lines[0]["experiment"], "spec", "title")),
    ('"key" twice', lambda lines: with_twice(lines[0]["experiment"], "fingerprint", "key")),
    ("spec.title", lambda lines: within("spec", title="\ud800")(lines[0]["experiment"])),
    ("a key of experiment.spec", lambda lines: within("spec", **{"\ud800": 1})(lines[0]["experiment"])),
    ("spec.cells.0", lambda lines: within("spec", cells=[1])(lines[0]["experiment"])),
    ("spec.parts", lambda lines: within("spec", parts=[])(lines[0]["experiment"])),
    ("spec.command", lambda lines: within("spec", command=7)(lines[0]["experiment"])),
    ("record.evidence.server.title", record(evidence__server__title="\udfff")),
    ("record.block", record(block=10**30)),
    (".block", trial(block=10**30)),
    (".block", trial(block="1")),
    (".block", trial(block=True)),
    (".quick", trial(quick="yes")),
    ("experiment.quick", experiment(quick=1)),
    ("experiment.quick", experiment(quick="true")),
    ("experiment.seed", experiment(seed=7)),
    ("experiment.name", experiment(name="a\x00b")),
    ("experiment.name", experiment(name="\ud800")),
    ("experiment.name", experiment(name=None)),
    (".server", trial(server="x" * 129)),
    ("note.text", note(text="\x00")),
    ("note.made_by", note(made_by=7)),
    ("fingerprint.memory_bytes", host(memory_bytes=10**30)),
    ("fingerprint.cpu_max_mhz", host(cpu_max_mhz=float("nan"))),
    ("fingerprint.cpu_max_mhz", host(cpu_max_mhz=float("inf"))),
    ("spec.seed", lambda lines: within("spec", seed=10**30)(lines[0]["experiment"])),
    ("experiment.spec", experiment(spec='{"a": ' + "[" * 100_000 + "]" * 100_000 + "}")),
    ("experiment.spec", experiment(spec='{"a": ' + "[" * 700 + '"password=abc"' + "]" * 700 + "}")),
    ("record.evidence.engine.elapsed_ms", record(evidence__engine__elapsed_ms="fast")),
    ("record.evidence.engine.totals.sent", record(evidence__engine__totals__sent=10**30)),
    ("record.evidence.engine.totals.sent", record(evidence__engine__totals__sent=float("nan"))),
    ("judgement.conforms", lambda lines: within("judgement", conforms="good")(lines[1]["judgements"][0])),
    ("judgements", lambda lines: lines[1].update(judgements={"a": 1})),
    ("notes", lambda lines: lines[0].update(notes={"a": 1})),
    ("trial", lambda lines: lines[1].update(trial=[1])),
    ("trials are there", lambda lines: lines[0].update(trials="2")),
]  # fmt: skip


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with a result of its own, which only refused files are read into."""
    store = Store.open(tmp_path_factory.mktemp("other") / "results.db")
    _with_own(store)
    yield store
    store.close()


def _with_own(store: Store) -> str:
    return keep(store, replace(factory.experiment(blocks=3), title="mine"))


def changed(exported: Lines, change: Change) -> bytes:
    lines: Lines = json.loads(json.dumps(exported))
    change(lines)
    return signed(lines)


@pytest.mark.parametrize(("field", "change"), REFUSED)
def test_a_value_that_is_none_is_refused_by_its_name(
    exported: Lines, other: Store, tmp_path: Path, field: str, change: Change
) -> None:
    file = tmp_path / "file"
    file.write_bytes(changed(exported, change))
    with pytest.raises(UsageError) as refused:
        transfer.read(other, file)
    sentence = str(refused.value)
    assert field in sentence
    assert "\n" not in sentence
    assert len(sentence) < 600
    assert [one.name for one in other.search().experiments] == ["mine"]


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("2026-11-21T12:00:00Z", "2026-11-21T12:00:00+00:00"),
        ("2026-11-21T13:30:00+01:30", "2026-11-21T12:00:00+00:00"),
        ("2026-11-21 12:00:00.5+00:00", "2026-11-21T12:00:00.500000+00:00"),
    ],
)
def test_a_time_of_another_zone_is_stored_in_utc_as_all_are(
    exported: Lines, tmp_path: Path, given: str, stored: str
) -> None:
    store = Store.open(tmp_path / "results.db")
    file = tmp_path / "file"
    file.write_bytes(changed(exported, experiment(created=given)))
    identifier, _ = transfer.read(store, file)
    assert store.raw(identifier).experiment["created"] == stored
    assert transfer.read(store, file) == (identifier, 0), "it is the same experiment"
    store.close()


# -- whatever a file holds: it is refused, or everything can be shown

_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20),
    st.sampled_from([*UNIX, *NO_NUMBERS]), st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)  # fmt: skip
_JSON_COLUMNS = ("spec", "fingerprint", "record", "judgement", "figures")


def _places(value: object, way: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """The way to every value; `json` in it leads into the JSON of a column."""
    if way:
        yield way
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _places(inner, (*way, key))
            if key in _JSON_COLUMNS and isinstance(inner, str):
                yield from _places(json.loads(inner), (*way, key, json))
    elif isinstance(value, list):
        for at, inner in enumerate(value[:3]):
            yield from _places(inner, (*way, at))


def _put(value: Any, way: tuple[object, ...], new: object) -> Any:
    if not way:
        return new
    key, *rest = way
    if key is json:
        return json.dumps(_put(json.loads(value), tuple(rest), new))
    value[key] = _put(value[key], tuple(rest), new)
    return value


@pytest.fixture(scope="module")
def filling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    store = Store.open(tmp_path_factory.mktemp("filling") / "results.db")
    _with_own(store)
    yield store
    store.close()


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), value=_VALUES)
def test_whatever_a_file_holds_everything_else_can_be_shown(
    exported: Lines, filling: Store, tmp_path: Path, data: st.DataObject, value: object
) -> None:
    way = data.draw(st.sampled_from(list(_places(exported))))
    lines = _put(json.loads(json.dumps(exported)), way, value)
    file = tmp_path / "file"
    file.write_bytes(signed(lines))
    try:
        identifier, _ = transfer.read(filling, file)
    except (UsageError, StoreError):
        return
    try:
        found = filling.search()
        assert {one.name for one in found.experiments} >= {"mine"}
        assert found.unreadable == ()
        site = reader(filling)
        assert [site.get(page).status for page in PAGES] == [200] * len(PAGES)
        for name in series_names(filling):
            series_trials(filling, name.server, name.workload, name.load_name)
    finally:
        filling.remove(identifier)


# -- rows that are there already


BAD_ROWS = [
    ("UPDATE experiments SET created = '1764223200' WHERE name = 'theirs'", "created"),
    ("UPDATE experiments SET created = '9764223200' WHERE name = 'theirs'", "created"),
    ("UPDATE experiments SET ended = '1764223200.5' WHERE name = 'theirs'", "ended"),
    ("UPDATE notes SET made = '1764223200'", "note"),
    ("UPDATE trials SET started = '1764223200' WHERE experiment_id = :id", ""),
    ("UPDATE trial_summaries SET figures = 'x' WHERE trial_id LIKE :id || '%'", ""),
    ("UPDATE trial_summaries SET versions = '[]' WHERE trial_id LIKE :id || '%'", ""),
    ("UPDATE judgements SET made = '1764223200' WHERE trial_id LIKE :id || '%'", ""),
    *(
        (
            f"UPDATE {table} SET figures = '{{\"p99_ms\": {value}, \"requests_per_s\": {value}}}' "
            "WHERE trial_id LIKE :id || '%'",
            "",
        )
        for table in ("judgements", "trial_summaries")
        for value in ("NaN", "Infinity", '"3"', "null", "1" + "0" * 400, "[1]")
    ),
    ("UPDATE experiments SET spec = '{\"command\": \"aa\", \"schema\": 2}' WHERE name = 'theirs'", ""),
    ("UPDATE experiments SET spec = '{\"command\": \"aa\", \"cells\": [1]}' WHERE name = 'theirs'", ""),
    ("UPDATE experiments SET spec = replace(spec, '\"command\": \"compare\"', '\"command\": \"aa\"')", ""),
    ("UPDATE experiments SET spec = 'x' WHERE name = 'theirs'", ""),
    ("UPDATE experiments SET fingerprint = '{}' WHERE name = 'theirs'", ""),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "named"), BAD_ROWS)
def test_a_bad_row_that_is_there_is_named_and_hides_nothing(
    exported: Lines, tmp_path: Path, statement: str, named: str
) -> None:
    store = Store.open(tmp_path / "results.db")
    own = _with_own(store)
    file = tmp_path / "file"
    file.write_bytes(signed(exported))
    identifier, _ = transfer.read(store, file)
    with store._database.writing() as connection:
        connection.execute(sql(statement), {"id": identifier} if ":id" in statement else {})
        if "spec" in statement:  # an A/A experiment is looked for by every other result of its host
            connection.execute(sql("UPDATE experiment_summaries SET command = 'aa'"))
    found = store.search()
    assert "mine" in {one.name for one in found.experiments}
    assert [named in one.sentence and one.experiment_id == identifier for one in found.unreadable] == (
        [True] if named else []
    )
    assert store.experiment(own).name == "mine"
    assert {one.name for one in store.experiments()} >= {"mine"}
    site = reader(store)
    report = [f"/api/results/{own}"] if "spec" in statement else []
    for page in (*PAGES, *report):
        assert site.get(page).status == 200, page
    if named:
        assert identifier in site.get("/").text
        assert identifier in site.get("/api/results").json()["unreadable"][0]
    for name in series_names(store):
        of = {"server": name.server, "workload": name.workload, "load": name.load_name}
        assert site.get("/trend?" + "&".join(f"{key}={value}" for key, value in of.items())).status == 200
    said = site.get(f"/api/results/{identifier}")
    assert said.status in (200, 503)
    assert identifier in said.text
    assert "defect" not in said.text
    store.close()


def test_latest_is_the_newest_that_can_be_read(exported: Lines, tmp_path: Path) -> None:
    store = Store.open(tmp_path / "results.db")
    own = _with_own(store)
    file = tmp_path / "file"
    file.write_bytes(signed(exported))
    identifier, _ = transfer.read(store, file)
    with store._database.writing() as connection:
        connection.execute(sql("UPDATE experiments SET created = '9764223200' WHERE name = 'theirs'"))
    assert store.experiment("latest").id == own
    with pytest.raises(StoreError, match="created"):
        store.experiment(identifier)
    assert store.remove(identifier), "what nobody can read can be removed"
    assert store.search(Search()).unreadable == ()
    store.close()


def test_the_command_lists_the_others_and_names_it(
    exported: Lines, tmp_path: Path, prony: Callable[..., Any]
) -> None:
    where = tmp_path / "results.db"
    store = Store.open(where)
    _with_own(store)
    (tmp_path / "file").write_bytes(signed(exported))
    identifier, _ = transfer.read(store, tmp_path / "file")
    with store._database.writing() as connection:
        connection.execute(sql("UPDATE experiments SET created = '1764223200' WHERE name = 'theirs'"))
    store.close()
    listed = prony(tmp_path, "results", "list", "--db", str(where))
    assert listed.returncode == 0
    assert "mine" in listed.stdout
    assert f'{identifier} cannot be read: created is "1764223200"' in listed.stderr
    pruned = prony(tmp_path, "results", "prune", "--keep", "5", "--delete", "--db", str(where))
    assert pruned.returncode == 0
    assert identifier in pruned.stdout
    again = prony(tmp_path, "results", "list", "--db", str(where))
    assert (again.stderr, "mine" in again.stdout) == ("", True)


def test_a_figure_that_came_to_no_number_is_not_stored(
    store: Store, fingerprint: Fingerprint, make_trial: MakeTrial, judgement: Judgement
) -> None:
    identifier = store.create_experiment(name="x", spec={}, fingerprint=fingerprint, seed=1, quick=False)
    store.add_trial(make_trial(identifier), judgement, {"a": float("nan"), "b": float("inf"), "c": 1.0})
    (found,) = store.trials(identifier)
    assert (found.figures, found.judgements[-1].odd) == ({"c": 1.0}, ())
