"""Each profiler on a real process that burns its CPU in a function of a known name."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from prony_explain import attach
from prony_explain.inspector import Inspector, NotOpened
from prony_explain.profilers.base import Schedule, Unavailable
from prony_explain.profilers.jvm_log import JvmLog
from prony_explain.profilers.node import NodeProfiler
from prony_explain.profilers.perf import Perf
from prony_explain.profilers.py_spy import PySpy
from tests.explain.burning import (
    BURNS,
    java,
    killing,
    need_java,
    profiled,
    running,
    share_of,
    the_async_profiler,
)
from tests.processes import started

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
        assert share_of(found.cpu, "[main tid=") > 0.5, "rules name threads"
        assert share_of(found.allocation, "byte[]") > 0.5
        assert found.allocated_bytes
        assert folders
        assert not any(Path(folder).exists() for folder in folders)
        assert "all=off" in next(
            (one for one in attach.jcmd(pid, "VM.log list").splitlines() if "jvm.log" in one), "all=off"
        )


def waits_told(file: Path) -> list[tuple[str, int, int]]:
    """What `Waits.java` says of its own waits: which, and its clock before and after each."""
    lines = [line.split() for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [(name, int(before), int(after)) for name, before, after in lines]


@pytest.mark.rarely
def test_a_wait_for_a_lock_is_found_at_its_time(tmp_path: Path) -> None:
    """Within the program's own clock around it: System.nanoTime() is CLOCK_MONOTONIC, as the engine's."""
    need_java()
    file = tmp_path / "waits"

    def over(wait_s: float) -> bool:
        """Never; each slice lasts until both threads have waited twice more."""
        time.sleep(wait_s)
        before, since_s = Counter(name for name, *_ in waits_told(file)), time.monotonic()
        while time.monotonic() < since_s + 60:
            more = Counter(name for name, *_ in waits_told(file)) - before
            if min(more["gate"], more["lock"]) >= 2:
                break
            time.sleep(0.05)
        return False

    with running("java", "-Xmx64m", str(BURNS.with_name("Waits.java")), str(file)) as pid:
        profiler = the_async_profiler(pid)
        try:
            profiler.attach()
            ends_s = tuple(time.monotonic() + 0.3 * (one + 1) for one in range(10))
            found = profiler.profile(Schedule(0.0, ends_s, over))  # times of the clock itself
        except Unavailable as fault:
            pytest.skip(str(fault))
        finally:
            profiler.detach()
        over(0)
        told = waits_told(file)
    assert found.lock_waits is not None, found.missing
    long = [one for one in found.lock_waits.longest if one.duration_s > 0.1 and "waits for" in one.thread]
    assert {(one.thread, one.lock, one.where) for one in long} == {
        ("waits for the gate", "Waits$Gate", "Waits.forGate"),
        ("waits for the lock", "java.util.concurrent.locks.ReentrantLock$NonfairSync", "Waits.forLock"),
    }
    for one in long:
        start_ns, length_ns = round(one.start_s * 1e9), round(one.duration_s * 1e9)
        assert any(
            one.thread.endswith(name) and before <= start_ns and start_ns + length_ns <= after
            for name, before, after in told
        )
    assert share_of(found.locks, "Waits.forGate_[") > 0


@pytest.mark.rarely
def test_of_a_jvm_that_is_killed_in_mid_window_the_slices_until_then_are_kept() -> None:
    with java() as pid:
        found = profiled(the_async_profiler(pid), slices=30, slice_s=0.6, ended=killing(pid, wait=3))
    assert found.cpu is not None
    assert len(found.cpu.slices) == 2
    assert share_of(found.cpu, "Burns.burnsHere_[") > 0, (
        "beside the JIT compiler of a JVM that has just begun"
    )
    assert found.cut_short == "process-ended"


@pytest.mark.rarely
def test_of_a_python_process_that_is_killed_in_mid_window_the_slices_until_then_are_kept() -> None:
    with running(sys.executable, "-c", PYTHON) as pid:
        found = profiled(PySpy(pid), slices=8, ended=killing(pid, wait=3))
    assert found.cpu is not None
    assert len(found.cpu.slices) == 3
    assert share_of(found.cpu, "`burns_here_[s]") > 0.8
    assert found.cut_short == "process-ended"


@pytest.mark.needs("unshare")
def test_a_jvm_with_a_tmp_of_its_own_is_profiled(tmp_path: Path) -> None:
    """As a service of systemd with PrivateTmp: / is ours, and /tmp is not."""
    need_java()
    apart = ["unshare", "--mount", *(["--user", "--map-root-user"] if os.geteuid() else [])]
    binds = 'mount --bind "$1" /tmp && shift && exec "$@"'
    if subprocess.run([*apart, "true"], check=False).returncode != 0:
        pytest.skip("a mount namespace may not be made here")
    shutil.copy(BURNS, tmp_path)
    jvm = ("java", "-Xmx64m", f"/tmp/{BURNS.name}")
    with running(*apart, "sh", "-c", binds, "sh", str(tmp_path), *jvm) as pid:
        found = profiled(the_async_profiler(pid), slices=10, slice_s=0.6)
    assert share_of(found.cpu, "Burns.burnsHere_[") > 0.5
    assert found.collections is not None
    assert not list(tmp_path.glob("prony-profile-*"))


@pytest.mark.parametrize("collector", ["-XX:+UseZGC", "-XX:+UseShenandoahGC"])
@pytest.mark.rarely
def test_pauses_of_a_collector_that_works_beside_the_program_are_read(collector: str) -> None:
    need_java()
    tried = subprocess.run(["java", collector, "-version"], capture_output=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"this JDK has no {collector}")
    with java(options=[collector]) as pid, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "jvm.log"
        log = JvmLog(pid, file)
        begins_s = time.monotonic()
        log.open()
        while time.monotonic() < begins_s + 60 and not (file.exists() and "Pause " in file.read_text()):
            time.sleep(0.1)
        told = log.close(begins_s)
    assert told.collections
    assert told.collection_pause_s
    assert told.allocated_bytes is None
    assert {one.text.partition(" ")[0] for one in told.events if one.kind == "collection"} == {"Pause"}


def test_a_jvm_is_asked_without_a_jdk() -> None:
    with java() as pid:
        assert "VM" in attach.jcmd(pid, "VM.version")
        with pytest.raises(attach.NotAttached, match=r"No\.such"):
            attach.jcmd(pid, "No.such")
        with pytest.raises(attach.NotAttached, match=r"nowhere\.so"):
            attach.load(pid, Path("/nowhere.so"), "")


def test_a_process_that_would_end_by_the_signal_is_not_asked() -> None:
    with started("sleep", "60") as process:
        try:
            with pytest.raises(attach.NotAttached, match="SIGQUIT"):
                attach.jcmd(process.pid, "VM.version")
            with pytest.raises(NotOpened, match="SIGUSR1"):
                Inspector(process.pid)
            assert process.poll() is None
        finally:
            os.kill(process.pid, signal.SIGKILL)
