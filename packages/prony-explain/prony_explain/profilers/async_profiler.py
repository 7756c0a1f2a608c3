"""async-profiler in a running JVM: CPU samples with Java, native and kernel frames, then allocations, then
timed waits for locks; collections and pauses from the JVM's log. Its library stays loaded, stopped.
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

from prony.evidence.profile import CutShort, LockWaits, Sampling, Stack
from prony.report.out import filled
from prony_explain import attach
from prony_explain.attach import NotAttached
from prony_explain.processes import NotReached, ProcessEnded, cause, uid_of
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
from prony_explain.sampling import KERNEL_FRAME

LIBRARY = "libasyncProfiler.so"
FOLDERS = {"x86_64": "linux-x64", "aarch64": "linux-arm64"}
"""Machine -> folder in the artifact."""
CLOCK_REALTIME_COARSE = 5
"""Clock id (include/uapi/linux/time.h); it advances with the kernel's ticks."""
TICK_S = time.clock_getres(CLOCK_REALTIME_COARSE)
"""CPU-time timers expire at ticks of the kernel, in the thread running then."""
TIMER_US = 100
"""Timers' interval: well below a tick. Near a tick, threads that run briefly lose every third."""
EVENTS = ("cpu", "ctimer", "itimer")
"""In order of preference: perf events with kernel frames, a timer per thread, a timer of the process."""
CPU_EVENT_S = 0.01
"""Minimum CPU time between two perf event samples. A thread's event is stopped and started at each context
switch: on a server that hands requests over, 1 ms cost 52 % more CPU time, 3 ms 33 %, 10 ms 13 %.
"""
SHORTEST_S = 0.001
"""Lower bound, also for many threads with little to do."""
ALLOCATION_BYTES = 512 * 1024
"""Bytes between two allocation samples."""
LOCK_NS = 10_000
"""Longer waits are all recorded; shorter ones each time they add up to this."""
BARE = 0x1F
"""Flags of a recording: without system, properties, libraries, load and heap."""
MOST_RECORDED_BYTES = 64 << 20
"""Longest recording that is read: two million waits, which take 15 s."""
SHORTEST_SLICE_S = 0.2
"""Minimum length; each kind has at least one slice, even on a late host."""
CPU_SHARE = 0.8
"""CPU samples' share of the profiled time; allocations and locks have half of the rest each."""

NAMELESS = re.compile(
    r"\[(unknown|unknown_\w+|not_walkable\w*|break_\w+|no_Java_frame)\]$|libjvm\.so[^`]*`\[unknown\]$"
)
"""Frames without a name, or with unknown callers."""
MOST_NAMELESS = 0.05
"""Share of samples with such frames above which a caveat is printed."""
NAME = "async-profiler"
TAKEN_OFF = "async-profiler was detached from the JVM meanwhile"
NO_WAITS = "waits for locks are missing"


class _Recorded(NamedTuple):
    """A recording of waits for locks; seconds of CLOCK_MONOTONIC."""

    file: Path
    began_s: tuple[float, float]
    """It began between these."""
    ends_s: tuple[float, ...]
    """Ends of the slices."""


