"""py-spy on a Python process: Python and native frames.

A separate program (extra `explain`) that reads the process's memory. It samples threads on a CPU by
wall-clock time, and does not see kernel frames.
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
"""Limits of the sampling rate: each sample stops the process, for milliseconds with native frames."""
SHORTEST_SLICE_S = 1.0
"""Each slice is a new recording, which first reads the symbols of all libraries."""
STOP_S = 30.0
FRAME = re.compile(r"^(.*) \(([^()]*?)(?::\d+)?\)$")
NATIVE = re.compile(r"\.(c|cc|cpp|cxx|h|hpp|rs|S|so(\.[\d.]+)?)$|^$")
"""Sources and libraries of native code; all else is Python, including modules without a file."""
KERNEL = (
    "kernel frames are missing: py-spy counts the time of a system call for the function that made it; perf "
    "separates them where it is allowed"
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
        """Check permissions, with native frames and without."""
        local = Path(sys.executable).with_name(PROGRAM)
        program = str(local) if local.is_file() else shutil.which(PROGRAM)
        if program is None:
            raise Unavailable("no CPU profile: py-spy is not installed: pip install 'prony[explain]'")
        self._program = program
        self._version = tool.ask_version([program, "--version"], r"py-spy (\S+)", "reinstall it")
        complaint = ""
        for self._native in (True, False):
            command = [program, "dump", "--pid", str(self._pid), *(["--native"] if self._native else [])]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=STOP_S)
            if done.returncode == 0:
                return
            complaint = complaint or done.stderr
        line = next((text.strip() for text in complaint.splitlines() if text.strip()), "no output")
        refused = Unavailable(
            f"no CPU profile: py-spy may not read the process {self._pid} ({line}); run Prony as root, or "
            "allow it: sysctl kernel.yama.ptrace_scope=0, in a container the capability SYS_PTRACE"
        )
        raise cause(refused, self._pid)

    def profile(self, schedule: Schedule) -> Profiled:
        """A recording per slice, or per several short ones."""
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
                reason = ProcessEnded(self._pid)
                if len(slices.made) < LEAST_SLICES:
                    raise reason
                cut = cut_short(reason)
                missing.append(ended_early(PROGRAM, reason, kept=True))
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
        self._recording.stop(STOP_S)  # it writes its data
        text = file.read_text(errors="replace") if file.exists() else ""
        return {tuple(map(frame, stack)): weight for stack, weight in collapsed(text).items()}, went_on

    def detach(self) -> None:
        """Stop it and remove its recordings."""
        self._recording.close(STOP_S)
        self._folder.cleanup()


def rate(interval_s: float, *, native: bool) -> int:
    """Samples per second for a wanted interval, up to the limit of its cost."""
    return min(MOST_NATIVE_PER_S if native else MOST_PER_S, max(1, round(1 / interval_s)))


def frame(said: str) -> str:
    """`name (file)` as a frame of a profile."""
    match = FRAME.match(said)
    if match is None:
        return said
    name, file = match[1], match[2]
    return f"{Path(file).name}`{name}" if NATIVE.search(file) else f"{file}`{name}_[s]"
