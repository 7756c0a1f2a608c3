"""py-spy on a Python process: Python frames and those of its native libraries.

It reads the process's memory from outside, a program of its own (the extra `explain`). It samples threads
that are on a CPU, by the wall clock; the kernel's frames it does not see.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from prony.evidence.profile import Stack
from prony.server import tool
from prony_explain.processes import HANGS_UP_S, ProcessEnded, cause, ended
from prony_explain.profilers.base import (
    LEAST_SLICES,
    Profiled,
    Schedule,
    Slices,
    Unavailable,
    bound_s,
    collapsed,
    cut_short,
    ended_early,
)
from prony_explain.profilers.program import Program

PROGRAM = "py-spy"
MOST_PER_S, MOST_NATIVE_PER_S = 200, 50
"""Samples: it stops the process for each, for milliseconds where it unwinds native frames."""
SHORTEST_SLICE_S = 1.0
"""It starts anew for each slice, and reads the symbols of all libraries first."""
STOP_S = 30.0
FRAME = re.compile(r"^(.*) \(([^()]*?)(?::\d+)?\)$")
NATIVE = re.compile(r"\.(c|cc|cpp|cxx|h|hpp|rs|S|so(\.[\d.]+)?)$|^$")
"""Sources and libraries of native code; all else is Python, modules without a file as well."""
KERNEL = (
    "kernel frames are missing: py-spy does not see them, and the time of a system call is that of the "
    "function that made it; perf tells them apart where it may be used"
)


class PySpy:
    """py-spy on one process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._program = ""
        self._version = ""
        self._native = True
        self._recording = Program()
        self._folder = tempfile.TemporaryDirectory(prefix="prony-py-spy-")

    @property
    def name(self) -> str:
        return f"py-spy {self._version}"

    def attach(self) -> None:
        """Whether it may read the process is tried once, with native frames and without."""
        beside = Path(sys.executable).with_name(PROGRAM)
        program = str(beside) if beside.is_file() else shutil.which(PROGRAM)
        if program is None:
            raise Unavailable(
                "no CPU profile: py-spy is not installed, which servers in Python need: "
                "pip install 'prony[explain]'"
            )
        self._program = program
        self._version = tool.ask_version([program, "--version"], r"py-spy (\S+)", "install it anew")
        said = ""
        for self._native in (True, False):
            command = [program, "dump", "--pid", str(self._pid), *(["--native"] if self._native else [])]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=STOP_S)
            if done.returncode == 0:
                return
            said = said or done.stderr
        line = next((one.strip() for one in said.splitlines() if one.strip()), "it said nothing")
        refused = Unavailable(
            f"no CPU profile: py-spy may not read the process {self._pid} ({line}); run Prony as root, or "
            "allow it: sysctl kernel.yama.ptrace_scope=0, in a container the capability SYS_PTRACE"
        )
        raise cause(refused, self._pid)

    def profile(self, schedule: Schedule) -> Profiled:
        """A recording for each slice, or for several where they are short."""
        rate_per_s = rate(schedule.interval_s, native=self._native)
        slices = Slices(schedule.begins_s)
        missing, cut = list[str](), None
        since_s = schedule.begins_s
        for end_s in schedule.ends_s:
            if end_s - since_s < SHORTEST_SLICE_S:
                continue
            begun_s = time.monotonic()
            went_on, stacks = True, dict[Stack, int]()
            if begun_s < end_s:
                stacks, went_on = self._slice(schedule, end_s, rate_per_s)
                gone = ended(self._pid, 0.0 if stacks else HANGS_UP_S)
                if stacks or not gone:
                    slices.add(begun_s, time.monotonic(), stacks)
            since_s = end_s
            if not went_on:
                break
            if ended(self._pid):
                found = ProcessEnded(self._pid)
                if len(slices.made) < LEAST_SLICES:
                    raise found
                cut = cut_short(found)
                missing.append(ended_early(PROGRAM, found, kept=True))
                break
        sampled = slices.sampling("samples")
        if sampled is None or not sampled.total:
            raise Unavailable("no CPU profile: py-spy took no sample in the window; measure for longer")
        if not self._native:
            missing.append("native frames are missing: py-spy could not unwind them here")
        return Profiled(
            event="on CPU, by the wall clock",
            interval_s=1 / rate_per_s,
            cpu=sampled,
            cut_short=cut,
            missing=tuple(missing),
        )

    def _slice(self, schedule: Schedule, end_s: float, rate_per_s: int) -> tuple[dict[Stack, int], bool]:
        file = Path(self._folder.name) / "raw"
        file.unlink(missing_ok=True)
        self._recording.start(
            [
                self._program, "record", "--pid", str(self._pid), "--rate", str(rate_per_s), "--duration",
                str(bound_s(end_s)), "--format", "raw", "--function", "--full-filenames", "--output",
                str(file), *(["--native"] if self._native else []),
            ]
        )  # fmt: skip
        went_on = schedule.wait_until(end_s)
        self._recording.stop(STOP_S)  # it writes what it has
        text = file.read_text(errors="replace") if file.exists() else ""
        return {tuple(map(frame, stack)): weight for stack, weight in collapsed(text).items()}, went_on

    def detach(self) -> None:
        """End it, and remove its recordings."""
        self._recording.close(STOP_S)
        self._folder.cleanup()


def rate(interval_s: float, *, native: bool) -> int:
    """Samples per second for an interval that is wanted, as far as they do not cost too much."""
    return min(MOST_NATIVE_PER_S if native else MOST_PER_S, max(1, round(1 / interval_s)))


def frame(said: str) -> str:
    """`name (file)` as a frame of a profile."""
    found = FRAME.match(said)
    if found is None:
        return said
    name, file = found[1], found[2]
    return f"{Path(file).name}`{name}" if NATIVE.search(file) else f"{file}`{name}_[s]"
