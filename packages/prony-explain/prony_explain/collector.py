"""Collects the evidence of an explained trial from the opening of its window to the end: a profiler chosen by
the server's runtime, and kernel counters. Failures become sentences of the profile; the trial goes on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from prony.evidence.profile import Counters, CutShort, Profile, Stalls
from prony.report.out import filled
from prony.server import proc
from prony_explain import counters, stalls
from prony_explain.processes import Chosen, CpuTime, ProcessEnded, choose, ended
from prony_explain.profilers.base import Profiled, Profiler, Schedule, cut_short, why

SLICES = 12
"""Slices per window; intervals come from their spread."""
CPU_SLICES = 10
"""CPU slices where allocations and locks are sampled too; these have the rest."""
CALLS_FROM = 0.85
"""Share of the window after which system calls are counted: counting slows down each call and context switch,
so it starts after the CPU samples ...
"""
CALLS_SHARE, CALLS_MOST_S = 0.06, 1.0
"""... for this share of the window at most, which is thousands of calls."""
SAMPLES = 3000
"""Wanted CPU samples: ± 2 points of a part of 20 %. More slows down the server for little gain."""
SHORTEST_S, LONGEST_S = 0.001, 0.05
"""Bounds of the CPU time between two samples of a thread."""
LEAST_SAMPLES = 8
"""Minimum per average running thread: on average an event loses half an interval at its start."""
LEAST_BUSY = 0.25
"""Assumed minimum of busy CPUs; the load may have just begun."""
WATCHED_S = 0.3
"""Duration of the reading of busy CPUs, before the profiler is attached."""
MINOR_SHARE = 0.9
"""Minimum share of the CPU time for one process to stand for all."""
ENDS_WITHIN_S = 60.0
NO_LOCKS = (
    "waits for locks are not counted: outside a JVM, without tracing, the kernel does not say what a thread "
    "waits for; they are part of the voluntary context switches"
)

Find = Callable[[Chosen], Profiler]
"""The profiler for a process. Raises Unavailable."""


def interval_s(busy_cpus: float, window_s: float) -> float:
    """CPU time between a thread's samples, for about `SAMPLES` per window on `busy_cpus` CPUs."""
    return min(LONGEST_S, max(SHORTEST_S, max(LEAST_BUSY, busy_cpus) * window_s / SAMPLES))


