"""Counters of processes' threads, by the kernel's task clock, which every host has."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from prony.host import instructions as module
from prony.host.instructions import Instructions

TASK_CLOCK = (1, 1)
"""PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK: nanoseconds of CPU."""


def readable() -> bool:
    with Instructions([os.getpid()], TASK_CLOCK) as counter:
        return not counter.unread


needs_perf = pytest.mark.skipif(not readable(), reason="perf_event_open is not permitted here")


def spin() -> None:
    until_s = time.thread_time() + 0.05
    while time.thread_time() < until_s:
        pass


@needs_perf
def test_threads_that_start_later_are_counted() -> None:
    with Instructions([os.getpid()], TASK_CLOCK) as counter:
        first = counter.read()
        threads = [threading.Thread(target=spin) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        last = counter.read()
    assert first is not None
    assert last is not None
    assert last - first >= 0.14e9
    assert counter.read() is None, "it is closed"


@needs_perf
def test_processes_that_it_starts_are_counted_and_others_are_not() -> None:
    program = "import time\nuntil = time.process_time() + 0.2\nwhile time.process_time() < until: pass"
    before_s = time.process_time()
    with Instructions([os.getpid()], TASK_CLOCK) as counter:
        subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True)
        count = counter.read()
    assert count is not None
    assert count >= 0.19e9
    assert count > 1e9 * (time.process_time() - before_s)
    other = subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE)
    try:
        with Instructions([other.pid], TASK_CLOCK) as counter:
            spin()
            assert (counter.read() or 0) < 0.04e9
    finally:
        other.communicate(b"\n")


def test_what_cannot_be_read_says_why() -> None:
    with Instructions([]) as counter:
        assert counter.read() is None
    assert counter.unread
    with Instructions([os.getpid()], (0, 999)) as counter:
        assert counter.read() is None
    assert counter.unread


def test_an_unknown_machine_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SYSCALL", {})
    with Instructions([os.getpid()], TASK_CLOCK) as counter:
        assert counter.read() is None
    assert "perf_event_open" in counter.unread


def test_a_lap_is_what_was_counted_since_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter((10, 25, None, 40, 41))
    monkeypatch.setattr(Instructions, "read", lambda _: next(readings))
    counter = Instructions(())
    assert [counter.lap() for _ in range(5)] == [10, 15, None, None, 1]
