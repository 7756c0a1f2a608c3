"""async-profiler in a running JVM: CPU samples with Java, native and kernel frames, then allocations, then
waits for locks with their times; pauses and collections from the JVM's own log.

Its library is loaded by attach and stays loaded, stopped.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from prony.evidence.profile import KERNEL_FRAME, CutShort, LockWaits, Sampling, Stack
from prony.server import proc
from prony_explain import attach
from prony_explain.attach import NotAttached
from prony_explain.processes import NotReached, ProcessEnded, cause
from prony_explain.profilers import jvm_log, lock_waits
from prony_explain.profilers.base import (
    LEAST_SLICES,
    Profiled,
    Schedule,
    Slices,
    Unavailable,
    bound_s,
    collapsed,
    cut_short,
    ended_early,
)
from prony_explain.profilers.recording import Unreadable

LIBRARY = "libasyncProfiler.so"
FOLDERS = {"x86_64": "linux-x64", "aarch64": "linux-arm64"}
"""By machine, as the artifact has them."""
CLOCK_REALTIME_COARSE = 5
"""Of the kernel (include/uapi/linux/time.h); it moves with the ticks."""
TICK_S = time.clock_getres(CLOCK_REALTIME_COARSE)
"""Timers of CPU time end at ticks of the kernel, in the thread that runs then."""
TIMER_US = 100
"""Asked of them: so much less than a tick that each tick is a sample. Near a tick a thread that runs in
short pieces would lose every third.
"""
EVENTS = ("cpu", "ctimer", "itimer")
"""In the order of preference: perf events with kernel frames, a timer per thread, a timer of the process."""
CPU_EVENT_S = 0.01
"""CPU time between two samples by perf events at the least. An event of a thread is stopped and started at
each context switch: on a server that hands requests over 1 ms cost 52 % more CPU time, 3 ms 33 %, this 13 %.
"""
SHORTEST_S = 0.001
"""Not even for a server of many threads that have little to do."""
ALLOCATION_BYTES = 512 * 1024
"""Between two samples of allocations."""
LOCK_NS = 10_000
"""Each wait that is longer is recorded; of shorter ones that with which so much has come up since."""
BARE = 0x1F
"""Of a recording: without the system, its properties, libraries, load and heap."""
MOST_RECORDED_BYTES = 64 << 20
"""Of a recording, two million waits, which take a quarter of a minute to read; a longer one is not read."""
SHORTEST_SLICE_S = 0.2
"""Of each kind there is one slice at least, on a host that is late as well."""
CPU_SHARE = 0.8
"""Of the profiled time; allocations and locks have half of the rest each, so that neither's cost is in it."""

NAMELESS = re.compile(
    r"\[(unknown|unknown_\w+|not_walkable\w*|break_\w+|no_Java_frame)\]$|libjvm\.so[^`]*`\[unknown\]$"
)
"""Frames that stand for what has no name, or for callers that were not found."""
MOST_NAMELESS = 0.05
"""Of the samples: where more have such a frame it is said."""
NAME = "async-profiler"
TAKEN_OFF = "async-profiler was taken off the JVM meanwhile"
NO_WAITS = "waits for locks are missing"


class _Recorded(NamedTuple):
    """A recording of waits for locks, in seconds of CLOCK_MONOTONIC."""

    file: Path
    began_s: tuple[float, float]
    """Between these."""
    ends_s: tuple[float, ...]
    """Of the slices."""


