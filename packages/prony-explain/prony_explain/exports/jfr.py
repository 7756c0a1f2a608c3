"""Profiles of explained trials as a JDK Flight Recorder recording, for `jfr` and Mission Control. A chunk per
server; samples of a stack are spread evenly over their slice, as only that is stored. Pure.
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
"""Does not match the frame [unknown]`[unknown]."""


def write(view: ResultView) -> Exported:
    """All CPU samples, and allocations of JVMs. Raises UsageError without samples."""
    servers = recorded(view)
    chunks = (chunk(server, at, several=len(servers) > 1) for at, server in enumerate(servers))
    return Exported(b"".join(chunks))


def chunk(server: Recorded, place: int, *, several: bool) -> bytes:
    """Chunk of the server at index `place`. `several`: the server's name is the outermost frame."""
    profile = server.profile
    out = Chunk(round(server.begun_unix_s * 1e9), round(profile.ended_s * 1e9), 1 + place * CONSTANTS)
    above = (Method(server.label, "", NATIVE),) if several else ()
    if profile.cpu is not None:
        for at_ns, stack, _ in _spread(profile.cpu, one_by_one=True):
            thread, frames = _apart(stack)
            out.execution_sample(at_ns, _thread(thread, server.label), (*above, *map(method, frames)))
    if profile.allocation is not None and profile.runtime == "jvm":
        for at_ns, stack, size in _spread(profile.allocation, one_by_one=False):
            thread, frames = _apart(stack)
            what = Frame.of(frames[-1]).dotted if frames else ""
            methods = (*above, *map(method, frames[:-1]))
            out.allocation_sample(at_ns, _thread(thread, server.label), methods, what, size)
    return out.content()


def _spread(sampling: Sampling, *, one_by_one: bool) -> list[tuple[int, Stack, int]]:
    """(time in ns, stack, weight) of each event, in order; `one_by_one`: an event per sample."""

    def events() -> Iterator[tuple[int, Stack, int]]:
        for part in sampling.slices:
            for stack, weight in sampling.stacks(part).items():
                count = weight if one_by_one else 1
                for at in range(count):
                    t_s = part.start_s + (at + 0.5) / count * (part.end_s - part.start_s)
                    yield max(0, round(t_s * 1e9)), stack, 1 if one_by_one else weight

    return sorted(events(), key=lambda event: event[0])


def _apart(stack: Stack) -> tuple[str, Stack]:
    """The thread, if the stack begins with one, and the frames."""
    return (stack[0], stack[1:]) if THREAD.match(stack[0]) else ("", stack)


def _thread(text: str, label: str) -> tuple[str, int]:
    """Name and number; without a thread the process's label and 0."""
    match = THREAD.match(text)
    return (match["name"], int(match["tid"] or 0)) if match is not None else (label, 0)


def method(text: str) -> Method:
    """A frame as a method; the class of native and script code is its library or file."""
    frame = Frame.of(text)
    if frame.kind in JAVA:
        owner, _, name = frame.name.rpartition(".")
        return Method(owner, name, FRAME_TYPES[frame.kind])
    place = frame.place.rpartition("/")[2]
    if frame.kind == KERNEL:
        return Method("[kernel]", frame.name, FRAME_TYPES[KERNEL])
    return Method(place, frame.name, "Interpreted" if frame.kind == SCRIPT else NATIVE)


FORMAT = Format("profiles of explained trials for jfr and JDK Mission Control", write, ".jfr", binary=True)
