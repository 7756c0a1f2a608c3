"""tools/run_tests.py: what fails runs once more, alone, and is not hidden; the exit code is right whatever
failed, and where.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOOL = Path(__file__).resolve().parents[1] / "tools" / "run_tests.py"


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_tests_of_the_test", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@dataclass
class Scripted:
    """A part that comes to this, and its repeat to that."""

    name: str
    outcome: Any
    second: int = 0
    repeated: list[str] = field(default_factory=list)

    def run(self) -> Any:
        return self.outcome

    def end(self, code: int) -> None:
        """Says nothing."""

    def again(self, failures: Sequence[Any]) -> int:
        self.repeated += [one.test for one in failures]
        return self.second


ENDS = {"passed": 0, "lucky": 0, "failed": 1, "broken": 2}
"""How a part can end, and the exit code that this demands: lucky is a failure that passes alone, broken what
is not a test's failure and is not run again.
"""


def scripted(tool: ModuleType, name: str, end: str) -> Scripted:
    if end == "passed":
        return Scripted(name, tool.Outcome(0))
    failures = (tool.Failure(f"{name} test", "x.py:1: it failed"),)
    if end == "broken":
        return Scripted(name, tool.Outcome(2, failures, repeatable=False))
    return Scripted(name, tool.Outcome(1, failures, repeatable=True), second=ENDS[end])


@pytest.mark.parametrize("ends", list(itertools.product(ENDS, ENDS, ENDS)), ids="-".join)
def test_the_exit_code_is_0_only_where_every_test_passed_in_the_end(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, ends: tuple[str, str, str]
) -> None:
    rust, beside, alone = parts = [
        scripted(tool, name, end) for name, end in zip(("rust", "beside", "alone"), ends, strict=True)
    ]
    monkeypatch.setattr(tool, "Cargo", lambda _log: rust)
    monkeypatch.setattr(tool, "Pytest", lambda name, _words: {"beside": beside, "alone": alone}[name])
    code = tool.main(["rust", "beside", "alone"])
    assert code == next((ENDS[end] for end in ends if ENDS[end]), 0)
    for part, end in zip(parts, ends, strict=True):
        assert part.repeated == ([f"{part.name} test"] if end in ("lucky", "failed") else [])


def test_what_failed_first_and_passed_alone_is_listed_at_the_end(tool: ModuleType) -> None:
    said: list[str] = []
    session = tool.Session(said.append)
    session.report()
    assert said == []
    parts = [scripted(tool, "rust", "lucky"), scripted(tool, "beside", "failed")]
    assert session.together(parts) == 1
    said.clear()
    session.report()
    (block,) = said
    assert "1 failed at first and passed alone" in block
    assert "rust: rust test\n    x.py:1: it failed" in block
    assert "beside test" not in block, "pytest has said it"


@pytest.mark.parametrize(("count", "repeated"), [(5, True), (6, False)])
def test_more_than_five_failures_are_no_accident(tool: ModuleType, count: int, repeated: bool) -> None:
    failures = tuple(tool.Failure(f"t{number}", "") for number in range(count))
    part = Scripted("beside", tool.Outcome(1, failures, repeatable=True), second=0)
    assert tool.Session(lambda _: None).together([part]) == (0 if repeated else 1)
    assert bool(part.repeated) is repeated


TESTS = """
from pathlib import Path
import pytest

def first_time(name):
    mark = Path(__file__).parent / f"{name}.mark"
    there = mark.exists()
    mark.touch()
    return not there

def test_right():
    pass

@pytest.mark.parametrize("what", ["a[b]::c d"])
def test_lucky(what):
    assert not first_time("lucky"), "only the second time"

@pytest.fixture
def lucky_fixture():
    assert not first_time("fixture")

def test_fixture(lucky_fixture):
    pass

@pytest.mark.alone
def test_alone():
    pass
"""
WRONG = "def test_wrong():\n    assert 1 == 2\n"
SKIPPED = """
def test_skipped():
    assert not first_time("skipped")
    pytest.skip("not at the second time")