class AsyncProfiler:
    """async-profiler on one JVM. `libraries`: the folder of the artifact's libraries."""

    def __init__(self, pid: int, libraries: Path, version: str) -> None:
        self._pid = pid
        self._libraries = libraries
        self._version = version
        self._root = Path("/")
        """The JVM's /tmp, seen from Prony; a systemd service may have its own (PrivateTmp)."""
        self._folder: Path | None = None
        self._library: Path | None = None
        self._event = ""
        self._lock = threading.Lock()
        self._may_run = False
        """From before a start is sent until a stop is acknowledged."""
        self._detached = False
        self._log: jvm_log.JvmLog | None = None

    @property
    def name(self) -> str:
        return f"{NAME} {self._version}"

    def attach(self) -> None:
        """Load the library, start and stop it once, so that its set-up is not part of the window."""
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
                f"async-profiler could not be loaded into the JVM {self._pid} ({fault}); run Prony as its "
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
            reason = cause(fault, self._pid)
            raise (
                reason if isinstance(reason, ProcessEnded) else Unavailable(ended_early(NAME, fault))
            ) from fault

    def _profile(self, schedule: Schedule) -> Profiled:
        ends = schedule.ends_s
        interval_s, requested_us = self._interval(schedule.interval_s, schedule.longest_s)
        first = max(1, round(CPU_SHARE * len(ends)))
        rest = ends[first:]
        cpu, allocation, missing = Slices(schedule.begins_s), Slices(schedule.begins_s), list[str]()
        cut: CutShort | None = None
        try:
            words = f"event={self._event},interval={requested_us}us,threads"  # rules may name threads
            went_on = self._phase(cpu, words, ends[:first], schedule)
        except (NotReached, OSError) as fault:
            if len(cpu.made) < LEAST_SLICES:
                raise
            reason = cause(fault, self._pid)
            cut = cut_short(reason)
            missing.append(ended_early(NAME, reason, kept=True))
            went_on = False
        half = len(rest) // 2
        try:
            if went_on and rest[:half]:
                words = f"event=alloc,alloc={ALLOCATION_BYTES}"
                went_on = self._phase(allocation, words, rest[:half], schedule)
        except (NotReached, OSError) as fault:  # CPU samples are kept
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
        logged = self._log.close(schedule.begins_s) if self._log is not None else jvm_log.LogContents()
        locks, waits = self._waits(recorded, schedule.begins_s, missing)
        return filled(
            Profiled,
            logged,
            event=self._event,
            interval_s=interval_s,
            cpu=sampled,
            allocation=allocation.sampling("bytes"),
            locks=locks,
            lock_waits=waits,
            timeline=logged.events,
            timeline_from_s=logged.from_s,
            cut_short=cut,
            missing=(*missing, *logged.missing),
        )

    def _interval(self, wanted_s: float, longest_s: float) -> tuple[float, int]:
        """CPU time per sample, s, and the interval to request from the profiler, µs."""
        if self._event == "ctimer":
            return TICK_S, TIMER_US
        if self._event == "itimer":
            interval_s = max(wanted_s, TICK_S)
        else:
            interval_s = max(SHORTEST_S, min(max(wanted_s, CPU_EVENT_S), longest_s))
        return interval_s, round(interval_s * 1e6)

    def _phase(self, slices: Slices, options: str, ends_s: tuple[float, ...], schedule: Schedule) -> bool:
        """Samples of one kind until the last of `ends_s`; False once the load has ended. A slice is the
        difference of two dumps: restarting would begin each thread's event anew, and threads with less CPU
        time per slice than an interval would never be sampled.
        """
        weighed = "" if f"event={self._event}" in options else "total,"
        self._order(f"start,{options},cstack=vm,timeout={bound_s(ends_s[-1])}")
        since_s, before, goes_on = time.monotonic(), dict[Stack, int](), True
        for now_s, last, went_on in _slice_ends(ends_s, since_s, schedule):
            weights = self._collapsed("stop" if last else "dump", weighed)
            more = {stack: weight - before.get(stack, 0) for stack, weight in weights.items()}
            slices.add(since_s, now_s, {stack: weight for stack, weight in more.items() if weight > 0})
            since_s, before, goes_on = now_s, weights, went_on
        return goes_on

    def _record_waits(self, ends_s: tuple[float, ...], schedule: Schedule) -> _Recorded:
        """Records each wait for a lock with its time into a file, until the last of `ends_s`."""
        assert self._folder is not None, "attached"
        file = self._folder / "locks.jfr"
        requested_s = time.monotonic()
        self._order(
            f"start,event=lock,lock={LOCK_NS}ns,cstack=vm,jfr,jfropts={BARE},clock=monotonic,"
            f"file={self._inner(file)},timeout={bound_s(ends_s[-1])}"
        )
        began_s = time.monotonic()
        until = tuple(now_s for now_s, _last, _went_on in _slice_ends(ends_s, began_s, schedule))
        self._order("stop")
        return _Recorded(file, (requested_s, began_s), until)

    def _waits(
        self, recorded: _Recorded | None, begins_s: float, missing: list[str]
    ) -> tuple[Sampling | None, LockWaits | None]:
        """Reads the recording; a failure is added to `missing`."""
        if recorded is None:
            return None, None
        try:
            size = recorded.file.stat().st_size
            if size > MOST_RECORDED_BYTES:
                raise Unreadable(
                    f"{size >> 20} MiB were recorded, the limit is {MOST_RECORDED_BYTES >> 20} MiB; measure "
                    "for a shorter time"
                )
            raw = recorded.file.read_bytes()
            return lock_waits.read(raw, begins_s, recorded.began_s, recorded.ends_s)
        except (OSError, Unreadable) as fault:
            missing.append(f"{NO_WAITS}: {fault}")
            return None, None

    def detach(self) -> None:
        """Stop it and remove its files; a JVM cannot unload the library."""
        self._detached = True
        with self._lock:  # waits for an order under way; later ones are refused
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
                with suppress(NotAttached):  # it may have started despite a late answer
                    self._order("stop")
        reasons = "; ".join(dict.fromkeys(refusals))
        raise Unavailable(f"async-profiler can sample with none of {', '.join(EVENTS)}: {reasons}")

    def _order(self, options: str) -> None:
        """Send a command unless detached. Raises NotAttached."""
        with self._lock:
            if self._detached:
                raise NotAttached(TAKEN_OFF)
            self._send(options)

    def _send(self, options: str) -> None:
        """Raises NotAttached with the agent's own complaint, which it writes to a file."""
        assert self._library is not None, "attached"
        assert self._folder is not None, "attached"
        log = self._folder / "said"
        self._may_run = self._may_run or options.startswith("start")
        try:
            attach.load(self._pid, self._library, f"{options},log={self._inner(log)}")
        except NotAttached as fault:
            complaint = log.read_text(errors="replace").strip() if log.exists() else ""
            raise NotAttached(f"{fault}{': ' if complaint else ''}{complaint}") from fault
        self._may_run = self._may_run and not options.startswith("stop")

    def _collapsed(self, order: str, how: str) -> dict[Stack, int]:
        """All samples since the start, by `dump` or `stop`."""
        assert self._folder is not None, "attached"
        file = self._folder / "collapsed"
        self._order(f"{order},collapsed,{how}ann,lib,file={self._inner(file)}")
        return _named(collapsed(file.read_text(errors="replace")))

    # -- files seen by both processes

    def _shares(self, path: Path) -> bool:
        """Whether the JVM sees the same file at this path; assumed if unreadable."""
        try:
            return (attach.root_of(self._pid) / path.relative_to("/")).samefile(path)
        except FileNotFoundError:
            return False
        except OSError:
            return True

    def _inner(self, path: Path) -> Path:
        """The path as the JVM sees it."""
        return Path("/") / path.relative_to(self._root)

    def _reachable(self, library: Path) -> Path:
        """The library's path for the JVM, or a copy in its /tmp; constant, so that it is loaded once."""
        if self._shares(library) and os.access(library, os.R_OK) and uid_of(self._pid) == os.geteuid():
            return library
        folder = self._root / "tmp" / f"prony-async-profiler-{self._version}"
        folder.mkdir(mode=0o755, exist_ok=True)
        if folder.stat().st_uid not in (0, os.geteuid()):
            raise NotAttached(f"{folder} belongs to another user; remove it")
        copy = folder / LIBRARY
        if not copy.exists():
            shutil.copyfile(library, copy)
            copy.chmod(0o755)
        return self._inner(copy)

    def _own_folder(self) -> Path:
        """Folder for its output, readable by the JVM's user and Prony only."""
        folder = Path(tempfile.mkdtemp(prefix="prony-profile-", dir=self._root / "tmp"))
        owner = uid_of(self._pid)
        if owner is not None and owner != os.geteuid():
            os.chown(folder, owner, -1)
        return folder


