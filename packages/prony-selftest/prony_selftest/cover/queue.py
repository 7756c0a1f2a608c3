"""A simulated server with one CPU (FIFO), a load, and a disturbance of known size or none."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prony_selftest.worlds import Floats

WORKERS = 4
"""Number of workers; a connection belongs to one of them."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A disturbance; none by default. Shares are of time or of requests."""

    stolen: float = 0.0
    """CPU time taken by the hypervisor ..."""
    others: float = 0.0
    """... and by other processes, in slices of exponential length."""
    slice_ms: float = 10.0
    resent: float = 0.0
    """Share of requests with a lost segment: 200 ms each."""
    acks_delayed: float = 0.0
    """Share of requests that wait for a delayed acknowledgement: 40 ms each."""
    failed: float = 0.0
    """Share of requests answered at once with an error."""
    client_ms: float = 0.0
    """Mean receive delay of a response."""
    pause_ms: float = 0.0
    """Mean time of the client between a response and the next request."""
    late_ms: float = 0.0
    """Open loop: mean send lag."""
    frozen: float = 0.0
    """Share of time for which one worker in four is frozen, 300 ms at a time."""


@dataclass(frozen=True, slots=True)
class World:
    """A server, a load and a disturbance."""

    users: int = 8
    cpu_ms: float = 1.0
    wait_ms: float = 0.0
    """Mean time of a response without CPU (a database's), exponential."""
    think_ms: float = 0.0
    rate_per_s: float = 0.0
    """Rate of an open load; 0: closed."""
    creeps: float = 0.0
    """Share of the rate missing at the first request, gained with time constant `creeps_s`."""
    creeps_s: float = 60.0
    noise: float = 0.005
    """Standard deviation (log) of the server's speed from second to second."""
    disturbance: Disturbance = field(default_factory=Disturbance)

    @property
    def is_open(self) -> bool:
        """Whether the load is open."""
        return self.rate_per_s > 0

    @property
    def undisturbed(self) -> World:
        """The same world without its disturbance."""
        return replace(self, disturbance=Disturbance())


@dataclass(slots=True)
class LostSpan:
    """A span (s) in which hypervisor or another process had the CPU; when the server began to wait."""

    begin: float
    end: float
    stolen: bool
    waits: float = math.inf

    def share_s(self, opens_s: float, closes_s: float, *, waited: bool = False) -> float:
        """Its part within a window, or that in which the server waited."""
        begin = max(self.waits if waited else self.begin, opens_s)
        return max(0.0, min(self.end, closes_s) - begin)


@dataclass(frozen=True, slots=True)
class Requests:
    """A run, by request, in order of completion (s)."""

    due: Floats
    sent: Floats
    done: Floats
    """When the client had the response."""
    cpu_s: Floats
    lay_s: Floats
    """Receive delay of the response."""
    failed: NDArray[np.bool_]
    resent: NDArray[np.bool_]
    acks_delayed: NDArray[np.bool_]
    paused_s: float
    """The client's time between requests, summed over users."""
    lost_spans: tuple[LostSpan, ...]
    """When others had the CPU."""


FREEZE_S, RESENT_S, HELD_BACK_S = 0.3, 0.2, 0.04
SKEW = 0.5
"""Standard deviation (log) of a request's CPU time."""
MISS_S = 1e-5
"""CPU time of an error."""


