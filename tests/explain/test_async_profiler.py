"""async-profiler's module on a stand-in for the JVM: what it orders, and what is left on in whichever order
things fail.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from prony.evidence.profile import Stack
from prony_explain import attach
from prony_explain.attach import NotAttached
from prony_explain.processes import ProcessEnded
from prony_explain.profilers.async_profiler import FOLDERS, LIBRARY, TAKEN_OFF, AsyncProfiler
from prony_explain.profilers.base import BEYOND_S, Schedule, Unavailable, ended_early
from tests.explain.recordings import Wait, recording

WINDOW_S = 1000.0


class Jvm:
    """Samples from a start to a stop, and writes the stacks that it is given."""

    def __init__(self) -> None:
        self.orders: list[dict[str, str]] = []
        self.sampling = self.logging = False
        self.refused: tuple[str, ...] = ()
        self.begun: Callable[[dict[str, str]], None] = lambda _words: None
        self.done: Callable[[dict[str, str]], None] = lambda _words: None
        self.asked: Callable[[str], None] = lambda _command: None
        self.stacks: dict[Stack, int] = {("main", "app/Work.do_[j]"): 3}
        self.waits: list[int] = [20_000_000, 1_000]
        """Waits for a lock that a recording has, in ns."""
        self.recording: Path | None = None
        self._began_ns = 0

    def load(self, _pid: int, _library: Path, options: str) -> str:
        words = dict(part.partition("=")[::2] for part in options.split(","))
        self.orders.append(words)
        self.begun(words)
        if "start" in words:
            if words["event"] in self.refused:
                raise NotAttached(f"no {words['event']} here")
            self.sampling = True
            self.recording = Path(words["file"]) if "jfr" in words else None
            self._began_ns = time.monotonic_ns()
        if "stop" in words:
            self.sampling = False
            if self.recording is not None:
                waits = [Wait(self._began_ns + 1, length_ns) for length_ns in self.waits]
                self.recording.write_bytes(recording(self._began_ns, waits))
                self.recording = None
        if "collapsed" in words:
            dumps = sum("collapsed" in one for one in self.orders)
            lines = (f"{';'.join(stack)} {weight * dumps}" for stack, weight in self.stacks.items())
            Path(words["file"]).write_text("\n".join(lines))
        self.done(words)
        return ""

    def jcmd(self, _pid: int, command: str) -> str:
        if command.startswith("VM.log"):
            self.logging = "what=all=off" not in command
        self.asked(command)
        return ""

    @property
    def started(self) -> list[str]:
        return [one["event"] for one in self.orders if "start" in one]


@pytest.fixture
def jvm(monkeypatch: pytest.MonkeyPatch) -> Jvm:
    made = Jvm()
    monkeypatch.setattr(attach, "load", made.load)
    monkeypatch.setattr(attach, "jcmd", made.jcmd)
    return made


@pytest.fixture
def profiler(jvm: Jvm, tmp_path: Path) -> Iterator[AsyncProfiler]:
    assert not jvm.orders
    for folder in FOLDERS.values():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / LIBRARY).touch()
    made = AsyncProfiler(os.getpid(), tmp_path, "4")
    yield made
    made.detach()


def schedule() -> Schedule:
    """Ten slices whose time has come as soon as they are waited for."""
    now_s = time.monotonic()
    ends_s = tuple(now_s + WINDOW_S * (one + 1) / 10 for one in range(10))
    return Schedule(now_s, ends_s, lambda _wait_s: False)


@pytest.mark.parametrize(
    ("refused", "event"), [((), "cpu"), (("cpu",), "ctimer"), (("cpu", "ctimer"), "itimer")]
)
def test_the_first_event_that_is_allowed_is_taken(
    jvm: Jvm, profiler: AsyncProfiler, refused: tuple[str, ...], event: str
) -> None:
    jvm.refused = refused
    profiler.attach()
    assert jvm.started == [*refused, event]
    assert not jvm.sampling
    found = profiler.profile(schedule())
    profiler.detach()
    assert found.event == event
    assert ["threads" in one for one in jvm.orders if "start" in one][-3:] == [True, False, False]
    assert jvm.started[len(refused) + 1 :] == [event, "alloc", "lock"]


def test_a_jvm_that_allows_no_event_is_said_with_each_reason(jvm: Jvm, profiler: AsyncProfiler) -> None:
    jvm.refused = ("cpu", "ctimer", "itimer")
    with pytest.raises(Unavailable, match="no cpu here; no ctimer here; no itimer here"):
        profiler.attach()


def test_it_ends_by_itself_a_little_after_each_kind_where_nobody_stops_it(
    jvm: Jvm, profiler: AsyncProfiler
) -> None:
    profiler.attach()
    profiler.profile(schedule())
    tried, *bounds = (float(one["timeout"]) for one in jvm.orders if "start" in one)
    assert tried == BEYOND_S
    for bound_s, ends_s in zip(bounds, (0.8 * WINDOW_S, 0.9 * WINDOW_S, WINDOW_S), strict=True):
        assert ends_s - 60 <= bound_s - BEYOND_S <= ends_s + 1


def test_nothing_is_begun_once_it_was_taken_off_between_two_kinds(jvm: Jvm, profiler: AsyncProfiler) -> None:
    profiler.attach()
    heaps: list[str] = []

    def asked(command: str) -> None:
        heaps.extend([command] if command == "GC.heap_info" else [])
        if len(heaps) == 2:  # as the log opens, and then between allocations and locks
            heaps.clear()
            profiler.detach()

    jvm.asked = asked
    found = profiler.profile(schedule())
    assert jvm.started == ["cpu", "cpu", "alloc"]
    assert (jvm.sampling, jvm.logging) == (False, False)
    assert any(caveat.endswith(TAKEN_OFF) for caveat in found.missing)


def test_what_is_being_started_while_it_is_taken_off_is_stopped(jvm: Jvm, profiler: AsyncProfiler) -> None:
    profiler.attach()
    starts, goes_on = threading.Event(), threading.Event()

    def begun(words: dict[str, str]) -> None:
        if words.get("event") == "alloc":
            starts.set()
            assert goes_on.wait(60)

    jvm.begun = begun
    profiling = threading.Thread(target=profiler.profile, args=(schedule(),))
    profiling.start()
    assert starts.wait(60)
    leaving = threading.Thread(target=profiler.detach)
    leaving.start()
    while not profiler._detached:
        time.sleep(0.001)
    goes_on.set()
    leaving.join(60)
    profiling.join(60)
    assert not leaving.is_alive()
    assert not profiling.is_alive()
    assert (jvm.sampling, jvm.logging) == (False, False)
    assert "lock" not in jvm.started


@pytest.mark.parametrize("event", ["cpu", "lock"])
def test_a_start_that_is_answered_too_late_is_stopped_too(
    jvm: Jvm, profiler: AsyncProfiler, event: str
) -> None:
    profiler.attach()

    def late(words: dict[str, str]) -> None:
        if "start" in words and words["event"] == event:
            raise NotAttached("the JVM does not answer on its attach socket: timed out")

    jvm.done = late
    if event == "cpu":
        with pytest.raises(Unavailable):
            profiler.profile(schedule())
    else:
        assert profiler.profile(schedule()).locks is None
    assert jvm.sampling
    profiler.detach()
    assert not jvm.sampling


def dies(jvm: Jvm, dumps: int) -> None:
    """After so many dumps of the window."""
    known: list[dict[str, str]] = []

    def begun(words: dict[str, str]) -> None:
        known.extend([words] if "collapsed" in words else [])
        if len(known) > dumps:
            raise ProcessEnded(7)

    jvm.begun = begun


def test_of_a_jvm_that_ends_the_slices_until_then_are_kept(jvm: Jvm, profiler: AsyncProfiler) -> None:
    profiler.attach()
    dies(jvm, dumps=3)
    found = profiler.profile(schedule())
    assert found.cpu is not None
    assert [one.total for one in found.cpu.slices] == [3, 3, 3]
    assert found.cut_short == "process-ended"
    assert ended_early("async-profiler", ProcessEnded(7), kept=True) in found.missing
    assert jvm.started == ["cpu", "cpu"]


def test_a_single_slice_is_no_profile(jvm: Jvm, profiler: AsyncProfiler) -> None:
    profiler.attach()
    dies(jvm, dumps=1)
    with pytest.raises(ProcessEnded):
        profiler.profile(schedule())


def test_a_jvm_that_lives_and_does_not_answer_is_another_reason(jvm: Jvm, profiler: AsyncProfiler) -> None:
    profiler.attach()

    def silent(words: dict[str, str]) -> None:
        if sum("collapsed" in one for one in jvm.orders) > 3 and "collapsed" in words:
            raise NotAttached("timed out")

    jvm.begun = silent
    found = profiler.profile(schedule())
    assert found.cpu is not None
    assert found.cut_short == "profiler-failed"


def test_allocations_that_cannot_be_sampled_cost_a_sentence(jvm: Jvm, profiler: AsyncProfiler) -> None:
    profiler.attach()
    jvm.refused = ("alloc",)
    found = profiler.profile(schedule())
    assert found.cpu is not None
    assert found.allocation is None
    assert found.locks is not None
    assert any(caveat.endswith("no alloc here") for caveat in found.missing)


def test_waits_for_locks_are_recorded_with_their_times_on_the_engines_clock(
    jvm: Jvm, profiler: AsyncProfiler
) -> None:
    profiler.attach()
    begun_s = time.monotonic()
    found = profiler.profile(schedule())
    (order,) = (one for one in jvm.orders if one.get("event") == "lock")
    assert (order["clock"], order["lock"], "jfr" in order) == ("monotonic", "10000ns", True)
    assert found.locks is not None
    assert (found.locks.unit, found.locks.total) == ("ns", 20_001_000)
    assert found.lock_waits is not None
    assert [one.duration_s for one in found.lock_waits.longest] == [0.02, 0.000001]
    assert 0 <= found.lock_waits.longest[0].start_s <= time.monotonic() - begun_s
    assert found.lock_waits.from_s <= found.lock_waits.to_s
    assert not any("locks" in one for one in found.missing)


@pytest.mark.usefixtures("jvm")
def test_a_recording_that_cannot_be_read_costs_a_sentence(
    profiler: AsyncProfiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiler.attach()
    monkeypatch.setattr("prony_explain.profilers.async_profiler.MOST_RECORDED_BYTES", 100)
    found = profiler.profile(schedule())
    assert found.cpu is not None
    assert found.allocation is not None
    assert (found.locks, found.lock_waits) == (None, None)
    said = "0 MiB were recorded, the limit is 0 MiB; measure for a shorter time"
    assert any(caveat.endswith(said) for caveat in found.missing)


STRIPPED: Stack = ("[GC Thread#0 tid=7]", "/usr/lib/jvm/x/lib/server/libjvm.so")
BROKEN: Stack = ("[worker tid=8]", "[unknown_Java]", "java/util/HashMap.get_[j]")
GOOD: Stack = ("[worker tid=8]", "app/Work.do_[j]", "libjvm.so`Unsafe_Park", "futex_[k]")


@pytest.mark.parametrize(
    ("stacks", "share"),
    [
        ({GOOD: 90, STRIPPED: 10}, "10%"),
        ({GOOD: 80, BROKEN: 20}, "20%"),
        ({GOOD: 60, STRIPPED: 20, BROKEN: 20}, "40%"),
        ({GOOD: 96, BROKEN: 4}, None),
        ({GOOD: 50, ("[worker tid=8]", "/opt/lib/libz.so.1", "read_[k]"): 50}, None),
    ],
    ids=["stripped", "broken", "both", "few", "another library"],
)
def test_a_jvm_without_symbols_is_said_in_a_sentence(
    jvm: Jvm, profiler: AsyncProfiler, stacks: dict[Stack, int], share: str | None
) -> None:
    jvm.stacks = stacks
    profiler.attach()
    found = profiler.profile(schedule())
    said = [one for one in found.missing if "without a name" in one]
    assert len(said) == (share is not None)
    if share is not None:
        assert said[0].startswith(f"{share} of the samples have frames without a name ([unknown_Java]")
        assert "install the JDK's debug symbols" in said[0]


def test_a_function_without_a_symbol_is_one_of_its_library(jvm: Jvm, profiler: AsyncProfiler) -> None:
    jvm.stacks = {STRIPPED: 1, GOOD: 1}
    profiler.attach()
    found = profiler.profile(schedule()).cpu
    assert found is not None
    assert set(found.all_stacks()) == {("[GC Thread#0 tid=7]", "libjvm.so`[unknown]"), GOOD}
