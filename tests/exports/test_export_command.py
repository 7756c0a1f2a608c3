"""`prony results export`: where the content goes, one trial or several, and what is said of a mistake."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from prony.cli import exporting
from prony.cli.exporting import only
from prony.errors import UsageError
from prony.report import exports
from prony.store import Store
from tests.exports.stored import keep
from tests.report import factory


@pytest.fixture
def db(tmp_path: Path) -> str:
    where = str(tmp_path / "results.db")
    keep(Store.open(where), factory.experiment(blocks=1))
    return where


def export(db: str, form: str, output: Path | None = None, *trials: str) -> None:
    given: dict[str, Any] = {"form": form, "trial": list(trials), "output": output, "db": db}
    assert exporting.export("latest", **given) == 0


def test_a_trial_is_named_by_its_id_or_the_end_of_it() -> None:
    view = factory.experiment(blocks=2)
    first = view.trials[0].record.id
    assert [trial.record.id for trial in only(view, [first]).trials] == [first]
    assert [trial.record.id for trial in only(view, [first[2:]]).trials] == [first]
    with pytest.raises(UsageError, match="--trial nothing"):
        only(view, ["nothing"])
    with pytest.raises(UsageError, match="2 trials"):
        only(view, ["spring-jetty"])


@pytest.mark.parametrize("form", [*sorted({*exports.names()} - {"collapsed", "jfr", "pprof"}), "prony"])
def test_every_format_is_written_from_the_store(form: str, db: str, tmp_path: Path) -> None:
    if form == "parquet" and importlib.util.find_spec("pyarrow") is None:
        pytest.skip("pyarrow is not installed: make setup")
    file = tmp_path / "made"
    if form == "hgrm":
        file.mkdir()
    export(db, form, file)
    assert len(list(file.glob("*.hgrm"))) == 3 if form == "hgrm" else file.stat().st_size > 0
    assert not list(tmp_path.glob(".made*"))


def test_a_format_of_one_trial_needs_a_folder_or_a_trial(db: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r" 3: .* --trial 26\d{4}-"):
        export(db, "hgrm", tmp_path / "all.hgrm")
    export(db, "hgrm", tmp_path / "one.hgrm", "-002")
    assert (tmp_path / "one.hgrm").read_text().startswith("       Value     Percentile")


def test_without_a_file_text_goes_to_standard_output(db: str, capfdbinary: Any) -> None:
    export(db, "json")
    assert json.loads(capfdbinary.readouterr().out)["kind"] == "result"


@pytest.mark.parametrize(
    ("form", "trials", "said"),
    [
        ("xml", (), "'xml'"),
        ("prony", (), "-o"),
        ("prony", ("001",), "prony"),
    ],
)
def test_a_mistake_is_one_sentence(form: str, trials: tuple[str, ...], said: str, db: str) -> None:
    with pytest.raises(UsageError) as found:
        export(db, form, None, *trials)
    assert said in str(found.value)
    assert "\n" not in str(found.value)


def test_csv_is_the_short_form(db: str, tmp_path: Path) -> None:
    export(db, "csv", tmp_path / "long")
    assert exporting.csv("latest", form="tidy", output=tmp_path / "short", db=db) == 0
    assert (tmp_path / "long").read_bytes() == (tmp_path / "short").read_bytes()
