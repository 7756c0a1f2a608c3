"""What goes wrong while a profile is collected is a sentence in it. The processes that are read are real."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from prony.errors import EnvironmentFault
from prony.evidence.profile import Profile
from prony.evidence.server import ProcessSample
from prony_explain.collector import Collector, interval_s
from prony_explain.explanation import seen_share
from prony_explain.per_request import per_request
from prony_explain.processes import Chosen, CpuTime, ProcessEnded, choose, runtime_of
from prony_explain.profilers.base import Profiled, Schedule, Slices, Unavailable
from prony_explain.sampling import sampling
from tests.processes import started


class FakeProfiler:
    """Takes one sample per slice, or fails."""

    name = "made up 1"

    def __init__(
        self,
        refuses: BaseException | None = None,
        fails: Exception | None = None,
        finds: Profiled | None = None,
    ) -> None:
        self.refuses, self.fails = refuses, fails
        self.finds = Profiled(event="cpu", interval_s=0.01) if finds is None else finds
        self.detached = 0
        self.told: Schedule | None = None

    def attach(self) -> None:
        if self.refuses is not None:
            raise self.refuses

    def profile(self, schedule: Schedule) -> Profiled:
        self.told = schedule
        if self.fails is not None:
            raise self.fails
        slices = Slices(schedule.begins_s)
        since_s = schedule.begins_s
        for end_s in schedule.ends_s:
            went_on = schedule.wait_until(end_s)
            slices.add(since_s, end_s, {("main", "work"): 1})
            since_s = end_s
            if not went_on:
                break
        return replace(self.finds, cpu=slices.sampling("samples"))

    def detach(self) -> None:
        self.detached += 1


@pytest.fixture(autouse=True)
def without_perf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prony_explain.counters.shutil.which", lambda _name: None)


def collected(
    profiler: FakeProfiler, window_s: float = 0.2, finds: Callable[[], None] = lambda: None
) -> Profile:
    def find(chosen: Chosen) -> FakeProfiler:
        assert chosen.pid == os.getpid()
        finds()
        return profiler

    collector = Collector(find)
    collector.attach([os.getpid()])
    collector.begin(window_s)
    for thread in collector._threads[1:]:  # the first one watches until the end
        thread.join()
    return collector.end()


def test_a_profile_has_its_slices_and_the_kernels_counters() -> None:
    profiler = FakeProfiler()
    found = collected(profiler)
    assert (found.runtime, found.profiler, found.event) == ("python", "made up 1", "cpu")
    assert found.cpu is not None
    assert found.cpu.total == len(found.cpu.slices) > 1
    assert found.counters is not None
    assert found.counters.switches_voluntary is not None
    assert found.counters.system_calls is None
    assert [one.partition(":")[0] for one in found.missing] == [
        "system calls were not counted",
        "waits for locks are not counted",
    ]
    assert profiler.detached == 1


def refuse() -> None:
    raise Unavailable("no profiler here; install one")


@pytest.mark.parametrize(
    ("profiler", "finds", "said"),
    [
        (FakeProfiler(), refuse, "no profiler here; install one"),
        (FakeProfiler(refuses=Unavailable("no ptrace")), lambda: None, "no ptrace"),
        (FakeProfiler(refuses=EnvironmentFault("install it anew")), lambda: None, "install it anew"),
        (FakeProfiler(refuses=OSError("gone")), lambda: None, "made up 1 failed: OSError: gone"),
        (FakeProfiler(fails=Unavailable("it ended early")), lambda: None, "it ended early"),
        (FakeProfiler(fails=KeyError("x")), lambda: None, "made up 1 failed: KeyError: 'x'"),
    ],
)
def test_what_goes_wrong_is_a_sentence(profiler: FakeProfiler, finds: Callable[[], None], said: str) -> None:
    found = collected(profiler, finds=finds)
    assert found.profiler == ""
    assert found.cpu is None
    assert found.counters is not None
    assert said in found.missing
    assert profiler.detached == (0 if finds is refuse else 1)


@pytest.mark.parametrize("interrupts", [KeyboardInterrupt(), SystemExit()])
def test_a_profiler_that_was_being_attached_at_an_interrupt_is_taken_off(interrupts: BaseException) -> None:
    profiler = FakeProfiler(refuses=interrupts)
    collector = Collector(lambda _chosen: profiler)
    with pytest.raises(type(interrupts)):
        collector.attach([os.getpid()])
    collector.detach()
    collector.detach()
    assert profiler.detached == 1


def test_system_calls_that_cannot_be_counted_cost_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("prony_explain.counters.count_calls", fails)
    found = collected(FakeProfiler())
    assert any("[Errno 24]" in caveat for caveat in found.missing)
    assert found.cpu is not None
    assert found.counters is not None


@pytest.mark.parametrize(
    ("every_process", "cpu_s", "share"), [(False, 0.5, 0.25), (True, 2.0, 1.0)], ids=["one", "all"]
)
def test_the_cpu_time_is_that_of_the_processes_that_were_sampled(
    monkeypatch: pytest.MonkeyPatch, every_process: bool, cpu_s: float, share: float
) -> None:
    """Of four workers that do the same: by the profiler of a runtime one of them, by perf all."""
    chosen = Chosen(os.getpid(), "jvm", (os.getpid(), os.getppid()), 0.9)
    readings = iter((CpuTime(10.0, 100.0, 800.0), CpuTime(11.0, 100.5, 802.0)))
    profiler = FakeProfiler(
        finds=Profiled(
            event="cpu",
            interval_s=0.01,
            allocated_bytes=1000,
            allocated_s=2.0,
            locks=sampling("ns", [(0.0, 1.0, {("a",): 5000})]),
            every_process=every_process,
        )
    )
    collector = Collector(lambda _chosen: profiler)
    monkeypatch.setattr("prony_explain.collector.choose", lambda _pids: chosen)
    monkeypatch.setattr(CpuTime, "of", lambda _chosen: next(readings))
    collector.attach([os.getpid()])
    collector.begin(0.2)
    for thread in collector._threads[1:]:  # the first one watches until the end
        thread.join()
    found = collector.end()
    assert (found.sampled_cpu_s, found.sampled_s, found.cpu_share) == (cpu_s, 1.0, share)
    counted = per_request(found, 10.0)
    assert counted["allocated_bytes"] == pytest.approx(50 / share)
    assert counted["lock_waits_us"] == pytest.approx(0.5 / share)
    said = [one for one in found.missing if "1 of 2 processes" in one]
    if every_process:
        assert not said
    else:
        assert "25%" in said[0]
    assert seen_share(found) == pytest.approx(12 * 0.01 / (cpu_s * 0.2))


def test_a_server_that_cannot_be_read_has_a_profile_that_says_so() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()

    def find(_chosen: Chosen) -> FakeProfiler:
        pytest.fail("nobody is chosen")

    collector = Collector(find)
    collector.attach([ended.pid])
    collector.begin(0.1)
    found = collector.end()
    assert found.counters is None
    assert found.cut_short == "process-ended"
    (said,) = found.missing
    assert str(ProcessEnded(ended.pid)) in said


@pytest.mark.parametrize(
    ("profiler", "kills", "code"),
    [
        (FakeProfiler(), True, "process-ended"),
        (FakeProfiler(fails=ProcessEnded(7)), False, "process-ended"),
        (FakeProfiler(refuses=ProcessEnded(7)), False, "process-ended"),
        (FakeProfiler(finds=Profiled("cpu", 0.01, cut_short="profiler-failed")), True, "process-ended"),
        (FakeProfiler(finds=Profiled("cpu", 0.01, cut_short="profiler-failed")), False, "profiler-failed"),
        (FakeProfiler(fails=Unavailable("it ended early")), False, "profiler-failed"),
        (FakeProfiler(refuses=Unavailable("no ptrace")), False, None),
        (FakeProfiler(), False, None),
    ],
    ids=[
        "unnoticed",
        "profiling",
        "attaching",
        "before the profiler",
        "failed",
        "gave up",
        "refused",
        "none",
    ],
)
def test_a_profile_says_by_a_code_what_cut_it_short(
    profiler: FakeProfiler, kills: bool, code: str | None
) -> None:
    """That of a process that ended whoever noticed it, and if nobody did."""
    with started("sleep", "60") as server:
        collector = Collector(lambda _chosen: profiler)
        collector.attach([server.pid])
        collector.begin(0.2)
        if kills:
            server.kill()
            server.wait()
        else:
            for thread in collector._threads[1:]:  # the first one watches until the end
                thread.join()
        found = collector.end()
        server.kill()
    assert found.cut_short == code
    assert Profile.model_validate_json(found.model_dump_json()).cut_short == code


def test_the_runtime_is_told_by_what_is_in_the_process() -> None:
    assert runtime_of(os.getpid()) == "python"
    with started("sleep", "30") as other:
        try:
            assert runtime_of(other.pid) == "native"
            found = choose([os.getpid(), other.pid])
        finally:
            other.kill()
    assert found is not None
    assert (found.pid, found.runtime) == (os.getpid(), "python")
    assert set(found.every) == {os.getpid(), other.pid}
    assert 0.9 < found.share <= 1.0


@pytest.mark.parametrize(
    ("busy_cpus", "window_s", "interval_ms"),
    [
        (1.0, 10.0, 10 / 3),  # a quick trial of a server that has one CPU
        (2.0, 30.0, 20.0),
        (0.5, 10.0, 5 / 3),
        (0.0, 10.0, 1.0),  # no less, for a load that has just begun
        (64.0, 60.0, 50.0),  # no more, as shares of single slices are needed too
    ],
)
def test_the_interval_gives_some_thousand_samples(
    busy_cpus: float, window_s: float, interval_ms: float
) -> None:
    assert interval_s(busy_cpus, window_s) * 1000 == pytest.approx(interval_ms)


def test_a_profiler_is_told_the_interval_for_what_the_server_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    used = iter((10.0, 10.6))  # seconds of CPU time, half a second apart by the clock of the readings
    at = iter((5.0, 5.5))

    def sample(_pids: object) -> ProcessSample:
        return ProcessSample(
            t_monotonic_s=next(at), cpu_user_s=next(used), cpu_system_s=0.0, rss_bytes=1, threads=1
        )

    chosen = Chosen(os.getpid(), "jvm", (os.getpid(),), 0.5)
    profiler = FakeProfiler()
    collector = Collector(lambda _chosen: profiler)
    with monkeypatch.context() as patched:
        patched.setattr("prony_explain.collector.choose", lambda _pids: chosen)
        patched.setattr("prony_explain.collector.proc.sample", sample)
        collector.attach([os.getpid()])
    collector.begin(0.2)
    collector.end()
    # 1.2 CPUs, of which the profiled process has half.
    assert profiler.told is not None
    assert profiler.told.interval_s == interval_s(0.6, 0.2)
    assert collector._busy_cpus == pytest.approx(0.6)