def _slice_ends(
    ends_s: tuple[float, ...], since_s: float, schedule: Schedule
) -> Iterator[tuple[float, bool, bool]]:
    """Waits for each end of a slice; yields the time, whether it is the last, and whether the load goes on.
    Slices that are over already, on a late host, become part of the next.
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
    """Functions without a symbol, named by their library's path, as unknown functions of it."""
    named: dict[Stack, int] = {}
    for stack, weight in stacks.items():
        renamed = tuple(f"{Path(f).name}`[unknown]" if f.startswith("/") else f for f in stack)
        named[renamed] = named.get(renamed, 0) + weight
    return named


def lacking(sampled: Sampling, interval_s: float) -> Iterator[str]:
    """Caveats about these CPU samples."""
    if not sampled.frames:
        yield f"no samples: no thread of the server had {interval_s * 1000:.0f} ms of CPU time"
        return
    if not any(frame.endswith(KERNEL_FRAME) for frame in sampled.frames):
        yield (
            f"kernel frames are missing: kernel.perf_event_paranoid is {_paranoid()}, and "
            "kernel.kptr_restrict may hide symbols; to see them: sysctl kernel.perf_event_paranoid=1 "
            "kernel.kptr_restrict=0, or run Prony as root"
        )
    stacks = sampled.all_stacks()
    nameless = sum(weight for stack, weight in stacks.items() if any(map(NAMELESS.match, stack)))
    if nameless > MOST_NAMELESS * sampled.total:
        yield (
            f"{nameless / sampled.total:.0%} of the samples have frames without a name ([unknown_Java] or "
            "functions of a libjvm.so without symbols), so locks and calling Java code are unknown there "
            "(garbage collection and compilation are known by their threads); install the JDK's debug "
            "symbols (package *-dbg or *-debuginfo), or run the server on a JDK that is not stripped"
        )


def _paranoid() -> str:
    try:
        return Path("/proc/sys/kernel/perf_event_paranoid").read_text(encoding="ascii").strip()
    except OSError:
        return "not readable"
