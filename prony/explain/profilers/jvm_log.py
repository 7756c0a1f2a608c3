"""What a JVM logs of itself while it is profiled: collections, safepoints, compilations, bytes allocated.

Its unified logging is turned on by attach, into a file of its own, and off again. The decorator `timenanos`
is CLOCK_MONOTONIC on Linux, as the engine's clock is. Must not know any profiler.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prony.evidence.profile import TimelineEvent
from prony.explain import attach
from prony.explain.attach import NotAttached

WHAT = "gc=info,safepoint=info,jit+compilation=debug"
LINE = re.compile(r"\[(\d+)ns\]\[([\w,]+)\s*\] (.*)")
COLLECTION = re.compile(r"GC\(\d+\) (Pause .*?) (\d+)M->(\d+)M\(\d+M\) ([\d.]+)ms")
SAFEPOINT = re.compile(r'Safepoint "(\w+)".*Total:\s*(\d+) ns')
COMPILATION = re.compile(r"\s*\d+\s+[%sbn! ]*\s*([1-4])\s+(\S+)")
HEAP_USED = re.compile(r"total \d+K, used (\d+)K|ZHeap\s+used (\d+)M")
MIB: Final = 1 << 20
SHORTEST_SAFEPOINT_S = 0.0005
MOST_EVENTS = 1000
C2 = "4"
"""Tier of the optimising compiler; the other tiers compile in microseconds and by the thousand."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the log said."""

    events: tuple[TimelineEvent, ...] = ()
    allocated_bytes: int | None = None
    collections: int | None = None
    collection_pause_s: float | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Collection:
    pause_s: float
    before_bytes: int
    after_bytes: int


class JvmLog:
    """The log of one JVM. `inner`: the file's path as the JVM sees it."""

    def __init__(self, pid: int, inner: Path) -> None:
        self._pid = pid
        self._inner = inner
        self._used_bytes: int | None = None
        self._why = ""
        self._opened = False

    def open(self) -> None:
        """From now on."""
        try:
            self._used_bytes = self._heap_used()
            attach.jcmd(self._pid, f"VM.log output={self._inner} what={WHAT} decorators=timenanos,tags")
            self._opened = True
        except NotAttached as fault:
            self._why = f"collections and pauses are missing: {fault}"

    def close(self, begins_s: float) -> Told:
        """Until now; times from `begins_s` of CLOCK_MONOTONIC."""
        if not self._opened:
            return Told(missing=(self._why,) if self._why else ())
        try:
            used = self._heap_used()
            self.stop()
            text = (attach.root_of(self._pid) / self._inner.relative_to("/")).read_text(errors="replace")
        except (NotAttached, OSError) as fault:
            return Told(missing=(f"collections and pauses are missing: {fault}",))
        return read(text.splitlines(), begins_s, self._used_bytes, used)

    def stop(self) -> None:
        """Turn it off again."""
        if self._opened:
            with suppress(NotAttached):
                attach.jcmd(self._pid, f"VM.log output={self._inner} what=all=off")
            self._opened = False

    def _heap_used(self) -> int | None:
        found = HEAP_USED.findall(attach.jcmd(self._pid, "GC.heap_info"))
        return sum(int(kib or 0) * 1024 + int(mib or 0) * MIB for kib, mib in found) if found else None


def read(lines: Iterable[str], begins_s: float, used_first: int | None, used_last: int | None) -> Told:
    """The log's lines as events. Bytes allocated: what the heap grew between collections, whose sizes the log
    gives in MiB.
    """
    events: list[TimelineEvent] = []
    collections: list[_Collection] = []
    for at_s, tags, text in _parsed(lines):
        found = COLLECTION.match(text)
        if found is not None and tags == "gc":
            pause_s = float(found[4]) / 1000
            collections.append(_Collection(pause_s, int(found[2]) * MIB, int(found[3]) * MIB))
            events.append(_event("collection", at_s - begins_s, pause_s, found[1]))
        elif tags == "safepoint" and (found := SAFEPOINT.match(text)) is not None:
            length_s = int(found[2]) / 1e9
            if length_s >= SHORTEST_SAFEPOINT_S:
                events.append(_event("safepoint", at_s - begins_s, length_s, found[1]))
        elif tags == "jit,compilation" and (found := COMPILATION.match(text)) is not None and found[1] == C2:
            events.append(
                TimelineEvent(kind="compilation", start_s=at_s - begins_s, duration_s=0, text=found[2])
            )
    missing: tuple[str, ...] = ()
    if len(events) > MOST_EVENTS:
        missing = (f"of {len(events)} events of the JVM the {MOST_EVENTS} longest are kept",)
        events = sorted(events, key=lambda one: one.duration_s, reverse=True)[:MOST_EVENTS]
    return Told(
        events=tuple(sorted(events, key=lambda one: one.start_s)),
        allocated_bytes=_allocated(collections, used_first, used_last),
        collections=len(collections),
        collection_pause_s=sum(one.pause_s for one in collections),
        missing=missing,
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


def _allocated(collections: list[_Collection], first: int | None, last: int | None) -> int | None:
    if first is None or last is None:
        return None
    grown, used = 0, first
    for one in collections:
        grown += max(0, one.before_bytes - used)
        used = one.after_bytes
    return grown + max(0, last - used)
