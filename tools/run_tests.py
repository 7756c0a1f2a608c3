"""Runs the tests, and repeats failures alone.

`tools/run_tests.py [--at-once N] [--rooms ROOMS] PART…` with the parts rust, beside and alone: the first two
in parallel, then alone. A busy machine, as in the first two, may fail a correct test. Up to MOST_AGAIN
failures of a part are repeated, one at a time on an idle machine. The exit code is 0 only if every test
passed at last.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

MOST_AGAIN = 10
"""Failures of a part that are repeated; with more the part fails at once."""
CACHE = Path(".stamps/pytest").resolve()
"""pytest's cache: failed tests, and those left out by tests/conftest.py."""
CARGO = (os.environ.get("CARGO", "cargo"), "test", "--locked", "--manifest-path", "engine/Cargo.toml")


class Part(Protocol):
    """Tests run by one tool."""

    name: str

    def run(self) -> tuple[int, list[str]]:
        """Runs all of them: exit code, and the failed tests if nothing else failed."""

    def again(self, tests: list[str]) -> int:
        """Repeats these, one at a time; the exit code."""


@dataclass(slots=True)
class Pytest:
    """Python tests with or without the marker `alone`."""

    name: str
    words: tuple[str, ...]
    rooms: str
    left_out: Counter[str] = field(default_factory=Counter)
    """Rarely run tests that were left out, by room."""

    def run(self) -> tuple[int, list[str]]:
        shutil.rmtree(CACHE, ignore_errors=True)
        code = self._pytest("--durations=15", "--durations-min=1", *self.words)
        self.left_out.update(_read(CACHE / "v/prony/left-out"))
        return code, list(_read(CACHE / "v/cache/lastfailed")) if code == 1 else []  # 2: not collected, …

    def again(self, tests: list[str]) -> int:
        return self._pytest(*tests)

    def _pytest(self, *words: str) -> int:
        command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={CACHE}", *words]
        env = os.environ | {"PRONY_TEST_ROOMS": self.rooms}
        return subprocess.run(command, env=env, check=False).returncode


def _read(file: Path) -> dict[str, int]:
    counts: dict[str, int] = json.loads(file.read_text()) if file.exists() else {}
    return counts


@dataclass(slots=True)
class Cargo:
    """Rust tests; their output is printed at the end, as a line if all passed."""

    name: str = "rust"

    def run(self) -> tuple[int, list[str]]:
        code, printed = self._cargo("--no-fail-fast")
        print(f"Rust: {passed(printed)} tests passed" if code == 0 else printed, flush=True)
        crashed = re.search(r"process didn't exit successfully|^error\[|^error: could not", printed, re.M)
        return code, [] if crashed else re.findall(r"^test (\S+).* \.\.\. FAILED$", printed, re.M)

    def again(self, tests: list[str]) -> int:
        code, printed = self._cargo("--no-fail-fast", "--", "--exact", "--test-threads=1", *tests)
        print(printed, flush=True)
        return code or int(passed(printed) < len(tests))

    def _cargo(self, *words: str) -> tuple[int, str]:
        done = subprocess.run(
            [*CARGO, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        return done.returncode, done.stdout


def passed(printed: str) -> int:
    """Passed tests over all binaries."""
    return sum(map(int, re.findall(r"^test result: .* (\d+) passed;", printed, re.M)))


def settled(part: Part, code: int, failed: list[str]) -> int:
    """The exit code after repeating the failures."""
    if code == 0 or not failed:
        return code
    if len(failed) > MOST_AGAIN:
        print(f"{part.name}: {len(failed)} tests failed; at most {MOST_AGAIN} are repeated", flush=True)
        return code
    print(f"{part.name}: {len(failed)} failed; each is repeated alone", flush=True)
    return part.again(failed)


def main() -> int:
    reader = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    reader.add_argument("--at-once", default="0", metavar="N", help="parallel Python tests in beside")
    reader.add_argument("--rooms", default="all", help="rooms whose rare tests run, too (tests/rooms.py)")
    reader.add_argument("parts", nargs="+", choices=("rust", "beside", "alone"), metavar="PART")
    options = reader.parse_args()
    beside = Pytest(
        "beside", ("-m", "not alone", "-n", options.at_once, "--dist", "worksteal"), options.rooms
    )
    alone = Pytest("alone", ("-m", "alone"), options.rooms)
    together: list[Part] = [part for part in (Cargo(), beside) if part.name in options.parts]
    codes: list[int] = []
    flaky: list[str] = []
    for parts in (together, [alone] if "alone" in options.parts else []):
        with ThreadPoolExecutor(max(1, len(parts))) as threads:
            ended = list(threads.map(lambda part: part.run(), parts))
        for part, (code, failed) in zip(parts, ended, strict=True):
            codes.append(settled(part, code, failed))
            flaky += [f"  {part.name}: {test}" for test in failed if codes[-1] == 0]
    if flaky:
        print(f"{len(flaky)} flaky tests failed first and passed alone; fix them")
        print(*flaky, sep="\n")
    if left := sorted((beside.left_out + alone.left_out).items()):
        rooms = ", ".join(f"{room} {count}" for room, count in left)
        print(f"left to `make test-all`: {sum(count for _, count in left)} tests: {rooms}")
    return next(filter(None, codes), 0)


if __name__ == "__main__":
    sys.exit(main())
