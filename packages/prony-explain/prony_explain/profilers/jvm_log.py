"""What a JVM logs of itself while it is profiled: collections, safepoints, compilations, bytes allocated.

Its unified logging is turned on by attach, into a file of its own, and off again. The decorator `timenanos`
is CLOCK_MONOTONIC on Linux, as the engine's clock is.
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

from prony.evidence.profile import MOST_EVENTS, TimelineEvent
from prony_explain import attach
from prony_explain.processes import NotReached, cause

WHAT = "gc=info,gc+phases=info,safepoint=info,jit+compilation=debug"
"""Of ZGC the pauses are phases of a collection."""
LINE = re.compile(r"\[(\d+)ns\]\[([\w,]+)\s*\] (.*)")
PAUSE = re.compile(r"GC\(\d+\) (?:[yYoO]: )?(Pause .*?)(?: (\d+)M->(\d+)M\(\d+M\))? ([\d.]+)ms$")
"""Without sizes where the program allocates beside the collection (ZGC, Shenandoah)."""
SAFEPOINT = re.compile(r'Safepoint "(\w+)".*Total:\s*(\d+) ns')
COMPILATION = re.compile(r"\s*\d+\s+[%sbn! ]*\s*([1-4])\s+(\S+)")
HEAP_USED = re.compile(r"total (?:reserved \d+K, committed )?\d+K, used (\d+)K")
"""A row for each generation, or for the whole heap; since JDK 25 with what is reserved."""
MIB: Final = 1 << 20
SHORTEST_SAFEPOINT_S = 0.0005
UNCOUNTED = (
    "bytes allocated are missing: the JVM's heap does not say what tells them (a collector that works beside "
    "the program, such as ZGC, or a format that is not known)"
)
ROTATED = (
    "collections and pauses are missing: the JVM logged more than one file of its log holds, and may have "
    "overwritten the first; measure for a shorter time"
)
C2 = "4"
"""Tier of the optimising compiler; the other tiers compile in microseconds and by the thousand."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the log said."""

    events: tuple[TimelineEvent, ...] = ()
    from_s: float | None = None
    """From when on, as the events; None: nothing was read."""
    allocated_bytes: int | None = None
    allocated_s: float | None = None
    """In so many seconds."""
    collections: int | None = None
    collection_pause_s: float | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Heap:
    """What the heap held at a moment of CLOCK_MONOTONIC; None: not known."""

    at_s: float
    used_bytes: int | None


@dataclass(frozen=True, slots=True)
class _Pause:
    at_s: float
    length_s: float
    before_bytes: int | None
    after_bytes: int | None


class JvmLog:
    """The log of one JVM. `inner`: the file's path as the JVM sees it."""

    def __init__(self, pid: int, inner: Path) -> None:
        self._pid = pid
        self._inner = inner
        self._first = self._last = Heap(0.0, None)
        self._why = ""
        self._lock = threading.Lock()
        self._over = False
        self._may_run = False
        """From before it is turned on until turning it off is answered."""
        self._opened = False
        self._opened_s = 0.0

    def open(self) -> None:
        """From now on, unless it was stopped."""
        with self._lock:
            if self._over:
                return
            self._may_run = True
            try:
                attach.jcmd(self._pid, f"VM.log output={self._inner} what={WHAT} decorators=timenanos,tags")
                self._opened, self._opened_s = True, time.monotonic()
                self._first = self._heap()  # after the log, so that no collection is missed
            except NotReached as fault:
                self._why = f"collections and pauses are missing: {fault}"

    def look(self) -> None:
        """Bytes allocated are counted until now; the log goes on."""
        if self._opened:
            with suppress(NotReached):
                self._last = self._heap()

    def close(self, begins_s: float) -> Told:
        """Until now; times from `begins_s` of CLOCK_MONOTONIC."""
        if not self._opened:
            return Told(missing=(self._why,) if self._why else ())
        try:
            if self._last.used_bytes is None:
                self.look()
            self.stop()
            file = attach.root_of(self._pid) / self._inner.relative_to("/")
            text = file.read_text(errors="replace")
        except (NotReached, OSError) as fault:
            return Told(missing=(f"collections and pauses are missing: {cause(fault, self._pid)}",))
        if any(file.parent.glob(f"{file.name}.*")):
            return Told(missing=(ROTATED,))
        told = read(text.splitlines(), begins_s, self._first, self._last)
        return replace(told, from_s=self._opened_s - begins_s)

    def stop(self) -> None:
        """Turn it off again, for good."""
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
    """What `GC.heap_info` says that the heap holds; None where the log says it otherwise."""
    found = HEAP_USED.findall(said)
    return sum(int(kib) * 1024 for kib in found) if found else None


