"""Processes that burn their CPU in a function of a known name, and what a profiler sees of them. Must not
know what a test expects.
"""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from prony.errors import EnvironmentFault
from prony.evidence.profile import Sampling
from prony.server.build import async_profiler, quiet
from prony_explain.profilers.async_profiler import AsyncProfiler
from prony_explain.profilers.base import Profiled, Profiler, Schedule, Unavailable


@contextmanager
def running(*command: str) -> Iterator[int]:
    """A process that has said that it is ready."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "ready"
            yield process.pid
        finally:
            process.kill()


def killing(pid: int, wait: int) -> Callable[[float], bool]:
    """Waits for a schedule, and kills the process after so many waits."""
    left = iter(range(wait - 1, -1, -1))

    def ended(wait_s: float) -> bool:
        threading.Event().wait(wait_s)
        if next(left, None) == 0:
            os.kill(pid, signal.SIGKILL)
        return False

    return ended


def profiled(
    profiler: Profiler,
    slices: int = 3,
    slice_s: float = 1.1,
    longest_s: float = math.inf,
    ended: Callable[[float], bool] | None = None,
) -> Profiled:
    try:
        profiler.attach()
    except Unavailable as fault:
        pytest.skip(str(fault))
    try:
        begins_s = time.monotonic()
        ends = tuple(begins_s + slice_s * (one + 1) for one in range(slices))
        waits = threading.Event().wait if ended is None else ended
        return profiler.profile(Schedule(begins_s, ends, waits, longest_s=longest_s))
    finally:
        profiler.detach()


def share_of(found: Sampling | None, word: str) -> float:
    """Of the samples that have a frame with this word."""
    assert found is not None
    stacks = found.all_stacks()
    return sum(n for stack, n in stacks.items() if any(word in one for one in stack)) / sum(stacks.values())


BURNS = Path(__file__).with_name("Burns.java")


def need_java() -> None:
    """Skips the test where there is none."""
    if shutil.which("java") is None:
        pytest.skip("no JDK is installed")


@contextmanager
def java(*arguments: str, options: Sequence[str] = ()) -> Iterator[int]:
    need_java()
    with running("java", "-Xmx64m", *options, str(BURNS), *arguments) as pid:
        yield pid


def the_async_profiler(pid: int) -> AsyncProfiler:
    try:
        return AsyncProfiler(pid, *async_profiler(quiet))
    except EnvironmentFault as fault:
        pytest.skip(str(fault))