@dataclass(slots=True)
class Collector:
    """Of one explained trial: `attach` before the window, `begin` and `end` with it. None raises."""

    find: Find
    _chosen: Chosen | None = None
    _profiler: Profiler | None = None
    _attached: bool = False
    _taken_off: bool = True
    """Whether nothing of the profiler is left in the server."""
    _busy_cpus: float = 1.0
    """CPUs kept busy by the profiled processes before the profiler was attached."""
    _running: int = 1
    """Their threads that ran meanwhile."""
    _missing: list[str] = field(default_factory=list)
    _cut_short: CutShort | None = None
    _over: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _begun_s: float = 0.0
    _first: counters.Reading | None = None
    _used: CpuTime | None = None
    """At the start of the CPU samples ..."""
    _sampled: CpuTime | None = None
    """... and from there to their end."""
    _profiled: Profiled | None = None
    _calls: counters.SystemCalls = field(default_factory=counters.SystemCalls)
    _stalls: Stalls | None = None

    def attach(self, pids: Iterable[int]) -> None:
        """Choose the busiest process and attach its profiler."""
        every = tuple(pids)
        self._chosen = chosen = choose(every)
        if chosen is None:
            if every and all(map(ended, every)):
                self._cut_short = "process-ended"
                self._missing.append(f"nothing was collected: {ProcessEnded(*every)}")
                return
            self._missing.append(
                "nothing was collected: the server's processes are not readable; run Prony on the server's "
                "host, as its user or as root"
            )
            return
        self._busy_cpus, self._running = self._busy(chosen)
        try:
            self._profiler = self.find(chosen)
            self._taken_off = False  # also if attaching fails
            self._profiler.attach()
            self._attached = True
        except Exception as fault:  # a defect here must not cost the trial
            self._missing.append(why(fault, self._profiler.name if self._profiler else "the profiler"))
            self._cut_short = "process-ended" if isinstance(fault, ProcessEnded) else None
            self._take_off()

    def _busy(self, chosen: Chosen) -> tuple[float, int]:
        """CPUs that the profiled processes keep busy (1 if unreadable), and the number of running threads."""
        first, ran = proc.sample(chosen.every), counters.ran_ns(chosen.every)
        self._over.wait(WATCHED_S)
        last, runs = proc.sample(chosen.every), counters.ran_ns(chosen.every)
        running = max(1, sum(ns > ran.get(task, 0) for task, ns in runs.items()))
        if first is None or last is None or last.t_monotonic_s <= first.t_monotonic_s:
            return 1.0, running
        busy = (last.cpu_s - first.cpu_s) / (last.t_monotonic_s - first.t_monotonic_s)
        return busy * (1.0 if chosen.runtime == "native" else chosen.share), running

    def begin(self, window_s: float) -> None:
        """The window opens, for `window_s` seconds at most."""
        self._begun_s = time.monotonic()
        if self._chosen is None:
            return
        self._first = counters.reading(self._chosen.every)
        self._used = CpuTime.of(self._chosen)
        schedule = Schedule(
            self._begun_s,
            tuple(self._begun_s + window_s * (k + 1) / SLICES for k in range(SLICES)),
            self._over.wait,
            interval_s(self._busy_cpus, window_s),
            self._busy_cpus * window_s / self._running / LEAST_SAMPLES,
        )
        jobs: list[Callable[[], None]] = [lambda: self._watch(window_s), lambda: self._count_calls(window_s)]
        if self._attached:
            jobs.append(lambda: self._profile(schedule))
        for job in jobs:
            thread = threading.Thread(target=job, daemon=True)
            thread.start()
            self._threads.append(thread)

    def _profile(self, schedule: Schedule) -> None:
        assert self._profiler is not None, "attached"
        try:
            self._profiled = self._profiler.profile(schedule)
        except Exception as fault:  # a defect here must not cost the trial
            self._missing.append(why(fault, self._profiler.name))
            self._cut_short = cut_short(fault)

    def _watch(self, window_s: float) -> None:
        assert self._chosen is not None, "begun"
        try:
            self._stalls = stalls.watch(self._chosen.every, self._over.wait, self._begun_s, window_s)
        except Exception as fault:  # a defect here must not cost the trial
            self._missing.append(f"waits for a CPU were not read: {type(fault).__name__}: {fault}")

    def _count_calls(self, window_s: float) -> None:
        assert self._chosen is not None, "begun"
        assert self._used is not None, "begun"
        if self._over.wait(window_s * CPU_SLICES / SLICES):
            return
        try:
            self._sampled = CpuTime.of(self._chosen).since(self._used)
            if self._over.wait(window_s * CALLS_FROM - (time.monotonic() - self._begun_s)):
                return
            length_s = min(CALLS_MOST_S, CALLS_SHARE * window_s)
            self._calls = counters.count_calls(self._chosen.every, self._over.wait, length_s)
        except Exception as fault:  # a defect here must not cost the trial
            self._missing.append(f"system calls were not counted: {type(fault).__name__}: {fault}")

    def end(self) -> Profile:
        """The window has closed, or the server has ended."""
        last = None if self._chosen is None or self._first is None else counters.reading(self._chosen.every)
        ended_s = time.monotonic()
        gone = self._chosen is not None and ended(self._chosen.pid)
        self._over.set()
        for thread in self._threads:
            thread.join(ENDS_WITHIN_S)
            if thread.is_alive():
                self._missing.append(f"the profiler did not end within {ENDS_WITHIN_S:.0f} s")
        self.detach()
        profiled = self._profiled or Profiled(event="", interval_s=None)
        return filled(
            Profile,
            profiled,
            runtime="native" if self._chosen is None else self._chosen.runtime,
            profiler=self._profiler.name if self._profiler is not None and self._profiled is not None else "",
            ended_s=ended_s - self._begun_s if self._first is not None else 0.0,
            sampled_cpu_s=self._accounted_s(profiled),
            sampled_s=None if self._sampled is None else self._sampled.at_s,
            cpu_share=1.0 if profiled.every_process else self._share(),
            counters=None if last is None else self._counted(last, profiled),
            stalls=self._stalls,
            begun_monotonic_s=self._begun_s if self._first is not None else None,
            cut_short="process-ended" if gone else profiled.cut_short or self._cut_short,
            missing=tuple(
                dict.fromkeys((*self._missing, *self._apart(), *profiled.missing, *self._uncounted()))
            ),
        )

    def _counted(self, last: counters.Reading, profiled: Profiled) -> Counters:
        assert self._first is not None, "begun"
        kernel = counters.between(self._first, last)
        return kernel.model_copy(
            update={
                "system_calls": self._calls.by_name,
                "system_calls_s": self._calls.seconds or None,
                "allocated_bytes": profiled.allocated_bytes,
                "allocated_s": profiled.allocated_s,
                "collections": profiled.collections,
                "collection_pause_s": profiled.collection_pause_s,
            }
        )

    def _accounted_s(self, profiled: Profiled) -> float | None:
        """CPU time of the sampled processes during sampling, as accounted by the kernel."""
        if self._sampled is None:
            return None
        return self._sampled.every_s if profiled.every_process else self._sampled.own_s

    def _share(self) -> float | None:
        """The chosen process's share of the CPU time of all, during sampling if known."""
        if self._chosen is None:
            return None
        share = None if self._sampled is None else self._sampled.share
        return self._chosen.share if share is None else share

    def _apart(self) -> list[str]:
        share, profiled = self._share(), self._profiled
        if self._chosen is None or share is None or profiled is None or profiled.every_process:
            return []
        if share >= MINOR_SHARE:
            return []
        own = profiled.allocated_bytes is not None or profiled.locks is not None
        scaled = ", and its allocations and waits for locks are scaled up" if own else ""
        return [
            f"1 of {len(self._chosen.every)} processes was profiled, with {share:.0%} of their CPU time; its "
            f"shares are taken for all of them{scaled}"
        ]

    def _uncounted(self) -> list[str]:
        missing = [self._calls.missing] if self._calls.missing else []
        if self._profiled is not None and self._chosen is not None and self._chosen.runtime != "jvm":
            missing.append(NO_LOCKS)
        return missing

    def detach(self) -> None:
        """Remove the profiler; idempotent, at any time."""
        self._over.set()
        self._take_off()

    def _take_off(self) -> None:
        if self._profiler is not None and not self._taken_off:
            self._taken_off = True
            self._profiler.detach()
