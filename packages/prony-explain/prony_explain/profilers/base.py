"""What a profiler is to the collector."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from prony.errors import PronyError
from prony.evidence.profile import CutShort, LockWaits, Sampling, Stack, TimelineEvent, sampling
from prony_explain.processes import ProcessEnded

BEYOND_S = 20.0
"""A profiler that nobody stops, as Prony was killed, stops by itself so much later than it should have."""
LEAST_SLICES = 2
"""Of a profile that ended early: with fewer it is none."""


class Unavailable(Exception):
    """This profiler cannot be used on this process; `str()` is one sentence: why, and what it would take."""


def why(fault: Exception, name: str) -> str:
    """The sentence on what kept the profiler of this name from its work; of a defect with its type."""
    if isinstance(fault, ProcessEnded):
        return ended_early(name, fault)
    known = isinstance(fault, Unavailable | PronyError)
    return str(fault) if known else f"{name} failed: {type(fault).__name__}: {fault}"


def ended_early(name: str, fault: Exception, *, kept: bool = False) -> str:
    """The sentence on a profile that ended before its window did. `kept`: there are slices until then."""
    return f"{name} ended early: {fault}{'; the shares are those of the slices until then' if kept else ''}"


def cut_short(fault: Exception) -> CutShort:
    """The code of what ended a profile early."""
    return "process-ended" if isinstance(fault, ProcessEnded) else "profiler-failed"


@dataclass(frozen=True, slots=True)
class Schedule:
    """When slices end, all on CLOCK_MONOTONIC. `ended` says that the load, and so the profile, is over."""

    begins_s: float
    ends_s: tuple[float, ...]
    ended: Callable[[float], bool]
    """Waits for so many seconds at the most; True once the load is over."""
    interval_s: float = 0.001
    """CPU time between two samples of a thread that is wanted."""
    longest_s: float = math.inf
    """With a longer one most threads of a server that has many would never be sampled."""

    def wait_until(self, moment_s: float) -> bool:
        """False when the load was over before that moment."""
        return not self.ended(max(0.0, moment_s - time.monotonic()))


def bound_s(end_s: float) -> int:
    """For how long from now a profiler may run at the most that is to be stopped at this moment."""
    return math.ceil(max(0.0, end_s - time.monotonic()) + BEYOND_S)


@dataclass(slots=True)
class Slices:
    """Slices of one kind of samples, as they are made."""

    begins_s: float
    made: list[tuple[float, float, Mapping[Stack, int]]] = field(default_factory=list)

    def add(self, start_s: float, end_s: float, stacks: Mapping[Stack, int]) -> None:
        """One slice, in seconds of CLOCK_MONOTONIC."""
        self.made.append((start_s - self.begins_s, end_s - self.begins_s, stacks))

    def sampling(self, unit: Literal["samples", "bytes", "ns"]) -> Sampling | None:
        """All of them as a stored value; None where there is none."""
        return sampling(unit, self.made) if self.made else None


@dataclass(frozen=True, slots=True)
class Profiled:
    """What a profiler found."""

    event: str
    interval_s: float | None
    cpu: Sampling | None = None
    allocation: Sampling | None = None
    locks: Sampling | None = None
    lock_waits: LockWaits | None = None
    timeline: tuple[TimelineEvent, ...] = ()
    timeline_from_s: float | None = None
    allocated_bytes: int | None = None
    allocated_s: float | None = None
    """In so many seconds of the window."""
    kernel: Sampling | None = None
    """CPU samples of a second profiler that sees the kernel, where the first does not."""
    collections: int | None = None
    collection_pause_s: float | None = None
    every_process: bool = False
    """Whether the samples are of all processes of the server, not of the one that was chosen."""
    cut_short: CutShort | None = None
    missing: tuple[str, ...] = ()


class Profiler(Protocol):
    """One profiler on one server. Methods are called in this order, `profile` from a thread of its own."""

    @property
    def name(self) -> str:
        """With its version."""

    def attach(self) -> None:
        """Before the window: all that takes long. Raises Unavailable, or ProcessEnded."""

    def profile(self, schedule: Schedule) -> Profiled:
        """Collect until the schedule's end. Raises Unavailable when it failed meanwhile, or ProcessEnded."""

    def detach(self) -> None:
        """Leave the process as it was, as far as that can be done, for good: nothing is begun after it, also
        where `profile` has not returned in its thread. May be called twice, never raises.
        """


def collapsed(text: str) -> dict[Stack, int]:
    """The lines `frame;frame;frame weight` of a collapsed profile; others are left out."""
    found: dict[Stack, int] = {}
    for line in text.splitlines():
        stack, _, weight = line.rpartition(" ")
        if stack and weight.isdigit():
            frames = tuple(stack.split(";"))
            found[frames] = found.get(frames, 0) + int(weight)
    return found