class AsyncProfiler:
    """async-profiler on one JVM. `library`: the folder of the artifact's libraries."""

    def __init__(self, pid: int, libraries: Path, version: str) -> None:
        self._pid = pid
        self._libraries = libraries
        self._version = version
        self._root = Path("/")
        """Below which the JVM's /tmp is. A service of systemd may have one of its own (PrivateTmp) in a file
        system that is ours otherwise.
        """
        self._folder: Path | None = None
        self._library: Path | None = None
        self._event = ""
        self._lock = threading.Lock()
        self._may_run = False
        """From before a start is sent until a stop is answered: a start may be answered late, or never."""
        self._detached = False
        self._log: jvm_log.JvmLog | None = None

    @property
    def name(self) -> str:
        return f"{NAME} {self._version}"

    def attach(self) -> None:
        """Load the library, and start and stop it once: what it sets up is not done under the window."""
        machine = FOLDERS.get(platform.machine())
        if machine is None:
            raise Unavailable(f"async-profiler has no library for {platform.machine()}")
        try:
            if not self._shares(Path("/tmp")):
                self._root = attach.root_of(self._pid)
            self._library = self._reachable(self._libraries / machine / LIBRARY)
            self._folder = self._own_folder()
            self._event = self._first_event()
        except OSError as fault:
            refused = Unavailable(
                f"async-profiler could not be put beside the JVM {self._pid} ({fault}); run Prony as its "
                "user or as root"
            )
            raise cause(refused, self._pid) from fault
        except NotAttached as fault:
            raise Unavailable(str(fault)) from fault
        self._log = jvm_log.JvmLog(self._pid, self._inner(self._folder / "jvm.log"))

    def profile(self, schedule: Schedule) -> Profiled:
        """CPU samples in slices, then allocations, then locks."""
        if self._log is not None:
            self._log.open()
        try:
            return self._profile(schedule)
        except (NotReached, OSError) as fault:
            found = cause(fault, self._pid)
            raise (
                found if isinstance(found, ProcessEnded) else Unavailable(ended_early(NAME, fault))
            ) from fault

    def _profile(self, schedule: Schedule) -> Profiled:
        ends = schedule.ends_s
        interval_s, asked_us = self._interval(schedule.interval_s, schedule.longest_s)
        first = max(1, round(CPU_SHARE * len(ends)))
        rest = ends[first:]
        cpu, allocation, missing = Slices(schedule.begins_s), Slices(schedule.begins_s), list[str]()
        cut: CutShort | None = None
        try:
            words = f"event={self._event},interval={asked_us}us,threads"  # rules may name them
            went_on = self._phase(cpu, words, ends[:first], schedule)
        except (NotReached, OSError) as fault:
            if len(cpu.made) < LEAST_SLICES:
                raise
            found = cause(fault, self._pid)
            cut = cut_short(found)
            missing.append(ended_early(NAME, found, kept=True))
            went_on = False
        half = len(rest) // 2
        try:
            if went_on and rest[:half]:
                words = f"event=alloc,alloc={ALLOCATION_BYTES}"
                went_on = self._phase(allocation, words, rest[:half], schedule)
        except (NotReached, OSError) as fault:  # the CPU samples are there
            missing.append(f"stacks of allocations are missing: {cause(fault, self._pid)}")
        if self._log is not None:
            self._log.look()
        recorded: _Recorded | None = None
        try:
            if went_on and rest[half:]:
                recorded = self._record_waits(rest[half:], schedule)
        except (NotReached, OSError) as fault:
            missing.append(f"{NO_WAITS}: {cause(fault, self._pid)}")
        sampled = cpu.sampling("samples")
        missing += lacking(sampled, interval_s) if sampled is not None else ()
        told = self._log.close(schedule.begins_s) if self._log is not None else jvm_log.Told()
        locks, waits = self._waits(recorded, schedule.begins_s, missing)
        return Profiled(
            event=self._event,
            interval_s=interval_s,
            cpu=sampled,
            allocation=allocation.sampling("bytes"),
            locks=locks,
            lock_waits=waits,
            timeline=told.events,
            timeline_from_s=told.from_s,
            allocated_bytes=told.allocated_bytes,
            allocated_s=told.allocated_s,
            collections=told.collections,
            collection_pause_s=told.collection_pause_s,
            cut_short=cut,
            missing=(*missing, *told.missing),
        )

    def _interval(self, wanted_s: float, longest_s: float) -> tuple[float, int]:
        """CPU time that a sample stands for, and the interval in us that is asked of the profiler for it."""
        if self._event == "ctimer":
            return TICK_S, TIMER_US
        if self._event == "itimer":
            found_s = max(wanted_s, TICK_S)
        else:
            found_s = max(SHORTEST_S, min(max(wanted_s, CPU_EVENT_S), longest_s))
        return found_s, round(found_s * 1e6)

    def _phase(self, slices: Slices, options: str, ends_s: tuple[float, ...], schedule: Schedule) -> bool:
        """One kind of samples from now to the last of `ends_s`; False once the load is over. A slice is what
        came since the one before: the profiler goes on, as an event of a thread begins anew with a session,
        and where the threads have less CPU time in it than an interval none of them would be sampled.
        """
        weighed = "" if f"event={self._event}" in options else "total,"
        self._order(f"start,{options},cstack=vm,timeout={bound_s(ends_s[-1])}")
        since_s, before, goes_on = time.monotonic(), dict[Stack, int](), True
        for now_s, last, went_on in _slice_ends(ends_s, since_s, schedule):
            found = self._collapsed("stop" if last else "dump", weighed)
            more = {stack: weight - before.get(stack, 0) for stack, weight in found.items()}
            slices.add(since_s, now_s, {stack: weight for stack, weight in more.items() if weight > 0})
            since_s, before, goes_on = now_s, found, went_on
        return goes_on

    def _record_waits(self, ends_s: tuple[float, ...], schedule: Schedule) -> _Recorded:
        """Waits for locks from now to the last of `ends_s`, each with its time, into a file."""
        assert self._folder is not None, "attached"
        file = self._folder / "locks.jfr"
        asked_s = time.monotonic()
        self._order(
            f"start,event=lock,lock={LOCK_NS}ns,cstack=vm,jfr,jfropts={BARE},clock=monotonic,"
            f"file={self._inner(file)},timeout={bound_s(ends_s[-1])}"
        )
        began_s = time.monotonic()
        until = tuple(now_s for now_s, _last, _went_on in _slice_ends(ends_s, began_s, schedule))
        self._order("stop")
        return _Recorded(file, (asked_s, began_s), until)

    def _waits(
        self, recorded: _Recorded | None, begins_s: float, missing: list[str]
    ) -> tuple[Sampling | None, LockWaits | None]:
        """What was recorded; a sentence more in `missing` where it cannot be read."""
        if recorded is None:
            return None, None
        try:
            size = recorded.file.stat().st_size
            if size > MOST_RECORDED_BYTES:
                raise Unreadable(
                    f"{size >> 20} MiB of them were recorded, and at most {MOST_RECORDED_BYTES >> 20} are "
                    "read; measure for a shorter time"
                )
            raw = recorded.file.read_bytes()
            return lock_waits.read(raw, begins_s, recorded.began_s, recorded.ends_s)
        except (OSError, Unreadable) as fault:
            missing.append(f"{NO_WAITS}: {fault}")
            return None, None

    def detach(self) -> None:
        """Stop it and remove its files; the library stays in the JVM, as a JVM unloads none."""
        self._detached = True
        with self._lock:  # what is being ordered is done then, and nothing more will be
            if self._may_run:
                with suppress(NotReached):
                    self._send("stop")
        if self._log is not None:
            self._log.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _first_event(self) -> str:
        refusals = []
        for event in EVENTS:
            try:
                self._order(f"start,event={event},interval=10ms,timeout={bound_s(0)}")
                self._order("stop")
                return event
            except NotAttached as fault:
                refusals.append(str(fault))
                with suppress(NotAttached):  # it may have begun when the answer was already late
                    self._order("stop")
        why = "; ".join(dict.fromkeys(refusals))
        raise Unavailable(f"async-profiler can sample with none of {', '.join(EVENTS)}: {why}")

    def _order(self, options: str) -> None:
        """A command, unless it was taken off. Raises NotAttached."""
        with self._lock:
            if self._detached:
                raise NotAttached(TAKEN_OFF)
            self._send(options)

    def _send(self, options: str) -> None:
        """What it complains of is in the file that it is given. Raises NotAttached."""
        assert self._library is not None, "attached"
        assert self._folder is not None, "attached"
        log = self._folder / "said"
        self._may_run = self._may_run or options.startswith("start")
        try:
            attach.load(self._pid, self._library, f"{options},log={self._inner(log)}")
        except NotAttached as fault:
            said = log.read_text(errors="replace").strip() if log.exists() else ""
            raise NotAttached(f"{fault}{': ' if said else ''}{said}") from fault
        self._may_run = self._may_run and not options.startswith("stop")

    def _collapsed(self, order: str, how: str) -> dict[Stack, int]:
        """All samples since the start, by `dump` or `stop`."""
        assert self._folder is not None, "attached"
        file = self._folder / "collapsed"
        self._order(f"{order},collapsed,{how}ann,lib,file={self._inner(file)}")
        return _named(collapsed(file.read_text(errors="replace")))

    # -- files that both sides see

    def _shares(self, path: Path) -> bool:
        """Whether this path of ours is the same file for the JVM; taken for granted where we may not look."""
        try:
            return (attach.root_of(self._pid) / path.relative_to("/")).samefile(path)
        except FileNotFoundError:
            return False
        except OSError:
            return True

    def _inner(self, path: Path) -> Path:
        """The same file as the JVM names it."""
        return Path("/") / path.relative_to(self._root)

    def _reachable(self, library: Path) -> Path:
        """The library's path for the JVM: where it is, or a copy in its /tmp. The path is always the same, so
        that a second explanation finds what the first has loaded.
        """
        if self._shares(library) and os.access(library, os.R_OK) and proc.owner(self._pid) == os.geteuid():
            return library
        folder = self._root / "tmp" / f"prony-async-profiler-{self._version}"
        folder.mkdir(mode=0o755, exist_ok=True)
        if folder.stat().st_uid not in (0, os.geteuid()):
            raise NotAttached(f"{folder} belongs to somebody else; remove it")
        copy = folder / LIBRARY
        if not copy.exists():
            shutil.copyfile(library, copy)
            copy.chmod(0o755)
        return self._inner(copy)

    def _own_folder(self) -> Path:
        """For what it writes: only its user and we may read there."""
        folder = Path(tempfile.mkdtemp(prefix="prony-profile-", dir=self._root / "tmp"))
        owner = proc.owner(self._pid)
        if owner is not None and owner != os.geteuid():
            os.chown(folder, owner, -1)
        return folder


