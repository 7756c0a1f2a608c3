"""Pins processes and threads to CPUs. A refusal is reported, not fatal."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from prony.host.proc import cpus_text
from prony.host.topology import allowed_cpus

_ROUNDS = 8
"""Passes over the threads: new ones inherit the mask of their parent, so a few suffice."""

_granted: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Pinning:
    """Result of pinning; `note`: why it failed, as a sentence."""

    done: bool
    note: str = ""


def granted_cpus() -> tuple[int, ...]:
    """The CPUs that this process started with, before it pinned itself."""
    return _granted if _granted is not None else allowed_cpus()


def pin_self(cpus: Collection[int]) -> Pinning:
    """Pins all threads of this process."""
    global _granted
    if _granted is None:
        _granted = allowed_cpus()
    return pin_process(os.getpid(), cpus)


def pin_thread(cpus: Collection[int]) -> Pinning:
    """Pins the calling thread."""
    return _pin(0, cpus)


def pin_process(pid: int, cpus: Collection[int]) -> Pinning:
    """Pins all threads of a process, including new ones."""
    wanted = set(cpus)
    seen: set[int] = set()
    for _ in range(_ROUNDS):
        try:
            threads = {int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()}
        except OSError:
            return Pinning(False, f"Process {pid} could not be pinned: it is gone.")
        fresh = threads - seen
        if not fresh:
            return Pinning(True)
        for thread in fresh:
            result = _pin(thread, wanted)
            if not result.done and _alive(pid, thread):
                return result
        seen |= fresh
    return Pinning(True)


def _alive(pid: int, thread: int) -> bool:
    return Path(f"/proc/{pid}/task/{thread}").exists()


def _pin(thread: int, cpus: Collection[int]) -> Pinning:
    where = f"CPUs {cpus_text(cpus)}" if cpus else "no CPU"
    try:
        os.sched_setaffinity(thread, set(cpus))
    except PermissionError:
        return Pinning(False, f"Not pinned to {where}: no permission to change the affinity of this process.")
    except ProcessLookupError:
        return Pinning(False, f"Not pinned to {where}: the thread is gone.")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return Pinning(
            False, f"Not pinned to {where}: {reason} (this process may run on {cpus_text(allowed_cpus())})."
        )
    return Pinning(True)
