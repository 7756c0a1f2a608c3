"""The Synchronizing Timer in the supported case: threads wait before their first request, so that a batch
starts together with its last thread. Elsewhere it is refused, as Prony's users do not wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.scope import SAMPLING

TIMER = "SyncTimer"
INSTEAD = (
    "put it below the first request of a Thread Group that is sent once per thread (one loop, or a Once Only "
    "Controller); elsewhere leave it out: users of Prony do not wait for "
    "each other"
)
ONCE = "OnceOnlyController"
PLAIN = frozenset({"GenericController", "TransactionController", "RecordingController", ONCE})
"""Controllers that run all their children in order."""
MOST_BATCHES = 500


@dataclass(frozen=True, slots=True)
class Batch:
    """Threads that start together."""

    threads: int
    at_s: float
    """Start in s after the first thread of the group."""


def batches(
    group: JmxNode, users: int, ramp_s: float, loops: int, values: KnownValues
) -> tuple[Batch, ...] | None:
    """Batches of a group's threads; None without the timer, which is removed. Raises Refused, UsageError."""
    above = [timer for top in values.above for timer, _ in _timers(top)] + [
        node for node in values.above if node.enabled and node.tag == TIMER
    ]
    active_timers = [(timer, parent, _size(timer, users, values)) for timer, parent in _timers(group)]
    for timer, parent, size in active_timers:
        if size == 1:
            parent.below = [node for node in parent.below if node is not timer]
    active_timers = [entry for entry in active_timers if entry[2] > 1]
    if above or not active_timers:  # a timer above is refused when it is read
        return None
    timer, parent, size = active_timers[0]
    if len(active_timers) > 1:
        raise timer.refused(f"{len(active_timers)} of them in one group", INSTEAD)
    samplers = [node for node in group.everything() if node.tag in SAMPLING]
    held = (
        [parent] if parent.tag in SAMPLING else [node for node in parent.everything() if node.tag in SAMPLING]
    )
    if len(held) != 1 or held[0] is not samplers[0]:
        raise timer.refused("it delays requests other than the first", INSTEAD)
    way = _way(group, held[0])
    again = loops != 1 and not any(node.tag == ONCE for node in way)
    if again or any(node.tag not in PLAIN for node in way):
        raise timer.refused("it delays a request that is repeated or conditional", INSTEAD)
    timeout_ms = values.whole(timer.value("timeoutInMs"), timer, "timeoutInMs", 0)
    timer.finish()
    if timeout_ms < 0:
        raise timer.wrong(f"a timeout of at least 0, found {timeout_ms}")
    released = _released(timer, users, ramp_s, size, timeout_ms / 1000)
    parent.below = [node for node in parent.below if node is not timer]
    return released


def _size(timer: JmxNode, users: int, values: KnownValues) -> int:
    size = values.whole(timer.value("groupSize"), timer, "groupSize", 0)
    if size < 0:
        raise timer.wrong(f"a number of users from 0, found {size}")
    if size <= 1 and (size or users == 1):
        timer.ignore("timeoutInMs")
        timer.finish()
        return 1
    return size or users


def _timers(node: JmxNode) -> Iterator[tuple[JmxNode, JmxNode]]:
    """Each timer with its parent."""
    for parent in node.everything():
        for child in parent.below:
            if child.enabled and child.tag == TIMER:
                yield child, parent


def _way(group: JmxNode, sampler: JmxNode) -> list[JmxNode]:
    """The controllers between them."""
    path: list[JmxNode] = []
    here = group
    while here is not sampler:
        here = next(child for child in here.below if any(node is sampler for node in child.everything()))
        path.append(here)
    return path[:-1]


def _released(timer: JmxNode, users: int, ramp_s: float, size: int, timeout_s: float) -> tuple[Batch, ...]:
    """Releases `size` threads when the last of them arrives, or after the timeout of the first."""
    begins: list[float] = []
    waiting: list[float] = []
    for thread in range(users):
        starts_s = ramp_s * thread / users
        if timeout_s and waiting and starts_s > waiting[0] + timeout_s:
            begins += [waiting[0] + timeout_s] * len(waiting)
            waiting = []
        waiting.append(starts_s)
        if len(waiting) == size:
            begins += [starts_s] * size
            waiting = []
    if waiting and not timeout_s:
        raise timer.wrong(f"groups of {size} threads, or a timeout: {len(waiting)} of {users} never start")
    begins += [waiting[0] + timeout_s] * len(waiting) if waiting else []
    released = tuple(Batch(len(list(same)), at_s) for at_s, same in groupby(begins))
    if len(released) > MOST_BATCHES:
        raise timer.refused(f"{len(released)} groups of threads", f"use at most {MOST_BATCHES}", "limit")
    return released


def note_batches(found: Sequence[Batch], group: JmxNode, values: KnownValues) -> None:
    """Adds a note about the batches."""
    first, last = found[0], found[-1]
    values.note(
        "batches",
        f"its threads wait for each other before their first request: {first.threads} begin "
        f"together after {first.at_s:.3g} s"
        + ("" if first is last else f", the last {last.threads} after {last.at_s:.3g} s"),
        group,
    )
