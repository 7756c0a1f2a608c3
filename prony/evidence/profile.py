"""A server's profile in an explained trial, by a profiler and the kernel's counters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from prony.evidence.base import Record

Stack = tuple[str, ...]
"""Frames from the outermost (thread, `main`) to the running function.

A frame is `[place`]name[_[kind]]`. The place is the library of a native frame (``libjvm.so`JavaThread::run``)
or the source file of an interpreted language (``lib/router.js`match_[s]``). Kinds: `_[j]` compiled Java,
`_[i]` inlined Java, `_[0]` interpreted Java, `_[1]` Java compiled by C1, `_[s]` Python or JavaScript, `_[k]`
the kernel; none: native code.
"""


class Samples(Record):
    """The samples of a slice of time: counts, bytes or nanoseconds by stack."""

    start_s: float
    """From the start of the window ..."""
    end_s: float
    weights: dict[int, int] = Field(default_factory=dict)
    """By the last node of the stack."""

    @property
    def total(self) -> int:
        return sum(self.weights.values())


class Sampling(Record):
    """Samples of a kind in slices of time. Stacks share a tree, which keeps a stored profile small."""

    unit: Literal["samples", "bytes", "ns"]
    frames: tuple[str, ...] = ()
    parents: tuple[int, ...] = ()
    """Per node; -1 for a root. Parents precede their children."""
    names: tuple[int, ...] = ()
    """Per node: index in `frames`."""
    slices: tuple[Samples, ...] = ()

    def all_stacks(self) -> dict[Stack, int]:
        return self.stacks(*self.slices)

    def stacks(self, *parts: Samples) -> dict[Stack, int]:
        """Stack -> weight over these slices."""
        whole = list(self.every_stack())
        weights: dict[Stack, int] = {}
        for part in parts:
            for node, weight in part.weights.items():
                weights[whole[node]] = weights.get(whole[node], 0) + weight
        return weights

    @property
    def total(self) -> int:
        return sum(part.total for part in self.slices)

    def every_stack(self) -> Iterator[Stack]:
        stacks: list[Stack] = []
        for parent, name in zip(self.parents, self.names, strict=True):
            stack = (*(stacks[parent] if parent >= 0 else ()), self.frames[name])
            stacks.append(stack)
            yield stack


class Counters(Record):
    """Counters of the server's processes over `seconds` of the profiled window; None: not read. Per request:
    divide by `seconds` and by the window's rate.
    """

    seconds: float
    cpu_s: float | None = None
    switches_voluntary: int | None = None
    """A thread waited for I/O, a lock, another thread."""
    switches_involuntary: int | None = None
    """A thread was taken off its CPU."""
    faults_minor: int | None = None
    faults_major: int | None = None
    run_queue_wait_s: float | None = None
    """All threads: runnable, but not on a CPU (schedstat)."""
    system_calls: dict[str, int] | None = None
    """By name, the rest as `other`; over the seconds in `system_calls_s`."""
    system_calls_s: float | None = None
    allocated_bytes: int | None = None
    """As the runtime reports; over the seconds in `allocated_s`."""
    allocated_s: float | None = None
    tcp_segments: int | None = None
    """Sent and received in the server's network namespace by any process; between its own sockets once."""
    tcp_opened: int | None = None
    """TCP connections opened there, from either side."""
    collections: int | None = None
    collection_pause_s: float | None = None
    compilation_s: float | None = None


CutShort = Literal["process-ended", "profiler-failed"]
"""Early end of a profile or a part of it: the profiled process ended, or the profiler failed alone."""
EventKind = Literal["collection", "safepoint", "compilation", "run-queue", "throttled", "disk", "lock"]


class TimelineEvent(Record):
    """An event of the runtime or the kernel at a known time."""

    kind: EventKind
    start_s: float
    """From the start of the window."""
    duration_s: float
    text: str = ""


class LockWait(Record):
    """A thread's wait for a lock."""

    start_s: float
    """From the start of the window."""
    duration_s: float
    lock: str
    """The class of the lock."""
    where: str
    """The waiting function: the innermost outside of the class library."""
    thread: str


class LockWaits(Record):
    """Waits for locks with their times, in the recorded slice of a profile."""

    from_s: float
    """From the start of the window ..."""
    to_s: float
    count: int
    """All recorded waits that ended within the slice."""
    longest: tuple[LockWait, ...] = ()
    """At most `MOST_EVENTS`, by their start."""


class Stalls(Record):
    """Delays of the server's threads by the kernel's counters: differences between readings a few hundredths
    of a second apart. None: not read.
    """

    begins_s: float
    """First reading, from the start of the window ..."""
    ends_s: tuple[float, ...] = ()
    """... and the end of each row."""
    run_queue_ms: tuple[float, ...] | None = None
    """Waits for a CPU of the thread that waited most (schedstat)."""
    throttled_ms: tuple[float, ...] | None = None
    """Throttling by the group's CPU quota, summed over CPUs, reported when they run again."""
    disk_kib: tuple[int, ...] | None = None
    """Read from disk, by file reads and page faults."""


class Profile(Record):
    """Everything collected under load in the window of an explained trial."""

    runtime: Literal["jvm", "python", "node", "native"]
    profiler: str
    """Name and version; empty without one."""
    event: str = ""
    """Source of CPU samples: cpu (perf events with kernel frames), ctimer, itimer, wall …"""
    interval_s: float | None = None
    """CPU time between two samples of a thread."""
    started_s: float = 0.0
    """From the start of the window ..."""
    ended_s: float = 0.0
    cpu: Sampling | None = None
    allocation: Sampling | None = None
    sampled_cpu_s: float | None = None
    """CPU time of the sampled processes from `started_s` until `sampled_s`."""
    sampled_s: float | None = None
    cpu_share: float | None = None
    """CPU time of the profiled processes ÷ all of the server's: samples, allocated bytes and lock waits are
    of the profiled ones only. None: not known (evidence of earlier versions).
    """
    locks: Sampling | None = None
    lock_waits: LockWaits | None = None
    """The same waits with their times; None also in evidence of earlier versions."""
    kernel: Sampling | None = None
    """CPU samples of a second profiler for kernel stacks; None where `cpu` has them."""
    counters: Counters | None = None
    timeline: tuple[TimelineEvent, ...] = ()
    timeline_from_s: float | None = None
    """Start of event recording; None where the runtime records none."""
    stalls: Stalls | None = None
    begun_monotonic_s: float | None = None
    """CLOCK_MONOTONIC, the engine's clock, at the start of the window."""
    cut_short: CutShort | None = None
    """None also in evidence of earlier versions."""
    missing: tuple[str, ...] = ()
    """Missing parts with the remedy, a sentence each."""

    @property
    def timeline_to_s(self) -> float:
        """End of event recording: the profiler's last slice."""
        kinds = (kind for kind in (self.cpu, self.allocation, self.locks) if kind is not None)
        ends_s = [part.end_s for kind in kinds for part in kind.slices]
        return min(self.ended_s, max(ends_s, default=self.ended_s))
