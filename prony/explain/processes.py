"""Which of a server's processes is profiled, and as what. Must not attach to anything."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from prony.host.proc import read_text
from prony.server import proc

Runtime = Literal["jvm", "python", "node", "native"]
PYTHON = re.compile(r"/(libpython3[\d.]*\.so|python3?[\d.]*)( |$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The process that does most of the work, and the others."""

    pid: int
    runtime: Runtime
    every: tuple[int, ...]
    """All living processes of the server."""
    share: float
    """Of the CPU time of all of them so far."""


def choose(pids: Iterable[int]) -> Chosen | None:
    """Of these processes the one with most CPU time; None where none may be read."""
    used = {pid: sample.cpu_s for pid in pids if (sample := proc.sample((pid,))) is not None}
    if not used:
        return None
    busiest = max(used, key=lambda pid: used[pid])
    whole = sum(used.values())
    share = used[busiest] / whole if whole > 0 else 1.0
    return Chosen(busiest, runtime_of(busiest), tuple(used), share)


def runtime_of(pid: int) -> Runtime:
    """By what is mapped into the process; where that may not be read, by its program's name."""
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
