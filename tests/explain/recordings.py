"""Recordings of waits for locks, laid out as async-profiler does. Must not know what a test expects."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from unittest.mock import patch

from prony_explain.exports import jfr_chunk
from prony_explain.exports.jfr_chunk import EVENT, TYPES, Chunk, Method, _numbers, _sized

_WAIT = (
    ("startTime", "long", "t"),
    ("duration", "long", ""),
    ("eventThread", "java.lang.Thread", "c"),
    ("stackTrace", "jdk.types.StackTrace", "c"),
)
WAITS = {
    "jdk.JavaMonitorEnter": TYPES["jdk.ExecutionSample"]._replace(
        number=110,
        above=EVENT,
        fields=(
            *_WAIT,
            ("monitorClass", "java.lang.Class", "c"),
            ("previousOwner", "java.lang.Thread", "c"),
            ("address", "long", ""),
        ),
    ),
    "jdk.ThreadPark": TYPES["jdk.ExecutionSample"]._replace(
        number=111,
        above=EVENT,
        fields=(
            *_WAIT,
            ("parkedClass", "java.lang.Class", "c"),
            ("timeout", "long", ""),
            ("until", "long", ""),
            ("address", "long", ""),
        ),
    ),
}
NO_TIME = 1 << 63
NO_TIME_BYTES = b"\x80" * 9
"""The least of all integers of 64 bits, with a sign; the ninth byte is a whole one."""
TICKS_AT, PER_S_AT = 48, 56
"""In a chunk's header."""
STACK = (
    Method("java/lang/Thread", "run", "Interpreted"),
    Method("app/Pages", "render", "JIT compiled"),
    Method("java/util/concurrent/locks/ReentrantLock", "lock", "Inlined"),
    Method("libjvm.so", "Unsafe_Park", "Native"),
    Method("kernel", "futex_wait", "Kernel"),
)


@dataclass(frozen=True, slots=True)
class Wait:
    """A monitor, or with `park` a lock of java.util.concurrent."""

    start_ns: int
    lasted_ns: int
    lock: str = "java/lang/Object"
    thread: str = "exec-1"
    stack: tuple[Method, ...] = STACK
    park: bool = False


class _Waits(Chunk):
    def wait(self, one: Wait) -> None:
        at = (self._thread((one.thread, 41)), self._stack(one.stack), self._class(one.lock))
        if one.park:
            values = (WAITS["jdk.ThreadPark"].number, one.start_ns, one.lasted_ns, *at, 0)
            self._events += _sized(_numbers(*values) + NO_TIME_BYTES + _numbers(0xBEEF))
        else:
            self._event("jdk.JavaMonitorEnter", one.start_ns, one.lasted_ns, *at, 0, 0xBEEF)


def recording(begun_ns: int, waits: Iterable[Wait], *, ticks_per_s: int = 1_000_000_000) -> bytes:
    """One chunk, begun at this time of CLOCK_MONOTONIC."""
    with patch.dict(jfr_chunk.TYPES, WAITS):
        made = _Waits(0, 1)
        made.execution_sample(begun_ns, ("exec-1", 41), STACK)  # it is not asked for
        for one in waits:
            made.wait(one)
        raw = bytearray(made.content())
    struct.pack_into(">q", raw, TICKS_AT, begun_ns)
    struct.pack_into(">q", raw, PER_S_AT, ticks_per_s)
    return bytes(raw)
