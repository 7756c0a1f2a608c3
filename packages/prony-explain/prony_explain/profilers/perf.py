"""`perf record` on all processes of a server: native and kernel frames of any program.

It walks frame pointers: a server built without them shows kernel frames and the running function only.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from prony.evidence.profile import Stack
from prony.host.proc import cpus_text
from prony.server import tool
from prony_explain.processes import ProcessEnded, cause, ended
from prony_explain.profilers.base import (
    LEAST_SLICES,
    Profiled,
    Schedule,
    Slices,
    Unavailable,
    bound_s,
    cut_short,
    ended_early,
)
from prony_explain.profilers.program import Program

EVENT = "cpu-clock"
"""A kernel timer, available without hardware counters (virtual machines)."""
KERNEL = re.compile(r"^\[(kernel\.kallsyms|guest\.kernel.*)\]|\.ko(\.\w+)?$")
HEADER = re.compile(r"^\S.*?\s(\d+\.\d+):")
FRAME = re.compile(r"^\s+[0-9a-f]+ (.+?)(?:\+0x[0-9a-f]+)? \((.*)\)$")
STOP_S, READ_S = 15.0, 40.0
"""Limits for writing and for reading the recording, before the collector gives up (60 s)."""
TRIED_PER_S = 100
TRIED_WITHIN_S = 120.0
UNKNOWN = "[unknown]`[unknown]"
JIT_MAP = re.compile(r"perf-\d+\.map$")


class Perf:
    """perf on all processes of a server: by their CPUs if allowed, else by their threads. A thread's event
    stops and starts with each context switch, which slows down servers that hand requests over; a CPU's event
    does not.
    """

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = tuple(pids)
        self._by_cpu = True
        self._program = ""
        self._version = ""
        self._running = Program()
        self._folder = tempfile.TemporaryDirectory(prefix="prony-perf-")

    @property
    def name(self) -> str:
        return f"perf {self._version}"

    @property
    def _data(self) -> Path:
        return Path(self._folder.name) / "perf.data"

    def attach(self) -> None:
        """Check permissions by a short recording of the server."""
        program = shutil.which("perf")
        if program is None:
            raise Unavailable(
                "no CPU profile: native servers need perf, which is not installed (package linux-perf, "
                "linux-tools or perf)"
            )
        self._program = program
        self._version = tool.ask_version([program, "--version"], r"perf version (\S+)", "reinstall it")
        for by_cpu in (True, False):
            self._by_cpu = by_cpu
            trial = subprocess.run(
                [*self._record(TRIED_PER_S), "--", "sleep", "0.01"],
                capture_output=True,
                text=True,
                check=False,
                timeout=TRIED_WITHIN_S,
            )
            if trial.returncode == 0:
                return
        raise cause(Unavailable(f"no CPU profile: {_refused(trial.stderr)}"), *self._pids)

    def _record(self, frequency_per_s: int) -> list[str]:
        return [
            self._program, "record", "--quiet", "-e", EVENT, "-F", str(frequency_per_s), "--call-graph", "fp",
            "--clockid", "CLOCK_MONOTONIC", "-o", str(self._data), *self._where(),
        ]  # fmt: skip

    def _where(self) -> list[str]:
        if not self._by_cpu:
            return ["-p", ",".join(map(str, self._pids))]
        return ["-a", "-C", cpus_text(_cpus(self._pids))]

    def profile(self, schedule: Schedule) -> Profiled:
        """One recording, cut into slices by time."""
        frequency_per_s = frequency(schedule.interval_s)
        last_s = schedule.ends_s[-1]
        complaints = Path(self._folder.name) / "complaints"
        command = [*self._record(frequency_per_s), "--", "sleep", str(bound_s(last_s))]
        self._running.start(command, complained=complaints)
        schedule.wait_until(last_s)
        gone = ProcessEnded(*self._pids) if all(map(ended, self._pids)) else None
        self._running.stop(STOP_S)
        samples = self._read(complaints.read_text(errors="replace"))
        slices = cut(samples, schedule)
        if gone is not None and len(slices.made) < LEAST_SLICES:
            raise gone
        sampled = slices.sampling("samples")
        return Profiled(
            event=EVENT,
            interval_s=1 / frequency_per_s,
            cpu=sampled,
            every_process=True,
            cut_short=None if gone is None else cut_short(gone),
            missing=(*([] if gone is None else [ended_early("perf", gone, kept=True)]), *lacking(samples)),
        )

    def _read(self, said: str) -> list[tuple[float, Stack]]:
        """The recording's samples. `said`: perf's standard error during the recording."""
        text, complaints = (Path(self._folder.name) / name for name in ("script", "complaints"))
        pids = ",".join(map(str, self._pids))
        # Inlined functions would need addr2line per address: minutes with debug symbols.
        wanted = ["--no-inline", "--ns", "-F", "comm,time,ip,sym,dso", "--pid", pids, "-i", str(self._data)]
        self._running.start([self._program, "script", *wanted], text, complaints)
        code = self._running.ended(READ_S)
        if code is None:
            raise Unavailable(f"no CPU profile: perf read for over {READ_S:.0f} s; shorten the window")
        if code != 0:
            said = said or complaints.read_text(errors="replace")
            raise cause(Unavailable(f"no CPU profile: {_refused(said)}"), *self._pids)
        with text.open(errors="replace") as lines:
            return list(parsed(lines))

    def detach(self) -> None:
        """Stop it and remove its recording."""
        self._running.close(STOP_S)
        self._folder.cleanup()


def frequency(interval_s: float) -> int:
    """Samples per second of CPU time, out of step with the kernel's tick (100, 250, 300 or 1000 per second):
    otherwise work done at ticks would be in every sample, or in none.
    """
    wanted = max(1, round(1 / interval_s))
    return wanted - 1 if wanted > 5 and wanted % 5 == 0 else wanted


def _cpus(pids: Iterable[int]) -> set[int]:
    """CPUs on which any of these processes may run."""
    cpus: set[int] = set()
    for pid in pids:
        with suppress(OSError):
            cpus |= os.sched_getaffinity(pid)
    return cpus or os.sched_getaffinity(0)


def parsed(lines: Iterable[str]) -> Iterator[tuple[float, Stack]]:
    """Samples of `perf script`: time, and stack with the outermost frame first."""
    time_s, frames = None, list[str]()
    for line in (*lines, ""):
        header = HEADER.match(line)
        if header is not None:
            time_s, frames = float(header[1]), []
        elif (match := FRAME.match(line)) is not None:
            frames.append(_frame(match[1], match[2]))
        elif not line.strip() and time_s is not None:
            if frames:
                known = [frame for frame in frames[1:] if frame != UNKNOWN]
                yield time_s, tuple(reversed((frames[0], *known)))
            time_s = None


def _frame(symbol: str, library: str) -> str:
    symbol = symbol.replace(";", ",")
    if KERNEL.search(library):
        return f"{symbol}_[k]"
    if JIT_MAP.search(library):
        return symbol
    return f"{Path(library).name}`{symbol}"


def cut(samples: Iterable[tuple[float, Stack]], schedule: Schedule) -> Slices:
    """Samples by slice; those outside are left out."""
    starts = (schedule.begins_s, *schedule.ends_s[:-1])
    counts: list[dict[Stack, int]] = [{} for _ in starts]
    for time_s, stack in samples:
        place = next((at for at, end_s in enumerate(schedule.ends_s) if time_s < end_s), None)
        if place is not None and time_s >= schedule.begins_s:
            counts[place][stack] = counts[place].get(stack, 0) + 1
    slices = Slices(schedule.begins_s)
    for start_s, end_s, stacks in zip(starts, schedule.ends_s, counts, strict=True):
        if stacks:
            slices.add(start_s, end_s, stacks)
    return slices


def lacking(samples: Sequence[tuple[float, Stack]]) -> Iterator[str]:
    """Caveats about these samples."""
    if not samples:
        yield "no CPU samples: the server used no CPU time, or perf was stopped too early"
        return
    leaves = [stack[-1] for _, stack in samples]
    if not any(frame.endswith("_[k]") for _, stack in samples for frame in stack):
        yield (
            "kernel frames are missing: set sysctl kernel.perf_event_paranoid=1 kernel.kptr_restrict=0, or "
            "run Prony as root"
        )
    unknown = sum("[unknown]" in leaf for leaf in leaves) / len(leaves)
    if unknown > 0.2:
        yield (
            f"{unknown:.0%} of the samples are in code without symbols; install debug symbols of the server "
            "and its libraries, or build it without stripping"
        )


def _refused(said: str) -> str:
    line = next((text.strip() for text in said.splitlines() if text.strip()), "no output")
    return (
        f"perf may not sample the server ({line}); run Prony as root, or sysctl kernel.perf_event_paranoid=1"
    )
