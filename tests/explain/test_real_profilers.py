"""Each profiler on a real process that burns its CPU in a function of a known name."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from prony.explain import attach
from prony.explain.profilers.node import NodeProfiler
from prony.explain.profilers.perf import Perf
from prony.explain.profilers.py_spy import PySpy
from tests.explain.burning import java, profiled, running, share_of, the_async_profiler

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
