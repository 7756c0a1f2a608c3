"""`prony results publish`: a folder made from nothing but the file in it, and the author's words are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.report.reading import load_exported
from prony.store import Store, transfer
from prony_serve.publish.command import publish
from prony_serve.publish.figures import BEGIN, END, text
from tests.exports.stored import keep
from tests.report import factory


@pytest.fixture
def db(tmp_path: Path) -> str:
    where = str(tmp_path / "results.db")
    keep(Store.open(where), factory.experiment(blocks=3))
    return where


def block(page: str) -> str:
    return page.split(BEGIN + "\n")[1].split(END)[0]


def test_a_folder_has_the_file_the_page_and_the_figures(
    db: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "made" / "here"
    assert publish("latest", output=folder, db=db) == 0
    assert sorted(one.name for one in folder.iterdir()) == ["README.md", "report.html", "results.prony"]
    view = load_exported(folder / "results.prony")
    said = (folder / "README.md").read_text()
    assert said.startswith(f"# {view.title}\n")
    assert block(said) == text(view)
    assert "prony results import results.prony " in said
    assert str(tmp_path) not in said + (folder / "report.html").read_text(), "a folder has its owner's name"
    page = (folder / "report.html").read_text()
    assert "host-9f2c1a" in page
    assert "lab-7" not in page
    assert capsys.readouterr().out.startswith(f"published {view.id}: ")


def test_the_words_of_an_author_are_kept(db: str, tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(f"# Mine\n\nUndertow is ahead.\n\n{BEGIN}\n{END}\n\nMore.\n")
    publish("latest", output=tmp_path, db=db)
    first = page.read_text()
    assert first.startswith(f"# Mine\n\nUndertow is ahead.\n\n{BEGIN}\n")
    assert first.endswith(f"{END}\n\nMore.\n")
    assert "spring-undertow" in block(first)
    publish("latest", output=tmp_path, db=db)
    assert page.read_text() == first


def test_a_name_that_is_left_is_said(
    db: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "Undertow")  # the title of a server holds it
    publish("latest", output=tmp_path / "out", db=db)
    assert "'Undertow'" in capsys.readouterr().err
    monkeypatch.setattr("getpass.getuser", lambda: "root")
    publish("latest", output=tmp_path / "out", db=db)
    assert "'root'" not in capsys.readouterr().err


def test_the_name_that_publishing_gave_a_host_is_no_leak(
    db: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "root")
    publish("latest", output=tmp_path / "first", db=db)
    other = str(tmp_path / "other.db")
    transfer.read(Store.open(other), tmp_path / "first" / "results.prony")
    assert Store.open(other).experiment("latest").fingerprint.hostname == "host-9f2c1a"
    publish("latest", output=tmp_path / "second", db=other)
    assert capsys.readouterr().err == ""
    files = [tmp_path / one / "results.prony" for one in ("first", "second")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_nothing_is_written_where_it_cannot_be(db: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--output"):
        publish("latest", output=tmp_path / "results.db", db=db)
    folder = tmp_path / "half"
    folder.mkdir()
    (folder / "README.md").write_text(f"{BEGIN}\n")
    with pytest.raises(UsageError, match="<!-- figures"):
        publish("latest", output=folder, db=db)
    assert [one.name for one in folder.iterdir()] == ["README.md"]
    store = Store.open(db)
    factory_row = store.experiment("latest")
    store.resume_experiment(factory_row.id)
    with pytest.raises(UsageError, match=factory_row.id):
        publish("latest", output=tmp_path / "out", db=db)
