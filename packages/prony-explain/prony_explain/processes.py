"""Choice of the server's process to profile, its runtime, and whether it is alive."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from prony.host.proc import key_values, read_text
from prony.server import proc

Runtime = Literal["jvm", "python", "node", "native"]
PYTHON = re.compile(r"/(libpython3[\d.]*\.so|python3?[\d.]*)( |$)", re.MULTILINE)


HANGS_UP_S = 1.0
"""Maximum time between a killed process's closed connections and its end: memory is freed."""
LOOK_EVERY_S = 0.01


class NotReached(Exception):
    """A process could not be reached, or refused; `str()` says why."""


class ProcessEnded(NotReached):
    """Raised for every symptom: connection reset or refused, no answer, no such process or file."""

    def __init__(self, *pids: int) -> None:
        numbers = ", ".join(map(str, pids))
        super().__init__(
            f"the process {numbers} has ended" if len(pids) == 1 else f"the processes {numbers} have ended"
        )


def ended(pid: int, within_s: float = 0.0) -> bool:
    """Whether it has ended, within `within_s` at most. A hidden process counts as alive."""
    deadline = time.monotonic() + within_s
    while not _is_gone(pid):
        if time.monotonic() >= deadline:
            return False
        time.sleep(LOOK_EVERY_S)
    return True


def cause(fault: Exception, *pids: int) -> Exception:
    """ProcessEnded if one of these processes has ended, else the fault itself."""
    if isinstance(fault, ProcessEnded):
        return fault
    deadline = time.monotonic() + HANGS_UP_S
    gone = [pid for pid in pids if ended(pid, deadline - time.monotonic())]
    return ProcessEnded(*gone) if gone else fault


def _is_gone(pid: int) -> bool:
    if proc.alive(pid):
        return False
    if read_text(f"/proc/{pid}/stat") is not None:
        return True  # a zombie
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # of another user
    return False  # hidden from Prony


@dataclass(frozen=True, slots=True)
class Chosen:
    """The busiest process of a server, and the others."""

    pid: int
    runtime: Runtime
    every: tuple[int, ...]
    """All living processes."""
    share: float
    """Its share of the CPU time of all so far."""


@dataclass(frozen=True, slots=True)
class CpuTime:
    """CPU time until a moment, s; None: unread, as the processes have ended."""

    at_s: float
    own_s: float | None
    """Of the chosen process."""
    every_s: float | None
    """Of all processes."""

    @classmethod
    def of(cls, chosen: Chosen) -> CpuTime:
        """CPU time until now."""
        own, every = proc.sample((chosen.pid,)), proc.sample(chosen.every)
        return cls(
            time.monotonic(), None if own is None else own.cpu_s, None if every is None else every.cpu_s
        )

    def since(self, before: CpuTime) -> CpuTime:
        """CPU time used between two moments; `at_s` is the time between them."""
        return CpuTime(
            self.at_s - before.at_s, _over(before.own_s, self.own_s), _over(before.every_s, self.every_s)
        )

    @property
    def share(self) -> float | None:
        """Share of the chosen process; None if nothing was used, or it is unknown."""
        return None if self.own_s is None or not self.every_s else min(1.0, self.own_s / self.every_s)


def _over(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else max(0.0, after - before)


def choose(pids: Iterable[int]) -> Chosen | None:
    """The process with the most CPU time; None if none is readable."""
    used = {pid: sample.cpu_s for pid in pids if (sample := proc.sample((pid,))) is not None}
    if not used:
        return None
    busiest = max(used, key=lambda pid: used[pid])
    whole = sum(used.values())
    share = used[busiest] / whole if whole > 0 else 1.0
    return Chosen(busiest, runtime_of(busiest), tuple(used), share)


def runtime_of(pid: int) -> Runtime:
    """By the libraries mapped into the process, or its program's name."""
    maps = read_text(f"/proc/{pid}/maps") or ""
    try:
        program = Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        program = proc.program(pid)
    if "/libjvm.so" in maps or program == "java":
        return "jvm"
    if program in ("node", "nodejs") or "/libnode.so" in maps:
        return "node"
    if PYTHON.search(maps) or program.startswith("python"):
        return "python"
    return "native"


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether the process handles this signal; unknown: no."""
    caught = key_values(read_text(f"/proc/{pid}/status") or "").get("SigCgt", "0")
    return bool(int(caught, 16) >> (number - 1) & 1)


def uid_of(pid: int) -> int | None:
    """None when it is gone."""
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return None
