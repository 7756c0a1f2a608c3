"""What a profiler and the kernel's counters said of a server in an explained trial, as one stored value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from pydantic import Field

from prony.evidence.base import Record

KERNEL_FRAME = "_[k]"
"""The end of a frame of the kernel."""
Stack = tuple[str, ...]
"""Frames, the outermost (thread, `main`) first, the running function last.

A frame is `[place`]name[_[kind]]`. The place is the library of a native frame (``libjvm.so`JavaThread::run``)
or the source file of an interpreted language (``lib/router.js`match_[s]``). Kinds: `_[j]` compiled Java,
`_[i]` inlined Java, `_[0]` interpreted Java, `_[1]` Java compiled by C1, `_[s]` a function of Python or
JavaScript, `_[k]` the kernel; none: native code.
"""


class Samples(Record):
    """The samples of one slice of time: how often each stack was seen (or its bytes, its nanoseconds)."""

    start_s: float
    """From the start of the window ..."""
    end_s: float
    weights: dict[int, int] = Field(default_factory=dict)
    """By the node of the tree at which the stack ends."""

    @property
    def total(self) -> int:
        """All of the slice's weight."""
        return sum(self.weights.values())


class Sampling(Record):
    """One kind of samples in slices of time. Stacks share a tree, which keeps a stored profile small."""

    unit: Literal["samples", "bytes", "ns"]
    frames: tuple[str, ...] = ()
    parents: tuple[int, ...] = ()
    """Of each node; -1 for a root. A parent stands before its children."""
    names: tuple[int, ...] = ()
    """Of each node: its frame's place in `frames`."""
    slices: tuple[Samples, ...] = ()

    def stacks(self, part: Samples) -> dict[Stack, int]:
        """The stacks of one slice with their weights."""
        whole = list(self.every_stack())
        found: dict[Stack, int] = {}
        for node, weight in part.weights.items():
            found[whole[node]] = found.get(whole[node], 0) + weight
        return found

    def all_stacks(self) -> dict[Stack, int]:
        """The stacks of all slices together."""
        whole = list(self.every_stack())
        found: dict[Stack, int] = {}
        for part in self.slices:
            for node, weight in part.weights.items():
                found[whole[node]] = found.get(whole[node], 0) + weight
        return found

    @property
    def total(self) -> int:
        """The weight of all slices."""
        return sum(part.total for part in self.slices)

    def every_stack(self) -> Iterator[Stack]:
        """The stack that ends at each node, in their order."""
        made: list[Stack] = []
        for parent, name in zip(self.parents, self.names, strict=True):
            stack = (*(made[parent] if parent >= 0 else ()), self.frames[name])
            made.append(stack)
            yield stack


def sampling(
    unit: Literal["samples", "bytes", "ns"], slices: Iterable[tuple[float, float, Mapping[Stack, int]]]
) -> Sampling:
    """Slices (start, end, stacks with their weights) as one `Sampling`. Empty stacks are left out."""
    frames: dict[str, int] = {}
    nodes: dict[tuple[int, int], int] = {}
    made: list[Samples] = []
    for start_s, end_s, stacks in slices:
        weights: dict[int, int] = {}
        for stack, weight in stacks.items():
            node = -1
            for frame in stack:
                node = nodes.setdefault((node, frames.setdefault(frame, len(frames))), len(nodes))
            if node >= 0 and weight:
                weights[node] = weights.get(node, 0) + weight
        made.append(Samples(start_s=start_s, end_s=end_s, weights=weights))
    return Sampling(
        unit=unit,
        frames=tuple(frames),
        parents=tuple(parent for parent, _ in nodes),
        names=tuple(name for _, name in nodes),
        slices=tuple(made),
    )


class Counters(Record):
    """Counters of the server's processes, as differences over `seconds` of the profiled window. None: could
    not be read. Per request: divide by `seconds` and by the window's rate.
    """

    seconds: float
    cpu_s: float | None = None
    switches_voluntary: int | None = None
    """A thread waits: for I/O, a lock, another thread."""
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
    """By the runtime's own account; over the seconds in `allocated_s`."""
    allocated_s: float | None = None
    tcp_segments: int | None = None
    """Sent and received in the network namespace of the server, by whichever process; those between two of
    its own sockets once.
    """
    tcp_opened: int | None = None
    """TCP connections that were opened there, from either side."""
    collections: int | None = None
    collection_pause_s: float | None = None
    compilation_s: float | None = None


CutShort = Literal["process-ended", "profiler-failed"]
"""What ended a profile, or a part of it, before its window: the process that was profiled ended, whoever
noticed that first; or the profiler failed while the process went on.
"""
MOST_EVENTS = 1000
"""Of each kind, of what the runtime did: the longest; the first of those that have no length."""
EventKind = Literal["collection", "safepoint", "compilation", "run-queue", "throttled", "disk", "lock"]


class TimelineEvent(Record):
    """Something that the runtime or the kernel did at a known time."""

    kind: EventKind
    start_s: float
    """From the start of the window."""
    duration_s: float
    text: str = ""


class LockWait(Record):
    """A thread waited for a lock that another one held."""

    start_s: float
    """From the start of the window."""
    duration_s: float
    lock: str
    """The class of the lock."""
    where: str
    """The function that waits: the innermost outside of the class library."""
    thread: str


class LockWaits(Record):
    """Waits for locks by their times, of the slice of a profile in which they were recorded."""

    from_s: float
    """From the start of the window ..."""
    to_s: float
    count: int
    """All that were recorded; a wait that had not ended by then is none of them."""
    longest: tuple[LockWait, ...] = ()
    """At most `MOST_EVENTS`, by their start."""


class Stalls(Record):
    """What held the server's threads up, as the kernel counts it: a row per reading, a few hundredths of a
    second apart, with what came up since the reading before. None: could not be read.
    """

    begins_s: float
    """The first reading, from the start of the window ..."""
    ends_s: tuple[float, ...] = ()
    """... and the later ones, one for each row."""
    run_queue_ms: tuple[float, ...] | None = None
    """Of the thread that waited most for a CPU, all its waits together (schedstat)."""
    throttled_ms: tuple[float, ...] | None = None
    """The control group was kept from running, as its CPU quota was used up: the sum over its CPUs, which the
    kernel tells when they run again.
    """
    disk_kib: tuple[int, ...] | None = None
    """Fetched from disk: by reading files, and by page faults."""


class Profile(Record):
    """Everything that was collected beside the load in the window of one explained trial."""

    runtime: Literal["jvm", "python", "node", "native"]
    profiler: str
    """Its name and version; empty where none could be used."""
    event: str = ""
    """What drives the CPU samples: cpu (perf events with kernel frames), ctimer, itimer, wall …"""
    interval_s: float | None = None
    """Between two CPU samples of a thread, of CPU time."""
    started_s: float = 0.0
    """From the start of the window ..."""
    ended_s: float = 0.0
    cpu: Sampling | None = None
    allocation: Sampling | None = None
    sampled_cpu_s: float | None = None
    """CPU time of the processes that were sampled, from `started_s` until `sampled_s`, in which the CPU
    samples were taken.
    """
    sampled_s: float | None = None
    cpu_share: float | None = None
    """Of the CPU time of all processes of the server: that of the profiled ones, of which alone samples,
    bytes allocated and waits for locks are. None: not known, as in evidence of earlier versions.
    """
    locks: Sampling | None = None
    lock_waits: LockWaits | None = None
    """The same waits with their times; None in evidence of earlier versions, too."""
    kernel: Sampling | None = None
    """CPU samples of a second profiler, for the kernel's stacks; None where `cpu` has them."""
    counters: Counters | None = None
    timeline: tuple[TimelineEvent, ...] = ()
    timeline_from_s: float | None = None
    """From when on the runtime was asked for these events; None: it cannot tell them, or did not."""
    stalls: Stalls | None = None
    begun_monotonic_s: float | None = None
    """CLOCK_MONOTONIC at the start of the window: the clock of the engine's requests."""
    cut_short: CutShort | None = None
    """None also in evidence of earlier versions."""
    missing: tuple[str, ...] = ()
    """What could not be collected and what it would take, a sentence each."""

    @property
    def timeline_to_s(self) -> float:
        """Until when the runtime was asked for events: a profiler stops with its last slice."""
        kinds = (kind for kind in (self.cpu, self.allocation, self.locks) if kind is not None)
        ends_s = [one.end_s for kind in kinds for one in kind.slices]
        return min(self.ended_s, max(ends_s, default=self.ended_s))
