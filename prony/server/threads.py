"""CPU time of the threads of a process tree, in clock ticks (10 ms), and where they may run: a server of one
busy thread uses a small share of many CPUs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from prony.evidence.server import ThreadUse
from prony.host.affinity import pin_thread
from prony.host.proc import TICKS_PER_S, read_bytes, thread_ids

THREADS_MOST = 2000
"""Limit on the threads read, at 10 µs of the client's CPU each; of a larger tree none is read."""
WORKING_SHARE = 0.01
"""Minimum share of its tree's CPU time of a thread that counts as working."""
SEEN_SHARE = 0.9
"""Minimum share of the CPU time used by threads alive at the end, for these to stand for all."""
COMPILERS = ("C1 Compiler", "C2 Compiler", "JVMCI Compiler", "JIT Compilation")
COLLECTORS = (
    "GC Thread#", "G1 ", "ParGC Thread#", "VM Thread", "ZWorker", "ZDriver", "ZDirector", "XWorker",
    "XDriver", "XDirector", "Shenandoah", ".NET Server GC", ".NET BGC",
)  # fmt: skip
"""As the kernel cuts them, to 15 characters. VM Thread is the Serial collector's."""
SERVE_NOTHING = COMPILERS + COLLECTORS
"""Threads of a runtime that serve no request."""
_UTIME, _STIME, _STARTED = 11, 12, 19
"""Places in /proc/PID/task/TID/stat after the name, see proc(5)."""

ThreadKey = tuple[int, int, int]
"""Process, thread, and the thread's start in ticks: ids are used again."""


@dataclass(frozen=True, slots=True)
class ThreadTime:
    name: str
    cpu_s: float
    cpus: frozenset[int]
    """Where it may run; empty: not known."""
    t_monotonic_s: float
    ran_s: float = 0.0
    run_delay_s: float | None = None
    """Runnable, but not on a CPU, so far; None where the kernel does not count it."""


def thread_times(pids: Iterable[int]) -> Mapping[ThreadKey, ThreadTime] | None:
    """CPU time by thread; None when none can be read, or there are too many."""
    times: dict[ThreadKey, ThreadTime] = {}
    for pid in pids:
        threads = thread_ids(pid)
        if len(times) + len(threads) > THREADS_MOST:
            return None
        for thread in threads:
            read_s = time.monotonic()
            name, _, rest = (read_bytes(f"/proc/{pid}/task/{thread}/stat") or b"").rpartition(b")")
            fields = rest.split()
            if len(fields) <= _STARTED:
                continue  # it has just ended
            scheduled = (read_bytes(f"/proc/{pid}/task/{thread}/schedstat") or b"").split()
            ran = [int(field) for field in scheduled]
            times[pid, thread, int(fields[_STARTED])] = ThreadTime(
                name=name.partition(b"(")[2].decode(errors="replace"),
                cpu_s=(int(fields[_UTIME]) + int(fields[_STIME])) / TICKS_PER_S,
                cpus=_allowed(thread),
                t_monotonic_s=read_s,
                ran_s=ran[0] / 1e9 if ran else 0.0,
                run_delay_s=ran[1] / 1e9 if any(ran) else None,
            )
    return times or None


Readings = Mapping[ThreadKey, ThreadTime] | None


def allowed_cpus(pid: int) -> frozenset[int]:
    """Where any thread of this process may run; empty: it is gone or hidden."""
    return frozenset[int]().union(*map(_allowed, thread_ids(pid)))


def _allowed(thread: int) -> frozenset[int]:
    try:
        return frozenset(os.sched_getaffinity(thread))
    except OSError:
        return frozenset()


def busiest(opened: Readings, closed: Readings) -> ThreadUse | None:
    """The busiest thread between two readings, without JIT compilers and collectors; None when unknown."""
    used = _used_s(opened, closed)
    serving = {
        key: cpu_s
        for key, cpu_s in used.items()
        if closed is not None and not closed[key].name.startswith(SERVE_NOTHING)
    }
    if opened is None or closed is None or not serving:
        return None
    key = max(serving, key=serving.__getitem__)
    from_s = min(thread.t_monotonic_s for thread in opened.values())
    if key in opened:
        from_s = opened[key].t_monotonic_s
    return ThreadUse(
        pid=key[0],
        tid=key[1],
        name=closed[key].name,
        cpu_s=serving[key],
        wall_s=closed[key].t_monotonic_s - from_s,
    )


def run_delay_s(opened: Readings, closed: Readings, cpu_s: float) -> float | None:
    """Run delay of all threads between two readings, s; ended threads are taken to have waited as long per
    CPU second. `cpu_s`: of the whole tree. None when unknown, or known of less than SEEN_SHARE of it.
    """
    if opened is None or closed is None or any(now.run_delay_s is None for now in closed.values()):
        return None
    none = ThreadTime("", 0.0, frozenset(), 0.0, 0.0, 0.0)
    before = [opened.get(key, none) for key in closed]
    ran_s = sum(now.ran_s for now in closed.values()) - sum(then.ran_s for then in before)
    waited_s = sum(thread.run_delay_s or 0.0 for thread in closed.values())
    waited_s -= sum(thread.run_delay_s or 0.0 for thread in before)
    if ran_s <= 0 or ran_s < SEEN_SHARE * cpu_s:
        return None
    return waited_s * max(1.0, cpu_s / ran_s)


def working_cpus(opened: Readings, closed: Readings) -> tuple[int, ...]:
    """Where the threads that worked between two readings may run; empty: not known."""
    used = _used_s(opened, closed)
    least_s = WORKING_SHARE * sum(used.values())
    working = [closed[key].cpus for key, cpu_s in used.items() if closed is not None and cpu_s >= least_s]
    if not working or any(not cpus for cpus in working):
        return ()
    return tuple(sorted(frozenset().union(*working)))


def pin_compilers(now: Readings, cpus: Collection[int]) -> bool:
    """Move the threads of JIT compilers; one that they start later inherits it. False: none was moved."""
    compilers = [key for key, thread in (now or {}).items() if thread.name.startswith(COMPILERS)]
    return sum(pin_thread(cpus, thread).done for _, thread, _ in compilers) > 0


def compiler_cpus(*readings: Readings) -> frozenset[int]:
    """Where threads of JIT compilers may run."""
    threads = (thread for now in readings for thread in (now or {}).values())
    return frozenset[int]().union(*(one.cpus for one in threads if one.name.startswith(COMPILERS)))


@dataclass(slots=True)
class Compilers:
    """CPU time of a tree's JIT compilers. The JVM ends and restarts their threads: ended ones stay in the
    sum.
    """

    _last: dict[ThreadKey, float] = field(default_factory=dict)

    def cpu_s(self, now: Readings) -> float | None:
        """CPU seconds so far; None when unreadable, or without a compiler thread."""
        if now is None:
            return None
        self._last |= {key: thread.cpu_s for key, thread in now.items() if thread.name.startswith(COMPILERS)}
        return sum(self._last.values()) if self._last else None


def _used_s(opened: Readings, closed: Readings) -> dict[ThreadKey, float]:
    if opened is None or closed is None:
        return {}
    return {key: now.cpu_s - (opened[key].cpu_s if key in opened else 0.0) for key, now in closed.items()}
