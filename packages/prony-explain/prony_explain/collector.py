"""What is collected beside the load in an explained trial: a profiler chosen by the server's runtime, and the
kernel's counters, from the opening of the window to its end.

Whatever goes wrong is a sentence in the profile, never the trial's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from prony.evidence.profile import Counters, CutShort, Profile, Stalls
from prony.server import proc
from prony_explain import counters, stalls
from prony_explain.processes import Chosen, CpuTime, ProcessEnded, choose, ended
from prony_explain.profilers.base import Profiled, Profiler, Schedule, cut_short, why

SLICES = 12
"""The window is cut into so many: intervals come from how much they differ."""
CPU_SLICES = 10
"""Of them: where allocations and locks are sampled as well, the rest is theirs."""
CALLS_FROM = 0.85
"""Of the window: system calls are counted from there on, when the CPU samples are taken, as counting makes
each call and each context switch slower ...
"""
CALLS_SHARE, CALLS_MOST_S = 0.06, 1.0
"""... for so much of the window, which is thousands of calls."""
SAMPLES = 3000
"""CPU samples that are wanted: a part of 20 % is then known to 2 points. More would slow the server down
for less than they tell.
"""
SHORTEST_S, LONGEST_S = 0.001, 0.05
"""CPU time between two samples of a thread, at the least and at the most."""
LEAST_SAMPLES = 8
"""Of an average thread that runs. An event begins with half an interval that is lost on average."""
LEAST_BUSY = 0.25
"""CPUs that a server is taken to keep busy at the least: its load may have just begun."""
WATCHED_S = 0.3
"""Before the profiler is put there: how many CPUs does the server keep busy?"""
MINOR_SHARE = 0.9
"""Of the CPU time of all processes of a server: what one process has at least to stand for all of them."""
ENDS_WITHIN_S = 60.0
NO_LOCKS = (
    "waits for locks are not counted: outside a JVM the kernel tells without tracing that a thread waits, "
    "not for what; the voluntary context switches hold them"
)

Find = Callable[[Chosen], Profiler]
"""The profiler for a process. Raises Unavailable."""


def interval_s(busy_cpus: float, window_s: float) -> float:
    """CPU time between two samples of a thread, so that a window has about `SAMPLES` of them. `busy_cpus`:
    those that the profiled processes keep busy.
    """
    return min(LONGEST_S, max(SHORTEST_S, max(LEAST_BUSY, busy_cpus) * window_s / SAMPLES))


@dataclass(slots=True)
class Collector:
    """Of one explained trial: `attach` under load before the window, `begin` as it opens, `end` as it
    closes. None of them raises.
    """

    find: Find
    _chosen: Chosen | None = None
    _profiler: Profiler | None = None
    _attached: bool = False
    _taken_off: bool = True
    """Nothing of the profiler is in the server."""
    _busy_cpus: float = 1.0
    """Of the processes that are profiled, before the profiler was there."""
    _running: int = 1
    """Threads of theirs that ran meanwhile."""
    _missing: list[str] = field(default_factory=list)
    _cut_short: CutShort | None = None
    _over: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _begun_s: float = 0.0
    _first: counters.Reading | None = None
    _used: CpuTime | None = None
    """At the begin of the CPU samples ..."""
    _sampled: CpuTime | None = None
    """... and from there to their end; None until then."""
    _profiled: Profiled | None = None
    _calls: counters.SystemCalls = field(default_factory=counters.SystemCalls)
    _stalls: Stalls | None = None

    def attach(self, pids: Iterable[int]) -> None:
        """Find the process that works, and put its profiler there."""
        every = tuple(pids)
        self._chosen = chosen = choose(every)
        if chosen is None:
            if every and all(map(ended, every)):
                self._cut_short = "process-ended"
                self._missing.append(f"nothing was collected: {ProcessEnded(*every)}")
                return
            self._missing.append(
                "nothing was collected: the server's processes cannot be read here; run Prony on the "
                "server's host and as its user or as root"
            )
            return
        self._busy_cpus, self._running = self._busy(chosen)
        try:
            self._profiler = self.find(chosen)
            self._taken_off = False  # from now on, however attaching ends
            self._profiler.attach()
            self._attached = True
        except Exception as fault:  # a defect here must not cost the trial
            self._missing.append(why(fault, self._profiler.name if self._profiler else "the profiler"))
            self._cut_short = "process-ended" if isinstance(fault, ProcessEnded) else None
            self._take_off()

    def _busy(self, chosen: Chosen) -> tuple[float, int]:
        """How many CPUs the processes that will be profiled keep busy, and how many of their threads run; 1
        where that cannot be read.
        """
        first, ran = proc.sample(chosen.every), counters.ran_ns(chosen.every)
        self._over.wait(WATCHED_S)
        last, runs = proc.sample(chosen.every), counters.ran_ns(chosen.every)
        running = max(1, sum(ns > ran.get(task, 0) for task, ns in runs.items()))
        if first is None or last is None or last.t_monotonic_s <= first.t_monotonic_s:
            return 1.0, running
        busy = (last.cpu_s - first.cpu_s) / (last.t_monotonic_s - first.t_monotonic_s)
        return busy * (1.0 if chosen.runtime == "native" else chosen.share), running

    def begin(self, window_s: float) -> None:
        """The window is open, for so many seconds at the most."""
        self._begun_s = time.monotonic()
        if self._chosen is None:
            return
        self._first = counters.reading(self._chosen.every)
        self._used = CpuTime.of(self._chosen)
        schedule = Schedule(
            self._begun_s,
            tuple(self._begun_s + window_s * (one + 1) / SLICES for one in range(SLICES)),
            self._over.wait,
            interval_s(self._busy_cpus, window_s),
            self._busy_cpus * window_s / self._running / LEAST_SAMPLES,
        )
        jobs: list[Callable[[], None]] = [
            lambda: self._watch(window_s),
            lambda: self._count_calls(window_s),
        ]
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
        """The window is closed, or the server ended."""
        last = None if self._chosen is None or self._first is None else counters.reading(self._chosen.every)
        ended_s = time.monotonic()
        gone = self._chosen is not None and ended(self._chosen.pid)
        self._over.set()
        for thread in self._threads:
            thread.join(ENDS_WITHIN_S)
            if thread.is_alive():
                self._missing.append(f"the profiler did not end within {ENDS_WITHIN_S:.0f} s")
        self.detach()
        found = self._profiled or Profiled(event="", interval_s=None)
        return Profile(
            runtime="native" if self._chosen is None else self._chosen.runtime,
            profiler=self._profiler.name if self._profiler is not None and self._profiled is not None else "",
            event=found.event,
            interval_s=found.interval_s,
            ended_s=ended_s - self._begun_s if self._first is not None else 0.0,
            cpu=found.cpu,
            allocation=found.allocation,
            sampled_cpu_s=self._accounted_s(found),
            sampled_s=None if self._sampled is None else self._sampled.at_s,
            cpu_share=1.0 if found.every_process else self._share(),
            locks=found.locks,
            lock_waits=found.lock_waits,
            kernel=found.kernel,
            counters=None if last is None else self._counted(last, found),
            timeline=found.timeline,
            timeline_from_s=found.timeline_from_s,
            stalls=self._stalls,
            begun_monotonic_s=self._begun_s if self._first is not None else None,
            cut_short="process-ended" if gone else found.cut_short or self._cut_short,
            missing=tuple(
                dict.fromkeys((*self._missing, *self._apart(), *found.missing, *self._uncounted()))
            ),
        )

    def _counted(self, last: counters.Reading, found: Profiled) -> Counters:
        assert self._first is not None, "begun"
        kernel = counters.between(self._first, last)
        return kernel.model_copy(
            update={
                "system_calls": self._calls.by_name,
                "system_calls_s": self._calls.seconds or None,
                "allocated_bytes": found.allocated_bytes,
                "allocated_s": found.allocated_s,
                "collections": found.collections,
                "collection_pause_s": found.collection_pause_s,
            }
        )

    def _accounted_s(self, found: Profiled) -> float | None:
        """CPU time of the processes that were sampled, while they were, by the kernel's account."""
        if self._sampled is None:
            return None
        return self._sampled.every_s if found.every_process else self._sampled.own_s

    def _share(self) -> float | None:
        """Of the CPU time of all processes: that of the chosen one, in the window as far as it was read."""
        if self._chosen is None:
            return None
        share = None if self._sampled is None else self._sampled.share
        return self._chosen.share if share is None else share

    def _apart(self) -> list[str]:
        share, found = self._share(), self._profiled
        if self._chosen is None or share is None or found is None or found.every_process:
            return []
        if share >= MINOR_SHARE:
            return []
        own = found.allocated_bytes is not None or found.locks is not None
        scaled = "; what it allocated and its waits for locks are scaled by that" if own else ""
        return [
            f"one process of {len(self._chosen.every)} was profiled, which had {share:.0%} of their CPU "
            f"time; its shares are taken for all of them{scaled}"
        ]

    def _uncounted(self) -> list[str]:
        missing = [self._calls.missing] if self._calls.missing else []
        if self._profiled is not None and self._chosen is not None and self._chosen.runtime != "jvm":
            missing.append(NO_LOCKS)
        return missing

    def detach(self) -> None:
        """Take the profiler off; may be called at any time, twice as well."""
        self._over.set()
        self._take_off()

    def _take_off(self) -> None:
        if self._profiler is not None and not self._taken_off:
            self._taken_off = True
            self._profiler.detach()
