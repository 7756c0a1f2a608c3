"""CPU affinity and real-time priority of processes and threads; a refusal is reported, not fatal."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from prony.host.proc import ROOT, cpus_text, read_int, thread_ids
from prony.host.topology import allowed_cpus

_ROUNDS = 8
"""New threads inherit the mask of their parent, so a few passes suffice."""

_granted: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Pinning:
    """`note`: why it failed, as a sentence."""

    done: bool
    note: str = ""


def granted_cpus() -> tuple[int, ...]:
    """CPUs granted to this process at its start, before it pinned itself."""
    return _granted if _granted is not None else allowed_cpus()


def pin_self(cpus: Collection[int]) -> Pinning:
    global _granted
    if _granted is None:
        _granted = allowed_cpus()
    return pin_process(os.getpid(), cpus)


def pin_process(pid: int, cpus: Collection[int]) -> Pinning:
    wanted = set(cpus)
    seen: set[int] = set()
    for _ in range(_ROUNDS):
        threads = set(thread_ids(pid))
        if not threads:
            return Pinning(False, f"Process {pid} could not be pinned: it is gone.")
        fresh = threads - seen
        if not fresh:
            return Pinning(True)
        for thread in fresh:
            result = pin_thread(wanted, thread)
            if not result.done and Path(f"/proc/{pid}/task/{thread}").exists():
                return result
        seen |= fresh
    return Pinning(True)


def pin_thread(cpus: Collection[int], thread: int = 0) -> Pinning:
    """`thread`: 0 is the calling one."""
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


@dataclass(frozen=True, slots=True)
class Realtime:
    """`runtime_us`: real-time share of each period; negative: all of it; None: not read."""

    permitted: bool
    runtime_us: int | None

    @property
    def used(self) -> bool:
        """Only if ordinary threads keep a share of each CPU."""
        return self.permitted and self.runtime_us is not None and self.runtime_us >= 0


def realtime(root: Path = ROOT) -> Realtime:
    """Tries it with an idle thread: only the kernel combines rights, limits and the control group's share."""
    permitted: list[bool] = []
    thread = threading.Thread(target=lambda: permitted.append(_first()))
    thread.start()
    thread.join()
    return Realtime(permitted == [True], read_int(root / "proc/sys/kernel/sched_rt_runtime_us"))


def _first() -> bool:
    try:  # 0 is the calling thread
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except OSError:
        return False
    return True
