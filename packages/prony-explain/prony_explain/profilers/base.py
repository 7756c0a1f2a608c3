"""The interface between collector and profilers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from prony.errors import PronyError
from prony.evidence.profile import CutShort, LockWaits, Sampling, Stack, TimelineEvent
from prony_explain.processes import ProcessEnded
from prony_explain.sampling import sampling

BEYOND_S = 20.0
"""Time limit beyond the planned end, after which a profiler stops by itself, in case Prony is killed."""
LEAST_SLICES = 2
"""Minimum slices of a profile that ended early."""


class Unavailable(Exception):
    """The profiler is unusable on this process; `str()`: the reason, and the remedy."""


def why(fault: Exception, name: str) -> str:
    """Sentence on a failed profiler; with the exception's type for defects."""
    if isinstance(fault, ProcessEnded):
        return ended_early(name, fault)
    expected = isinstance(fault, Unavailable | PronyError)
    return str(fault) if expected else f"{name} failed: {type(fault).__name__}: {fault}"


def ended_early(name: str, fault: Exception, *, kept: bool = False) -> str:
    """Sentence on a profile that ended before its window. `kept`: earlier slices are used."""
    return f"{name} ended early: {fault}{'; its shares are those of the slices until then' if kept else ''}"


def cut_short(fault: Exception) -> CutShort:
    """Code of the reason for an early end."""
    return "process-ended" if isinstance(fault, ProcessEnded) else "profiler-failed"


@dataclass(frozen=True, slots=True)
class Schedule:
    """Ends of slices on CLOCK_MONOTONIC. `ended`: whether the load, and so the profile, has ended."""

    begins_s: float
    ends_s: tuple[float, ...]
    ended: Callable[[float], bool]
    """Waits this many seconds at most; True once the load has ended."""
    interval_s: float = 0.001
    """Wanted CPU time between two samples of a thread."""
    longest_s: float = math.inf
    """Upper bound: with a longer interval most of many threads would never be sampled."""

    def wait_until(self, moment_s: float) -> bool:
        """Waits; False if the load ended before that moment."""
        return not self.ended(max(0.0, moment_s - time.monotonic()))


def bound_s(end_s: float) -> int:
    """Time limit from now for a profiler that is to stop at `end_s`."""
    return math.ceil(max(0.0, end_s - time.monotonic()) + BEYOND_S)


@dataclass(slots=True)
class Slices:
    """Slices of one kind of samples."""

    begins_s: float
    made: list[tuple[float, float, Mapping[Stack, int]]] = field(default_factory=list)

    def add(self, start_s: float, end_s: float, stacks: Mapping[Stack, int]) -> None:
        """One slice, in seconds of CLOCK_MONOTONIC."""
        self.made.append((start_s - self.begins_s, end_s - self.begins_s, stacks))

    def sampling(self, unit: Literal["samples", "bytes", "ns"]) -> Sampling | None:
        """All slices as a stored value; None if empty."""
        return sampling(unit, self.made) if self.made else None


@dataclass(frozen=True, slots=True)
class Profiled:
    """Result of a profiler."""

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
    """Seconds of the window over which they were counted."""
    kernel: Sampling | None = None
    """CPU samples of a second profiler that sees the kernel, if the first does not."""
    collections: int | None = None
    collection_pause_s: float | None = None
    every_process: bool = False
    """Whether all processes of the server were sampled, or only the chosen one."""
    cut_short: CutShort | None = None
    missing: tuple[str, ...] = ()


class Profiler(Protocol):
    """A profiler on one server. Methods are called in this order, `profile` on its own thread."""

    @property
    def name(self) -> str:
        """Name and version."""

    def attach(self) -> None:
        """All slow set-up, before the window. Raises Unavailable or ProcessEnded."""

    def profile(self, schedule: Schedule) -> Profiled:
        """Collect until the schedule's end. Raises Unavailable on failure, or ProcessEnded."""

    def detach(self) -> None:
        """Restores the process as far as possible; nothing starts afterwards. Idempotent, never raises."""


def collapsed(text: str) -> dict[Stack, int]:
    """Parses lines `frame;frame;frame weight`; others are ignored."""
    stacks: dict[Stack, int] = {}
    for line in text.splitlines():
        stack, _, weight = line.rpartition(" ")
        if stack and weight.isdigit():
            frames = tuple(stack.split(";"))
            stacks[frames] = stacks.get(frames, 0) + int(weight)
    return stacks
