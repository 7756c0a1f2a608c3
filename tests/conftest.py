"""For every test: examples that are the same in each run, and interrupts that end a test, not the session."""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
from collections.abc import Generator
from itertools import chain
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import HealthCheck, settings

from tests import programs
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
    file.parent.name
    for file in (Path(__file__).parents[1] / "packages").glob("*/prony_*/__init__.py")
    if importlib.util.find_spec(file.parent.name) is None
]
"""Packages beside the laboratory: without them its own tests are the rest."""
_pressed: list[int] = []


def _interrupt(number: int, frame: FrameType | None) -> None:
    _pressed.append(number)
    signal.default_int_handler(number, frame)


def pytest_configure() -> None:
    signal.signal(signal.SIGINT, _interrupt)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """True leaves it out, None leaves that to the others."""
    fixtures = collection_path / "conftest.py"
    if MISSING and fixtures.is_file() and any(name in fixtures.read_text("utf-8") for name in MISSING):
        return True
    return is_left_out(collection_path, config.option.markexpr, Path(__file__).parent) or None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """What needs a package beside the laboratory that is not installed is left out."""
    report = yield
    needed = [name for name in MISSING if f"No module named '{name}" in str(report.longrepr)]
    if report.failed and (needed or (MISSING and "needs the package prony-" in str(report.longrepr))):
        report.outcome = "skipped"
        report.longrepr = (report.nodeid, 0, f"Skipped: {', '.join(needed) or 'a package'} is not installed")
    return report


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
