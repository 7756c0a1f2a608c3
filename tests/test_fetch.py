"""tools/fetch.py: what the PATH has is left alone, a version appears whole or not at all, and whatever goes
wrong is a sentence; and a test that needs a program is skipped without it, but in CI.
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


@pytest.mark.parametrize(("everywhere", "code", "outcome"), [("", 0, "SKIPPED"), ("1", 1, "ERROR")])
def test_a_missing_program_is_a_reason_to_skip_but_in_ci(
    everywhere: str, code: int, outcome: str, tmp_path: Path
) -> None:
    bare = {"PATH": str(tmp_path), "PRONY_CACHE": str(tmp_path), "PRONY_TEST_ALL": everywhere}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rsE", "-p", "no:cacheprovider", "-n0",
         "tests/store/test_store_postgresql.py"],
        cwd=ROOT, env=os.environ | bare, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    assert outcome in done.stdout
    assert "postgresql is not installed: tools/fetch.py postgresql" in done.stdout


def make(*wanted: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`make` as CI calls it, with a folder before the PATH."""
    outer = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    first = f"{path}{os.pathsep}{os.environ['PATH']}" if path is not None else os.environ["PATH"]
    return subprocess.run(
        ["make", "--no-print-directory", *wanted], cwd=ROOT, timeout=120, check=False,
        env=outer | {"PRONY_TEST_ALL": "1", "PATH": first}, capture_output=True, text=True,
    )  # fmt: skip


def test_a_program_that_cannot_be_had_ends_no_other_test() -> None:
    done = make("test-programs", "PYTHON=false")
    assert done.returncode == 0, done.stderr
    assert "the tests that need what is missing will say so" in done.stdout.splitlines()


@pytest.mark.parametrize(("cpus", "tests"), [(1, 0), (2, 3), (32, 32)])
def test_as_many_tests_run_at_a_time_as_the_host_has_cpus(cpus: int, tests: int, tmp_path: Path) -> None:
    nproc = tmp_path / "nproc"
    nproc.write_text(f"#!/bin/sh\necho {cpus}\n")
    nproc.chmod(0o755)
    done = make("-n", "test-beside", path=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"--at-once {tests} beside" in done.stdout
