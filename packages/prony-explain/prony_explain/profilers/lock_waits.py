"""Waits for contended locks from an async-profiler recording: all of them as stacks per slice, the longest
with their times. Pure.

With `clock=monotonic` a recording's ticks are nanoseconds of CLOCK_MONOTONIC, the engine's clock. This is
checked: its start must lie between two moments known to the caller.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from prony.evidence.profile import LockWait, LockWaits, Sampling, Stack
from prony_explain.profilers.recording import Chunk, Unreadable, chunks
from prony_explain.sampling import MOST_EVENTS, sampling

MONITOR, PARK = "jdk.JavaMonitorEnter", "jdk.ThreadPark"
LOCK_OF: Mapping[str, str] = {MONITOR: "monitorClass", PARK: "parkedClass"}
TICKS_PER_S = 1_000_000_000
JAVA: Mapping[str, str] = {
    "Interpreted": "_[0]", "JIT compiled": "_[j]", "Inlined": "_[i]", "C1 compiled": "_[1]",
}  # fmt: skip
"""Frame type -> mark of a stack (`prony.evidence.profile.Stack`)."""
KERNEL = "Kernel"
LOCK_MARK = "_[i]"
"""The lock's class is the last frame, marked as in async-profiler's collapsed stacks."""
CLASS_LIBRARY = ("java/", "jdk/", "sun/")
"""Packages whose frames lie between the waiting function and the lock."""

_Long = tuple[int, int, int, int, int]
"""Duration and start in ticks; numbers of thread, stack and class."""


def read(
    raw: bytes, begins_s: float, began_s: tuple[float, float], ends_s: Sequence[float]
) -> tuple[Sampling, LockWaits]:
    """Waits by slice (of their end) in ns, and the longest waits. Seconds of CLOCK_MONOTONIC: `begins_s` of
    the window, the origin of the results; `began_s`: the recording began between these; `ends_s` of the
    slices. Raises Unreadable.
    """
    try:
        return _read(raw, begins_s, began_s, ends_s)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as fault:
        raise Unreadable(f"waits are in an unexpected layout: {type(fault).__name__}: {fault}") from fault


def _read(
    raw: bytes, begins_s: float, began_s: tuple[float, float], ends_s: Sequence[float]
) -> tuple[Sampling, LockWaits]:
    ends = [round(end_s * TICKS_PER_S) for end_s in ends_s]
    weights: list[dict[Stack, int]] = [{} for _ in ends]
    longest: list[LockWait] = []
    chunks_read = count = 0
    for chunk in chunks(raw):
        chunks_read += 1
        if chunks_read == 1:
            _check_clock(chunk, began_s)
        named = _Names(chunk)
        times: dict[tuple[int, int, int], int] = {}
        most: list[_Long] = []
        for kind, event in chunk.events(*LOCK_OF):
            start, length = event["startTime"], event["duration"]
            stack, lock = event["stackTrace"], event[LOCK_OF[kind]]
            place = (min(bisect_left(ends, start + length), len(ends) - 1), stack, lock)
            times[place] = times.get(place, 0) + length
            _keep(most, (length, start, event["eventThread"], stack, lock))
            count += 1
        for (end, stack, lock), length in times.items():
            frames = named.waits(stack, lock)
            weights[end][frames] = weights[end].get(frames, 0) + length
        longest += (named.wait(entry, begins_s) for entry in most)
    if not chunks_read:
        raise Unreadable("an empty file")
    from_s = began_s[1]
    starts_s = (from_s, *ends_s[:-1])
    slices = [
        (start_s - begins_s, end_s - begins_s, stacks)
        for start_s, end_s, stacks in zip(starts_s, ends_s, weights, strict=True)
    ]
    return sampling("ns", slices), LockWaits(
        from_s=from_s - begins_s, to_s=ends_s[-1] - begins_s, count=count, longest=_in_order(longest)
    )


def _in_order(waits: Iterable[LockWait]) -> tuple[LockWait, ...]:
    """The longest waits of all chunks, by start."""
    kept = heapq.nlargest(MOST_EVENTS, waits, key=lambda wait: wait.duration_s)
    return tuple(sorted(kept, key=lambda wait: wait.start_s))


def _keep(most: list[_Long], wait: _Long) -> None:
    if len(most) < MOST_EVENTS:
        heapq.heappush(most, wait)
    elif wait > most[0]:
        heapq.heapreplace(most, wait)


def _check_clock(chunk: Chunk, began_s: tuple[float, float]) -> None:
    begun_s = chunk.begun_ticks / TICKS_PER_S
    if chunk.ticks_per_s != TICKS_PER_S or not began_s[0] <= begun_s <= began_s[1]:
        raise Unreadable(
            f"the JVM's clock differs from Prony's (start {begun_s:.3f} s, {chunk.ticks_per_s:,} ticks per "
            f"second; expected {began_s[0]:.3f} to {began_s[1]:.3f} s and {TICKS_PER_S:,}), as in a time "
            "namespace of its own"
        )


class _Names:
    """Resolves a chunk's constants."""

    def __init__(self, chunk: Chunk) -> None:
        self._constants = chunk.constants
        self._stacks: dict[int, Stack] = {}

    def waits(self, stack: int, lock: int) -> Stack:
        """A wait's stack, ending with the lock's class."""
        return (*self._stack(stack), f"{self._dotted(lock)}{LOCK_MARK}")

    def wait(self, recorded: _Long, begins_s: float) -> LockWait:
        length, start, thread, stack, lock = recorded
        return LockWait(
            start_s=start / TICKS_PER_S - begins_s,
            duration_s=length / TICKS_PER_S,
            lock=self._dotted(lock),
            where=_where(self._stack(stack)),
            thread=self._thread(thread),
        )

    def _stack(self, number: int) -> Stack:
        if number not in self._stacks:
            frames = self._of("jdk.types.StackTrace", number).get("frames", ())
            self._stacks[number] = tuple(self._frame(frame) for frame in reversed(frames))
        return self._stacks[number]

    def _frame(self, frame: Mapping[str, Any]) -> str:
        method = self._of("jdk.types.Method", frame["method"])
        owner, name = self._class(method.get("type", 0)), self._symbol(method.get("name", 0))
        kind = self._of("jdk.types.FrameType", frame["type"]).get("description", "")
        if kind in JAVA:
            return f"{owner}.{name}{JAVA[kind]}"
        if kind == KERNEL:
            return f"{name}_[k]"
        if name.startswith("/"):  # without a symbol: the library's path
            return f"{name.rpartition('/')[2]}`[unknown]"
        return f"{owner}`{name}" if owner else name

    def _class(self, number: int) -> str:
        return self._symbol(self._of("java.lang.Class", number).get("name", 0))

    def _dotted(self, number: int) -> str:
        return self._class(number).replace("/", ".") or "a lock without a name"

    def _symbol(self, number: int) -> str:
        return str(self._of("jdk.types.Symbol", number).get("string", ""))

    def _thread(self, number: int) -> str:
        thread = self._of("java.lang.Thread", number)
        return str(thread.get("javaName") or thread.get("osName") or "")

    def _of(self, kind: str, number: int) -> Mapping[str, Any]:
        constant: Mapping[str, Any] = self._constants.get(kind, {}).get(number, {})
        return constant


def _where(stack: Stack) -> str:
    """The waiting Java function: the innermost outside the class library, else the innermost."""
    java = [frame for frame in stack if frame.endswith(tuple(JAVA.values()))]
    own = [frame for frame in java if not frame.startswith(CLASS_LIBRARY)]
    innermost = (own or java or [""])[-1]
    return innermost[: -len(LOCK_MARK)].replace("/", ".")