def read(lines: Iterable[str], begins_s: float, first: Heap, last: Heap) -> Told:
    """The log's lines as events. Bytes allocated: what the heap grew between collections from `first` to
    `last`; the log gives its sizes in MiB.
    """
    events: list[TimelineEvent] = []
    pauses: list[_Pause] = []
    for at_s, tags, text in _parsed(lines):
        if tags in ("gc", "gc,phases") and (found := PAUSE.match(text)) is not None:
            length_s = float(found[4]) / 1000
            before, after = (None if mib is None else int(mib) * MIB for mib in (found[2], found[3]))
            pauses.append(_Pause(at_s, length_s, before, after))
            events.append(_event("collection", at_s - begins_s, length_s, found[1]))
        elif tags == "safepoint" and (found := SAFEPOINT.match(text)) is not None:
            length_s = int(found[2]) / 1e9
            if length_s >= SHORTEST_SAFEPOINT_S:
                events.append(_event("safepoint", at_s - begins_s, length_s, found[1]))
        elif tags == "jit,compilation" and (found := COMPILATION.match(text)) is not None and found[1] == C2:
            events.append(
                TimelineEvent(kind="compilation", start_s=at_s - begins_s, duration_s=0, text=found[2])
            )
    allocated = _allocated(pauses, first, last)
    missing: list[str] = [] if allocated is not None else [UNCOUNTED]
    kept = list[TimelineEvent]()
    for kind in dict.fromkeys(one.kind for one in events):
        of = [one for one in events if one.kind == kind]
        if len(of) > MOST_EVENTS:
            which = "longest" if any(one.duration_s for one in of) else "first"
            missing.append(f"of {len(of)} events of the JVM ({kind}) the {MOST_EVENTS} {which} are kept")
        kept += sorted(of, key=lambda one: one.duration_s, reverse=True)[:MOST_EVENTS]
    return Told(
        events=tuple(sorted(kept, key=lambda one: one.start_s)),
        allocated_bytes=allocated,
        allocated_s=None if allocated is None else last.at_s - first.at_s,
        collections=len(pauses),
        collection_pause_s=sum(one.length_s for one in pauses),
        missing=tuple(missing),
    )


def _parsed(lines: Iterable[str]) -> Iterator[tuple[float, str, str]]:
    for line in lines:
        found = LINE.match(line)
        if found is not None:
            yield int(found[1]) / 1e9, found[2], found[3]


def _event(kind: str, end_s: float, length_s: float, text: str) -> TimelineEvent:
    return TimelineEvent.model_validate(
        {"kind": kind, "start_s": end_s - length_s, "duration_s": length_s, "text": text}
    )


def _allocated(pauses: list[_Pause], first: Heap, last: Heap) -> int | None:
    if first.used_bytes is None or last.used_bytes is None:
        return None
    grown, used = 0, first.used_bytes
    for one in (one for one in pauses if first.at_s < one.at_s <= last.at_s):
        if one.before_bytes is None or one.after_bytes is None:
            return None
        grown += max(0, one.before_bytes - used)
        used = one.after_bytes
    return grown + max(0, last.used_bytes - used)
