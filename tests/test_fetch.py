"""tools/fetch.py: what the PATH has is left alone, a version appears whole or not at all, and whatever goes
wrong is a sentence.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def fetch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("fetch", ROOT / "tools" / "fetch.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fetch", module)
    spec.loader.exec_module(module)
    monkeypatch.setenv("PRONY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "PINNED", tmp_path / "pinned")
    for name in ("good", "bad"):
        (tmp_path / "pinned" / name).mkdir(parents=True)
        (tmp_path / "pinned" / name / "version").write_text("1")

    def good(pinned: Path, folder: Path) -> None:
        module.script(folder / "bin" / "good", f"echo {(pinned / 'version').read_text()}")

    def bad(_: Path, folder: Path) -> None:
        (folder / "half").touch()
        module.run("sh", "-c", "echo the registry is down >&2; exit 7")

    programs = {"good": module.Program(good, ("good",)), "bad": module.Program(bad, ("bad",))}
    monkeypatch.setattr(module, "PROGRAMS", programs)
    return module


def test_a_version_is_fetched_once_and_the_next_takes_its_place(fetch: ModuleType, tmp_path: Path) -> None:
    program = tmp_path / "cache" / "programs" / "good" / "bin" / "good"
    assert fetch.main(["good"]) == 0
    first = program.resolve()
    assert subprocess.check_output([program], text=True) == "1\n"
    assert fetch.main(["good"]) == 0
    assert program.resolve() == first
    (tmp_path / "pinned" / "good" / "version").write_text("2")
    assert fetch.main(["good"]) == 0
    assert subprocess.check_output([program], text=True) == "2\n"
    assert not first.exists()


def test_what_the_path_has_is_left_alone(
    fetch: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = tmp_path / "programs" / "good"
    fetch.script(here, "echo mine")
    monkeypatch.setenv("PATH", str(here.parent), prepend=os.pathsep)
    assert fetch.main(["good"]) == 0
    assert capsys.readouterr().out == f"good: {here}\n"
    assert not (tmp_path / "cache").exists()


def test_one_that_fails_is_a_sentence_and_the_other_is_there(
    fetch: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fetch.main(["bad", "good"]) == 1
    told = capsys.readouterr()
    assert told.err == "bad could not be fetched: sh failed with 7: the registry is down\n"
    assert "good: " in told.out
    assert {one.name.partition("-")[0] for one in (tmp_path / "cache" / "programs").iterdir()} == {"good"}


def test_an_unknown_name_is_refused(fetch: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert fetch.main(["gatling"]) == 2
    assert "found ['gatling'], known are good, bad" in capsys.readouterr().out