"""
HIDDEN = "import nowhere\n"


def run(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    ini = "[pytest]\nmarkers =\n  alone: as in Prony\naddopts = -p no:cacheprovider\n"
    (folder / "pytest.ini").write_text(ini)
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, str(TOOL), *words],
        cwd=folder, env=plain | env, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("at_once", ["0", "2"])
def test_pytest_runs_again_what_failed(tmp_path: Path, at_once: str) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    done = run(tmp_path, "--at-once", at_once, "beside", "alone")
    assert done.returncode == 0, done.stdout + done.stderr
    block = done.stdout.rpartition("2 failed at first and passed alone")[2]
    assert "beside: test_it.py::test_lucky[a[b]::c d]" in block
    assert "test_it.py:16: AssertionError: only the second time" in block
    assert "beside: test_it.py::test_fixture" in block


@pytest.mark.parametrize("more", [WRONG, SKIPPED], ids=["wrong", "skipped"])
def test_a_failure_that_is_not_put_right_alone_is_red(tmp_path: Path, more: str) -> None:
    (tmp_path / "test_it.py").write_text(TESTS + more)
    done = run(tmp_path, "beside")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "3 failed, and each is run once more" in done.stdout
    assert "failed at first and passed alone" not in done.stdout


def test_tests_that_cannot_be_collected_are_red_at_once(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "test_other.py").write_text(HIDDEN)
    done = run(tmp_path, "beside")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "run once more" not in done.stdout


CARGO = """#!/bin/sh
# Stands in for cargo: prints what it prints, and ends as it ends; --exact asks for the second time.
case "$*" in
  *--exact*) echo "$*" >> asked; cat again; exit "$(cat again-code)" ;;
  *) cat first; echo a warning >&2; exit "$(cat first-code)" ;;
esac
"""
FIRST = """\
     Running unittests src/lib.rs (target/debug/deps/prony_engine-1)

running 2 tests
test pace::tests::it_is_even ... ok
test pace::tests::it_is_late ... FAILED

failures:

---- pace::tests::it_is_late stdout ----

thread 'pace::tests::it_is_late' (417) panicked at src/pace.rs:12:9:
late by 7 ms
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace


failures:
    pace::tests::it_is_late

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s

error: test failed, to rerun pass `-p prony-engine --lib`
     Running tests/run_open.rs (target/debug/deps/run_open-2)

running 1 test
test all_is_well ... ok

test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

error: 1 target failed:
    `-p prony-engine --lib`
"""
AGAIN = "test pace::tests::it_is_late ... ok\n\ntest result: ok. {} passed; 0 failed; 0 ignored; 0 measured\n"
DIED = """\
error: test failed, to rerun pass `--test run_load`

Caused by:
  process didn't exit successfully: `target/debug/deps/run_load-3` (signal: 6, SIGABRT: process abort signal)
"""


def with_cargo(folder: Path, first: str, code: int, again: str = "", again_code: int = 0) -> Any:
    cargo = folder / "cargo"
    cargo.write_text(CARGO)
    cargo.chmod(0o755)
    for name, text in (("first", first), ("first-code", code), ("again", again), ("again-code", again_code)):
        (folder / name).write_text(str(text))
    return run(folder, "rust", CARGO=str(cargo))


def test_a_rust_test_runs_again_by_its_name_in_its_binary(tmp_path: Path) -> None:
    done = with_cargo(tmp_path, FIRST, 101, AGAIN.format(1))
    assert done.returncode == 0, done.stdout + done.stderr
    (asked,) = (tmp_path / "asked").read_text().splitlines()
    assert asked.endswith("-p prony-engine --lib -- --exact --test-threads=1 pace::tests::it_is_late")
    block = done.stdout.rpartition("1 failed at first and passed alone")[2]
    assert "rust: pace::tests::it_is_late\n    src/pace.rs:12:9: late by 7 ms" in block


@pytest.mark.parametrize(("again", "code"), [(AGAIN.format(0), 0), (AGAIN.format(1), 101)])
def test_a_rust_test_that_does_not_pass_alone_is_red(tmp_path: Path, again: str, code: int) -> None:
    assert with_cargo(tmp_path, FIRST, 101, again, code).returncode != 0


@pytest.mark.parametrize("first", [FIRST + DIED, DIED, "error[E0432]: unresolved import `nowhere`\n"])
def test_rust_tests_that_did_not_all_run_are_red_at_once(tmp_path: Path, first: str) -> None:
    done = with_cargo(tmp_path, first, 101, AGAIN.format(1))
    assert done.returncode == 101
    assert not (tmp_path / "asked").exists()
    assert first.strip() in done.stdout


def test_of_rust_tests_that_pass_a_line_is_printed(tmp_path: Path) -> None:
    passed = FIRST.partition("error: test failed")[0].replace("FAILED. 1 passed; 1", "ok. 2 passed; 0")
    done = with_cargo(tmp_path, passed, 0)
    assert (done.returncode, done.stdout) == (0, "Rust: 2 tests passed, 0 ignored\n")
