"""The JVM's own log while it is profiled: collections, safepoints, compilations, bytes allocated.

Unified logging to a separate file, switched on and off by attach. Its decorator `timenanos` is
CLOCK_MONOTONIC on Linux, the engine's clock.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from prony.evidence.profile import TimelineEvent
from prony_explain import attach
from prony_explain.processes import NotReached, cause
from prony_explain.sampling import MOST_EVENTS

WHAT = "gc=info,gc+phases=info,safepoint=info,jit+compilation=debug"
"""ZGC logs pauses as phases of a collection."""
LINE = re.compile(r"\[(\d+)ns\]\[([\w,]+)\s*\] (.*)")
PAUSE = re.compile(r"GC\(\d+\) (?:[yYoO]: )?(Pause .*?)(?: (\d+)M->(\d+)M\(\d+M\))? ([\d.]+)ms$")
"""Concurrent collectors (ZGC, Shenandoah) give no sizes."""
SAFEPOINT = re.compile(r'Safepoint "(\w+)".*Total:\s*(\d+) ns')
COMPILATION = re.compile(r"\s*\d+\s+[%sbn! ]*\s*([1-4])\s+(\S+)")
HEAP_USED = re.compile(r"total (?:reserved \d+K, committed )?\d+K, used (\d+)K")
"""A row per generation, or one for the heap; since JDK 25 with the reserved size."""
MIB: Final = 1 << 20
SHORTEST_SAFEPOINT_S = 0.0005
UNCOUNTED = (
    "bytes allocated are missing: the heap's sizes are not logged (concurrent collectors such as ZGC) or in "
    "an unknown format"
)
ROTATED = (
    "collections and pauses are missing: the JVM's log outgrew one file and may have overwritten its "
    "beginning; measure for a shorter time"
)
C2 = "4"
"""Tier of the optimising compiler; other tiers compile in microseconds, thousands of times."""


@dataclass(frozen=True, slots=True)
class LogContents:
    """Contents of the log."""

    events: tuple[TimelineEvent, ...] = ()
    from_s: float | None = None
    """Start, on the events' clock; None: nothing was read."""
    allocated_bytes: int | None = None
    allocated_s: float | None = None
    """Seconds over which they were counted."""
    collections: int | None = None
    collection_pause_s: float | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Heap:
    """Used heap at a moment of CLOCK_MONOTONIC; None: unknown."""

    at_s: float
    used_bytes: int | None


@dataclass(frozen=True, slots=True)
class _Pause:
    at_s: float
    length_s: float
    before_bytes: int | None
    after_bytes: int | None


class JvmLog:
    """The log of one JVM. `inner`: the file's path as seen by the JVM."""

    def __init__(self, pid: int, inner: Path) -> None:
        self._pid = pid
        self._inner = inner
        self._first = self._last = Heap(0.0, None)
        self._why = ""
        self._lock = threading.Lock()
        self._over = False
        self._may_run = False
        """True from before it is switched on until its end is acknowledged."""
        self._opened = False
        self._opened_s = 0.0

    def open(self) -> None:
        """Switch the log on, unless stopped."""
        with self._lock:
            if self._over:
                return
            self._may_run = True
            try:
                attach.jcmd(self._pid, f"VM.log output={self._inner} what={WHAT} decorators=timenanos,tags")
                self._opened, self._opened_s = True, time.monotonic()
                self._first = self._heap()  # after the log, to miss no collection
            except NotReached as fault:
                self._why = f"collections and pauses are missing: {fault}"

    def look(self) -> None:
        """End the count of allocated bytes; the log goes on."""
        if self._opened:
            with suppress(NotReached):
                self._last = self._heap()

    def close(self, begins_s: float) -> LogContents:
        """Switch it off and read it; times from `begins_s` of CLOCK_MONOTONIC."""
        if not self._opened:
            return LogContents(missing=(self._why,) if self._why else ())
        try:
            if self._last.used_bytes is None:
                self.look()
            self.stop()
            file = attach.root_of(self._pid) / self._inner.relative_to("/")
            text = file.read_text(errors="replace")
        except (NotReached, OSError) as fault:
            return LogContents(missing=(f"collections and pauses are missing: {cause(fault, self._pid)}",))
        if any(file.parent.glob(f"{file.name}.*")):
            return LogContents(missing=(ROTATED,))
        logged = read(text.splitlines(), begins_s, self._first, self._last)
        return replace(logged, from_s=self._opened_s - begins_s)

    def stop(self) -> None:
        """Switch the log off for good."""
        self._over = True
        with self._lock:
            if self._may_run:
                with suppress(NotReached):
                    attach.jcmd(self._pid, f"VM.log output={self._inner} what=all=off")
                    self._may_run = False

    def _heap(self) -> Heap:
        used = used_bytes(attach.jcmd(self._pid, "GC.heap_info"))
        return Heap(time.monotonic(), used)


