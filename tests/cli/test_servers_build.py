"""`prony servers build` and the list of servers, as a user runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.cli.servers import everything
from prony.errors import UsageError
from prony.server.catalogue import Catalogue
from tests.cli.conftest import Run


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "server.yaml").write_text(text, encoding="utf-8")


@pytest.fixture
def servers(tmp_path: Path) -> Path:
    write(tmp_path, "plain", "command: [x]\n")
    write(tmp_path, "python", "build: {tool: pip}\ncommand: ['{python}', '{artifact}/server.py']\n")
    return tmp_path


def test_it_builds_what_is_named_and_says_what_it_did(prony: Run, servers: Path) -> None:
    (servers / "python" / "requirements.txt").write_text("", encoding="utf-8")
    first = prony(servers, "servers", "build", "./python", "./plain")
    assert first.returncode == 0, first.stderr
    assert "python: building with pip and Python" in first.stderr
    assert "built in" in first.stdout
    assert "nothing to build" in first.stdout
    again = prony(servers, "servers", "build", "./python")
    assert again.returncode == 0
    assert "cached" in again.stdout


def test_one_that_fails_keeps_no_other_from_being_built(prony: Run, servers: Path) -> None:
    done = prony(servers, "servers", "build", "./python", "./plain")
    assert done.returncode == 4
    assert "python: the build of python needs a requirements.txt with hashes" in done.stderr
    assert "not built" in done.stdout
    assert "nothing to build" in done.stdout
    assert "Traceback" not in done.stderr


def test_an_unknown_one_is_reported_before_anything_is_built(prony: Run, servers: Path) -> None:
    done = prony(servers, "servers", "build", "./python", "tomkat")
    assert done.returncode == 2
    assert "unknown server 'tomkat', did you mean 'tomcat'?" in done.stderr
    assert "building" not in done.stderr


def test_everything_is_each_server_and_what_is_built_otherwise(tmp_path: Path) -> None:
    write(
        tmp_path,
        "app",
        "command: ['{java}']\nbuild: {tool: maven, artifact: a}\nvariants:\n"
        "  async: {options: {mode: async}}\n  virtual: {jdk: {min: 21}}\n  two: {build: {args: [-Ptwo]}}\n",
    )
    catalogue = Catalogue.load([tmp_path])
    assert [spec.name for spec in everything(catalogue)] == ["app", "app:virtual", "app:two"]
    write(tmp_path, "broken", "nonsense: 1\n")
    with pytest.raises(UsageError, match="unknown key 'nonsense'"):
        everything(Catalogue.load([tmp_path]))


def test_the_list_says_how_variants_are_addressed(prony: Run, tmp_path: Path) -> None:
    done = prony(tmp_path, "servers")
    assert done.returncode == 0
    (tomcat,) = (line for line in done.stdout.splitlines() if line.startswith("tomcat "))
    assert "async|virtual + https|openssl|h2|h2c; published" in tomcat
    assert "tomcat:async+https" in done.stdout
