"""The Synchronizing Timer where what it does is known beforehand: threads wait for each other before their
first request, so that they begin when the last of a batch has started. Anywhere else it is refused: users
of Prony do not wait for each other.
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
    "put it below the first request of a Thread Group whose threads make it once (one loop, or a Once Only "
    "Controller), which then begins for all at once; elsewhere leave it out: users of Prony do not wait for "
    "each other"
)
ONCE = "OnceOnlyController"
PLAIN = frozenset({"GenericController", "TransactionController", "RecordingController", ONCE})
"""Controllers that are walked from the first to the last of what stands below."""
MOST_BATCHES = 500


@dataclass(frozen=True, slots=True)
class Batch:
    """Threads that begin together."""

    threads: int
    at_s: float
    """After the first of the group has started."""


def batches(
    group: JmxNode, users: int, ramp_s: float, loops: int, values: KnownValues
) -> tuple[Batch, ...] | None:
    """When the threads of this group begin; None where no such timer says so. The timers are taken out of the
    group. Raises Refused and UsageError.
    """
    above = [timer for top in values.above for timer, _ in _timers(top)] + [
        node for node in values.above if node.enabled and node.tag == TIMER
    ]
    found = [(timer, parent, _size(timer, users, values)) for timer, parent in _timers(group)]
    for timer, parent, size in found:
        if size == 1:
            parent.below = [node for node in parent.below if node is not timer]
    found = [one for one in found if one[2] > 1]
    if above or not found:  # what stands above is refused where it is read
        return None
    timer, parent, size = found[0]
    if len(found) > 1:
        raise timer.refused(f"{len(found)} of them in one group", INSTEAD)
    samplers = [node for node in group.everything() if node.tag in SAMPLING]
    held = [parent] if parent.tag in SAMPLING else [one for one in parent.everything() if one.tag in SAMPLING]
    if len(held) != 1 or held[0] is not samplers[0]:
        raise timer.refused("it holds threads before other requests than the first", INSTEAD)
    way = _way(group, held[0])
    again = loops != 1 and not any(node.tag == ONCE for node in way)
    if again or any(node.tag not in PLAIN for node in way):
        raise timer.refused("it holds threads before a request that comes again, or not always", INSTEAD)
    timeout_ms = values.whole(timer.value("timeoutInMs"), timer, "timeoutInMs", 0)
    timer.finish()
    if timeout_ms < 0:
        raise timer.wrong(f"a timeout of at least 0, found {timeout_ms}")
    made = _released(timer, users, ramp_s, size, timeout_ms / 1000)
    parent.below = [node for node in parent.below if node is not timer]
    return made


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
    """Each with what it stands below."""
    for parent in node.everything():
        for child in parent.below:
            if child.enabled and child.tag == TIMER:
                yield child, parent


def _way(group: JmxNode, sampler: JmxNode) -> list[JmxNode]:
    """The controllers between them."""
    found: list[JmxNode] = []
    here = group
    while here is not sampler:
        here = next(child for child in here.below if any(node is sampler for node in child.everything()))
        found.append(here)
    return found[:-1]


def _released(timer: JmxNode, users: int, ramp_s: float, size: int, timeout_s: float) -> tuple[Batch, ...]:
    """So many threads are let go when the last of them comes, or when the first has waited so long."""
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
        raise timer.wrong(
            f"threads for whole groups of {size}, or a timeout: of {users} threads {len(waiting)} would wait "
            "for ever"
        )
    begins += [waiting[0] + timeout_s] * len(waiting) if waiting else []
    found = tuple(Batch(len(list(same)), at_s) for at_s, same in groupby(begins))
    if len(found) > MOST_BATCHES:
        raise timer.refused(
            f"{len(found)} groups of threads", f"let at most {MOST_BATCHES} wait for each other"
        )
    return found


def told(found: Sequence[Batch], group: JmxNode, values: KnownValues) -> None:
    """A note on when they begin."""
    first, last = found[0], found[-1]
    values.note(
        f"{group.element}: its threads wait for each other before their first request: {first.threads} begin "
        f"together after {first.at_s:.3g} s"
        + ("" if first is last else f", the last {last.threads} after {last.at_s:.3g} s")
    )
