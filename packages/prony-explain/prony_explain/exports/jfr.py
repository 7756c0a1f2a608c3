"""Profiles of explained trials as a recording of the JDK's Flight Recorder: for `jfr` and Mission Control.

A chunk for each server. A stored sample has the time of its slice alone: the samples of a stack are spread
evenly over it. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from prony.evidence.profile import Sampling, Stack
from prony.report.exports import Exported, Format
from prony.report.result import ResultView
from prony_explain.exports.jfr_chunk import CONSTANTS, Chunk, Method
from prony_explain.report.profiles import Recorded, recorded
from prony_explain.rules import JAVA, KERNEL, SCRIPT, Frame

FRAME_TYPES = {"0": "Interpreted", "j": "JIT compiled", "i": "Inlined", "1": "C1 compiled", KERNEL: "Kernel"}
NATIVE = "Native"
THREAD = re.compile(r"^\[(?P<name>[^`]*?)(?: tid=(?P<tid>\d+))?\]$")
"""Not a frame without a name in a library without a name: [unknown]`[unknown]."""


def write(view: ResultView) -> Exported:
    """All samples of CPU time, of JVMs also of allocations. Raises UsageError for a result without any."""
    found = recorded(view)
    chunks = (chunk(one, at, several=len(found) > 1) for at, one in enumerate(found))
    return Exported(b"".join(chunks))


def chunk(one: Recorded, place: int, *, several: bool) -> bytes:
    """One server, at this place among all. `several`: the server's name is the outermost frame."""
    profile = one.profile
    made = Chunk(round(one.begun_unix_s * 1e9), round(profile.ended_s * 1e9), 1 + place * CONSTANTS)
    above = (Method(one.label, "", NATIVE),) if several else ()
    if profile.cpu is not None:
        for at_ns, stack, _ in _spread(profile.cpu, one_by_one=True):
            thread, frames = _apart(stack)
            made.execution_sample(at_ns, _thread(thread, one.label), (*above, *map(method, frames)))
    if profile.allocation is not None and profile.runtime == "jvm":
        for at_ns, stack, size in _spread(profile.allocation, one_by_one=False):
            thread, frames = _apart(stack)
            what = Frame.of(frames[-1]).dotted if frames else ""
            methods = (*above, *map(method, frames[:-1]))
            made.allocation_sample(at_ns, _thread(thread, one.label), methods, what, size)
    return made.content()


def _spread(sampling: Sampling, *, one_by_one: bool) -> list[tuple[int, Stack, int]]:
    """Time in ns, stack and weight of each event, in the order of time; `one_by_one`: an event per sample."""

    def events() -> Iterator[tuple[int, Stack, int]]:
        for part in sampling.slices:
            for stack, weight in sampling.stacks(part).items():
                count = weight if one_by_one else 1
                for at in range(count):
                    t_s = part.start_s + (at + 0.5) / count * (part.end_s - part.start_s)
                    yield max(0, round(t_s * 1e9)), stack, 1 if one_by_one else weight

    return sorted(events(), key=lambda event: event[0])


def _apart(stack: Stack) -> tuple[str, Stack]:
    """The thread, where a stack begins with one, and the frames."""
    return (stack[0], stack[1:]) if THREAD.match(stack[0]) else ("", stack)


def _thread(text: str, label: str) -> tuple[str, int]:
    """Name and number; without a thread those of the process, whose number is not known."""
    found = THREAD.match(text)
    return (found["name"], int(found["tid"] or 0)) if found is not None else (label, 0)


def method(text: str) -> Method:
    """A frame as a method of a class: what is not Java has its library or file in the place of the class."""
    frame = Frame.of(text)
    if frame.kind in JAVA:
        owner, _, name = frame.name.rpartition(".")
        return Method(owner, name, FRAME_TYPES[frame.kind])
    place = frame.place.rpartition("/")[2]
    if frame.kind == KERNEL:
        return Method("[kernel]", frame.name, FRAME_TYPES[KERNEL])
    return Method(place, frame.name, "Interpreted" if frame.kind == SCRIPT else NATIVE)


FORMAT = Format("profiles of explained trials for jfr and JDK Mission Control", write, ".jfr", binary=True)
