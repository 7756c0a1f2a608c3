"""The commit of a server's sources, from repositories that the tests make."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from prony.server import build as building
from prony.server.build import build, commit_of
from prony.server.catalogue import Catalogue
from prony.server.launch import identity_of

WHO = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *WHO, *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A server that needs no build, in a repository of its own beside another folder."""
    app = tmp_path / "servers" / "app"
    app.mkdir(parents=True)
    (app / "server.yaml").write_text("command: [/bin/cat]\nversions: {app: '3'}\n", encoding="utf-8")
    (tmp_path / "servers" / "README").write_text("servers\n", encoding="utf-8")
    (tmp_path / "servers" / ".gitignore").write_text("installed/\n", encoding="utf-8")
    git(tmp_path / "servers", "init", "--quiet")
    git(tmp_path / "servers", "add", ".")
    git(tmp_path / "servers", "commit", "--quiet", "--message", "first")
    return app


def test_a_built_server_names_the_commit_of_its_sources(app: Path) -> None:
    spec = Catalogue.load([app.parent]).resolve("app")
    (made,) = build([spec])
    assert identity_of(made).versions == {"app": "3", "commit": git(app, "rev-parse", "HEAD")[:12]}


def test_a_server_yaml_may_name_another(app: Path) -> None:
    (app / "server.yaml").write_text("command: [/bin/cat]\nversions: {commit: v1.2}\n", encoding="utf-8")
    (made,) = build([Catalogue.load([app.parent]).resolve("app")])
    assert identity_of(made).versions == {"commit": "v1.2"}


def test_what_differs_from_the_commit_is_told(app: Path) -> None:
    clean = git(app, "rev-parse", "HEAD")[:12]
    (app.parent / "README").write_text("changed\n", encoding="utf-8")
    assert commit_of(app) == clean, "a file beside the server's folder is no source of it"

    (app / "gate.xml").write_text("<testsuites/>\n", encoding="utf-8")
    assert commit_of(app) == clean, "a file that git does not know"
    (app / "server.yaml").write_text("command: [/bin/true]\n", encoding="utf-8")
    assert commit_of(app) == f"{clean}-dirty"
    git(app, "add", "server.yaml")
    assert commit_of(app) == f"{clean}-dirty"
    git(app, "commit", "--quiet", "--message", "second")
    assert commit_of(app) == git(app, "rev-parse", "HEAD")[:12] != clean


def test_no_commit_is_made_up(app: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert commit_of(elsewhere) is None, "no repository"

    git(elsewhere, "init", "--quiet")
    assert commit_of(elsewhere) is None, "a repository without a commit"

    installed = app.parent / "installed"
    installed.mkdir()
    (installed / "server.yaml").write_text("command: [cat]\n", encoding="utf-8")
    assert commit_of(installed) is None, "ignored: it is not what this repository has"

    added = app.parent / "added"
    added.mkdir()
    (added / "server.yaml").write_text("command: [cat]\n", encoding="utf-8")
    assert commit_of(added) is None, "not in the commit"
    assert commit_of(tmp_path / "missing") is None


def test_a_hook_of_another_repository_does_not_lead_astray(
    app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "no-index"))
    found = commit_of(app)
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_INDEX_FILE")
    assert found == git(app, "rev-parse", "HEAD")[:12]


def test_without_git_or_in_no_time_it_is_not_known(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "GIT_TIMEOUT_S", 0.0)
    assert commit_of(app) is None
    monkeypatch.undo()
    monkeypatch.setenv("PATH", "")
    assert commit_of(app) is None
