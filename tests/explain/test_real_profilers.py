"""Each profiler on a real process that burns its CPU in a function of a known name."""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from prony.errors import EnvironmentFault
from prony.evidence.profile import Sampling
from prony.explain import attach
from prony.explain.profilers.async_profiler import AsyncProfiler
from prony.explain.profilers.base import Profiled, Profiler, Schedule, Unavailable
from prony.explain.profilers.node import NodeProfiler
from prony.explain.profilers.perf import Perf
from prony.explain.profilers.py_spy import PySpy
from prony.server import proc
from prony.server.build import async_profiler, quiet

PYTHON = """
def burns_here():
    total = 0
    for number in range(200_000):
        total += number * number
    return total

print("ready", flush=True)
while True:
    burns_here()
"""
NODE = """
function burnsHere() {
  let sum = 0;
  for (let i = 0; i < 2e6; i++) { sum = (sum * 31 + i) % 1000003; }
  return sum;
}
console.log("ready");
(function again() { globalThis.sum = burnsHere(); setImmediate(again); })();
"""


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


def profiled(
    profiler: Profiler, slices: int = 3, slice_s: float = 1.1, longest_s: float = math.inf
) -> Profiled:
    try:
        profiler.attach()
    except Unavailable as fault:
        pytest.skip(str(fault))
    try:
        begins_s = time.monotonic()
        ends = tuple(begins_s + slice_s * (one + 1) for one in range(slices))
        return profiler.profile(Schedule(begins_s, ends, threading.Event().wait, longest_s=longest_s))
    finally:
        profiler.detach()


def share_of(found: Sampling | None, word: str) -> float:
    """Of the samples that have a frame with this word."""
    assert found is not None
    stacks = found.all_stacks()
    return sum(n for stack, n in stacks.items() if any(word in one for one in stack)) / sum(stacks.values())


def test_py_spy_names_the_function_that_burns() -> None:
    with running(sys.executable, "-c", PYTHON) as pid:
        found = profiled(PySpy(pid))
    assert share_of(found.cpu, "`burns_here_[s]") > 0.8


def test_perf_sees_the_native_frames_of_any_program() -> None:
    with running(sys.executable, "-c", PYTHON) as pid:
        found = profiled(Perf([pid]))
    assert found.cpu is not None
    assert share_of(found.cpu, "python") > 0.8
    assert found.every_process


@pytest.mark.needs("node")
def test_the_inspector_of_node_names_the_function_that_burns() -> None:
    with running("node", "-e", NODE) as pid:
        found = profiled(NodeProfiler(pid), slices=4, slice_s=0.7)
    assert share_of(found.cpu, "burnsHere_[s]") > 0.8


@contextmanager
def java(*arguments: str) -> Iterator[int]:
    if shutil.which("java") is None:
        pytest.skip("no JDK is installed")
    with running("java", "-Xmx64m", str(Path(__file__).with_name("Burns.java")), *arguments) as pid:
        yield pid


def the_async_profiler(pid: int) -> AsyncProfiler:
    try:
        return AsyncProfiler(pid, *async_profiler(quiet))
    except EnvironmentFault as fault:
        pytest.skip(str(fault))


def test_async_profiler_names_the_method_that_burns_and_what_allocates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folders: list[str] = []  # its own: another test may profile another JVM now
    make_folder = tempfile.mkdtemp

    def noted(**where: Any) -> str:
        folders.append(make_folder(**where))
        return folders[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", noted)
    with java() as pid:
        found = profiled(the_async_profiler(pid), slices=10, slice_s=0.6)
        assert share_of(found.cpu, "Burns.burnsHere_[") > 0.5
        assert share_of(found.allocation, "byte[]") > 0.5
        assert found.allocated_bytes
        assert folders
        assert not any(Path(folder).exists() for folder in folders)
        assert "all=off" in next(
            (one for one in attach.jcmd(pid, "VM.log list").splitlines() if "jvm.log" in one), "all=off"
        )


def test_threads_that_have_little_cpu_time_each_are_seen() -> None:
    """100 threads with some ms of CPU time each in a slice: of a profile per slice few were seen."""
    with java("100") as pid:
        time.sleep(1.0)
        profiler = the_async_profiler(pid)
        first = proc.sample([pid])
        found = profiled(profiler, slices=10, slice_s=0.5, longest_s=0.002)
        last = proc.sample([pid])
    assert found.cpu is not None
    assert first is not None
    assert last is not None
    assert found.interval_s is not None
    assert found.interval_s == pytest.approx(0.002)
    used_per_s = (last.cpu_s - first.cpu_s) / (last.t_monotonic_s - first.t_monotonic_s)
    profiled_s = sum(one.end_s - one.start_s for one in found.cpu.slices)
    seen = found.cpu.total * found.interval_s / (used_per_s * profiled_s)
    assert 0.5 < seen < 1.2
    assert share_of(found.cpu, "Burns.burnsHere_[") > 0.5
    assert len(found.cpu.slices) >= 4


def test_a_jvm_is_asked_without_a_jdk() -> None:
    with java() as pid:
        assert "VM" in attach.jcmd(pid, "VM.version")
        with pytest.raises(attach.NotAttached, match=r"refused No\.such"):
            attach.jcmd(pid, "No.such")
        with pytest.raises(attach.NotAttached, match=r"did not take nowhere\.so"):
            attach.load(pid, Path("/nowhere.so"), "")


def test_a_process_that_would_end_by_the_signal_is_not_asked() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            with pytest.raises(attach.NotAttached, match="does not take SIGQUIT"):
                attach.jcmd(process.pid, "VM.version")
            assert process.poll() is None
        finally:
            os.kill(process.pid, signal.SIGKILL)
