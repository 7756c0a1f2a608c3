"""Runs the parts of the tests, and what failed in a part once more, alone; a plugin of pytest for that.

`tools/run_tests.py [--at-once N] PART…`, of rust, beside and alone: the first two side by side, then alone.
A machine that is busy, as it is by design in the first two, may make a test fail that is right. At most
MOST_AGAIN failures of a part run again, one at a time with nothing beside them; more are no accident. The
exit code is 0 only if every test passed, at the second time at the latest. What failed first and passed
alone is listed at the end with the first failure: it depends on luck, and is to be mended.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

MOST_AGAIN = 5
"""Failures of a part that run once more; with more of them the part is red at once."""
SIDE_BY_SIDE = ("rust", "beside")
RECORD = "PRONY_TEST_RECORD"
"""In the environment of pytest: the file into which the plugin writes."""
RULE = "=" * 78


@dataclass(frozen=True, slots=True)
class Failure:
    """A test that failed."""

    test: str
    """Its name, as its part takes it to run it again."""
    why: str
    """The last line of the failure."""
    target: str = ""
    """Of a Rust test: cargo's words for the binary that it is in."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run of tests."""

    code: int
    failures: tuple[Failure, ...] = ()
    repeatable: bool = False
    """Whether nothing but these tests failed: what cannot be collected or compiled is not run again."""


class Part(Protocol):
    """Some of the tests, by one tool."""

    name: str

    def run(self) -> Outcome:
        """All of them."""

    def end(self, code: int) -> None:
        """Prints what was held back while other parts printed."""

    def again(self, failures: Sequence[Failure]) -> int:
        """These once more, one at a time; the exit code, 0 only if each of them ran and passed."""


@dataclass(slots=True)
class Pytest:
    """The Python tests with or without the marker `alone`."""

    name: str
    words: tuple[str, ...]

    def run(self) -> Outcome:
        code, record = self._pytest("--durations=15", "--durations-min=1", *self.words)
        failures = tuple(Failure(test, why) for test, why in record.get("failed", {}).items())
        return Outcome(code, failures, repeatable=code == 1)  # 2 and more: interrupted, not collected, …

    def end(self, code: int) -> None:
        """Nothing was."""

    def again(self, failures: Sequence[Failure]) -> int:
        tests = [one.test for one in failures]
        code, record = self._pytest(*tests)
        return code or int(not set(tests) <= set(record.get("passed", ())))

    def _pytest(self, *words: str) -> tuple[int, dict[str, Any]]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "record.json"
            path = os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))))
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-p", Path(__file__).stem, *words],
                env=os.environ | {RECORD: str(file), "PYTHONPATH": path},
                check=False,
            )
            return done.returncode, json.loads(file.read_text()) if file.exists() else {}