def _slice_ends(
    ends_s: tuple[float, ...], since_s: float, schedule: Schedule
) -> Iterator[tuple[float, bool, bool]]:
    """Waits for one end of a slice after the other: the time then, whether it is the last one, and whether
    the load goes on; without it no other follows. On a host that is late, slices whose time is over are part
    of the next one.
    """
    for end_s in ends_s:
        last = end_s == ends_s[-1]
        if end_s < time.monotonic() and not last:
            continue
        went_on = schedule.wait_until(max(end_s, since_s + SHORTEST_SLICE_S))
        since_s = time.monotonic()
        yield since_s, last or not went_on, went_on
        if not went_on:
            return


def _named(stacks: Mapping[Stack, int]) -> dict[Stack, int]:
    """Functions without a symbol, which have the path of their library as a name, as unknown ones of it."""
    found: dict[Stack, int] = {}
    for stack, weight in stacks.items():
        named = tuple(f"{Path(one).name}`[unknown]" if one.startswith("/") else one for one in stack)
        found[named] = found.get(named, 0) + weight
    return found


def lacking(sampled: Sampling, interval_s: float) -> Iterator[str]:
    """What a reader misses in these CPU samples, a sentence each."""
    if not sampled.frames:
        yield f"no thread of the server had {interval_s * 1000:.0f} ms of CPU time, so none was sampled"
        return
    if not any(frame.endswith(KERNEL_FRAME) for frame in sampled.frames):
        yield (
            f"kernel frames are missing: kernel.perf_event_paranoid is {_paranoid()} and "
            "kernel.kptr_restrict may hide symbols; to see them: sysctl kernel.perf_event_paranoid=1 "
            "kernel.kptr_restrict=0, or run Prony as root"
        )
    stacks = sampled.all_stacks()
    nameless = sum(weight for stack, weight in stacks.items() if any(map(NAMELESS.match, stack)))
    if nameless > MOST_NAMELESS * sampled.total:
        yield (
            f"{nameless / sampled.total:.0%} of the samples have frames without a name ([unknown_Java] and "
            "the like, or functions of a libjvm.so without symbols), so that locks, or the Java code that "
            "called, are not told in them (garbage collection and compilation are known by their threads); "
            "install the JDK's debug symbols (a package that ends in -dbg or -debuginfo), or run the server "
            "on a JDK that was not stripped"
        )


def _paranoid() -> str:
    try:
        return Path("/proc/sys/kernel/perf_event_paranoid").read_text(encoding="ascii").strip()
    except OSError:
        return "not readable"