def used_bytes(said: str) -> int | None:
    """Used heap in the output of `GC.heap_info`; None for an unknown format."""
    sizes_kib = HEAP_USED.findall(said)
    return sum(int(kib) * 1024 for kib in sizes_kib) if sizes_kib else None


def read(lines: Iterable[str], begins_s: float, first: Heap, last: Heap) -> LogContents:
    """Bytes allocated (log: MiB): growth of the heap between collections from `first` to `last`."""
    events: list[TimelineEvent] = []
    pauses: list[_Pause] = []
    for at_s, tags, text in _parsed(lines):
        if tags in ("gc", "gc,phases") and (match := PAUSE.match(text)) is not None:
            length_s = float(match[4]) / 1000
            before, after = (None if mib is None else int(mib) * MIB for mib in (match[2], match[3]))
            pauses.append(_Pause(at_s, length_s, before, after))
            events.append(_event("collection", at_s - begins_s, length_s, match[1]))
        elif tags == "safepoint" and (match := SAFEPOINT.match(text)) is not None:
            length_s = int(match[2]) / 1e9
            if length_s >= SHORTEST_SAFEPOINT_S:
                events.append(_event("safepoint", at_s - begins_s, length_s, match[1]))
        elif tags == "jit,compilation" and (match := COMPILATION.match(text)) is not None and match[1] == C2:
            events.append(
                TimelineEvent(kind="compilation", start_s=at_s - begins_s, duration_s=0, text=match[2])
            )
    allocated = _allocated(pauses, first, last)
    missing: list[str] = [] if allocated is not None else [UNCOUNTED]
    kept = list[TimelineEvent]()
    for kind in dict.fromkeys(event.kind for event in events):
        of = [event for event in events if event.kind == kind]
        if len(of) > MOST_EVENTS:
            which = "longest" if any(event.duration_s for event in of) else "first"
            missing.append(f"{MOST_EVENTS} of {len(of)} events of the JVM ({kind}) are kept: the {which}")
        kept += sorted(of, key=lambda event: event.duration_s, reverse=True)[:MOST_EVENTS]
    return LogContents(
        events=tuple(sorted(kept, key=lambda event: event.start_s)),
        allocated_bytes=allocated,
        allocated_s=None if allocated is None else last.at_s - first.at_s,
        collections=len(pauses),
        collection_pause_s=sum(pause.length_s for pause in pauses),
        missing=tuple(missing),
    )


def _parsed(lines: Iterable[str]) -> Iterator[tuple[float, str, str]]:
    for line in lines:
        match = LINE.match(line)
        if match is not None:
            yield int(match[1]) / 1e9, match[2], match[3]


def _event(kind: str, end_s: float, length_s: float, text: str) -> TimelineEvent:
    return TimelineEvent.model_validate(
        {"kind": kind, "start_s": end_s - length_s, "duration_s": length_s, "text": text}
    )


def _allocated(pauses: list[_Pause], first: Heap, last: Heap) -> int | None:
    if first.used_bytes is None or last.used_bytes is None:
        return None
    grown, used = 0, first.used_bytes
    for pause in (pause for pause in pauses if first.at_s < pause.at_s <= last.at_s):
        if pause.before_bytes is None or pause.after_bytes is None:
            return None
        grown += max(0, pause.before_bytes - used)
        used = pause.after_bytes
    return grown + max(0, last.used_bytes - used)