@dataclass(slots=True)
class Cargo:
    """The Rust tests, whose output is printed at their end: of tests that passed, a line."""

    log: Path
    name: str = "rust"
    command: tuple[str, ...] = ("test", "--locked", "--manifest-path", "engine/Cargo.toml")

    def run(self) -> Outcome:
        code, said = self._cargo("--no-fail-fast")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.write_text(said, encoding="utf-8")
        failures, whole = failed_in(said)
        return Outcome(code, failures, repeatable=whole)

    def end(self, code: int) -> None:
        said = self.log.read_text(encoding="utf-8")
        passed, ignored = counted(said)
        print(said if code else f"Rust: {passed} tests passed, {ignored} ignored", flush=True)

    def again(self, failures: Sequence[Failure]) -> int:
        code = 0
        for target in dict.fromkeys(one.target for one in failures):
            tests = [one.test for one in failures if one.target == target]
            ended, said = self._cargo(*shlex.split(target), "--", "--exact", "--test-threads=1", *tests)
            print(said, flush=True)
            code = code or ended or int(counted(said)[0] != len(tests))
        return code

    def _cargo(self, *words: str) -> tuple[int, str]:
        done = subprocess.run(
            [os.environ.get("CARGO", "cargo"), *self.command, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        return done.returncode, done.stdout


def failed_in(said: str) -> tuple[tuple[Failure, ...], bool]:
    """The tests that failed by the output of `cargo test --no-fail-fast`, and whether they are all that went
    wrong: not where something was not built, or a binary ended before its tests had.
    """
    failures: list[Failure] = []
    names: list[str] = []
    whole = True
    for line in said.splitlines():
        if found := re.fullmatch(r"test (\S+)(?: - should panic)? \.\.\. FAILED", line):
            names.append(found[1])
        elif found := re.fullmatch(r"error: (?:doc)?test failed, to rerun pass `(.+)`", line):
            failures += [Failure(name, _panic(said, name), found[1]) for name in names]
            whole = whole and bool(names)
            names = []
        elif line.lstrip().startswith("process didn't exit successfully"):
            whole = False  # by a signal: whatever it had not come to was not run
    return tuple(failures), whole and bool(failures) and not names


def _panic(said: str, name: str) -> str:
    """The line below `thread NAME panicked at …`, which is the message."""
    found = re.search(rf"^thread '{re.escape(name)}'.* panicked at (.+):\n(.*)$", said, re.MULTILINE)
    return "" if found is None else f"{found[1]}: {found[2]}"


def counted(said: str) -> tuple[int, int]:
    """Tests that passed and that were ignored, over all binaries."""
    rows = re.findall(r"^test result: .* (\d+) passed; \d+ failed; (\d+) ignored", said, re.MULTILINE)
    return sum(int(passed) for passed, _ in rows), sum(int(ignored) for _, ignored in rows)


@dataclass(slots=True)
class Session:
    """Runs parts, and keeps what failed first and passed alone."""

    say: Callable[[str], None]
    passed_alone: list[tuple[str, Failure]] = field(default_factory=list)

    def together(self, parts: Sequence[Part]) -> int:
        """Side by side; then, one part after the other, what failed in it. The first exit code that is not 0
        of the parts in their order.
        """
        with ThreadPoolExecutor(max(1, len(parts))) as threads:
            outcomes = list(threads.map(lambda part: part.run(), parts))
        for part, outcome in zip(parts, outcomes, strict=True):
            part.end(outcome.code)
        codes = [self._settled(part, outcome) for part, outcome in zip(parts, outcomes, strict=True)]
        return next(filter(None, codes), 0)

    def _settled(self, part: Part, outcome: Outcome) -> int:
        failures = outcome.failures
        if outcome.code == 0 or not outcome.repeatable or not failures:
            return outcome.code
        if len(failures) > MOST_AGAIN:
            self.say(f"{part.name}: {len(failures)} tests failed; at most {MOST_AGAIN} are run again")
            return outcome.code
        self.say(f"{part.name}: {len(failures)} failed, and each is run once more, alone")
        code = part.again(failures)
        if code == 0:
            self.passed_alone += [(part.name, one) for one in failures]
        return code

    def report(self) -> None:
        """What failed first and passed alone, at the end of everything."""
        if not self.passed_alone:
            return
        lines = [f"{len(self.passed_alone)} failed at first and passed alone. They depend on luck: mend them"]
        for name, one in self.passed_alone:
            lines += [f"  {name}: {one.test}", f"    {one.why or 'no reason was printed'}"]
        self.say("\n".join(("", RULE, *lines, RULE)))


def main(argv: Sequence[str] | None = None) -> int:
    reader = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    reader.add_argument("--at-once", default="0", metavar="N", help="Python tests at a time in beside")
    reader.add_argument("parts", nargs="+", choices=(*SIDE_BY_SIDE, "alone"), metavar="PART")
    asked = reader.parse_args(argv)
    known: dict[str, Part] = {
        "rust": Cargo(Path(".stamps/test-rust.log")),
        "beside": Pytest("beside", ("-m", "not alone", "-n", asked.at_once, "--dist", "worksteal")),
        "alone": Pytest("alone", ("-m", "alone")),
    }
    session = Session(partial(print, flush=True))
    first = [known[name] for name in SIDE_BY_SIDE if name in asked.parts]
    last = [known["alone"]] if "alone" in asked.parts else []
    try:
        codes = [session.together(parts) for parts in (first, last) if parts]
    except KeyboardInterrupt:
        return 130
    session.report()
    return next(filter(None, codes), 0)


# The plugin: what failed and what passed, written where the runner reads it.


class Recorder:
    """Hears the reports of one session, whichever process its tests are in."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._failed: dict[str, str] = {}
        self._passed: dict[str, None] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._failed.setdefault(report.nodeid, last_line(report))
        elif report.passed and report.when == "call":
            self._passed[report.nodeid] = None

    def pytest_sessionfinish(self) -> None:
        passed = [test for test in self._passed if test not in self._failed]
        self._file.write_text(json.dumps({"failed": self._failed, "passed": passed}), encoding="utf-8")


def last_line(report: Any) -> str:
    """Where it failed and why, in a line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        place = Path(crash.path)
        shown = place.relative_to(Path.cwd()) if place.is_relative_to(Path.cwd()) else place
        return f"{shown}:{crash.lineno}: {crash.message.splitlines()[0] if crash.message else ''}"
    return str(next(reversed(report.longreprtext.strip().splitlines()), ""))


def pytest_configure(config: Any) -> None:
    file = os.environ.get(RECORD)
    if file and not hasattr(config, "workerinput"):  # of several processes the one that hears all reports
        config.pluginmanager.register(Recorder(Path(file)), "prony-recorder")


if __name__ == "__main__":
    sys.exit(main())