def run(world: World, seconds: float, rng: np.random.Generator) -> Requests:
    """Simulates this many seconds."""
    how, most = world.disturbance, int(seconds * 1.3 * max(world.rate_per_s, 1000 / world.cpu_ms)) + 100

    def drawn(mean_ms: float) -> Floats:
        return rng.exponential(mean_ms / 1000, most) if mean_ms else np.zeros(most)

    failed, resent, held = (rng.random(most) < share for share in (how.failed, how.resent, how.acks_delayed))
    cpu_s = np.exp(SKEW * rng.standard_normal(most) - SKEW**2 / 2) * world.cpu_ms / 1000
    cpu_s = np.where(failed, MISS_S, cpu_s)
    wait_s = np.where(failed, 0.0, drawn(world.wait_ms)) + RESENT_S * resent + HELD_BACK_S * held
    lay_s, pause_s, think_s = drawn(how.client_ms), drawn(how.pause_ms), drawn(world.think_ms)
    slower = 1 / level(world, np.arange(0.5, int(seconds) + 2.5))
    speeds = (slower * np.exp(-world.noise * rng.standard_normal(int(seconds) + 2))).tolist()
    lost_spans = _lost_spans(how, seconds, rng)
    period_s = FREEZE_S / how.frozen if how.frozen else math.inf
    waiting: list[tuple[float, float, float, int]] = []
    # (earliest start on the CPU, send time, due time, connection)
    if world.is_open:
        due = np.arange(1, most + 1) / world.rate_per_s
        sent, whose = due + drawn(how.late_ms), rng.integers(0, WORKERS, most)
        for at, (begin, then) in enumerate(zip(sent.tolist(), due.tolist(), strict=True)):
            waiting.append((_thawed(begin, int(whose[at]), period_s), begin, then, int(whose[at])))
    else:
        waiting = [(begin, begin, begin, user) for user, begin in enumerate(rng.random(world.users) / 1000)]
    heapq.heapify(waiting)
    ended, free_s, paused_s, slot = [], 0.0, 0.0, 0
    for work, wait, lay, pause, think in zip(
        cpu_s.tolist(), wait_s.tolist(), lay_s.tolist(), pause_s.tolist(), think_s.tolist(), strict=True
    ):
        begin, sent_s, due_s, who = heapq.heappop(waiting)
        if begin > seconds:
            break
        free_s = max(free_s, begin)
        left = work * speeds[min(int(free_s), len(speeds) - 1)]
        while slot < len(lost_spans) and lost_spans[slot].end <= free_s:
            slot += 1
        while slot < len(lost_spans) and free_s + left > lost_spans[slot].begin:
            left -= max(0.0, lost_spans[slot].begin - free_s)
            lost_spans[slot].waits = max(lost_spans[slot].begin, free_s)
            free_s = lost_spans[slot].end
            slot += 1
        free_s += left
        done_s = free_s + wait + lay
        ended.append((due_s, sent_s, done_s))
        if not world.is_open:
            paused_s += pause
            again = done_s + pause + think
            heapq.heappush(waiting, (_thawed(again, who, period_s), again, again, who))
    times = np.asarray(ended)
    count = len(ended)
    order = np.argsort(times[:, 2])
    due_of, sent_of, done_of = times[order].T
    works, lies = cpu_s[:count][order], lay_s[:count][order]
    bad, again_sent, held_up = failed[:count][order], resent[:count][order], held[:count][order]
    return Requests(
        due_of, sent_of, done_of, works, lies, bad, again_sent, held_up, paused_s, tuple(lost_spans)
    )


def level(world: World, at_s: NDArray[Any]) -> Floats:
    """The rate as a share of its plateau, this long after the first request."""
    return np.asarray(1 - world.creeps * np.exp(-at_s / world.creeps_s), dtype=np.float64)


def _thawed(at_s: float, who: int, period_s: float) -> float:
    """When this connection's worker continues: one in four is frozen at the end of each period."""
    if who % WORKERS or math.isinf(period_s) or at_s % period_s < period_s - FREEZE_S:
        return at_s
    return (at_s // period_s + 1) * period_s


def _lost_spans(how: Disturbance, seconds: float, rng: np.random.Generator) -> list[LostSpan]:
    share, slice_s = how.stolen + how.others, how.slice_ms / 1000
    if share <= 0:
        return []
    most = int(2 * seconds * share / slice_s) + 20
    gone = rng.exponential(slice_s, most)
    between = rng.exponential(slice_s * (1 - share) / share, most)
    ends = np.cumsum(gone + between)
    stolen = rng.random(most) < how.stolen / share
    spans = zip((ends - gone).tolist(), ends.tolist(), stolen.tolist(), strict=True)
    return [LostSpan(*span) for span in spans]
