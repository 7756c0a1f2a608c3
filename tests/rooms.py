"""Which tests run when: alone, with nothing beside them; rarely, in `make test-all` and for what changed.

A room is a folder below tests/, or one of the front ends. `python -m tests.rooms` prints the rooms whose
rarely run tests a CI run needs, `python -m tests.rooms programs ROOMS` the programs to fetch for them. It
needs nothing but Python. A test is run rarely if it is marked `rarely`, `e2e` or `needs`, unless it is marked
`everyday`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path, PurePath

TESTS = Path(__file__).parent
ALONE = (
    "bench/test_run.py",
    "explain/test_many_threads.py",
    "host",
    "hosts/test_hostile.py",
    "hosts/test_laboratory.py",
    "hosts/test_measured.py",
    "hosts/test_namespaces.py",
    "hosts/test_way.py",
    "load/test_load_models.py",
    "load/test_together.py",
    "selftest/test_faults.py",
)
"""Where a neighbour is what a test is about, or what it would mistake for something else: a test that has the
judge's default limits call a real run conforming among them. What waits for an event, however long, is not.
"""
MARKED = {"alone": True, "not alone": False}
"""The words after -m that ask for these tests, or for the others, and for nothing else."""

FRONT_ENDS = TESTS.parent / "packages" / "prony-frontends" / "prony_frontends"
TOOLS = tuple(sorted(path.parent.name for path in FRONT_ENDS.glob("[!_]*/__init__.py")))
ROOMS = (*TOOLS, *sorted(path.name for path in TESTS.iterdir() if path.is_dir() and "_" not in path.name))
ALSO = {
    "artillery": ("js", "script"),
    "e2e": ("cli", "experiment", "frontends", "plans", "trial"),
    "jmeter": ("js", "script"),
    "metrics": ("serve",),
    "push": ("serve",),
    "report": ("judge", "results"),
    "server": ("conformance", "servers"),
    "web": ("serve", "trends"),
    "wrk": ("lua",),
}
"""A room is changed by a file that has its name as a word of its path, or one of these."""
SEAMS = re.compile(
    r"(\.ci/|Makefile|pyproject\.toml|requirements/|engine/Cargo\.lock|docs/schema/|tests/(?!test_)[^/]+\.py)"
    r"|(prony|packages)/(.+/)?((evidence|plan)/|(base|entries|seams?)\.py)"
)
"""What every room stands on: after a change of these all are run."""
EVERYDAY_PROGRAMS = ("artillery", "chromium", "jmeter")
PROGRAMS = {
    "artillery": ("artillery",),
    "exports": ("hdrhistogram", "jfrconv", "jmeter"),
    "frontends": ("artillery", "jmeter"),
    "jmeter": ("jmeter", "jmeter-plugins"),
    "load": ("h2spec",),
    "push": ("elasticsearch", "opensearch"),
    "report": ("chromium",),
    "store": ("postgresql",),
    "web": ("axe", "chromium"),
    "wrk2": ("hdrhistogram",),
}
"""Room -> what tools/fetch.py is to fetch for its rarely run tests."""


def is_alone(file: PurePath) -> bool:
    """Of a file below tests/."""
    return any(file.is_relative_to(place) for place in ALONE)


def is_left_out(file: Path, asked: str, tests: Path) -> bool:
    """Whether no test of this file can be wanted by these words after -m: it need not even be imported."""
    wanted = MARKED.get(asked)
    if wanted is None or not file.name.startswith("test_") or not file.is_relative_to(tests):
        return False
    return is_alone(file.relative_to(tests)) != wanted


def is_rare(markers: Iterable[str]) -> bool:
    """Of the names of a test's markers."""
    names = set(markers)
    return "everyday" not in names and not names.isdisjoint(("rarely", "needs", "e2e"))


def room_of(file: PurePath) -> str:
    """Of a file below tests/."""
    return next((tool for tool in TOOLS if tool in _words(file)), file.parts[0])


def changed_rooms(files: Iterable[str] | None) -> tuple[str, ...]:
    """By the paths of changed files; all rooms where these are not known."""
    changed = None if files is None else [file for file in files if not file.endswith(".md")]
    if changed is None or any(SEAMS.match(file) for file in changed):
        return ROOMS
    words = set().union(*map(_words, changed))
    return tuple(room for room in ROOMS if not words.isdisjoint((room, *ALSO.get(room, ()))))


def changed_files() -> list[str] | None:
    """Since PRONY_CI_BASE, or the newest release before this commit, or its parent; None where git cannot
    tell.
    """
    if _git("rev-parse", "--is-shallow-repository") != "false":
        return None
    release = _git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^")
    base = os.environ.get("PRONY_CI_BASE") or release or "HEAD^"
    listed = _git("diff", "--name-only", "--no-renames", f"{base}...HEAD")
    return None if listed is None else listed.splitlines()


def _words(path: object) -> set[str]:
    return set(re.split(r"[^a-z0-9]+", str(path).lower()))


def _git(*words: str) -> str | None:
    try:
        done = subprocess.run(["git", *words], cwd=TESTS, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def main(words: list[str]) -> None:
    if words[:1] == ["programs"]:
        rooms = ROOMS if words[1:] == ["all"] else words[1:]
        print(*sorted({*EVERYDAY_PROGRAMS, *(name for room in rooms for name in PROGRAMS.get(room, ()))}))
    else:
        print(*changed_rooms(changed_files()))


if __name__ == "__main__":
    main(sys.argv[1:])
