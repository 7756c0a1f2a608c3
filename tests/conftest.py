"""For every test: examples that are the same in each run, and interrupts that end a test, not the session."""

from __future__ import annotations

import functools
import gc
import importlib.util
import os
import re
import signal
import sys
from collections.abc import Generator
from itertools import chain
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import HealthCheck, settings

from tests import drawing, programs
from tests.order import dealt
from tests.rooms import TESTS, is_alone, is_left_out, is_rare, room_of

settings.register_profile(
    "prony",
    derandomize=True,  # what fails on one host fails on every one; more examples are a change of a number
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # it measures the host
)
settings.load_profile("prony")

MISSING = [
    folder.name
    for folder in (Path(__file__).parents[1] / "packages").glob("*/prony_*")
    if importlib.util.find_spec(folder.name) is None
]
"""Packages beside the laboratory: without them its own tests are the rest."""
_pressed: list[int] = []


def _interrupt(number: int, frame: FrameType | None) -> None:
    _pressed.append(number)
    signal.default_int_handler(number, frame)


_charts = drawing.Elsewhere()


def pytest_configure() -> None:
    signal.signal(signal.SIGINT, _interrupt)
    sys.modules[drawing.LIBRARY] = _charts  # so that commands can be forked whatever was drawn before


def pytest_unconfigure() -> None:
    _charts.close()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """True leaves it out, None leaves that to the others."""
    left_out = is_left_out(collection_path, config.option.markexpr, Path(__file__).parent)
    return left_out or (collection_path.suffix == ".py" and needs_a_package(collection_path)) or None


@functools.cache
def needs_a_package(file: Path) -> bool:
    """Whether it, or a module of the tests that it imports, needs a package that is not installed."""
    text = file.read_text(encoding="utf-8") if MISSING and file.is_file() else ""
    if any(re.search(rf"^\s*(?:from|import) {name}\b", text, re.MULTILINE) for name in MISSING):
        return True
    tests = Path(__file__).parent
    named = re.findall(r"^from (tests(?:\.\w+)*|\.) import (\([^)]*\)|.*)$", text, re.MULTILINE)
    for module, names in named:
        folder = file.parent if module == "." else tests.joinpath(*module.split(".")[1:])
        found = [folder.with_suffix(".py"), *(folder / f"{one}.py" for one in re.findall(r"\w+", names))]
        if any(needs_a_package(one) for one in found):
            return True
    return False


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test that needs a program which is missing is skipped, but in CI, where nothing may be missing."""
    for one in item.iter_markers("needs"):
        for name in one.args:
            why = programs.missing(name)
            if why is not None and os.environ.get("PRONY_TEST_ALL"):
                pytest.fail(f"{why} (PRONY_TEST_ALL is set: no test may be left out for that)", pytrace=False)
            if why is not None:
                pytest.skip(why)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, object, object]:
    for item in items:
        if is_alone(item.path.relative_to(TESTS)):
            item.add_marker(pytest.mark.alone)
    done = yield  # those that are not wanted (-m, -k) are taken out
    _leave_rare_ones_out(config, items)
    workers: int | None = getattr(config, "workerinput", {}).get("workercount")  # None: in one process
    if workers is not None:
        items[:] = dealt(((item.path.relative_to(TESTS), item) for item in items), workers)
    return done


def _leave_rare_ones_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of rooms that PRONY_TEST_ROOMS, where it is set, does not name. tools/run_tests.py reads how many."""
    wanted = os.environ.get("PRONY_TEST_ROOMS", "all").split()
    kept: list[pytest.Item] = []
    left: dict[str, list[pytest.Item]] = {}
    for item in items:
        room = room_of(item.path.relative_to(TESTS))
        rare = is_rare(mark.name for mark in item.iter_markers())
        (left.setdefault(room, []) if rare and not {room, "all"} & set(wanted) else kept).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=list(chain.from_iterable(left.values())))
    if left:
        config.cache.set("prony/left-out", {room: len(gone) for room, gone in left.items()})


def pytest_collection_finish() -> None:
    """What is loaded by now stays: a library that collects garbage in every call (statsmodels does) need not
    walk through all of it, and a child (tests/command.py) shares it.
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """A laboratory keeps to the client's CPUs; the tests after it have all of theirs again."""
    before = os.sched_getaffinity(0)
    try:
        return (yield)
    finally:
        os.sched_setaffinity(0, before)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    """A KeyboardInterrupt that a test raised itself and let escape fails that test. Somebody's Ctrl-C ends
    the session as ever.
    """
    try:
        return (yield)
    except KeyboardInterrupt as escaped:
        if _pressed:
            raise
        raise AssertionError("a KeyboardInterrupt that the test raised escaped from it") from escaped
